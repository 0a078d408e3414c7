/*
 * cuInit of a program that may see some of the GPUs: the environment that the driver finds, and
 * that the program finds afterwards. Each case runs in a child, because cuInit happens once.
 */
#include "test.h"

#include <sys/wait.h>
#include <unistd.h>

#include "cuda/types.h"
#include "preload/agent/agent.h"
#include "preload/agent/place.h"
#include "preload/base/settings.h"
#include "preload/driver/real.h"

#define FIRST  "GPU-01010101-0101-0101-0101-010101010101"
#define SECOND "GPU-02020202-0202-0202-0202-020202020202"

#define EXPECT(cond)                                                                               \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			fprintf(stderr, "# %s:%d: %s\n", __FILE__, __LINE__, #cond);               \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

static char found[256];
static const char *set_meanwhile; /* by another thread, as it were */
static CUresult result;
static unsigned calls;

static CUresult fake_init(unsigned flags)
{
	const char *visible = getenv("CUDA_VISIBLE_DEVICES");

	EXPECT(!flags);
	snprintf(found, sizeof(found), "%s", visible ? visible : "unset");
	EXPECT(getenv("BEFORE") && !strcmp(getenv("BEFORE"), "kept"));
	if (set_meanwhile)
		setenv(set_meanwhile, "new", 1);
	calls++;
	return result;
}

static void begin(const char *gpus, const char *visible)
{
	setenv("BEFORE", "kept", 1);
	setenv("TANDEM_GPUS", gpus, 1);
	if (visible)
		setenv("CUDA_VISIBLE_DEVICES", visible, 1);
	else
		unsetenv("CUDA_VISIBLE_DEVICES");
	td_settings_read();
	td_place_read();
	td_real.cuInit = fake_init;
}

static void in_child(void (*run)(void))
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		run();
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK_EQ(status, 0);
}

#define CASE(id)                                                                                   \
	static void run_##id(void);                                                                \
	TEST(id)                                                                                   \
	{                                                                                          \
		in_child(run_##id);                                                                \
	}                                                                                          \
	static void run_##id(void)

CASE(the_driver_finds_the_jobs_gpus_and_the_program_its_environment_as_it_was)
{
	char **before;

	begin(SECOND "," FIRST, NULL);
	before = environ;
	EXPECT(td_hook_cuInit(0) == CUDA_SUCCESS);
	EXPECT(!strcmp(found, SECOND "," FIRST));
	EXPECT(environ == before && !getenv("CUDA_VISIBLE_DEVICES"));
}

CASE(what_the_program_asks_for_itself_counts_the_jobs_gpus)
{
	begin(SECOND "," FIRST, "1");
	EXPECT(td_hook_cuInit(0) == CUDA_SUCCESS);
	EXPECT(!strcmp(found, FIRST));
	EXPECT(!strcmp(getenv("CUDA_VISIBLE_DEVICES"), "1"));
}

CASE(what_it_may_not_see_leaves_nothing)
{
	begin(SECOND, FIRST);
	result = CUDA_ERROR_NO_DEVICE;
	EXPECT(td_hook_cuInit(0) == CUDA_ERROR_NO_DEVICE);
	EXPECT(!strcmp(found, ""));
}

CASE(what_another_thread_sets_meanwhile_is_kept)
{
	begin(FIRST, NULL);
	set_meanwhile = "MEANWHILE";
	EXPECT(td_hook_cuInit(0) == CUDA_SUCCESS);
	EXPECT(!strcmp(getenv("MEANWHILE"), "new") && !strcmp(getenv("BEFORE"), "kept"));
	EXPECT(!getenv("CUDA_VISIBLE_DEVICES"));
}

CASE(and_so_is_what_the_program_had_asked_for)
{
	begin(FIRST, "0");
	set_meanwhile = "MEANWHILE";
	EXPECT(td_hook_cuInit(0) == CUDA_SUCCESS);
	EXPECT(!strcmp(getenv("MEANWHILE"), "new"));
	EXPECT(!strcmp(getenv("CUDA_VISIBLE_DEVICES"), "0"));
}

CASE(a_failed_start_is_tried_again_with_the_same_gpus_and_a_good_one_is_not)
{
	begin(FIRST, NULL);
	result = CUDA_ERROR_NO_DEVICE;
	EXPECT(td_hook_cuInit(0) == CUDA_ERROR_NO_DEVICE);
	result = CUDA_SUCCESS;
	found[0] = 0;
	EXPECT(td_hook_cuInit(0) == CUDA_SUCCESS);
	EXPECT(!strcmp(found, FIRST));
	EXPECT(td_hook_cuInit(0) == CUDA_SUCCESS);
	EXPECT(!strcmp(found, "unset") && calls == 3);
}

CASE(without_a_placement_nothing_is_changed)
{
	begin("", "1,0");
	EXPECT(td_hook_cuInit(0) == CUDA_SUCCESS);
	EXPECT(!strcmp(found, "1,0"));
}
