/*
 * libtandem's own calls in the program's threads. While any thread captures in the usual mode, a
 * driver refuses calls that wait or give memory back, and breaks the capture, unless the calling
 * thread is in the relaxed mode. A capture may begin at any moment, so every such call is checked
 * here.
 */
#include "test.h"

#include <stdatomic.h>

#include "base/time.h"
#include "unit/preload/hooks_world.h"
#include "preload/memory/late.h"

#define POOL   ((void *)0x70)
#define STREAM ((CUstream)0x10)

static __thread int mode;      /* of this thread: the usual one is 0 */
static _Atomic bool busy;      /* the stream is */
static _Atomic unsigned waits; /* for the stream */
static _Atomic unsigned calls_seen, strict;
static uint64_t pool_bytes;
static bool full;

static void look(void)
{
	calls_seen++;
	strict += mode != CU_STREAM_CAPTURE_MODE_RELAXED;
}

static CUresult exchange(int *now)
{
	int before = mode;

	mode = *now;
	*now = before;
	return CUDA_SUCCESS;
}

static CUresult context_of(CUcontext *ret)
{
	*ret = (CUcontext)0xc0;
	return CUDA_SUCCESS;
}

static CUresult await_stream(CUstream stream)
{
	(void)stream;
	waits++;
	look();
	return CUDA_SUCCESS;
}

static CUresult await_context(void)
{
	while (atomic_load(&busy))
		td_time_sleep_until_ns(td_time_now_ns() + TD_NS_PER_MS);
	look();
	return CUDA_SUCCESS;
}

static CUresult ask_stream(CUstream stream)
{
	(void)stream;
	look();
	return atomic_load(&busy) ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

static CUresult give(CUdeviceptr *ret, size_t bytes)
{
	(void)bytes;
	if (full) {
		full = false;
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*ret = ADDRESS;
	return CUDA_SUCCESS;
}

static CUresult take_back(CUdeviceptr address)
{
	(void)address;
	look();
	return CUDA_SUCCESS;
}

static CUresult trim(void *pool, size_t keep)
{
	(void)pool;
	look();
	pool_bytes = pool_bytes < keep ? pool_bytes : keep;
	return CUDA_SUCCESS;
}

static CUresult attribute_of(void *pool, int attribute, void *ret)
{
	(void)pool, (void)attribute;
	*(uint64_t *)ret = pool_bytes;
	return CUDA_SUCCESS;
}

static CUresult trim_graphs(CUdevice device)
{
	return trim((void *)(uintptr_t)device, 0);
}

static CUresult graph_attribute_of(CUdevice device, int attribute, void *ret)
{
	return attribute_of((void *)(uintptr_t)device, attribute, ret);
}

static void begin(const struct td_backend *backend)
{
	vmm_begin(64 * BYTES, 64 * BYTES);
	vmm.fail_first = 1;
	td_real.cuThreadExchangeStreamCaptureMode = exchange;
	td_real.cuCtxGetCurrent = context_of;
	td_real.cuCtxSynchronize = await_context;
	td_real.cuStreamSynchronize = await_stream;
	td_real.cuStreamQuery = ask_stream;
	td_real.cuCtxPushCurrent_v2 = stub_push;
	td_real.cuCtxPopCurrent_v2 = context_of;
	td_real.cuMemAlloc_v2 = give;
	td_real.cuMemFree_v2 = take_back;
	td_real.cuMemPoolTrimTo = trim;
	td_real.cuMemPoolGetAttribute = attribute_of;
	td_real.cuDeviceGraphMemTrim = trim_graphs;
	td_real.cuDeviceGetGraphMemAttribute = graph_attribute_of;
	hooks_begin(backend);
	calls_seen = strict = 0;
	full = false;
}

/* The program's call is one that waits for nothing. */
TEST(memory_that_is_freed_in_stream_order_breaks_no_capture)
{
	static const struct td_backend *const backends[] = {&td_backend_plain, &td_backend_swap};

	for (unsigned i = 0; i < 4; i++) {
		CUdeviceptr at;

		begin(backends[i % 2]);
		at = allocate();
		CHECK_EQ(i < 2 ? td_hook_cuMemFreeAsync(at, STREAM)
			       : td_hook_cuMemFreeAsync_ptsz(at, NULL),
			CUDA_SUCCESS);
		CHECK(calls_seen != 0);
		CHECK_EQ(strict, 0);
		CHECK_EQ(mode, 0); /* the program's own is what it was */
		CHECK_EQ(vmm_memories() + vmm_count(vmm.mapped), 0);
	}
}

/*
 * The stream may be waiting for this thread's next call. The memory is freed when that is over, and
 * counts until then.
 */
TEST(nor_is_a_stream_with_work_waited_for)
{
	static const struct td_backend *const backends[] = {&td_backend_plain, &td_backend_swap};

	for (unsigned i = 0; i < 2; i++) {
		uint64_t end = td_time_now_ns() + 10 * TD_NS_PER_S; /* only a hang reaches it */
		CUdeviceptr at;

		begin(backends[i]);
		at = allocate();
		atomic_store(&busy, true);
		atomic_store(&waits, 0);
		CHECK_EQ(td_hook_cuMemFreeAsync(at, STREAM), CUDA_SUCCESS);
		CHECK_EQ(atomic_load(&waits), 0);
		CHECK_EQ(td_hook_cuMemFreeAsync(at, STREAM), CUDA_ERROR_INVALID_VALUE);
		CHECK_EQ(td_hook_cuMemFree_v2(at), CUDA_ERROR_INVALID_VALUE);
		CHECK_EQ(demanded(), BYTES);
		atomic_store(&busy, false);
		while (demanded() && td_time_now_ns() < end)
			td_time_sleep_until_ns(td_time_now_ns() + TD_NS_PER_MS);
		CHECK_EQ(demanded(), 0);
		(void)td_late_await(); /* the drain thread has left the driver */
		CHECK_EQ(strict, 0);
		CHECK_EQ(vmm_memories() + vmm_count(vmm.mapped), 0);
	}
}

static void make_room_by(enum td_outside_kind kind)
{
	struct td_outside_claim claim = {.growth = true, .slot = -1};

	begin(&td_backend_plain);
	(void)allocate();
	pool_bytes = BYTES;
	claim.object = td_outside_pool((uint64_t)POOL, 0, kind);
	CHECK_EQ(td_outside_settle(&claim, CUDA_SUCCESS, TD_KEY_ADDRESS, 0), CUDA_SUCCESS);
	full = true;
	(void)allocate();
	CHECK(calls_seen != 0);
	CHECK_EQ(pool_bytes, 0);
	CHECK_EQ(strict, 0);
	CHECK_EQ(mode, 0);
}

TEST(what_pools_keep_for_later_is_given_back_and_breaks_no_capture)
{
	make_room_by(TD_OUTSIDE_POOL);
	make_room_by(TD_OUTSIDE_GRAPH);
}
