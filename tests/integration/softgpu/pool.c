/*
 * Stream-ordered memory: when it exists, what is reused, what is given back; and queries about
 * pointers.
 */
#include "cuda.h"

#include <semaphore.h>

#include "softgpu/driver/memory/pool_abi.h"

CUresult cuMemAllocAsync(CUdeviceptr *address, size_t bytes, CUstream stream);
CUresult cuMemAllocFromPoolAsync(
	CUdeviceptr *address, size_t bytes, CUmemoryPool pool, CUstream stream);
CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream);
CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *props);
CUresult cuMemPoolDestroy(CUmemoryPool pool);
CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep_bytes);
CUresult cuMemPoolSetAttribute(CUmemoryPool pool, int attribute, void *value);
CUresult cuMemPoolGetAttribute(CUmemoryPool pool, int attribute, void *value);
CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device);
CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device);
CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool);
CUresult cuStreamBeginCapture_v2(CUstream stream, int mode);
CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count, CUstream stream);
CUresult cuPointerGetAttributes(unsigned count, int *attributes, void **data, CUdeviceptr address);
CUresult cuMemHostRegister_v2(void *pointer, size_t bytes, unsigned flags);
CUresult cuMemHostUnregister(void *pointer);
CUresult cuMemAllocPitch_v2(
	CUdeviceptr *address, size_t *pitch, size_t width, size_t height, unsigned element);
CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr address);

static CUstream first, second;
static CUmemoryPool pool;
static CUfunction store;
static unsigned value = 7;

static void start(void)
{
	begin();
	store = kernel("store");
	OK(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
	OK(cuDeviceGetDefaultMemPool(&pool, 0));
}

static uint64_t attribute(int which)
{
	uint64_t bytes = 0;

	OK(cuMemPoolGetAttribute(pool, which, &bytes));
	return bytes;
}

static void set_threshold(uint64_t bytes)
{
	OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &bytes));
}

static size_t free_bytes(void)
{
	size_t bytes, total;

	OK(cuMemGetInfo_v2(&bytes, &total));
	return bytes;
}

static sem_t entered, go;

static void hold(void *arg)
{
	(void)arg;
	sem_post(&entered);
	sem_wait(&go);
}

static void hold_stream(CUstream stream)
{
	sem_init(&entered, 0, 0);
	sem_init(&go, 0, 0);
	OK(cuLaunchHostFunc(stream, hold, NULL));
	sem_wait(&entered);
}

