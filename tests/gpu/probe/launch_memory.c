/* Question 32: memory that the driver takes inside a launch. */
#include "probe.h"

const char probe_name[] = "launch_memory";
const char probe_question[] = "How much memory does a first launch take, for stacks and for code "
			      "that is loaded lazily, and "
			      "what does it answer where there is not so much?";

#define LIMIT_STACK 0 /* CU_LIMIT_STACK_SIZE */
#define SOME        (16u << 10)
/* The largest size for a thread: for all that can run at once it is more than GPUs have. */
#define MOST (512u << 10)

static CUresult launch(void)
{
	CUresult r = probe_launch(probe_kernel("nothing"), 1, 32, NULL, NULL);

	return r ? r : cu.cuCtxSynchronize();
}

static double mib_less(uint64_t before)
{
	return ((double)before - (double)probe_free_bytes()) / 1048576;
}

static void measure_code(const char *mode)
{
	struct probe_child child = probe_start("first", mode);

	probe_value(probe_number(&child), "MiB", "taken by a first launch, %s", mode);
	probe_end(&child, 5000);
}

void probe_run(void)
{
	CUresult set, ran, set_most, ran_most, after;
	uint64_t before;

	probe_begin();
	measure_code("CUDA_MODULE_LOADING=LAZY");
	measure_code("CUDA_MODULE_LOADING=EAGER");
	MUST(cuCtxSynchronize);
	(void)launch();
	before = probe_free_bytes();
	set = cu.cuCtxSetLimit(LIMIT_STACK, SOME);
	probe_value(mib_less(before), "MiB", "taken by cuCtxSetLimit to 16 KiB of stack");
	before = probe_free_bytes();
	ran = launch();
	probe_value(mib_less(before), "MiB", "taken by the launch behind it");
	set_most = cu.cuCtxSetLimit(LIMIT_STACK, MOST);
	ran_most = launch();
	(void)cu.cuCtxSetLimit(LIMIT_STACK, 1024);
	after = launch();
	if (probe_is_software())
		probe_answer("skipped: a software GPU keeps neither stacks nor code in its memory "
			     "(a launch with 16 KiB of stack: %s, with 512 KiB: %s)",
			probe_error(ran), probe_error(ran_most));
	probe_answer(
		"16 KiB of stack: set: %s, launched: %s; 512 KiB: set: %s, launched: %s; with 1 "
		"KiB after that: %s",
		probe_error(set), probe_error(ran), probe_error(set_most), probe_error(ran_most),
		probe_error(after));
}

/*
 * Runs in a process of its own: measures what its first launch takes, with the code loading of its
 * environment.
 */
int probe_role(const char *role)
{
	uint64_t before;

	(void)role;
	if (probe_begin_quietly())
		return 1;
	before = probe_free_bytes();
	if (launch())
		return 1;
	probe_say("%.3f", mib_less(before));
	return 0;
}
