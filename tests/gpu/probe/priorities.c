/* Question 17: priorities of streams. */
#include "probe.h"

const char probe_name[] = "priorities";
const char probe_question[] = "How long does a short kernel wait behind a full GPU, in a stream of "
			      "the same, of a higher priority, and in another process?";

static double wait_us(CUstream stream)
{
	uint64_t t = probe_now_ns();

	probe_must(probe_launch(probe_kernel("nothing"), 1, 1, stream, NULL), "cuLaunchKernel");
	MUST(cuStreamSynchronize, stream);
	return probe_us_since(t);
}

static unsigned full(void)
{
	return 16u * (unsigned)probe_attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
}

static void load(CUstream stream)
{
	for (int i = 0; i < 8; i++)
		probe_spin(stream, full(), probe_quick ? 200000 : 2000000);
}

/* In another process, with the highest priority. */
int probe_role(const char *role)
{
	int least = 0, greatest = 0;
	CUstream stream;

	(void)role;
	probe_begin();
	(void)cu.cuCtxGetStreamPriorityRange(&least, &greatest);
	MUST(cuStreamCreateWithPriority, &stream, CU_STREAM_NON_BLOCKING, greatest);
	(void)wait_us(stream);
	probe_say("ready");
	for (int i = 0; i < (probe_quick ? 2 : 20); i++) {
		probe_listen();
		probe_say("%f", wait_us(stream));
	}
	return 0;
}

void probe_run(void)
{
	static struct probe_series same, higher, other;
	int least = 0, greatest = 0;
	CUstream low, low2, high;
	struct probe_child child;

	probe_begin();
	MUST(cuCtxGetStreamPriorityRange, &least, &greatest);
	MUST(cuStreamCreateWithPriority, &low, CU_STREAM_NON_BLOCKING, least);
	MUST(cuStreamCreateWithPriority, &low2, CU_STREAM_NON_BLOCKING, least);
	MUST(cuStreamCreateWithPriority, &high, CU_STREAM_NON_BLOCKING, greatest);
	child = probe_start("other", NULL);
	(void)probe_line(&child);
	(void)wait_us(high);
	for (int i = 0; i < (probe_quick ? 2 : 20); i++) {
		load(low);
		probe_add(&same, wait_us(low2));
		MUST(cuCtxSynchronize);
		load(low);
		probe_add(&higher, wait_us(high));
		MUST(cuCtxSynchronize);
		load(low);
		probe_tell(&child, "go");
		probe_add(&other, probe_number(&child));
		MUST(cuCtxSynchronize);
	}
	(void)probe_end(&child, 5000);
	probe_figure(&same, "us", "empty kernel behind 16 ms of full GPU, same priority");
	probe_figure(&higher, "us", "the same, highest priority");
	probe_figure(&other, "us", "the same, highest priority in another process");
	probe_answer("priorities from %d to %d", least, greatest);
}
