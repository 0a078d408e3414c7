/*
 * Hooks for stream-ordered allocation and its pools. A pool counts as much as it has taken from the
 * device, whether used or not. The daemon is asked before the pool may have to grow, and the
 * driver's figure is read again after every call that can change it.
 */
#include <stddef.h>
#include <string.h>

#include "cuda/objects.h"
#include "cuda/symbols.h"
#include "preload/agent/clean_exit.h"
#include "preload/base/backend.h"
#include "preload/context/context.h"
#include "preload/driver/driver.h"
#include "preload/driver/real.h"
#include "preload/gate/gate.h"
#include "preload/ipc/ipc.h"
#include "preload/memory/late.h"
#include "preload/outside/outside.h"
#include "preload/rehome/rehome.h"

/*
 * Gets the device of a stream from its context. Drivers older than 12.8 can only tell the device of
 * the current context, so the stream's is made current.
 */
static bool ask_context(CUstream stream, CUdevice *ret)
{
	CUcontext context, popped;
	bool told;

	if (td_context_gpu_count() < 2 || !td_real.cuStreamGetCtx ||
		td_real.cuStreamGetCtx(stream, &context) || td_real.cuCtxPushCurrent_v2(context))
		return false;
	told = !td_real.cuCtxGetDevice(ret);
	(void)td_real.cuCtxPopCurrent_v2(&popped);
	return told;
}

/*
 * Returns the device of a stream, or of the current context if the stream's is not known. Negative:
 * there is none.
 */
static int device_of(CUstream stream)
{
	CUdevice device;

	if (td_real.cuStreamGetDevice ? !td_real.cuStreamGetDevice(stream, &device)
				      : ask_context(stream, &device))
		return td_rehome_device(device);
	return td_real.cuCtxGetDevice && !td_real.cuCtxGetDevice(&device) ? td_rehome_device(device)
									  : -1;
}

/*
 * Finds the pool's object and claims its growth. The claim does nothing where nothing is counted.
 */
static CUresult claim(struct td_outside_claim *ret, const void *address, uint64_t bytes, void *pool,
	CUstream stream)
{
	struct td_object *object;
	int device;

	memset(ret, 0, sizeof(*ret));
	/* During a capture the allocation becomes a node of the graph. */
	if (!address || !bytes || td_context_use() < 0 || td_context_is_capturing(stream))
		return CUDA_SUCCESS;
	device = device_of(stream);
	if (device < 0)
		return CUDA_SUCCESS;
	if (!pool && (!td_real.cuDeviceGetMemPool || td_real.cuDeviceGetMemPool(&pool, device)))
		return CUDA_SUCCESS;
	object = td_outside_pool((uint64_t)pool, device, TD_OUTSIDE_POOL);
	return object ? td_outside_claim_growth(ret, object, bytes) : CUDA_ERROR_OUT_OF_MEMORY;
}

#define ALLOC_ASYNC(symbol, free_symbol, pool, own_stream, null_stream)                            \
	CUresult td_hook_##symbol TD_PARAMS_##symbol                                               \
	{                                                                                          \
		struct td_outside_claim growth;                                                    \
		CUresult r = claim(&growth, a0, a1, pool, stream ? stream : null_stream);          \
		if (r)                                                                             \
			return r;                                                                  \
		do {                                                                               \
			struct td_marker *marker = td_gate_enter(stream, own_stream);              \
			r = td_real.symbol TD_ARGS_##symbol;                                       \
			td_gate_leave(marker);                                                     \
		} while (td_outside_again(&growth, r));                                            \
		if (!r && !td_outside_fits(&growth)) {                                             \
			(void)td_real.free_symbol(*a0, stream);                                    \
			r = CUDA_ERROR_OUT_OF_MEMORY;                                              \
		}                                                                                  \
		return td_outside_settle(&growth, r, TD_KEY_ADDRESS, r || !a0 ? 0 : *a0);          \
	}

ALLOC_ASYNC(cuMemAllocAsync, cuMemFreeAsync, NULL, 0, CU_STREAM_LEGACY)
ALLOC_ASYNC(
	cuMemAllocAsync_ptsz, cuMemFreeAsync_ptsz, NULL, TD_SUBMIT_OWN_NULL, CU_STREAM_PER_THREAD)
ALLOC_ASYNC(cuMemAllocFromPoolAsync, cuMemFreeAsync, a2, 0, CU_STREAM_LEGACY)
ALLOC_ASYNC(cuMemAllocFromPoolAsync_ptsz, cuMemFreeAsync_ptsz, a2, TD_SUBMIT_OWN_NULL,
	CU_STREAM_PER_THREAD)

/*
 * Returns whether this is memory of cuMemAlloc, which programs may also free in stream order.
 * Returns false if the stream cannot be used now: then the driver is called and refuses.
 */
static bool is_backends(CUdeviceptr address, CUstream named)
{
	uint64_t base;
	size_t bytes;
	int capturing = 0;

	return td_agent_backend()->range(address, &base, &bytes) == CUDA_SUCCESS &&
	       base == address && !td_context_is_capturing(named) &&
	       (!td_real.cuStreamIsCapturing ||
		       (!td_real.cuStreamIsCapturing(named, &capturing) && !capturing));
}

/*
 * Frees the memory later if the stream has work, since that work may wait for this thread's next
 * call. Returns false if the stream has no work, or the memory cannot be freed later.
 */
