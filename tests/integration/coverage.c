/*
 * Memory that a program takes from the device, in every way that exists, is counted: under tandem
 * cuMemGetInfo shows the GPU less the counted memory. Run under `softgpu run -- tandem run`, with
 * two GPUs.
 */
#define ALL_CALLS
#include "softgpu/cuda.h"

#include <semaphore.h>
#include <unistd.h>

#include "cuda/objects.h"

static CUstream stream;
static size_t context_bytes; /* that count in the job's limit, if it has one */

static size_t used(void)
{
	size_t free_bytes, total;

	OK(cuMemGetInfo_v2(&free_bytes, &total));
	return total - free_bytes - context_bytes;
}

/* The memory of a context is found a little later, and would disturb the count. */
static void await_context(void)
{
	context_bytes = 0;
	while (getenv("TANDEM_MEM") && !used())
		usleep(1000);
	context_bytes = used();
}

static size_t whole(void)
{
	size_t free_bytes, total;

	OK(cuMemGetInfo_v2(&free_bytes, &total));
	return total;
}

static void start(void)
{
	begin();
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	await_context();
	CHECK_EQ(used(), 0);
}

static CUmemAllocationProp on(int type, int id)
{
	return (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {type, id}};
}

TEST(plain_and_pitched_memory_is_counted_until_it_is_freed)
{
	CUdeviceptr a, b;
	size_t pitch;

	start();
	OK(cuMemAlloc_v2(&a, 4 * MIB));
	CHECK_EQ(used(), 4 * MIB);
	OK(cuMemAllocPitch_v2(&b, &pitch, 1000, 2048, 4));
	CHECK_EQ(pitch, 1024);
	CHECK_EQ(used(), 6 * MIB);
	OK(cuMemFree_v2(a));
	OK(cuMemFree_v2(b));
	CHECK_EQ(used(), 0);
	end();
}

TEST(what_was_never_seen_is_the_drivers_to_refuse)
{
	start();
	CHECK_EQ(cuMemFree_v2(0x123456000), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuMemFreeAsync(0x123456000, stream), CUDA_ERROR_INVALID_VALUE);
	CHECK(cuMemRelease(0x1234) != CUDA_SUCCESS);
	CHECK(cuMemUnmap(0x123456000, MIB) != CUDA_SUCCESS);
	CHECK(cuArrayDestroy(&stream) != CUDA_SUCCESS);
	CHECK(cuIpcCloseMemHandle(0x123456000) != CUDA_SUCCESS);
	OK(cuMemFree_v2(0));
	CHECK_EQ(used(), 0);
	end();
}

TEST(unified_memory_is_counted)
{
	CUdeviceptr a;

	start();
	OK(cuMemAllocManaged(&a, 4 * MIB, CU_MEM_ATTACH_GLOBAL));
	CHECK_EQ(used(), 4 * MIB);
	OK(cuMemFree_v2(a));
	CHECK_EQ(used(), 0);
	CHECK(cuMemAllocManaged(&a, 4 * MIB, 77) != CUDA_SUCCESS);
	CHECK_EQ(used(), 0);
	end();
}

TEST(the_programs_own_vmm_is_counted_by_location_until_its_last_handle_and_mapping_are_gone)
{
	CUmemAllocationProp device = on(CU_MEM_LOCATION_TYPE_DEVICE, 0),
			    other = on(CU_MEM_LOCATION_TYPE_DEVICE, 1),
			    host = on(CU_MEM_LOCATION_TYPE_HOST_NUMA, 0);
	CUmemGenericAllocationHandle h, again, g;
	CUdeviceptr at;

	start();
	OK(cuMemCreate(&h, 4 * MIB, &device, 0));
	CHECK_EQ(used(), 4 * MIB);
	OK(cuMemAddressReserve(&at, 8 * MIB, 0, 0, 0));
	OK(cuMemMap(at, 4 * MIB, 0, h, 0));
	OK(cuMemRelease(h));
	CHECK_EQ(used(), 4 * MIB);
	OK(cuMemRetainAllocationHandle(&again, (void *)(at + MIB)));
	OK(cuMemMap(at + 4 * MIB, 4 * MIB, 0, again, 0));
	OK(cuMemUnmap(at, 4 * MIB));
	OK(cuMemRelease(again));
	CHECK_EQ(used(), 4 * MIB);
	OK(cuMemUnmap(at + 4 * MIB, 4 * MIB));
	CHECK_EQ(used(), 0);
	OK(cuMemAddressFree(at, 8 * MIB));
	OK(cuMemCreate(&h, 4 * MIB, &host, 0));
	OK(cuMemCreate(&g, 4 * MIB, &other, 0));
	CHECK_EQ(used(), 0);
	OK(cuMemRelease(h));
	OK(cuMemRelease(g));
	CHECK(cuMemCreate(&h, 4 * MIB, &device, 77) != CUDA_SUCCESS);
	CHECK_EQ(used(), 0);
	end();
}

