/* Order: streams, default streams, events, host functions; and the other ways to launch. */
#include "cuda.h"

#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

CUresult cuLaunchKernel_ptsz(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
	unsigned by, unsigned bz, unsigned shared, CUstream stream, void **params, void **extra);
CUresult cuLaunchHostFunc_ptsz(CUstream stream, CUhostFn function, void *arg);
CUresult cuCtxSetCurrent(CUcontext context);

/*
 * A host function holds its stream until the test releases it: the order is then observed, not
 * guessed from time.
 */
struct hold {
	sem_t entered, go;
};

static void hold(void *arg)
{
	struct hold *h = arg;

	sem_post(&h->entered);
	sem_wait(&h->go);
}

static void hold_stream(struct hold *h, CUstream stream)
{
	sem_init(&h->entered, 0, 0);
	sem_init(&h->go, 0, 0);
	OK(cuLaunchHostFunc(stream, hold, h));
	sem_wait(&h->entered);
}

static void note(void *arg)
{
	*(volatile int *)arg = 1;
}

TEST(launch_ex_does_what_launch_does_and_refuses_what_is_not_there)
{
	CUlaunchAttribute attribute = {
		.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = 1};
	CUlaunchConfig config = {1, 1, 1, 1, 1, 1, 0, NULL, &attribute, 1};
	CUdeviceptr at;
	unsigned value = 9;
	void *params[] = {&at, &value};

	begin();
	CUfunction store = kernel("store");
	OK(cuMemAlloc_v2(&at, 4));
	OK(cuLaunchKernelEx(&config, store, params, NULL));
	CHECK_EQ(word_at(at), 9);
	config.gridDimX = 1u << 20;
	CHECK_EQ(cuLaunchKernelEx(&config, store, params, NULL),
		CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
	attribute.value.cooperative = 0;
	config.gridDimX = 2;
	OK(cuLaunchKernelEx(&config, store, params, NULL));
	attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
	CHECK_EQ(cuLaunchKernelEx(&config, store, params, NULL), CUDA_ERROR_NOT_SUPPORTED);
	config.attrs = NULL;
	CHECK_EQ(cuLaunchKernelEx(&config, store, params, NULL), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuLaunchKernelEx(NULL, store, params, NULL), CUDA_ERROR_INVALID_VALUE);
	end();
}

TEST(a_cooperative_grid_must_fit_at_once)
{
	CUdeviceptr at;
	unsigned value = 9;
	void *params[] = {&at, &value};
	CUfunction store;

	begin();
	store = kernel("store");
	OK(cuMemAlloc_v2(&at, 4));
	OK(cuLaunchCooperativeKernel(store, 2, 1, 1, 32, 1, 1, 0, NULL, params));
	CHECK_EQ(cuLaunchCooperativeKernel(store, 1u << 20, 1, 1, 32, 1, 1, 0, NULL, params),
		CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
	CHECK_EQ(word_at(at), 9);
	end();
}

TEST(a_host_function_runs_in_its_place_and_holds_up_its_stream_alone)
{
	CUstream first, second;
	volatile int ran = 0;
	struct hold h;

	begin();
	OK(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
	hold_stream(&h, first);
	OK(cuLaunchHostFunc(first, note, (void *)&ran));
	CHECK_EQ(cuStreamQuery(first), CUDA_ERROR_NOT_READY);
	OK(cuStreamSynchronize(second));
	CHECK_EQ(ran, 0);
	sem_post(&h.go);
	OK(cuStreamSynchronize(first));
	CHECK_EQ(ran, 1);
	OK(cuStreamQuery(first));
	end();
}

static int inside;

static void call_driver(void *arg)
{
	(void)arg;
	inside = cuCtxSynchronize();
}

TEST(a_host_function_may_not_call_the_driver)
{
	begin();
	inside = -1;
	OK(cuLaunchHostFunc(NULL, call_driver, NULL));
	OK(cuStreamSynchronize(NULL));
	CHECK_EQ(inside, CUDA_ERROR_NOT_PERMITTED);
	end();
}

static _Atomic int told;

static void tell(CUstream stream, CUresult status, void *arg)
{
	(void)stream;
	(void)arg;
	told = status;
}

TEST(a_callback_is_told_of_a_device_error_and_a_host_function_is_not_called)
{
	CUdeviceptr at = 4096;
	unsigned value = 1;
	void *params[] = {&at, &value};
	volatile int ran = 0;
	struct hold h;

	begin();
	told = -1;
	OK(cuStreamAddCallback(NULL, tell, NULL, 0));
	OK(cuStreamSynchronize(NULL));
	CHECK_EQ(told, CUDA_SUCCESS);
	CHECK_EQ(cuStreamAddCallback(NULL, tell, NULL, 1), CUDA_ERROR_INVALID_VALUE);
	CUfunction store = kernel("store");
	hold_stream(&h, NULL);
	told = -1;
	OK(launch(store, NULL, params));
	OK(cuStreamAddCallback(NULL, tell, NULL, 0));
	OK(cuLaunchHostFunc(NULL, note, (void *)&ran));
	sem_post(&h.go);
	CHECK_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
	/* The error is known to who waits before it is to the callback. */
	while (told == -1)
		usleep(1000);
	CHECK_EQ(told, CUDA_ERROR_ILLEGAL_ADDRESS);
	CHECK_EQ(ran, 0);
	end();
}

TEST(the_legacy_stream_waits_for_blocking_ones_and_they_for_it)
{
	CUstream blocking, free_stream;
	volatile int ran = 0;
	struct hold h;

	begin();
	OK(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
	OK(cuStreamCreate(&free_stream, CU_STREAM_NON_BLOCKING));
	hold_stream(&h, blocking);
	OK(cuLaunchHostFunc(NULL, note, (void *)&ran));
	OK(cuLaunchHostFunc(blocking, note, (void *)&ran));
	OK(cuStreamSynchronize(free_stream));
	CHECK_EQ(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
	CHECK_EQ(ran, 0);
	sem_post(&h.go);
	OK(cuCtxSynchronize());
	ran = 0;
	hold_stream(&h, NULL);
	OK(cuLaunchHostFunc(blocking, note, (void *)&ran));
	CHECK_EQ(cuStreamQuery(blocking), CUDA_ERROR_NOT_READY);
	CHECK_EQ(ran, 0);
	sem_post(&h.go);
	OK(cuCtxSynchronize());
	CHECK_EQ(ran, 1);
	end();
}

static volatile int other_ran;
static char thread_failed;

static void *in_other_thread(void *arg)
{
	(void)arg;
	if (cuCtxSetCurrent(context) || cuLaunchHostFunc_ptsz(NULL, note, (void *)&other_ran) ||
		cuStreamSynchronize(CU_STREAM_PER_THREAD))
		return &thread_failed;
	return NULL;
}

TEST(per_thread_default_streams_do_not_wait_for_each_other)
{
	struct hold h;
	pthread_t thread;
	void *failed;

	begin();
	other_ran = 0;
	hold_stream(&h, CU_STREAM_PER_THREAD);
	pthread_create(&thread, NULL, in_other_thread, NULL);
	pthread_join(thread, &failed);
	CHECK(!failed);
	CHECK_EQ(other_ran, 1);
	/* But the legacy stream waits for each. */
	OK(cuLaunchHostFunc(NULL, note, (void *)&other_ran));
	CHECK_EQ(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
	sem_post(&h.go);
	OK(cuCtxSynchronize());
	end();
}

TEST(waiting_for_an_event_waits_for_what_was_recorded_then)
{
	CUstream first, second;
	CUevent event, never;
	volatile int ran = 0;
	struct hold h, later;

	begin();
	OK(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
	OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	OK(cuEventCreate(&never, 0));
	OK(cuStreamWaitEvent(second, never, 0)); /* never recorded: nothing to wait for */
	OK(cuEventQuery(never));
	hold_stream(&h, first);
	OK(cuEventRecord(event, first));
	OK(cuStreamWaitEvent(second, event, 0));
	OK(cuLaunchHostFunc(second, note, (void *)&ran));
	CHECK_EQ(cuEventQuery(event), CUDA_ERROR_NOT_READY);
	CHECK_EQ(ran, 0);
	/* A later record is not what was waited for. */
	sem_init(&later.entered, 0, 0);
	sem_init(&later.go, 0, 0);
	OK(cuLaunchHostFunc(first, hold, &later));
	OK(cuEventRecord(event, first));
	sem_post(&h.go);
	OK(cuStreamSynchronize(second));
	CHECK_EQ(ran, 1);
	CHECK_EQ(cuEventQuery(event), CUDA_ERROR_NOT_READY);
	sem_post(&later.go);
	OK(cuEventSynchronize(event));
	CHECK_EQ(cuStreamWaitEvent(second, event, 7), CUDA_ERROR_INVALID_VALUE);
	end();
}

TEST(times_need_events_that_were_reached_and_keep_time)
{
	CUevent start, stop, untimed, never;
	unsigned ms_asked = 3;
	void *params[] = {&ms_asked};
	struct hold h;
	float ms;

	begin();
	OK(cuEventCreate(&start, 0));
	OK(cuEventCreate(&stop, CU_EVENT_BLOCKING_SYNC));
	OK(cuEventCreate(&untimed, CU_EVENT_DISABLE_TIMING));
	OK(cuEventCreate(&never, 0));
	CUfunction nap = kernel("nap");
	OK(cuEventRecord(start, NULL));
	OK(launch(nap, NULL, params));
	hold_stream(&h, NULL);
	OK(cuEventRecord(stop, NULL));
	OK(cuEventRecord(untimed, NULL));
	CHECK_EQ(cuEventElapsedTime(&ms, start, stop), CUDA_ERROR_NOT_READY);
	sem_post(&h.go);
	OK(cuEventSynchronize(stop));
	OK(cuEventElapsedTime(&ms, start, stop));
	CHECK(ms >= 3);
	OK(cuEventElapsedTime(&ms, stop, start));
	CHECK(ms <= -3);
	CHECK_EQ(cuEventElapsedTime(&ms, start, untimed), CUDA_ERROR_INVALID_HANDLE);
	CHECK_EQ(cuEventElapsedTime(&ms, start, never), CUDA_ERROR_INVALID_HANDLE);
	end();
}