static bool free_late(CUdeviceptr address, CUstream named)
{
	struct td_key *key;
	void *context;
	bool late;

	if (!td_real.cuStreamQuery || td_real.cuStreamQuery(named) != TD_CUDA_ERROR_NOT_READY)
		return false;
	key = td_outside_take(TD_KEY_BACKEND, address);
	context = td_outside_context_of(key);
	late = context && td_late_free(address, context);
	if (late)
		td_outside_gone(key);
	else
		td_outside_back(key);
	return late;
}

/* Another thread's capture must not make the program's own call fail. */
static CUresult free_backends(CUdeviceptr address, CUstream named)
{
	CUresult r = CUDA_SUCCESS;
	int before;

	if (td_late_has(address) || td_ipc_is_kept(address))
		return CUDA_ERROR_INVALID_VALUE;
	before = td_context_relax();
	if (!free_late(address, named)) {
		r = td_real.cuStreamSynchronize(named);
		r = r ? r : td_hook_cuMemFree_v2(address);
	}
	td_context_unrelax(before);
	return r;
}

#define FREE_ASYNC(symbol, own_stream, null_stream)                                                \
	CUresult td_hook_##symbol TD_PARAMS_##symbol                                               \
	{                                                                                          \
		struct td_marker *marker;                                                          \
		struct td_key *key;                                                                \
		CUresult r;                                                                        \
		if (is_backends(a0, stream ? stream : null_stream))                                \
			return free_backends(a0, stream ? stream : null_stream);                   \
		key = td_outside_take(TD_KEY_ADDRESS, a0);                                         \
		marker = td_gate_enter(stream, own_stream);                                        \
		r = td_real.symbol TD_ARGS_##symbol;                                               \
		td_gate_leave(marker);                                                             \
		(void)td_outside_end(key, r);                                                      \
		td_outside_refresh();                                                              \
		return r;                                                                          \
	}

FREE_ASYNC(cuMemFreeAsync, 0, CU_STREAM_LEGACY)
FREE_ASYNC(cuMemFreeAsync_ptsz, TD_SUBMIT_OWN_NULL, CU_STREAM_PER_THREAD)

/*
 * The pool is recorded when it is made, because it may be of another device than the stream that
 * allocates from it, or of the host.
 */
CUresult td_hook_cuMemPoolCreate(void **a0, const void *a1)
{
	const struct td_pool_props *props = a1;
	CUresult r = td_real.cuMemPoolCreate(a0, a1);
	struct td_outside_claim claim = {.growth = true};

	if (r || !a0 || !props)
		return r;
	claim.slot = -1;
	claim.object = td_outside_pool((uint64_t)*a0,
		props->location.type == CU_MEM_LOCATION_TYPE_DEVICE
			? td_rehome_device(props->location.id)
			: -1,
		TD_OUTSIDE_POOL);
	return td_outside_settle(&claim, r, TD_KEY_ADDRESS, 0);
}

/*
 * The memory belongs to another process's pool. That process counts it as long as it has the pool.
 * No call of the driver tells its size here.
 */
CUresult td_hook_cuMemPoolImportPointer(CUdeviceptr *a0, void *a1, void *a2)
{
	CUresult r = td_real.cuMemPoolImportPointer(a0, a1, a2);

	if (!r && a0)
		td_outside_note_import_at(*a0);
	return r;
}

CUresult td_hook_cuMemPoolImportFromShareableHandle(
	void **a0, void *a1, int a2, unsigned long long a3)
{
	CUresult r = td_real.cuMemPoolImportFromShareableHandle(a0, a1, a2, a3);

	if (!r && a0)
		td_outside_note_import_pool((uint64_t)*a0);
	return r;
}

CUresult td_hook_cuMemPoolDestroy(void *a0)
{
	/* The record is removed first: after the call nobody may use the pool. */
	struct td_key *key = td_outside_pool_ends((uint64_t)a0);
	struct td_key *imported = td_outside_take(TD_KEY_IMPORTED_POOL, (uint64_t)a0);
	CUresult r = td_real.cuMemPoolDestroy(a0);

	if (r)
		td_outside_pool_stays(key, (uint64_t)a0);
	else
		td_outside_gone(key);
	return td_outside_end(imported, r);
}

/* Calls after which a pool may hold less. */
#define AND_REFRESH(symbol)                                                                        \
	CUresult td_hook_##symbol TD_PARAMS_##symbol                                               \
	{                                                                                          \
		CUresult r = td_real.symbol TD_ARGS_##symbol;                                      \
		td_outside_refresh();                                                              \
		return r;                                                                          \
	}

/* A call that waits for the GPU may also end a step. */
#define SYNCHRONISE(symbol)                                                                        \
	CUresult td_hook_##symbol TD_PARAMS_##symbol                                               \
	{                                                                                          \
		CUresult r;                                                                        \
		td_gate_synchronises(TD_SYMBOL_##symbol);                                          \
		r = td_real.symbol TD_ARGS_##symbol;                                               \
		td_exit_waited(r);                                                                 \
		td_outside_refresh();                                                              \
		return r;                                                                          \
	}

AND_REFRESH(cuMemPoolTrimTo)

/* Memory that graphs keep unused is counted apart from memory that they use; see graphs.c. */
CUresult td_hook_cuDeviceGraphMemTrim(CUdevice a0)
{
	return td_outside_trim_graphs(a0);
}

SYNCHRONISE(cuStreamSynchronize)
SYNCHRONISE(cuStreamSynchronize_ptsz)
SYNCHRONISE(cuEventSynchronize)
SYNCHRONISE(cuCtxSynchronize)
SYNCHRONISE(cuCtxSynchronize_v2)
