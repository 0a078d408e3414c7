/*
 * Contexts, devices and peers: settings read back the same, and memory of another device is reached
 * only once access is enabled. Two GPUs.
 */
#define ALL_CALLS
#include <pthread.h>

#include "cuda.h"

enum { STACK_SIZE = 0, MALLOC_HEAP_SIZE = 2, SYNC_DEPTH = 3 };

TEST(limits_and_preferences_are_kept)
{
	size_t value;
	int config;
	unsigned flags;

	begin();
	OK(cuCtxSetLimit(STACK_SIZE, 2041));
	OK(cuCtxGetLimit(&value, STACK_SIZE));
	CHECK_EQ(value, 2048); /* whole units */
	OK(cuCtxGetLimit(&value, MALLOC_HEAP_SIZE));
	CHECK_EQ(value, 8 << 20);
	CHECK_EQ(cuCtxSetLimit(SYNC_DEPTH, 3), CUDA_ERROR_UNSUPPORTED_LIMIT);
	CHECK_EQ(cuCtxSetLimit(99, 3), CUDA_ERROR_UNSUPPORTED_LIMIT);
	CHECK_EQ(cuCtxSetLimit(STACK_SIZE, 1 << 20), CUDA_ERROR_INVALID_VALUE);
	OK(cuCtxSetCacheConfig(2));
	OK(cuCtxGetCacheConfig(&config));
	CHECK_EQ(config, 2);
	CHECK_EQ(cuCtxSetCacheConfig(4), CUDA_ERROR_INVALID_VALUE);
	OK(cuCtxSetSharedMemConfig(1));
	OK(cuCtxGetSharedMemConfig(&config));
	CHECK_EQ(config, 1);
	OK(cuCtxSetFlags(4));
	OK(cuCtxGetFlags(&flags));
	CHECK_EQ(flags, 4);
	CHECK_EQ(cuCtxSetFlags(3), CUDA_ERROR_INVALID_VALUE);
	OK(cuCtxResetPersistingL2Cache());
	CHECK_EQ(cuCtxGetExecAffinity(&config, 0), CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY);
	OK(cuDeviceGetExecAffinitySupport(&config, 0, 0));
	CHECK_EQ(config, 0);
	end();
}

TEST(contexts_are_told_apart)
{
	unsigned long long first, second;
	CUcontext other, popped;
	CUdevice device;
	unsigned version;
	int least, greatest, active;

	begin();
	OK(cuCtxGetId(NULL, &first));
	OK(cuCtxCreate(&other, 0, 1));
	OK(cuCtxGetId(other, &second));
	CHECK(first != second);
	OK(cuCtxGetDevice(&device));
	CHECK_EQ(device, 1);
	OK(cuCtxGetDevice_v2(&device, context));
	CHECK_EQ(device, 0);
	OK(cuCtxSynchronize_v2(context));
	OK(cuCtxGetApiVersion(other, &version));
	OK(cuCtxGetStreamPriorityRange(&least, &greatest));
	CHECK(greatest < least);
	OK(cuCtxAttach(&popped, 0));
	CHECK(popped == other);
	OK(cuCtxDetach(other));
	CHECK_EQ(cuCtxDetach(context), CUDA_ERROR_INVALID_CONTEXT);
	OK(cuCtxPopCurrent(&popped));
	OK(cuCtxPushCurrent(other));
	OK(cuCtxPopCurrent_v2(NULL));
	OK(cuCtxPushCurrent_v2(other));
	OK(cuCtxSetCurrent(context));
	OK(cuCtxGetCurrent(&popped));
	CHECK(popped == context);
	OK(cuCtxDestroy(other));
	CHECK_EQ(cuCtxGetId(other, &second), CUDA_ERROR_INVALID_CONTEXT);
	OK(cuCtxCreate_v3(&other, NULL, 0, 0, 0));
	OK(cuCtxDestroy_v2(other));
	OK(cuCtxCreate_v4(&other, NULL, 0, 0));
	OK(cuCtxDestroy_v2(other));
	/* Primary contexts. */
	OK(cuDevicePrimaryCtxSetFlags(1, 4));
	OK(cuDevicePrimaryCtxSetFlags_v2(1, 4));
	OK(cuDevicePrimaryCtxRetain(&other, 1));
	OK(cuDevicePrimaryCtxRetain(&popped, 1));
	CHECK(other == popped);
	OK(cuDevicePrimaryCtxRelease(1));
	OK(cuDevicePrimaryCtxRelease_v2(1));
	OK(cuDevicePrimaryCtxGetState(1, &version, &active));
	CHECK(version == 4 && !active);
	CHECK_EQ(cuDevicePrimaryCtxRelease(1), CUDA_ERROR_INVALID_CONTEXT);
	OK(cuDevicePrimaryCtxRetain(&other, 1));
	OK(cuDevicePrimaryCtxReset(1));
	OK(cuDevicePrimaryCtxRetain(&other, 1));
	OK(cuDevicePrimaryCtxReset_v2(1));
	OK(cuCtxSetCurrent(context));
	end();
}

