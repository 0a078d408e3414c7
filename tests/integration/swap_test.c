/*
 * A program's view of memory that tandem made of chunks, which equals that of the driver's memory.
 * Run under `softgpu run -- tandem run` with each backend: the cases are the same.
 *
 * Cases that take their part from the environment are swap.py's.
 */
#define ALL_CALLS
#include "softgpu/cuda.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "cuda/objects.h"
#include "softgpu/driver/graph/graph_abi.h"

#define ALIGN 512
#define MANY  10000

static size_t used(void)
{
	size_t free_bytes, total;

	OK(cuMemGetInfo_v2(&free_bytes, &total));
	return total - free_bytes;
}

static uint64_t attribute(int which, CUdeviceptr address)
{
	uint64_t value = 0;

	OK(cuPointerGetAttribute(&value, which, address));
	return value;
}

static CUstream new_stream(void)
{
	CUstream stream;

	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	return stream;
}

TEST(small_allocations_are_aligned_apart_and_know_their_size)
{
	static CUdeviceptr at[MANY];
	CUdeviceptr base;
	size_t bytes;

	begin();
	for (unsigned i = 0; i < MANY; i++) {
		OK(cuMemAlloc_v2(&at[i], 1000));
		CHECK_EQ(at[i] % ALIGN, 0);
		OK(cuMemsetD32_v2(at[i], i, 250));
	}
	CHECK(used() <= MANY * 1024 + 2 * MIB);
	for (unsigned i = 0; i < MANY; i += 97) {
		OK(cuMemGetAddressRange_v2(&base, &bytes, at[i] + 999));
		CHECK(base == at[i] && bytes == 1000);
		CHECK_EQ(word_at(at[i]), i);
		CHECK_EQ(word_at(at[i] + 996), i);
	}
	for (unsigned i = 0; i < MANY; i++)
		OK(cuMemFree_v2(at[i]));
	CHECK_EQ(used(), 0);
	CHECK_EQ(cuMemFree_v2(at[0]), CUDA_ERROR_INVALID_VALUE);
	end();
}

