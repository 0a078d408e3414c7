/*
 * Injected faults, and that nothing is left of them. $SOFTGPU is the command; the server is this
 * test's own.
 */
#define ALL_CALLS
#include "cuda.h"

#include <time.h>
#include <unistd.h>

static void fault(const char *what)
{
	char line[256];

	snprintf(line, sizeof(line), "%s fault %s", getenv("SOFTGPU"), what);
	CHECK_EQ(system(line), 0);
}

/* A notice travels: until it has arrived, with a bound that only a hang reaches. */
#define UNTIL(condition)                                                                           \
	do {                                                                                       \
		const struct timespec pause = {0, 1000000};                                        \
		for (int tries = 0; !(condition); tries++) {                                       \
			CHECK(tries < 20000);                                                      \
			nanosleep(&pause, NULL);                                                   \
		}                                                                                  \
	} while (0)

TEST(a_call_fails_the_time_that_was_asked_for)
{
	CUdeviceptr at;
	CUresult r[4];

	begin();
	fault("call cuMemAlloc_v2:2=CUDA_ERROR_OUT_OF_MEMORY");
	fault("call cuStreamQuery=999");
	UNTIL(cuStreamQuery(NULL) ==
		CUDA_ERROR_UNKNOWN); /* in order: the first one has arrived too */
	for (int i = 0; i < 4; i++)
		r[i] = cuMemAlloc_v2(&at, 4096);
	CHECK(r[0] == CUDA_SUCCESS && r[1] == CUDA_ERROR_OUT_OF_MEMORY && r[2] == CUDA_SUCCESS &&
		r[3] == CUDA_SUCCESS);
	/* All flavours of a name. */
	CHECK_EQ(cuStreamQuery_ptsz(NULL), CUDA_ERROR_UNKNOWN);
	fault("clear");
	UNTIL(cuStreamQuery(NULL) == CUDA_SUCCESS);
	end();
}

TEST(pinned_memory_runs_out)
{
	void *a, *b;

	begin();
	fault("host-memory 1m");
	fault("call cuCtxGetId=1");
	UNTIL(cuCtxGetId(NULL, (unsigned long long *)&a) == 1);
	OK(cuMemHostAlloc(&a, 1 << 19, 0));
	CHECK_EQ(cuMemHostAlloc(&b, 1 << 20, 0), CUDA_ERROR_OUT_OF_MEMORY);
	OK(cuMemFreeHost(a));
	OK(cuMemHostAlloc(&b, 1 << 20, 0));
	OK(cuMemFreeHost(b));
	fault("clear");
	end();
}

TEST(a_slow_link_slows_copies)
{
	enum { BYTES = 1 << 20, FAST = 20 };
	CUevent begun, ended;
	CUdeviceptr at;
	void *pinned;
	float before = 1e9f, after = 0, took;

	begin();
	OK(cuMemAlloc_v2(&at, BYTES));
	OK(cuMemHostAlloc(&pinned, BYTES, 0));
	OK(cuEventCreate(&begun, 0));
	OK(cuEventCreate(&ended, 0));
	/* Any of the fast ones may take longer on a busy machine, but hardly all of them. */
	for (int i = 0; i <= FAST; i++) {
		if (i == FAST)
			fault("link 20m");
		OK(cuEventRecord(begun, NULL));
		OK(cuMemcpyHtoDAsync_v2(at, pinned, BYTES, NULL));
		OK(cuEventRecord(ended, NULL));
		OK(cuEventSynchronize(ended));
		OK(cuEventElapsedTime(&took, begun, ended));
		if (i == FAST)
			after = took;
		else if (took < before)
			before = took;
	}
	CHECK(after > 50 && after > 5 * before); /* modelled time: 1 MiB at 20 MB/s is 52 ms */
	fault("clear");
	end();
}

TEST(a_hang_holds_work_until_it_is_cleared)
{
	CUdeviceptr at;

	begin();
	OK(cuMemAlloc_v2(&at, 4096));
	OK(cuMemsetD32_v2(at, 0, 1));
	OK(cuCtxSynchronize());
	fault("hang");
	OK(cuMemsetD32_v2(at, 1, 1));
	CHECK_EQ(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
	fault("clear");
	OK(cuCtxSynchronize());
	CHECK_EQ(word_at(at), 1);
	end();
}

TEST(what_is_not_a_fault_is_refused)
{
	char line[256];

	snprintf(line, sizeof(line), "%s fault xid 0 2>/dev/null", getenv("SOFTGPU"));
	CHECK(system(line) != 0);
	snprintf(line, sizeof(line), "%s fault call cuNothing=2 2>/dev/null", getenv("SOFTGPU"));
	CHECK(system(line) != 0);
	snprintf(line, sizeof(line), "%s fault --gpu 7 ecc 2>/dev/null", getenv("SOFTGPU"));
	CHECK(system(line) != 0);
	snprintf(line, sizeof(line), "%s fault link 3 2>/dev/null", getenv("SOFTGPU"));
	CHECK(system(line) != 0);
}

/* The last two end this process's contexts for good. */
TEST(an_uncorrectable_error_ends_the_contexts_of_its_gpu)
{
	CUdeviceptr at;
	CUcontext other;
	unsigned n = 60000, timeout_ms[16] = {50};
	void *nap[] = {&n};

	begin();
	OK(cuCtxCreate_v2(&other, 0, 1));
	OK(cuCtxSetCurrent(context));
	OK(launch(kernel("nap"), NULL, nap)); /* a minute: it ends with the context */
	/* Whoever gave up waiting for it holds up nothing, neither calls nor the notice. */
	CHECK_EQ(cuCheckpointProcessLock(getpid(), timeout_ms), CUDA_ERROR_NOT_READY);
	fault("ecc");
	UNTIL(cuMemAlloc_v2(&at, 4096) == CUDA_ERROR_ECC_UNCORRECTABLE);
	CHECK_EQ(cuCtxSynchronize(), CUDA_ERROR_ECC_UNCORRECTABLE);
	OK(cuCtxSetCurrent(other));
	OK(cuMemAlloc_v2(&at, 4096));
	OK(cuCtxDestroy_v2(other));
}

TEST(a_gpu_that_is_lost_is_lost_to_all)
{
	CUdeviceptr at;
	CUcontext fresh;

	OK(cuInit(0));
	OK(cuCtxCreate_v2(&fresh, 0, 1));
	fault("--gpu 1 lost");
	UNTIL(cuMemAlloc_v2(&at, 4096) == CUDA_ERROR_DEVICE_UNAVAILABLE);
	CHECK_EQ(cuCtxCreate_v2(&fresh, 0, 1), CUDA_ERROR_DEVICE_UNAVAILABLE);
}