TEST(memory_taken_on_a_gpu_before_its_first_context_is_counted_there)
{
	CUmemAllocationProp other = on(CU_MEM_LOCATION_TYPE_DEVICE, 1);
	CUmemGenericAllocationHandle h;
	CUcontext second;

	start();
	OK(cuMemCreate(&h, 6 * MIB, &other, 0));
	OK(cuCtxCreate_v2(&second, 0, 1));
	CHECK_EQ(used(), 6 * MIB);
	OK(cuMemRelease(h));
	CHECK_EQ(used(), 0);
	OK(cuCtxDestroy_v2(second));
	end();
}

TEST(arrays_are_counted_at_least_by_their_elements)
{
	struct td_array2d flat = {1024, 512, 0x20, 4};
	struct td_array3d volume = {256, 64, 16, 0x10, 1, 0};
	void *a, *b, *c;

	start();
	OK(cuArrayCreate_v2(&a, &flat));
	CHECK_EQ(used(), 8 * MIB);
	OK(cuArray3DCreate_v2(&b, &volume));
	CHECK_EQ(used(), 8 * MIB + 512 * 1024);
	OK(cuMipmappedArrayCreate(&c, &(struct td_array3d){1024, 512, 0, 0x20, 4, 0}, 3));
	CHECK_EQ(used(), 8 * MIB + 512 * 1024 + 8 * MIB + 2 * MIB + 512 * 1024);
	OK(cuArrayDestroy(a));
	OK(cuArrayDestroy(b));
	OK(cuMipmappedArrayDestroy(c));
	CHECK_EQ(used(), 0);
	flat.channels = 3;
	CHECK(cuArrayCreate_v2(&a, &flat) != CUDA_SUCCESS);
	CHECK_EQ(used(), 0);
	end();
}

static void set_threshold(void *pool, uint64_t bytes)
{
	OK(cuMemPoolSetAttribute(pool, 4, &bytes));
}

static sem_t go_on;

static void hold(void *arg)
{
	(void)arg;
	sem_wait(&go_on);
}

TEST(a_pool_counts_as_what_it_holds_not_as_what_is_used_of_it)
{
	CUdeviceptr a, b;
	void *pool;

	start();
	OK(cuDeviceGetDefaultMemPool(&pool, 0));
	set_threshold(pool, 64 * MIB);
	OK(cuMemAllocAsync(&a, 4 * MIB, stream));
	CHECK_EQ(used(), 4 * MIB);
	OK(cuMemFreeAsync(a, stream));
	OK(cuStreamSynchronize(stream));
	CHECK_EQ(used(), 4 * MIB);
	OK(cuMemAllocAsync(&b, 4 * MIB, stream));
	CHECK_EQ(used(), 4 * MIB);
	OK(cuMemFreeAsync(b, stream));
	OK(cuStreamSynchronize(stream));
	OK(cuMemPoolTrimTo(pool, 0));
	CHECK_EQ(used(), 0);
	set_threshold(pool, 0);
	OK(cuMemAllocAsync_ptsz(&a, 4 * MIB, NULL));
	CHECK_EQ(used(), 4 * MIB);
	OK(cuMemFreeAsync_ptsz(a, NULL));
	OK(cuStreamSynchronize_ptsz(NULL));
	CHECK_EQ(used(), 0);
	OK(cuMemAllocAsync(&a, 4 * MIB, stream));
	OK(cuMemFree_v2(a));
	OK(cuCtxSynchronize());
	CHECK_EQ(used(), 0);
	end();
}

