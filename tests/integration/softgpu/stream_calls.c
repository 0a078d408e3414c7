/*
 * Streams: settings and queries, words that they wait for and write, in both flavours; the debug
 * calls; and calls that only set or get.
 */
#define ALL_CALLS
#include "cuda.h"

#include "softgpu/driver/graph/graph_abi.h"

#include <unistd.h>

enum { GEQ, EQ, AND, NOR };

union value {
	char bytes[64];
	int number;
};

TEST(attributes_and_identities)
{
	unsigned long long first, second;
	union value value;
	CUstream stream, other;
	CUcontext owner;
	CUdevice device;
	unsigned flags;
	int priority;
	void *green = &flags;

	begin();
	OK(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, -2));
	OK(cuStreamCreate(&other, 0));
	OK(cuStreamGetId(stream, &first));
	OK(cuStreamGetId_ptsz(other, &second));
	CHECK(first != second);
	OK(cuStreamGetDevice(stream, &device));
	OK(cuStreamGetDevice_ptsz(stream, &device));
	CHECK_EQ(device, 0);
	OK(cuStreamGetCtx(stream, &owner));
	OK(cuStreamGetCtx_ptsz(stream, &owner));
	OK(cuStreamGetCtx_v2(stream, &owner, &green));
	CHECK(owner == context && !green);
	OK(cuStreamGetCtx_v2_ptsz(stream, &owner, NULL));
	OK(cuStreamGetGreenCtx(stream, &green));
	CHECK(!green);
	OK(cuStreamGetFlags(stream, &flags));
	OK(cuStreamGetFlags_ptsz(stream, &flags));
	CHECK_EQ(flags, CU_STREAM_NON_BLOCKING);
	OK(cuStreamGetPriority(stream, &priority));
	OK(cuStreamGetPriority_ptsz(stream, &priority));
	CHECK_EQ(priority, -2);
	value.number = 3;
	OK(cuStreamSetAttribute(stream, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
	OK(cuStreamCopyAttributes(other, stream));
	OK(cuStreamGetAttribute(other, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
	CHECK_EQ(value.number, 3);
	value.number = 1;
	OK(cuStreamSetAttribute_ptsz(stream, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
	OK(cuStreamCopyAttributes_ptsz(other, stream));
	OK(cuStreamGetAttribute_ptsz(other, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
	CHECK_EQ(value.number, 1);
	OK(cuStreamGetAttribute(stream, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
	CHECK_EQ(value.number, -2);
	value.number = 9;
	CHECK_EQ(cuStreamSetAttribute(stream, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuStreamGetAttribute(stream, 77, &value), CUDA_ERROR_INVALID_VALUE);
	OK(cuStreamDestroy(other));
	CHECK_EQ(cuStreamGetId(other, &second), CUDA_ERROR_INVALID_HANDLE);
	end();
}

static CUdeviceptr words;

/* The stream waits until the other one writes. */
static void check_wait(CUstream waits, CUdeviceptr out, unsigned expected)
{
	void *params[] = {&out, &expected};

	CHECK_EQ(cuStreamQuery(waits), CUDA_ERROR_NOT_READY);
	OK(launch(kernel("store"), waits, params));
}

TEST(streams_wait_for_words_and_write_them)
{
	CUstream a, b;

	begin();
	OK(cuMemAlloc_v2(&words, 4096));
	OK(cuMemsetD32_v2(words, 0, 1024));
	OK(cuCtxSynchronize());
	OK(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
	OK(cuStreamWaitValue32_v2(a, words, 5, GEQ));
	check_wait(a, words + 256, 1);
	OK(cuStreamWriteValue32_v2(b, words, 6, 0));
	OK(cuStreamSynchronize(a));
	CHECK_EQ(word_at(words + 256), 1);
	OK(cuStreamWaitValue64_v2(a, words + 8, 1ull << 40, EQ));
	check_wait(a, words + 256, 2);
	OK(cuStreamWriteValue64_v2(b, words + 8, 1ull << 40, 0));
	OK(cuStreamSynchronize(a));
	CHECK_EQ(word_at(words + 256), 2);
	OK(cuStreamWaitValue32(a, words + 16, 4, AND));
	OK(cuStreamWriteValue32(b, words + 16, 12, 0));
	OK(cuStreamSynchronize(a));
	OK(cuStreamWaitValue64(a, words + 24, ~0ull << 1, NOR));
	OK(cuStreamWriteValue64(b, words + 24, 2, 0));
	OK(cuStreamSynchronize(a));
	/* Thread's own default streams. */
	OK(cuStreamWriteValue32_ptsz(NULL, words + 32, 1, 0));
	OK(cuStreamWaitValue32_ptsz(NULL, words + 32, 1, EQ));
	OK(cuStreamWriteValue64_ptsz(NULL, words + 40, 1, 0));
	OK(cuStreamWaitValue64_ptsz(NULL, words + 40, 1, EQ));
	OK(cuStreamWriteValue32_v2_ptsz(NULL, words + 48, 1, 0));
	OK(cuStreamWaitValue32_v2_ptsz(NULL, words + 48, 1, EQ));
	OK(cuStreamWriteValue64_v2_ptsz(NULL, words + 56, 1, 0));
	OK(cuStreamWaitValue64_v2_ptsz(NULL, words + 56, 1, EQ));
	OK(cuStreamSynchronize_ptsz(NULL));
	CHECK_EQ(word_at(words + 56), 1);
	CHECK_EQ(cuStreamWaitValue32_v2(a, words + 2, 1, EQ), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuStreamWaitValue32_v2(a, words, 1, 1u << 30), CUDA_ERROR_NOT_SUPPORTED);
	CHECK_EQ(cuStreamWriteValue32_v2(a, 4096, 1, 0), CUDA_ERROR_INVALID_VALUE);
	end();
}

TEST(batches_of_memory_operations)
{
	CUstreamBatchMemOpParams ops[3] = {{.operation = 2, .value64 = 8}, {.operation = 6},
		{.operation = 1, .value64 = 8, .flags = EQ}};
	CUstream stream;

	begin();
	OK(cuMemAlloc_v2(&words, 4096));
	OK(cuStreamCreate(&stream, 0));
	ops[0].address = ops[2].address = words;
	OK(cuStreamBatchMemOp(stream, 3, ops, 0));
	OK(cuStreamBatchMemOp_v2(stream, 3, ops, 0));
	OK(cuStreamBatchMemOp_ptsz(NULL, 3, ops, 0));
	OK(cuStreamBatchMemOp_v2_ptsz(NULL, 3, ops, 0));
	OK(cuCtxSynchronize());
	CHECK_EQ(word_at(words), 8);
	CHECK_EQ(cuStreamBatchMemOp_v2(stream, 300, ops, 0), CUDA_ERROR_INVALID_VALUE);
	ops[1].operation = 3;
	CHECK_EQ(cuStreamBatchMemOp_v2(stream, 3, ops, 0), CUDA_ERROR_NOT_SUPPORTED);
	end();
}

static void count_up(void *arg)
{
	++*(int *)arg;
}

static void count_callback(CUstream stream, CUresult status, void *arg)
{
	*(int *)arg += stream && !status ? 10 : 100;
}

TEST(host_work_and_events_in_the_threads_own_stream)
{
	CUevent begun, ended;
	int count = 0;
	float ms;

	begin();
	OK(cuEventCreate(&begun, 0));
	OK(cuEventCreate(&ended, 0));
	OK(cuEventRecord_ptsz(begun, NULL));
	OK(cuLaunchHostFunc(NULL, count_up, &count));
	OK(cuLaunchHostFunc_ptsz(NULL, count_up, &count));
	OK(cuStreamAddCallback_ptsz(CU_STREAM_PER_THREAD, count_callback, &count, 0));
	OK(cuEventRecordWithFlags(ended, NULL, 0));
	OK(cuEventRecordWithFlags_ptsz(ended, NULL, 0));
	OK(cuStreamWaitEvent_ptsz(NULL, ended, 0));
	OK(cuEventSynchronize(ended));
	OK(cuCtxSynchronize());
	OK(cuStreamQuery_ptsz(NULL));
	CHECK_EQ(count, 12);
	OK(cuEventQuery(ended));
	OK(cuEventElapsedTime(&ms, begun, ended));
	CHECK(ms >= 0);
	OK(cuEventElapsedTime_v2(&ms, begun, ended));
	OK(cuEventDestroy(begun));
	OK(cuEventDestroy_v2(ended));
	CHECK_EQ(cuEventQuery(begun), CUDA_ERROR_INVALID_HANDLE);
	end();
}

TEST(pools_in_the_threads_own_stream)
{
	CUdeviceptr at;
	void *pool, *same;

	begin();
	OK(cuDeviceGetMemPool(&pool, 0));
	OK(cuDeviceGetDefaultMemPool(&same, 0));
	CHECK(pool == same);
	OK(cuDeviceSetMemPool(0, pool));
	OK(cuMemAllocAsync_ptsz(&at, 4096, NULL));
	OK(cuMemFreeAsync_ptsz(at, NULL));
	OK(cuMemAllocFromPoolAsync(&at, 4096, pool, NULL));
	OK(cuMemFreeAsync(at, NULL));
	OK(cuMemAllocFromPoolAsync_ptsz(&at, 4096, pool, NULL));
	OK(cuPointerGetAttribute(&same, 17, at));
	CHECK(same == pool);
	OK(cuMemFreeAsync_ptsz(at, NULL));
	OK(cuCtxSynchronize());
	OK(cuMemPoolTrimTo(pool, 0));
	end();
}

TEST(pinned_memory_and_pointers)
{
	CUdeviceptr at;
	void *pinned, *same;
	unsigned flags;
	static char mine[8192] __attribute__((aligned(4096)));
	unsigned long long id;

	begin();
	OK(cuMemAllocHost_v2(&pinned, 4096));
	OK(cuMemHostGetDevicePointer_v2(&at, pinned, 0));
	CHECK_EQ(at, (uint64_t)pinned);
	OK(cuMemHostGetFlags(&flags, pinned));
	OK(cuMemFreeHost(pinned));
	OK(cuMemAllocHost(&pinned, 4096));
	OK(cuMemFreeHost(pinned));
	OK(cuMemHostAlloc(&pinned, 4096, 2));
	OK(cuMemFreeHost(pinned));
	OK(cuMemHostRegister(mine, 4096, 0));
	CHECK_EQ(cuMemHostRegister_v2(mine, 4096, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
	OK(cuMemHostUnregister(mine));
	OK(cuMemAlloc_v2(&at, 4096));
	flags = 1;
	OK(cuPointerSetAttribute(&flags, 6, at));
	CHECK_EQ(cuPointerSetAttribute(&flags, 7, at), CUDA_ERROR_INVALID_VALUE);
	OK(cuPointerGetAttribute(&id, 7, at));
	OK(cuPointerGetAttributes(1, (int[]){7}, (void *[]){&same}, at));
	CHECK_EQ((uint64_t)same, id);
	OK(cuMemFree_v2(at));
	end();
}

TEST(mappings_are_told_as_they_were_made)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
				    .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}},
			    told;
	CUmemGenericAllocationHandle handle, same;
	size_t granularity;
	CUdeviceptr at;

	begin();
	OK(cuMemGetAllocationGranularity(&granularity, &prop, 0));
	OK(cuMemCreate(&handle, granularity, &prop, 0));
	OK(cuMemGetAllocationPropertiesFromHandle(&told, handle));
	CHECK_EQ(told.location.id, 0);
	OK(cuMemAddressReserve(&at, granularity, 0, 0, 0));
	OK(cuMemMap(at, granularity, 0, handle, 0));
	OK(cuMemRetainAllocationHandle(&same, (void *)at));
	CHECK_EQ(same, handle);
	OK(cuMemRelease(same));
	OK(cuMemUnmap(at, granularity));
	OK(cuMemRelease(handle));
	OK(cuMemAddressFree(at, granularity));
	end();
}

TEST(debug_calls_answer_and_do_nothing)
{
	char text[1024], path[] = "/tmp/softgpu-log-XXXXXX", pipe_name[] = "pipe";
	size_t size = sizeof(text);
	unsigned position = 9;
	bool on = true;
	void *handle;
	int fd = mkstemp(path);

	CHECK_EQ(cuProfilerStart(), CUDA_ERROR_INVALID_CONTEXT);
	begin();
	OK(cuProfilerStart());
	OK(cuProfilerStop());
	OK(cuCoredumpGetAttribute(5, text, &size));
	CHECK(!strncmp(text, "core.cuda.", 10));
	size = sizeof(on);
	OK(cuCoredumpSetAttribute(1, &on, &size));
	on = false;
	OK(cuCoredumpGetAttributeGlobal(1, &on, &size));
	CHECK(on);
	size = 5;
	OK(cuCoredumpSetAttributeGlobal(6, pipe_name, &size));
	size = sizeof(text);
	OK(cuCoredumpGetAttribute(6, text, &size));
	CHECK_STR(text, "pipe");
	CHECK_EQ(cuCoredumpGetAttribute(99, text, &size), CUDA_ERROR_INVALID_VALUE);
	OK(cuLogsRegisterCallback((void *)count_up, NULL, &handle));
	OK(cuLogsUnregisterCallback(handle));
	OK(cuLogsCurrent(&position, 0));
	CHECK_EQ(position, 0);
	size = sizeof(text);
	OK(cuLogsDumpToMemory(&position, text, &size, 0));
	CHECK_EQ(size, 0);
	OK(cuLogsDumpToFile(&position, path, 0));
	close(fd);
	unlink(path);
	end();
}

TEST(look_ups_answer_by_name_version_and_flavour)
{
	void *found;
	int status;

	OK(cuGetProcAddress("cuMemAlloc", &found, 13000, 0));
	CHECK(found == (void *)cuMemAlloc_v2);
	OK(cuGetProcAddress_v2("cuStreamQuery", &found, 13000, 2, &status));
	CHECK(found == (void *)cuStreamQuery_ptsz && status == 0);
	CHECK_EQ(cuGetProcAddress_v2("cuNothing", &found, 13000, 0, &status), CUDA_ERROR_NOT_FOUND);
	CHECK_EQ(status, 1);
	/* The table by which another runtime would know its own driver is not given out. */
	CHECK_EQ(cuGetExportTable(&found, NULL), CUDA_ERROR_NOT_SUPPORTED);
}