static void has_attributes(CUdeviceptr base, size_t bytes, CUdeviceptr at)
{
	CHECK_EQ(attribute(TD_POINTER_MEMORY_TYPE, at), TD_MEMORY_TYPE_DEVICE);
	CHECK_EQ(attribute(TD_POINTER_CONTEXT, at), (uint64_t)context);
	CHECK_EQ(attribute(TD_POINTER_DEVICE_POINTER, at), at);
	CHECK_EQ(attribute(TD_POINTER_DEVICE_ORDINAL, at), 0);
	CHECK_EQ(attribute(TD_POINTER_IS_MANAGED, at), 0);
	CHECK_EQ(attribute(TD_POINTER_MAPPED, at), 1);
	CHECK_EQ(attribute(TD_POINTER_RANGE_START_ADDR, at), base);
	CHECK_EQ(attribute(TD_POINTER_RANGE_SIZE, at), bytes);
	CHECK_EQ(attribute(TD_POINTER_ALLOWED_HANDLE_TYPES, at), 0);
	CHECK_EQ(attribute(TD_POINTER_MEMPOOL_HANDLE, at), 0);
	CHECK_EQ(attribute(TD_POINTER_ACCESS_FLAGS, at), CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	CHECK_EQ(attribute(TD_POINTER_BUFFER_ID, at), attribute(TD_POINTER_BUFFER_ID, base));
}

TEST(attributes_are_those_of_cuMemAlloc)
{
	CUmemGenericAllocationHandle handle;
	CUdeviceptr small, other, large;
	void *host;

	begin();
	OK(cuMemAlloc_v2(&small, 1000));
	OK(cuMemAlloc_v2(&other, 3000));
	OK(cuMemAlloc_v2(&large, 5 * MIB + 3));
	has_attributes(small, 1000, small);
	has_attributes(small, 1000, small + 999);
	has_attributes(other, 3000, other + 1);
	has_attributes(large, 5 * MIB + 3, large + 5 * MIB);
	CHECK(attribute(TD_POINTER_BUFFER_ID, small) != attribute(TD_POINTER_BUFFER_ID, other));
	CHECK(attribute(TD_POINTER_BUFFER_ID, small) != attribute(TD_POINTER_BUFFER_ID, large));
	CHECK_EQ(cuPointerGetAttribute(&host, TD_POINTER_HOST_POINTER, small),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuPointerGetAttribute(NULL, TD_POINTER_MAPPED, small), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuMemRetainAllocationHandle(&handle, (void *)small), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuMemFree_v2(small + ALIGN), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuMemFree_v2(large + 2 * MIB), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemFree_v2(other));
	OK(cuMemFree_v2(large));
	CHECK_EQ(cuPointerGetAttribute(&host, TD_POINTER_CONTEXT, other), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemFree_v2(small));
	end();
}

TEST(several_attributes_at_once_are_zero_for_what_is_not_there)
{
	int which[] = {TD_POINTER_DEVICE_ORDINAL, TD_POINTER_RANGE_START_ADDR,
		TD_POINTER_HOST_POINTER, TD_POINTER_MEMORY_TYPE};
	uint64_t start = 7, host = 7;
	int ordinal = 7;
	unsigned type = 7;
	void *data[] = {&ordinal, &start, &host, &type};
	CUdeviceptr at, kept;

	begin();
	OK(cuMemAlloc_v2(&kept, 100));
	OK(cuMemAlloc_v2(&at, 100));
	OK(cuPointerGetAttributes(4, which, data, at + 99));
	CHECK(ordinal == 0 && start == at && host == 0 && type == TD_MEMORY_TYPE_DEVICE);
	OK(cuMemFree_v2(at));
	OK(cuPointerGetAttributes(4, which, data, at));
	CHECK(ordinal == TD_DEVICE_INVALID && start == 0 && host == 0 && type == 0);
	OK(cuMemFree_v2(kept));
	end();
}

/* Only the freeing may wait: the two streams know nothing of each other. */
TEST(what_is_freed_is_handed_out_again_only_after_work_that_uses_it)
{
	CUdeviceptr at[2], next;
	unsigned milliseconds = 30, value = 1;
	void *nap_args[] = {&milliseconds}, *store_args[] = {&at[0], &value};
	CUstream a, b;

	begin();
	a = new_stream();
	b = new_stream();
	OK(cuMemAlloc_v2(&at[0], 1000));
	OK(cuMemAlloc_v2(&at[1], 1000));
	OK(launch(kernel("nap"), a, nap_args));
	OK(launch(kernel("store"), a, store_args));
	OK(cuMemFree_v2(at[0]));
	OK(cuMemAlloc_v2(&next, 1000));
	CHECK_EQ(next, at[0]);
	OK(cuMemsetD32Async(next, 2, 1, b));
	OK(cuCtxSynchronize());
	CHECK_EQ(word_at(next), 2);
	OK(cuMemFree_v2(next));
	OK(cuMemFree_v2(at[1]));
	end();
}

/*
 * While a stream captures nothing is waited for: the work on the other stream must find its memory
 * all the same.
 */
static void free_beside_a_capture(size_t bytes)
{
	CUdeviceptr at, next;
	unsigned milliseconds = 30, value = 1;
	void *nap_args[] = {&milliseconds}, *store_args[] = {&at, &value}, *graph;
	CUstream a, b;
	int mode = CU_STREAM_CAPTURE_MODE_RELAXED;

	begin();
	a = new_stream();
	b = new_stream();
	OK(cuMemAlloc_v2(&at, bytes));
	OK(launch(kernel("nap"), a, nap_args));
	OK(launch(kernel("store"), a, store_args));
	OK(cuStreamBeginCapture_v2(b, mode));
	OK(cuThreadExchangeStreamCaptureMode(&mode));
	OK(cuMemFree_v2(at));
	CHECK_EQ(cuMemFree_v2(at), CUDA_ERROR_INVALID_VALUE);
	OK(cuStreamEndCapture(b, &graph));
	OK(cuThreadExchangeStreamCaptureMode(&mode));
	OK(cuGraphDestroy(graph));
	OK(cuCtxSynchronize());
	OK(cuMemAlloc_v2(&next, bytes));
	OK(cuMemsetD32_v2(next, 0, 1));
	OK(cuMemFree_v2(next));
	CHECK_EQ(used(), 0);
	end();
}

TEST(freeing_beside_a_capture_takes_nothing_from_work_in_flight)
{
	free_beside_a_capture(4 * MIB);
	free_beside_a_capture(1000);
}

static _Atomic bool released;

static void await_release(void *arg)
{
	(void)arg;
	while (!atomic_load(&released))
		usleep(1000);
}

struct freer {
	CUcontext context;
	CUdeviceptr at;
	CUresult result;
};

static void *free_it(void *arg)
{
	struct freer *freer = arg;

	OK(cuCtxSetCurrent(freer->context));
	freer->result = cuMemFree_v2(freer->at);
	return NULL;
}

/* The work that a free waits for may itself wait for what other threads do. */
TEST(a_free_that_waits_keeps_no_other_thread_waiting)
{
	struct freer freer;
	CUstream a, b;
	pthread_t thread;
	void *graph;

	begin();
	a = new_stream();
	b = new_stream();
	OK(cuCtxGetCurrent(&freer.context));
	OK(cuMemAlloc_v2(&freer.at, 4 * MIB));
	OK(cuLaunchHostFunc(a, await_release, NULL));
	CHECK(!pthread_create(&thread, NULL, free_it, &freer));
	for (unsigned i = 0; i < 10; i++) {
		usleep(1000);
		OK(cuStreamBeginCapture_v2(b, CU_STREAM_CAPTURE_MODE_RELAXED));
		OK(cuStreamEndCapture(b, &graph));
		OK(cuGraphDestroy(graph));
	}
	OK(cuStreamDestroy_v2(b));
	atomic_store(&released, true);
	CHECK(!pthread_join(thread, NULL));
	CHECK_EQ(freer.result, CUDA_SUCCESS);
	CHECK_EQ(used(), 0);
	end();
}

static void until_free(void)
{
	for (unsigned i = 0; i < 10000 && used(); i++)
		usleep(1000);
	CHECK_EQ(used(), 0);
}

/* The stream waits for this thread's next action. */
TEST(memory_that_is_freed_in_stream_order_is_not_waited_for)
{
	static const size_t bytes[] = {1000, 4 * MIB};
	CUdeviceptr at;
	CUstream a;

	begin();
	a = new_stream();
	for (unsigned i = 0; i < 2; i++) {
		atomic_store(&released, false);
		OK(cuMemAlloc_v2(&at, bytes[i]));
		OK(cuLaunchHostFunc(a, await_release, NULL));
		OK(cuMemFreeAsync(at, a));
		CHECK_EQ(cuMemFreeAsync(at, a), CUDA_ERROR_INVALID_VALUE);
		CHECK_EQ(cuMemFree_v2(at), CUDA_ERROR_INVALID_VALUE);
		CHECK(used() >= bytes[i]);
		atomic_store(&released, true);
		until_free();
	}
	end();
}

/*
 * Memory that was freed beside a capture is not waited for either, with all work submitted since.
 */
TEST(an_allocation_waits_for_no_work)
{
	int mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	CUdeviceptr at, next;
	CUstream a, b;
	void *graph;

	begin();
	a = new_stream();
	b = new_stream();
	OK(cuMemAlloc_v2(&at, 4 * MIB));
	OK(cuStreamBeginCapture_v2(b, mode));
	OK(cuThreadExchangeStreamCaptureMode(&mode));
	OK(cuMemFree_v2(at));
	OK(cuThreadExchangeStreamCaptureMode(&mode));
	atomic_store(&released, false);
	OK(cuLaunchHostFunc(a, await_release, NULL));
	OK(cuStreamEndCapture(b, &graph));
	OK(cuMemAlloc_v2(&next, 4 * MIB));
	atomic_store(&released, true);
	OK(cuGraphDestroy(graph));
	OK(cuMemFree_v2(next));
	until_free();
	end();
}

/* The memory comes back in the end, without another call of the program's. */
TEST(what_was_freed_is_there_for_who_needs_it)
{
	CUdeviceptr at, next;
	CUcontext other;
	CUstream a;

	begin();
	a = new_stream();
	OK(cuMemAlloc_v2(&at, 4 * MIB));
	OK(cuMemFreeAsync(at, a));
	until_free();
	/* and goes with its context, whoever has its address then */
	OK(cuCtxCreate_v2(&other, 0, 0));
	a = new_stream();
	atomic_store(&released, true);
	OK(cuMemAlloc_v2(&at, 4 * MIB));
	OK(cuLaunchHostFunc(a, await_release, NULL));
	OK(cuMemFreeAsync(at, a));
	OK(cuCtxDestroy_v2(other));
	OK(cuCtxSetCurrent(context));
	OK(cuMemAlloc_v2(&next, 4 * MIB));
	OK(cuMemsetD32_v2(next, 5, 1));
	CHECK_EQ(word_at(next), 5);
	OK(cuMemFree_v2(next));
	until_free();
	end();
}

TEST(pieces_go_with_their_context_and_leave_those_of_another)
{
	CUdeviceptr first, second;
	CUcontext other, popped;

	begin();
	OK(cuMemAlloc_v2(&first, 1000));
	OK(cuMemsetD32_v2(first, 9, 250));
	OK(cuCtxCreate_v2(&other, 0, 0));
	OK(cuMemAlloc_v2(&second, 1000));
	CHECK_EQ(attribute(TD_POINTER_CONTEXT, second), (uint64_t)other);
	OK(cuCtxPopCurrent_v2(&popped));
	OK(cuCtxDestroy_v2(other));
	OK(cuCtxSetCurrent(context));
	CHECK_EQ(cuMemFree_v2(second), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(word_at(first), 9);
	OK(cuMemFree_v2(first));
	CHECK_EQ(used(), 0);
	end();
}

/* -- with swap.py -- */

static void until_there(const char *path)
{
	while (access(path, F_OK))
		nanosleep(&(struct timespec){0, 1000000}, NULL);
}

#define NAMED (40 * MIB) /* of which any part may be away */

static CUDA_MEMCPY3D row(CUdeviceptr to, CUdeviceptr from)
{
	return (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_DEVICE,
		.srcDevice = from,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstDevice = to,
		.WidthInBytes = NAMED / 2,
		.Height = 1,
		.Depth = 1};
}

/*
 * Makes the calls whose number is `which`, the first of them while the memory is away, which
 * TANDEM_TEST_GO signals.
 */
static CUresult name_memory(unsigned which, CUdeviceptr at, CUgraph graph, CUgraphNode *node)
{
	CUstreamBatchMemOpParams write[NAMED / (2 * MIB)] = {{0}};
	CUDA_BATCH_MEM_OP_NODE_PARAMS writes = {context, NAMED / (2 * MIB), write, 0};
	CUDA_MEMSET_NODE_PARAMS set = {at, 0, 7, 4, NAMED / 4, 1};
	CUDA_MEMCPY3D copy = row(at + NAMED / 2, at);
	CUgraphNodeParams params = {
		.type = CU_GRAPH_NODE_TYPE_MEMSET, .memset = {.v1 = set, .ctx = context}};
	CUgraphExec exec;

	for (unsigned i = 0; i < writes.count; i++) {
		write[i].operation = 2; /* a value of 32 bits is written */
		write[i].address = at + i * 2 * MIB;
	}
	switch (which) {
	case 0: return cuGraphAddMemsetNode((void **)node, graph, NULL, 0, &set, context);
	case 1: return cuGraphAddMemcpyNode((void **)node, graph, NULL, 0, &copy, context);
	case 2: return cuGraphAddBatchMemOpNode((void **)node, graph, NULL, 0, &writes);
	case 3: return cuGraphAddNode((void **)node, graph, NULL, 0, &params);
	default: return cuGraphInstantiateWithFlags((void **)&exec, graph, 0);
	}
}

#define NAMING_N 5

TEST(what_a_graph_names_is_there_when_a_driver_looks_it_up)
{
	const char *go = getenv("TANDEM_TEST_GO"), *which_text = getenv("TANDEM_TEST_NAMING");
	unsigned which;
	CUgraphNode node;
	CUgraph graph;
	CUdeviceptr at;

	if (!go || !which_text)
		SKIP("only where another program wants the GPU");
	which = (unsigned)atoi(which_text);
	begin();
	OK(cuMemAlloc_v2(&at, NAMED));
	OK(cuMemsetD32_v2(at, 5, NAMED / 4));
	OK(cuGraphCreate((void **)&graph, 0));
	if (which == NAMING_N - 1)
		OK(name_memory(0, at, graph, &node));
	until_there(go);
	OK(name_memory(which, at, graph, &node));
	CHECK_EQ(word_at(at + NAMED - 4), 5);
	OK(cuMemFree_v2(at));
	end();
}

/*
 * Uses TANDEM_TEST_COUNT pieces of TANDEM_TEST_BYTES until the file TANDEM_TEST_GO exists, and a
 * little longer.
 */
TEST(pieces_keep_their_bytes_while_they_come_and_go)
{
	const char *go = getenv("TANDEM_TEST_GO"), *count_text = getenv("TANDEM_TEST_COUNT"),
		   *bytes_text = getenv("TANDEM_TEST_BYTES");
	static CUdeviceptr at[MANY];
	unsigned count, rounds = 0;
	size_t bytes;
	CUfunction add;

	if (!go || !count_text || !bytes_text)
		SKIP("only where another program wants the GPU");
	count = (unsigned)atoi(count_text);
	bytes = strtoul(bytes_text, NULL, 10);
	CHECK(count > 0 && count <= MANY);
	begin();
	add = kernel("add");
	for (unsigned i = 0; i < count; i++) {
		OK(cuMemAlloc_v2(&at[i], bytes));
		OK(cuMemsetD32_v2(at[i], i, bytes / 4));
	}
	for (int left = 20; left; left -= !access(go, F_OK)) {
		void *args[] = {&at[rounds % count]};

		OK(launch(add, NULL, args));
		OK(cuCtxSynchronize());
		rounds++;
	}
	for (unsigned i = 0; i < count; i++) {
		unsigned added = rounds / count + (i < rounds % count);

		CHECK_EQ(word_at(at[i]), i + added);
		CHECK_EQ(word_at(at[i] + bytes - 4), i);
	}
	end();
}