TEST(a_pool_of_another_gpu_counts_there_and_one_that_was_given_up_until_its_last_block)
{
	struct td_pool_props props = {1, 0, {CU_MEM_LOCATION_TYPE_DEVICE, 1}, {0}},
			     own = {1, 0, {CU_MEM_LOCATION_TYPE_DEVICE, 0}, {0}};
	CUcontext second;
	CUdeviceptr a, b;
	void *far, *near;

	start();
	OK(cuCtxCreate_v2(&second, 0, 1));
	CHECK_EQ(used(), 0);
	OK(cuMemPoolCreate(&far, &props));
	OK(cuMemPoolCreate(&near, &own));
	OK(cuMemAllocFromPoolAsync(&a, 4 * MIB, far, NULL));
	CHECK_EQ(used(), 4 * MIB);
	OK(cuCtxSetCurrent(context));
	CHECK_EQ(used(), 0);
	OK(cuMemAllocFromPoolAsync(&b, 2 * MIB, near, stream));
	CHECK_EQ(used(), 2 * MIB);
	OK(cuMemPoolDestroy(near));
	CHECK_EQ(used(), 2 * MIB);
	OK(cuMemFreeAsync(b, stream));
	CHECK_EQ(used(), 0);
	OK(cuCtxSetCurrent(second));
	CHECK_EQ(used(), 4 * MIB);
	OK(cuMemFreeAsync(a, NULL));
	OK(cuCtxSynchronize());
	CHECK_EQ(used(), 0);
	OK(cuMemPoolDestroy(far));
	OK(cuCtxDestroy_v2(second));
	OK(cuCtxSetCurrent(context));
	end();
}

TEST(a_default_pool_that_cannot_be_destroyed_is_still_counted)
{
	CUdeviceptr a;
	void *pool;

	start();
	OK(cuDeviceGetDefaultMemPool(&pool, 0));
	OK(cuMemAllocAsync(&a, 4 * MIB, stream));
	CHECK(cuMemPoolDestroy(pool) != CUDA_SUCCESS);
	CHECK_EQ(used(), 4 * MIB);
	OK(cuMemFreeAsync(a, stream));
	OK(cuStreamSynchronize(stream));
	CHECK_EQ(used(), 0);
	end();
}

TEST(memory_of_cumemalloc_may_be_freed_in_stream_order)
{
	CUdeviceptr a;

	start();
	OK(cuMemAlloc_v2(&a, 4 * MIB));
	OK(cuMemFreeAsync(a, stream));
	OK(cuStreamSynchronize(stream));
	CHECK_EQ(used(), 0);
	end();
}

static void *graph_of(size_t bytes, CUdeviceptr *ret)
{
	struct td_alloc_node memory = {
		.pool = {1, 0, {CU_MEM_LOCATION_TYPE_DEVICE, 0}, {0}}, .bytes = bytes};
	void *graph, *node, *exec;

	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &memory));
	*ret = memory.address;
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	OK(cuGraphDestroy(graph));
	return exec;
}

TEST(what_a_graph_allocates_is_counted_from_its_launch_until_it_is_trimmed)
{
	CUdeviceptr a;
	void *exec;

	start();
	exec = graph_of(4 * MIB, &a);
	CHECK_EQ(used(), 0);
	OK(cuGraphLaunch(exec, stream));
	CHECK_EQ(used(), 4 * MIB);
	OK(cuStreamSynchronize(stream));
	OK(cuMemFree_v2(a));
	CHECK_EQ(used(), 4 * MIB);
	OK(cuGraphLaunch(exec, stream));
	CHECK_EQ(used(), 4 * MIB);
	OK(cuStreamSynchronize(stream));
	OK(cuMemFree_v2(a));
	OK(cuGraphExecDestroy(exec));
	OK(cuDeviceGraphMemTrim(0));
	CHECK_EQ(used(), 0);
	end();
}

TEST(what_a_capture_allocates_is_the_graphs)
{
	CUdeviceptr a;
	void *graph, *exec;

	start();
	OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	OK(cuMemAllocAsync(&a, 4 * MIB, stream));
	OK(cuMemsetD32Async(a, 7, 1, stream));
	OK(cuMemFreeAsync(a, stream));
	OK(cuStreamEndCapture(stream, &graph));
	CHECK_EQ(used(), 0);
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	OK(cuGraphUpload(exec, stream));
	OK(cuGraphLaunch(exec, stream));
	OK(cuStreamSynchronize(stream));
	CHECK_EQ(used(), 4 * MIB);
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
	OK(cuDeviceGraphMemTrim(0));
	CHECK_EQ(used(), 0);
	end();
}