TEST(memory_comes_and_goes_in_stream_order)
{
	CUdeviceptr at;
	void *params[] = {&at, &value};
	size_t before;

	start();
	before = free_bytes();
	OK(cuMemAllocAsync(&at, 100, first));
	CHECK_EQ(attribute(CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 2 * MIB);
	OK(launch(store, first, params));
	OK(cuStreamSynchronize(first));
	CHECK_EQ(word_at(at), 7);
	OK(cuMemFreeAsync(at, first));
	CHECK_EQ(cuMemFreeAsync(at, first), CUDA_ERROR_INVALID_VALUE);
	/* Freed in a stream it cannot be named any more, though the stream has not got there. */
	CHECK_EQ(cuMemsetD32Async(at, 1, 1, first), CUDA_ERROR_INVALID_VALUE);
	OK(cuStreamSynchronize(first)); /* the threshold is 0 */
	CHECK_EQ(free_bytes(), before);
	CHECK_EQ(attribute(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0);
	CHECK_EQ(attribute(CU_MEMPOOL_ATTR_USED_MEM_HIGH), 2 * MIB);
	end();
}

/* It exists until the stream reaches its free. */
TEST(memory_of_cuMemAlloc_is_freed_in_the_streams_order)
{
	const size_t sizes[] = {100, 4 * MIB};

	for (unsigned i = 0; i < 2; i++) {
		CUdeviceptr at, keep;
		void *params[] = {&at, &value};
		size_t before, during;

		start();
		OK(cuMemAlloc_v2(&keep, 100)); /* what small ones share is there */
		before = free_bytes();
		OK(cuMemAlloc_v2(&at, sizes[i]));
		during = free_bytes();
		hold_stream(first);
		OK(launch(store, first, params));
		OK(cuMemFreeAsync(at, first));
		CHECK_EQ(cuMemFreeAsync(at, first), CUDA_ERROR_INVALID_VALUE);
		CHECK_EQ(cuMemFreeAsync(keep + 8, first), CUDA_ERROR_INVALID_VALUE);
		CHECK_EQ(free_bytes(), during);
		sem_post(&go);
		OK(cuCtxSynchronize());
		while (free_bytes() != before) /* under tandem another thread gives it back */
			;
		CHECK_EQ(cuMemFreeAsync(at, first), CUDA_ERROR_INVALID_VALUE);
		OK(cuMemAlloc_v2(&at, sizes[i]));
		OK(cuMemFreeAsync(at, first));
		end();
	}
}

TEST(use_before_the_allocation_is_reached_kills_the_context)
{
	CUdeviceptr at;
	void *params[] = {&at, &value};

	start();
	hold_stream(first);
	OK(cuMemAllocAsync(&at, 4, first));
	OK(launch(store, second, params)); /* not ordered after it */
	CHECK_EQ(cuStreamSynchronize(second), CUDA_ERROR_ILLEGAL_ADDRESS);
	sem_post(&go);
	end();
	begin();
	OK(cuMemFree_v2(at)); /* the memory is the pool's, not the dead context's */
	end();
}

TEST(use_after_the_free_kills_the_context)
{
	CUdeviceptr at;
	void *params[] = {&at, &value};

	start();
	set_threshold(64 * MIB);
	OK(cuMemAllocAsync(&at, 4, first));
	OK(cuMemFreeAsync(at, first));
	OK(launch(store, first, params));
	CHECK_EQ(cuStreamSynchronize(first), CUDA_ERROR_ILLEGAL_ADDRESS);
	end();
	begin();
	set_threshold(0);
	OK(cuCtxSynchronize()); /* what a dead context had goes back all the same */
	CHECK_EQ(attribute(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0);
	end();
}

TEST(a_block_is_used_again_in_the_order_of_its_stream)
{
	CUdeviceptr one, two, three;
	int off = 0, on = 1;

	start();
	set_threshold(64 * MIB);
	hold_stream(first);
	OK(cuMemAllocAsync(&one, MIB, first));
	OK(cuMemFreeAsync(one, first));
	OK(cuMemAllocAsync(&two, MIB, first));
	CHECK_EQ(two, one); /* neither has happened yet, and that is right */
	OK(cuMemFreeAsync(two, first));
	/* Another stream may have it only if it waits. */
	OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, &off));
	OK(cuMemAllocAsync(&three, MIB, second));
	CHECK(three != one);
	OK(cuStreamSynchronize(second));
	OK(cuMemFreeAsync(three, second));
	OK(cuStreamSynchronize(second));
	OK(cuMemAllocAsync(&three, MIB, second));
	CHECK(three != one);
	OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, &on));
	OK(cuMemAllocAsync(&two, MIB, second));
	CHECK_EQ(two, one);
	CHECK_EQ(cuStreamQuery(second), CUDA_ERROR_NOT_READY); /* it waits for the first */
	sem_post(&go);
	OK(cuStreamSynchronize(second));
	OK(cuMemFreeAsync(two, second));
	OK(cuMemFreeAsync(three, second));
	set_threshold(0);
	OK(cuCtxSynchronize());
	CHECK_EQ(attribute(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0);
	end();
}

TEST(the_threshold_says_what_stays_and_trimming_what_goes)
{
	CUdeviceptr one, two;
	uint64_t bad = 1;

	start();
	set_threshold(4 * MIB);
	OK(cuMemAllocAsync(&one, 4 * MIB, first));
	OK(cuMemAllocAsync(&two, 6 * MIB, first));
	OK(cuMemFreeAsync(one, first));
	OK(cuMemFreeAsync(two, first));
	CHECK_EQ(attribute(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 10 * MIB);
	OK(cuStreamSynchronize(first));
	CHECK(attribute(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) <= 6 * MIB);
	OK(cuMemPoolTrimTo(pool, 0));
	CHECK_EQ(attribute(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0);
	CHECK_EQ(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &bad),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &bad),
		CUDA_ERROR_INVALID_VALUE);
	set_threshold(0);
	end();
}

