/*
 * Streams and events of other contexts, on the same device and on another: uses that cuda.h allows
 * work, others are refused. Two GPUs.
 */
#define ALL_CALLS
#include "cuda.h"

#include <semaphore.h>
#include <string.h>

/* A host function holds its stream until the test lets it go. */
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
	__atomic_store_n((int *)arg, 1, __ATOMIC_RELEASE);
}

/* In the second context, which is current afterwards. */
static void check_order(CUdevice device)
{
	CUstream first, second;
	CUcontext other;
	CUevent event;
	struct hold h;
	int noted = 0;

	begin();
	OK(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
	OK(cuEventCreate(&event, 0));
	hold_stream(&h, first);
	OK(cuEventRecord(event, first));
	OK(cuCtxCreate_v2(&other, 0, device));
	OK(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
	OK(cuStreamWaitEvent(second, event, 0));
	OK(cuLaunchHostFunc(second, note, &noted));
	CHECK_EQ(cuStreamQuery(second), CUDA_ERROR_NOT_READY);
	CHECK_EQ(cuStreamQuery(first), CUDA_ERROR_NOT_READY);
	CHECK_EQ(cuEventQuery(event), CUDA_ERROR_NOT_READY);
	CHECK(!__atomic_load_n(&noted, __ATOMIC_ACQUIRE));
	sem_post(&h.go);
	OK(cuEventSynchronize(event));
	OK(cuStreamSynchronize(second));
	CHECK(__atomic_load_n(&noted, __ATOMIC_ACQUIRE));
	OK(cuStreamSynchronize(first));
	OK(cuStreamDestroy(first));
	CHECK_EQ(cuStreamQuery(first), CUDA_ERROR_INVALID_HANDLE);
	OK(cuEventDestroy(event));
	CHECK_EQ(cuEventQuery(event), CUDA_ERROR_INVALID_HANDLE);
	OK(cuCtxDestroy(other));
	end();
}

TEST(streams_wait_for_events_of_another_context)
{
	check_order(0);
}

TEST(streams_wait_for_events_of_another_device)
{
	check_order(1);
}

TEST(contexts_wait_for_events_of_another_device)
{
	CUstream first, second;
	CUcontext other;
	CUevent event;
	struct hold h;

	begin();
	OK(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
	OK(cuEventCreate(&event, 0));
	hold_stream(&h, first);
	OK(cuEventRecord(event, first));
	OK(cuCtxCreate_v2(&other, 0, 1));
	OK(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
	CHECK_EQ(cuCtxRecordEvent(other, event), CUDA_ERROR_INVALID_HANDLE);
	OK(cuCtxWaitEvent(other, event));
	CHECK_EQ(cuStreamQuery(second), CUDA_ERROR_NOT_READY);
	sem_post(&h.go);
	OK(cuStreamSynchronize(second));
	OK(cuEventQuery(event));
	OK(cuCtxDestroy(other));
	end();
}

TEST(a_graph_waits_for_an_event_of_another_device)
{
	CUstream first, second;
	CUcontext other;
	CUevent event;
	void *graph, *node, *exec;
	struct hold h;

	begin();
	OK(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
	OK(cuEventCreate(&event, 0));
	hold_stream(&h, first);
	OK(cuEventRecord(event, first));
	OK(cuCtxCreate_v2(&other, 0, 1));
	OK(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphAddEventWaitNode(&node, graph, NULL, 0, event));
	CHECK_EQ(
		cuGraphAddEventRecordNode(&node, graph, NULL, 0, event), CUDA_ERROR_INVALID_HANDLE);
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	OK(cuGraphLaunch(exec, second));
	CHECK_EQ(cuStreamQuery(second), CUDA_ERROR_NOT_READY);
	sem_post(&h.go);
	OK(cuStreamSynchronize(second));
	OK(cuEventQuery(event));
	OK(cuCtxDestroy(other));
	end();
}

TEST(an_event_is_recorded_in_its_own_context_only)
{
	CUstream second;
	CUcontext other;
	CUevent event;

	begin();
	OK(cuEventCreate(&event, 0));
	OK(cuCtxCreate_v2(&other, 0, 0));
	OK(cuStreamCreate(&second, 0));
	CHECK_EQ(cuEventRecord(event, second), CUDA_ERROR_INVALID_HANDLE);
	CHECK_EQ(cuEventRecord(event, NULL), CUDA_ERROR_INVALID_HANDLE);
	OK(cuCtxSetCurrent(context));
	CHECK_EQ(cuEventRecord(event, second), CUDA_ERROR_INVALID_HANDLE);
	OK(cuEventRecord(event, NULL));
	OK(cuCtxDestroy(other));
	CHECK_EQ(cuStreamWaitEvent(second, event, 0), CUDA_ERROR_INVALID_HANDLE);
	end();
}

TEST(times_of_two_devices_have_nothing_in_common)
{
	CUevent first, second, third;
	CUcontext other;
	float ms;

	begin();
	OK(cuEventCreate(&first, 0));
	OK(cuEventRecord(first, NULL));
	OK(cuEventSynchronize(first));
	OK(cuCtxCreate_v2(&other, 0, 1));
	OK(cuEventCreate(&second, 0));
	OK(cuEventRecord(second, NULL));
	OK(cuEventSynchronize(second));
	CHECK_EQ(cuEventElapsedTime(&ms, first, second), CUDA_ERROR_INVALID_HANDLE);
	OK(cuCtxDestroy(other));
	OK(cuCtxCreate_v2(&other, 0, 0));
	OK(cuEventCreate(&third, 0));
	OK(cuEventRecord(third, NULL));
	OK(cuEventSynchronize(third));
	OK(cuEventElapsedTime(&ms, first, third));
	CHECK_EQ(cuEventElapsedTime(&ms, first, second),
		CUDA_ERROR_INVALID_HANDLE); /* went with its context */
	OK(cuCtxDestroy(other));
	end();
}

TEST(kernels_stay_in_their_context_and_copies_follow_the_stream)
{
	void *library, *store;
	CUstream second;
	CUcontext other;
	CUdeviceptr here, there;
	unsigned value = 7, back = 0;
	void *params[] = {&there, &value};
	CUfunction function;

	begin();
	function = kernel("store");
	OK(cuMemAlloc_v2(&here, 4));
	OK(cuLibraryLoadData(&library, kernels_ptx, NULL, NULL, 0, NULL, NULL, 0));
	OK(cuLibraryGetKernel(&store, library, "store"));
	OK(cuCtxCreate_v2(&other, 0, 1));
	OK(cuStreamCreate(&second, 0));
	OK(cuMemAlloc_v2(&there, 4));
	OK(cuMemsetD32_v2(there, 1, 1));
	CHECK_EQ(launch(function, second, params), CUDA_ERROR_INVALID_HANDLE);
	OK(cuCtxSetCurrent(context));
	CHECK_EQ(launch(function, second, params), CUDA_ERROR_INVALID_HANDLE);
	OK(cuMemcpyDtoHAsync_v2(&back, there, 4, second));
	OK(cuStreamSynchronize(second));
	CHECK_EQ(back, 1);
	/* The stream decides where a CUkernel runs. */
	OK(launch(store, second, params));
	OK(cuMemcpyDtoDAsync_v2(here, there, 4, second));
	OK(cuStreamSynchronize(second));
	CHECK_EQ(word_at(here), 7);
	OK(cuCtxDestroy(other));
	OK(cuLibraryUnload(library));
	end();
}

TEST(attributes_are_copied_within_a_context)
{
	CUstream first, second;
	CUcontext other;

	begin();
	OK(cuStreamCreate(&first, 0));
	OK(cuCtxCreate_v2(&other, 0, 0));
	OK(cuStreamCreate(&second, 0));
	CHECK_EQ(cuStreamCopyAttributes(first, second), CUDA_ERROR_INVALID_VALUE);
	OK(cuCtxDestroy(other));
	end();
}

TEST(memory_of_a_pool_of_another_device_comes_in_the_streams_order)
{
	void *pool;
	CUdeviceptr at;
	CUdevice device;
	unsigned back = 0;

	begin();
	OK(cuDeviceGetDefaultMemPool(&pool, 1));
	OK(cuMemAllocFromPoolAsync(&at, 4, pool, NULL));
	OK(cuMemsetD32_v2(at, 3, 1));
	OK(cuMemcpyDtoH_v2(&back, at, 4));
	CHECK_EQ(back, 3);
	OK(cuPointerGetAttribute(&device, 9 /* CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL */, at));
	CHECK_EQ(device, 1);
	OK(cuMemFreeAsync(at, NULL));
	end();
}

TEST(access_is_told_for_the_device_that_is_current)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	CUmemAccessDesc access = {
		{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemGenericAllocationHandle handle;
	CUcontext other;
	CUdeviceptr at;
	int flags = -1;

	begin();
	OK(cuMemAddressReserve(&at, 2 * MIB, 0, 0, 0));
	OK(cuMemCreate(&handle, 2 * MIB, &prop, 0));
	OK(cuMemMap(at, 2 * MIB, 0, handle, 0));
	OK(cuPointerGetAttribute(&flags, 16 /* CU_POINTER_ATTRIBUTE_ACCESS_FLAGS */, at));
	CHECK_EQ(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);
	OK(cuMemSetAccess(at, 2 * MIB, &access, 1));
	OK(cuPointerGetAttribute(&flags, 16, at));
	CHECK_EQ(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	OK(cuCtxCreate_v2(&other, 0, 1));
	OK(cuPointerGetAttribute(&flags, 16, at));
	CHECK_EQ(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);
	OK(cuCtxDestroy(other));
	OK(cuMemUnmap(at, 2 * MIB));
	OK(cuMemRelease(handle));
	end();
}

TEST(a_capture_is_of_one_context)
{
	CUstream first, second;
	CUcontext other;
	CUevent event;
	void *graph;

	begin();
	OK(cuStreamCreate(&first, 0));
	OK(cuEventCreate(&event, 0));
	OK(cuCtxCreate_v2(&other, 0, 1));
	OK(cuStreamCreate(&second, 0));
	OK(cuStreamBeginCapture_v2(first, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(cuEventRecord(event, first));
	CHECK_EQ(cuStreamWaitEvent(second, event, 0), CUDA_ERROR_NOT_SUPPORTED);
	CHECK_EQ(
		cuStreamEndCapture(first, &graph), 901 /* CUDA_ERROR_STREAM_CAPTURE_INVALIDATED */);
	OK(cuStreamSynchronize(second));
	OK(cuCtxDestroy(other));
	end();
}

/* Work that waits elsewhere ends when its own context does: nothing hangs. */
TEST(a_context_that_dies_waits_for_no_other)
{
	CUstream first, second, third;
	CUdeviceptr nowhere = 64;
	unsigned value = 1;
	void *args[] = {&nowhere, &value};
	CUcontext other;
	CUevent event;
	struct hold h;
	int noted = 0;

	begin();
	OK(cuStreamCreate(&first, 0));
	OK(cuEventCreate(&event, 0));
	hold_stream(&h, first);
	OK(cuEventRecord(event, first));
	OK(cuCtxCreate_v2(&other, 0, 1));
	OK(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&third, CU_STREAM_NON_BLOCKING));
	OK(cuStreamWaitEvent(second, event, 0));
	OK(cuLaunchHostFunc(second, note, &noted));
	OK(launch(kernel("store"), third, args));
	CHECK_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
	CHECK_EQ(noted, 0);
	OK(cuCtxDestroy(other));
	OK(cuCtxSetCurrent(context));
	CHECK_EQ(cuStreamQuery(first), CUDA_ERROR_NOT_READY);
	sem_post(&h.go);
	OK(cuCtxSynchronize());
	end();
}

TEST(the_legacy_stream_answers_for_all_blocking_ones)
{
	CUstream blocking, alone;
	struct hold h;

	begin();
	OK(cuStreamCreate(&blocking, 0));
	OK(cuStreamCreate(&alone, CU_STREAM_NON_BLOCKING));
	hold_stream(&h, blocking);
	CHECK_EQ(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
	OK(cuStreamQuery(alone));
	sem_post(&h.go);
	OK(cuStreamSynchronize(NULL));
	OK(cuStreamQuery(blocking));
	hold_stream(&h, alone);
	OK(cuStreamQuery(NULL));
	sem_post(&h.go);
	end();
}

/* read(p, flag, out): *out = *p, over and over, until *flag is set */
static const char read_ptx[] = PTX_HEAD
	".visible .entry read(.param .u64 p, .param .u64 flag, .param .u64 out)\n{\n"
	".reg .u64 %a, %f, %o;\n.reg .u32 %v, %s;\n.reg .pred %p;\n"
	"ld.param.u64 %a, [p];\nld.param.u64 %f, [flag];\nld.param.u64 %o, [out];\n"
	"more:\nld.volatile.global.u32 %v, [%a];\nst.volatile.global.u32 [%o], %v;\n"
	"ld.volatile.global.u32 %s, [%f];\nsetp.eq.u32 %p, %s, 0;\n@%p bra more;\nret;\n}\n";

/* A kernel that reads until the host says stop; has_read() returns when it reads. */
struct reader {
	volatile unsigned *flag, *out;
};

/*
 * The memory that a kernel reads and writes meanwhile, which is no race of this program's threads.
 * It is not instrumented here, because tsan.supp recognises the kernel by its stack, which is
 * forgotten after a while.
 */
__attribute__((noinline, no_sanitize("thread"))) static void put_beside_a_kernel(
	volatile unsigned *out, unsigned value)
{
	*out = value;
}

__attribute__((noinline, no_sanitize("thread"))) static unsigned get_beside_a_kernel(
	const volatile unsigned *from)
{
	return *from;
}

static void start_reader(struct reader *r, CUdeviceptr from, unsigned expected)
{
	CUmodule module;
	CUfunction function;
	void *params[] = {&from, (void *)&r->flag, (void *)&r->out};

	OK(cuModuleLoadData(&module, read_ptx));
	OK(cuModuleGetFunction(&function, module, "read"));
	OK(cuMemAllocHost_v2((void **)&r->flag, 4));
	OK(cuMemAllocHost_v2((void **)&r->out, 4));
	*r->flag = *r->out = 0;
	OK(launch(function, NULL, params));
	while (get_beside_a_kernel(r->out) != expected)
		;
}

TEST(memory_that_is_unmapped_under_a_kernel_ends_no_process)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	CUmemAccessDesc access = {
		{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemGenericAllocationHandle handle;
	struct reader r;
	CUdeviceptr at;
	CUresult end_of_kernel;

	begin();
	OK(cuMemAddressReserve(&at, 2 * MIB, 0, 0, 0));
	OK(cuMemCreate(&handle, 2 * MIB, &prop, 0));
	OK(cuMemMap(at, 2 * MIB, 0, handle, 0));
	OK(cuMemSetAccess(at, 2 * MIB, &access, 1));
	OK(cuMemsetD32_v2(at, 5, 1));
	start_reader(&r, at, 5);
	OK(cuMemUnmap(at, 2 * MIB));
	OK(cuMemRelease(handle));
	OK(cuMemAddressFree(at, 2 * MIB));
	put_beside_a_kernel(r.out, 5);
	for (unsigned i = 0; i < 1000000 && get_beside_a_kernel(r.out) == 5; i++)
		;
	put_beside_a_kernel(r.flag, 1);
	end_of_kernel = cuCtxSynchronize();
	CHECK(end_of_kernel == CUDA_SUCCESS || end_of_kernel == CUDA_ERROR_ILLEGAL_ADDRESS);
	(void)cuCtxDestroy(context);
}

static void set_flag(void *arg)
{
	put_beside_a_kernel(((struct reader *)arg)->flag, 1);
}

/* cuMemFree waits for those who may use the memory, whoever calls it. */
TEST(freeing_waits_for_the_context_that_has_the_memory)
{
	CUcontext other;
	struct reader r;
	CUdeviceptr at;
	CUstream second;

	begin();
	OK(cuMemAlloc_v2(&at, 4 * MIB));
	OK(cuMemsetD32_v2(at, 5, 1));
	start_reader(&r, at, 5);
	OK(cuCtxCreate_v2(&other, 0, 1));
	OK(cuStreamCreate(&second, 0));
	OK(cuLaunchHostFunc(second, set_flag, &r));
	OK(cuMemFree_v2(at));
	CHECK_EQ(get_beside_a_kernel(r.flag), 1);
	OK(cuCtxSetCurrent(context));
	OK(cuStreamQuery(NULL));
	OK(cuCtxDestroy(other));
	end();
}