TEST(more_than_there_is_is_refused_in_each_way_and_leaves_nothing_counted)
{
	CUmemAllocationProp device = on(CU_MEM_LOCATION_TYPE_DEVICE, 0);
	struct td_array2d flat = {16384, 65536, 0x20, 1};
	CUmemGenericAllocationHandle h;
	size_t much;
	CUdeviceptr a;
	void *array, *exec;

	start();
	much = whole() / (2 * MIB) * 2 * MIB + 4 * MIB;
	CHECK_EQ(cuMemAlloc_v2(&a, much), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQ(cuMemAllocAsync(&a, much, stream), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQ(cuMemCreate(&h, much, &device, 0), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQ(cuArrayCreate_v2(&array, &flat), CUDA_ERROR_OUT_OF_MEMORY);
	exec = graph_of(much, &a);
	CHECK_EQ(cuGraphLaunch(exec, stream), CUDA_ERROR_OUT_OF_MEMORY);
	OK(cuGraphExecDestroy(exec));
	CHECK_EQ(used(), 0);
	OK(cuMemAlloc_v2(&a, whole() / 2));
	OK(cuMemFree_v2(a));
	end();
}

TEST(what_pools_keep_gives_way_before_a_program_is_told_that_there_is_none)
{
	size_t most;
	CUdeviceptr a;
	void *pool;

	start();
	most = whole() / 4 / MIB * 3 * MIB;
	OK(cuDeviceGetDefaultMemPool(&pool, 0));
	set_threshold(pool, UINT64_MAX);
	OK(cuMemAllocAsync(&a, most, stream));
	OK(cuMemFreeAsync(a, stream));
	OK(cuStreamSynchronize(stream));
	CHECK(used() >= most);
	OK(cuMemAlloc_v2(&a, most));
	OK(cuMemFree_v2(a));
	set_threshold(pool, 0);
	CHECK_EQ(used(), 0);
	end();
}

static uint64_t held_by(void *pool)
{
	uint64_t bytes = 0;

	OK(cuMemPoolGetAttribute(pool, TD_POOL_ATTR_RESERVED, &bytes));
	return bytes;
}

TEST(a_pool_too_scattered_to_serve_does_not_grow_beyond_what_there_is)
{
	size_t part;
	CUdeviceptr a, b, c, d;
	void *pool;

	sem_init(&go_on, 0, 0);
	start();
	part = whole() / 5 / (2 * MIB) * 2 * MIB;
	OK(cuDeviceGetDefaultMemPool(&pool, 0));
	set_threshold(pool, UINT64_MAX);
	OK(cuMemAlloc_v2(&a, 2 * part));
	OK(cuMemAllocAsync(&b, part, stream));
	OK(cuMemAllocAsync(&c, part, stream));
	/*
	 * Free memory cannot be given back before the stream arrives there, and no block has this
	 * size.
	 */
	OK(cuLaunchHostFunc(stream, hold, NULL));
	OK(cuMemFreeAsync(b, stream));
	CHECK_EQ(cuMemAllocAsync(&d, 2 * part, stream), CUDA_ERROR_OUT_OF_MEMORY);
	sem_post(&go_on);
	OK(cuStreamSynchronize(stream));
	CHECK(2 * part + held_by(pool) <= whole());
	OK(cuMemFreeAsync(c, stream));
	OK(cuStreamSynchronize(stream));
	OK(cuMemAllocAsync(&d, 2 * part, stream));
	CHECK(2 * part + held_by(pool) <= whole());
	OK(cuMemFreeAsync(d, stream));
	OK(cuStreamSynchronize(stream));
	OK(cuMemFree_v2(a));
	set_threshold(pool, 0);
	OK(cuMemPoolTrimTo(pool, 0));
	CHECK_EQ(used(), 0);
	end();
}

TEST(the_end_of_a_context_is_that_of_its_memory)
{
	struct td_array2d flat = {1024, 512, 0x20, 4};
	CUcontext primary, again;
	CUdeviceptr a;
	void *array;

	start();
	OK(cuMemAlloc_v2(&a, 4 * MIB));
	OK(cuMemAllocManaged(&a, 4 * MIB, CU_MEM_ATTACH_GLOBAL));
	OK(cuArrayCreate_v2(&array, &flat));
	CHECK_EQ(used(), 16 * MIB);
	end();
	start();
	end();
	OK(cuDevicePrimaryCtxRetain(&primary, 0));
	OK(cuCtxSetCurrent(primary));
	OK(cuMemAlloc_v2(&a, 4 * MIB));
	CHECK_EQ(used(), 4 * MIB);
	OK(cuDevicePrimaryCtxReset_v2(0));
	OK(cuDevicePrimaryCtxRetain(&again, 0));
	OK(cuCtxSetCurrent(again));
	CHECK_EQ(used(), 0);
	/* "Resetting the primary context does not release it." */
	OK(cuDevicePrimaryCtxRelease_v2(0));
	OK(cuDevicePrimaryCtxRelease_v2(0));
	OK(cuCtxSetCurrent(NULL));
}

TEST(the_last_release_of_a_primary_context_gives_its_memory_back)
{
	CUcontext primary;
	CUdeviceptr a;
	size_t most;

	for (unsigned i = 0; i < 3; i++) {
		OK(cuInit(0));
		OK(cuDevicePrimaryCtxRetain(&primary, 0));
		OK(cuCtxSetCurrent(primary));
		most = whole() / 4 / MIB * 3 * MIB;
		CHECK_EQ(used(), 0);
		OK(cuMemAlloc_v2(&a, most));
		OK(cuMemsetD32_v2(a, 7, 1));
		OK(cuDevicePrimaryCtxRelease_v2(0));
		OK(cuCtxSetCurrent(NULL));
	}
}

TEST(memory_is_freed_behind_the_work_of_its_own_gpu)
{
	unsigned naps = 30, value = 7, seen = 0;
	CUdeviceptr a, b;
	CUcontext second;
	CUfunction nap, store;
	void *nap_args[] = {&naps}, *store_args[] = {&a, &value};

	start();
	OK(cuMemAlloc_v2(&a, 4 * MIB));
	nap = kernel("nap");
	store = kernel("store");
	OK(cuCtxCreate_v2(&second, 0, 1));
	OK(cuMemAlloc_v2(&b, 4 * MIB));
	OK(cuCtxSetCurrent(context));
	OK(launch(nap, stream, nap_args));
	OK(launch(store, stream, store_args));
	OK(cuCtxSetCurrent(second));
	/* The kernel that stores there has not begun. */
	OK(cuMemFree_v2(a));
	OK(cuMemcpyDtoH_v2(&seen, b, 4));
	OK(cuMemFree_v2(b));
	CHECK_EQ(used(), 0);
	OK(cuCtxDestroy_v2(second));
	OK(cuCtxSetCurrent(context));
	OK(cuStreamSynchronize(stream));
	CHECK_EQ(used(), 0);
	end();
}

static size_t megabytes(const char *name)
{
	const char *text = getenv(name);

	return text ? strtoul(text, NULL, 10) * MIB : 0;
}

/*
 * Memory of a pool, which cannot be moved, and of cuMemAlloc, used in turn until the file exists,
 * and some times more.
 */
TEST(what_it_was_told_to_hold_keeps_its_bytes)
{
	const char *go = getenv("TANDEM_TEST_GO");
	CUdeviceptr pooled, moved = 0;
	CUfunction add;
	unsigned rounds = 0;
	void *pooled_args[] = {&pooled}, *moved_args[] = {&moved};

	if (!go)
		SKIP("nothing is to be held");
	start();
	add = kernel("add");
	OK(cuMemAllocAsync(&pooled, megabytes("TANDEM_TEST_POOLED"), stream));
	OK(cuMemAlloc_v2(&moved, megabytes("TANDEM_TEST_MOVED")));
	OK(cuMemsetD32Async(pooled, 0, 1, stream));
	OK(cuMemsetD32Async(moved, 0, 1, stream));
	for (int left = 20; left; left -= !access(go, F_OK)) {
		OK(launch(add, stream, pooled_args));
		OK(launch(add, stream, moved_args));
		OK(cuStreamSynchronize(stream));
		rounds++;
	}
	CHECK_EQ(word_at(pooled), rounds);
	CHECK_EQ(word_at(moved), rounds);
	OK(cuMemFreeAsync(pooled, stream));
	OK(cuMemFree_v2(moved));
	end();
}