TEST(devices_are_described)
{
	int version, value, major, minor, count;
	char name[64], id[16];
	CUdevice device;
	CUuuid uuid, same;
	size_t bytes;
	struct {
		int threads, dims[3], grid[3], shared, constant, warp, pitch, registers, clock,
			align;
	} properties;
	const char *text;

	begin();
	OK(cuDriverGetVersion(&version));
	CHECK_EQ(version, 13000);
	OK(cuDeviceGetCount(&count));
	CHECK_EQ(count, 2);
	OK(cuDeviceGet(&device, 1));
	CHECK_EQ(cuDeviceGet(&device, 2), CUDA_ERROR_INVALID_DEVICE);
	OK(cuDeviceGetName(name, sizeof(name), 1));
	CHECK_STR(name, "softgpu tiny");
	OK(cuDeviceGetUuid(&uuid, 1));
	OK(cuDeviceGetUuid_v2(&same, 1));
	CHECK(!memcmp(&uuid, &same, sizeof(uuid)));
	OK(cuDeviceTotalMem_v2(&bytes, 0));
	CHECK_EQ(bytes, 64 * MIB);
	OK(cuDeviceComputeCapability(&major, &minor, 0));
	OK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0));
	CHECK_EQ(value, major);
	OK(cuDeviceGetProperties(&properties, 0));
	CHECK(properties.warp == 32 && properties.threads == 1024);
	OK(cuDeviceGetPCIBusId(id, sizeof(id), 1));
	OK(cuDeviceGetByPCIBusId(&device, id));
	CHECK_EQ(device, 1);
	OK(cuGetErrorName(700, &text));
	CHECK_STR(text, "CUDA_ERROR_ILLEGAL_ADDRESS");
	OK(cuGetErrorString(2, &text));
	CHECK_STR(text, "out of memory");
	CHECK_EQ(cuGetErrorName(12345, &text), CUDA_ERROR_INVALID_VALUE);
	end();
}