TEST(a_full_gpu_takes_back_what_pools_keep)
{
	CUdeviceptr at;

	start();
	set_threshold(64 * MIB);
	OK(cuMemAllocAsync(&at, 40 * MIB, first));
	CHECK_EQ(cuMemAllocAsync(&at, 40 * MIB, first), CUDA_ERROR_OUT_OF_MEMORY);
	OK(cuMemFreeAsync(at, first));
	OK(cuStreamSynchronize(first));
	OK(cuMemAllocAsync(&at, 50 * MIB, first)); /* another size: not the same block */
	OK(cuMemFree_v2(at));                      /* the synchronous free takes it as well */
	set_threshold(0);
	OK(cuCtxSynchronize());
	CHECK_EQ(attribute(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0);
	end();
}

TEST(pools_are_made_checked_and_outlive_their_end)
{
	CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
		.maxSize = 4 * MIB};
	CUmemoryPool mine, current;
	CUdeviceptr at, other;
	size_t before;

	start();
	before = free_bytes();
	OK(cuMemPoolCreate(&mine, &props));
	OK(cuDeviceSetMemPool(0, mine));
	OK(cuDeviceGetMemPool(&current, 0));
	CHECK(current == mine);
	OK(cuMemAllocAsync(&at, 4 * MIB, first));
	CHECK_EQ(cuMemAllocFromPoolAsync(&other, 1, mine, first), CUDA_ERROR_OUT_OF_MEMORY);
	OK(cuMemPoolDestroy(mine));
	OK(cuDeviceGetMemPool(&current, 0));
	CHECK(current == pool);
	CHECK_EQ(cuMemAllocFromPoolAsync(&other, 1, mine, first), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemsetD32Async(at, 3, 1, first)); /* its memory lives on */
	OK(cuMemFreeAsync(at, first));
	OK(cuStreamSynchronize(first));
	CHECK_EQ(free_bytes(), before);
	CHECK_EQ(cuMemPoolDestroy(pool), CUDA_ERROR_INVALID_VALUE);
	props.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
	CHECK_EQ(cuMemPoolCreate(&mine, &props), CUDA_ERROR_INVALID_VALUE);
	props.location = (CUmemLocation){CU_MEM_LOCATION_TYPE_DEVICE, 5};
	CHECK_EQ(cuMemPoolCreate(&mine, &props), CUDA_ERROR_INVALID_DEVICE);
	props.location.id = 0;
	props.handleTypes = 1;
	CHECK_EQ(cuMemPoolCreate(&mine, &props), CUDA_ERROR_NOT_SUPPORTED);
	end();
}

TEST(what_a_capturing_stream_allocates_is_the_graphs)
{
	CUdeviceptr at;

	start();
	OK(cuStreamBeginCapture_v2(first, CU_STREAM_CAPTURE_MODE_RELAXED));
	/* In a graph it is the graph's memory, and what a pool gave out cannot be freed there. */
	OK(cuMemAllocAsync(&at, 4, first));
	CHECK_EQ(attribute(CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0);
	end();
}

TEST(pointers_tell_what_they_are)
{
	enum { MEMORY_TYPE = 2, RANGE_START = 11, RANGE_SIZE = 12 };
	int which[] = {MEMORY_TYPE, RANGE_START, RANGE_SIZE};
	unsigned type = 9;
	uint64_t base, bytes;
	void *data[] = {&type, &base, &bytes};
	CUdeviceptr at, start_of;
	size_t pitch, size;
	static char page[8192] __attribute__((aligned(4096)));

	start();
	OK(cuMemAllocPitch_v2(&at, &pitch, 1000, 3, 4));
	CHECK(pitch >= 1000 && pitch % 512 == 0);
	OK(cuMemGetAddressRange_v2(&start_of, &size, at + 2 * pitch));
	CHECK_EQ(start_of, at);
	CHECK_EQ(size, 3 * pitch);
	OK(cuPointerGetAttributes(3, which, data, at + 8));
	CHECK_EQ(type, 2);
	CHECK_EQ(base, at);
	CHECK_EQ(bytes, 3 * pitch);
	OK(cuPointerGetAttributes(3, which, data, (CUdeviceptr)page));
	CHECK_EQ(type, 0);
	CHECK_EQ(base, 0);
	OK(cuMemHostRegister_v2(page + 4096, 4096, 0));
	/* Overlapping it from below. */
	CHECK_EQ(cuMemHostRegister_v2(page, 8192, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
	OK(cuMemHostRegister_v2(page, 4096, 0));
	OK(cuPointerGetAttributes(1, which, data, (CUdeviceptr)page));
	CHECK_EQ(type, 1);
	OK(cuMemHostUnregister(page));
	OK(cuMemHostUnregister(page + 4096));
	CHECK_EQ(cuMemHostUnregister(page), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
	end();
}