TEST(memory_of_another_device_is_reached_only_when_it_was_opened)
{
	void *params[2];
	CUdeviceptr there;
	CUcontext other, fresh;
	unsigned value = 5, caps[2];
	int can, operations[2] = {0, 1};

	begin();
	OK(cuDeviceCanAccessPeer(&can, 0, 1));
	CHECK_EQ(can, 1);
	OK(cuDeviceCanAccessPeer(&can, 0, 0));
	CHECK_EQ(can, 0);
	OK(cuDeviceGetP2PAttribute(&can, 2, 0, 1));
	CHECK_EQ(can, 1);
	CHECK_EQ(cuDeviceGetP2PAttribute(&can, 2, 0, 0), CUDA_ERROR_INVALID_VALUE);
	OK(cuDeviceGetP2PAtomicCapabilities(caps, operations, 2, 0, 1));
	CHECK_EQ(caps[1], 0);
	OK(cuDeviceGetHostAtomicCapabilities(caps, operations, 2, 0));
	OK(cuCtxCreate_v2(&other, 0, 1));
	OK(cuMemAlloc_v2(&there, 4096));
	OK(cuMemsetD32_v2(there, 1, 1));
	OK(cuCtxSynchronize());
	OK(cuCtxSetCurrent(context));
	params[0] = &there;
	params[1] = &value;
	CHECK_EQ(cuCtxDisablePeerAccess(other), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
	CHECK_EQ(cuCtxEnablePeerAccess(other, 1), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuCtxEnablePeerAccess(context, 0), CUDA_ERROR_INVALID_CONTEXT);
	OK(cuCtxEnablePeerAccess(other, 0));
	CHECK_EQ(cuCtxEnablePeerAccess(other, 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
	OK(launch(kernel("store"), NULL, params));
	OK(cuCtxSynchronize());
	CHECK_EQ(word_at(there), 5);
	OK(cuCtxDisablePeerAccess(other));
	/* From a context of its own, as the fault ends it. */
	OK(cuCtxCreate_v2(&fresh, 0, 0));
	OK(launch(kernel("store"), NULL, params));
	CHECK_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
	OK(cuCtxDestroy_v2(fresh));
	OK(cuCtxDestroy_v2(other));
	OK(cuCtxSetCurrent(context));
	end();
}

TEST(memory_by_handle_is_opened_device_by_device)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {CU_MEM_LOCATION_TYPE_DEVICE, 1}};
	CUmemAccessDesc access = {
		{CU_MEM_LOCATION_TYPE_DEVICE, 1}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemLocation place = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
	CUmemGenericAllocationHandle handle;
	unsigned long long flags;
	unsigned value = 6;
	CUdeviceptr at;
	void *params[] = {&at, &value};

	begin();
	OK(cuMemCreate(&handle, 2 * MIB, &prop, 0));
	OK(cuMemAddressReserve(&at, 2 * MIB, 0, 0, 0));
	OK(cuMemMap(at, 2 * MIB, 0, handle, 0));
	OK(cuMemSetAccess(at, 2 * MIB, &access, 1));
	OK(cuMemGetAccess(&flags, &place, at));
	CHECK_EQ(flags, 0);
	access.location.id = 0;
	OK(cuMemSetAccess(at, 2 * MIB, &access, 1));
	OK(cuMemGetAccess(&flags, &place, at));
	CHECK_EQ(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	OK(launch(kernel("store"), NULL, params));
	OK(cuCtxSynchronize());
	CHECK_EQ(word_at(at), 6);
	access.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
	OK(cuMemSetAccess(at, 2 * MIB, &access, 1));
	OK(launch(kernel("store"), NULL, params));
	CHECK_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
	end();
}

/* A context on the device that has just ended makes no difference. */
TEST(memory_by_handle_needs_no_context_on_its_device)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {CU_MEM_LOCATION_TYPE_DEVICE, 1}};
	CUmemGenericAllocationHandle handle;
	CUcontext other;

	begin();
	for (int i = 0; i < 100; i++) {
		OK(cuCtxCreate_v2(&other, 0, 1));
		OK(cuCtxDestroy_v2(other));
		OK(cuMemCreate(&handle, 2 * MIB, &prop, 0));
		OK(cuMemRelease(handle));
	}
	end();
}

TEST(pools_are_opened_device_by_device)
{
	CUmemAccessDesc access = {
		{CU_MEM_LOCATION_TYPE_DEVICE, 1}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemLocation there = {CU_MEM_LOCATION_TYPE_DEVICE, 1},
		      here = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
	void *pool, *same;
	CUdeviceptr at;
	CUcontext other;
	unsigned value = 9;
	void *params[] = {&at, &value};
	int flags;

	begin();
	OK(cuMemGetDefaultMemPool(&pool, &here, CU_MEM_ALLOCATION_TYPE_PINNED));
	OK(cuMemGetMemPool(&same, &here, CU_MEM_ALLOCATION_TYPE_PINNED));
	CHECK(pool == same);
	OK(cuMemSetMemPool(&here, CU_MEM_ALLOCATION_TYPE_PINNED, pool));
	OK(cuMemPoolGetAccess(&flags, pool, &there));
	CHECK_EQ(flags, 0);
	OK(cuMemPoolSetAccess(pool, &access, 1));
	OK(cuMemPoolGetAccess(&flags, pool, &there));
	CHECK_EQ(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	OK(cuMemAllocAsync(&at, 4096, NULL));
	OK(cuStreamSynchronize(NULL));
	OK(cuCtxCreate_v2(&other, 0, 1));
	OK(launch(kernel("store"), NULL, params));
	OK(cuCtxSynchronize());
	CHECK_EQ(word_at(at), 9);
	OK(cuCtxDestroy_v2(other));
	OK(cuCtxSetCurrent(context));
	access.location.id = 0;
	access.flags = 0;
	CHECK_EQ(cuMemPoolSetAccess(pool, &access, 1),
		CUDA_ERROR_INVALID_VALUE); /* its own device */
	here.type = CU_MEM_LOCATION_TYPE_HOST;
	CHECK_EQ(cuMemGetMemPool(&same, &here, CU_MEM_ALLOCATION_TYPE_PINNED),
		CUDA_ERROR_NOT_SUPPORTED);
	end();
}

static CUdeviceptr memory;

static void *ask_range(void *ret)
{
	CUdeviceptr base;
	size_t bytes;

	*(CUresult *)ret = cuMemGetAddressRange_v2(&base, &bytes, memory + 8);
	return NULL;
}

TEST(where_memory_begins_is_asked_in_a_context)
{
	CUresult here, there;
	pthread_t thread;

	begin();
	OK(cuMemAlloc_v2(&memory, 4 * MIB));
	ask_range(&here);
	CHECK_EQ(here, CUDA_SUCCESS);
	CHECK_EQ(pthread_create(&thread, NULL, ask_range, &there), 0);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	CHECK_EQ(there, CUDA_ERROR_INVALID_CONTEXT); /* it has none */
	end();
}

TEST(events_of_a_whole_context)
{
	CUdeviceptr word;
	CUstream one, two;
	CUevent event;
	unsigned n = 3;
	void *nap[] = {&n}, *add[] = {&word};

	begin();
	OK(cuMemAlloc_v2(&word, 64));
	OK(cuMemsetD32_v2(word, 0, 1));
	OK(cuCtxSynchronize()); /* the streams below wait for no default stream */
	OK(cuStreamCreate(&one, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&two, CU_STREAM_NON_BLOCKING));
	OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	OK(launch(kernel("nap"), one, nap));
	OK(launch(kernel("add"), one, add));
	OK(cuCtxRecordEvent(context, event));
	OK(cuCtxWaitEvent(context, event));
	OK(launch(kernel("add"), two, add));
	OK(cuEventSynchronize(event));
	OK(cuCtxSynchronize());
	CHECK_EQ(word_at(word), 2);
	CHECK_EQ(cuCtxRecordEvent((CUcontext)&n, event), CUDA_ERROR_INVALID_CONTEXT);
	CHECK_EQ(cuCtxWaitEvent(context, (CUevent)&n), CUDA_ERROR_INVALID_HANDLE);
	end();
}

static pthread_barrier_t start_line;

static void *retain(void *arg)
{
	CUcontext primary;

	pthread_barrier_wait(&start_line);
	*(CUresult *)arg = cuDevicePrimaryCtxRetain(&primary, 0);
	return primary;
}

/*
 * Needs a run of its own on a GPU that holds at most four contexts: one for each thread, made and
 * thrown away, would not fit.
 */
TEST(threads_that_come_at_once_share_one_primary_context)
{
	enum { COUNT = 16 };
	CUresult results[COUNT];
	pthread_t threads[COUNT];
	void *first, *next;

	OK(cuInit(0));
	for (int round = 0; round < 20; round++) {
		pthread_barrier_init(&start_line, NULL, COUNT);
		for (int i = 0; i < COUNT; i++)
			CHECK_EQ(pthread_create(&threads[i], NULL, retain, &results[i]), 0);
		for (int i = 0; i < COUNT; i++) {
			pthread_join(threads[i], i ? &next : &first);
			CHECK_EQ(results[i], CUDA_SUCCESS);
			CHECK(!i || next == first);
		}
		for (int i = 0; i < COUNT; i++)
			OK(cuDevicePrimaryCtxRelease_v2(0));
		pthread_barrier_destroy(&start_line);
	}
}
