/*
 * Settings and queries of contexts: limits, preferences, the context's id, peer access, and events
 * and waits that cover a whole context.
 * Preferences for caches and shared memory banks are stored and returned, and have no other effect,
 * as on GPUs without the choice. Limits are stored too. The stack of a kernel's thread always has
 * the size that its code needs.
 */
#include <string.h>

#include "softgpu/driver/device/mps.h"
#include "softgpu/driver/driver.h"

enum {
	CU_LIMIT_STACK_SIZE = 0,
	CU_LIMIT_PRINTF_FIFO_SIZE = 1,
	CU_LIMIT_MALLOC_HEAP_SIZE = 2,
	CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH = 3,
	CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT = 4,
	CU_LIMIT_MAX_L2_FETCH_GRANULARITY = 5,
	CU_LIMIT_PERSISTING_L2_CACHE_SIZE = 6,
};
enum { CU_CTX_SCHED_MASK = 0x07, CU_CTX_FLAGS_MASK = 0xff };
#define STACK_MAX (512u << 10)

void sg_context_defaults(struct CUctx_st *context)
{
	context->limits[CU_LIMIT_STACK_SIZE] = 1024;
	context->limits[CU_LIMIT_PRINTF_FIFO_SIZE] = 1u << 20;
	context->limits[CU_LIMIT_MALLOC_HEAP_SIZE] = 8u << 20;
	context->limits[CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH] = 2;
	context->limits[CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048;
	context->limits[CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64;
	context->limits[CU_LIMIT_PERSISTING_L2_CACHE_SIZE] = 0;
}

API CUresult cuCtxGetLimit(size_t *value, int limit)
{
	struct CUctx_st *context;
	int r = sg_current(&context);

	if (r)
		return r;
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	if (limit < 0 || limit >= SG_LIMIT_N)
		return CUDA_ERROR_UNSUPPORTED_LIMIT;
	*value = context->limits[limit];
	return CUDA_SUCCESS;
}

API CUresult cuCtxSetLimit(int limit, size_t value)
{
	struct CUctx_st *context;
	int r = sg_current(&context);

	if (r)
		return r;
	if (limit < 0 || limit >= SG_LIMIT_N)
		return CUDA_ERROR_UNSUPPORTED_LIMIT;
	switch (limit) {
	case CU_LIMIT_STACK_SIZE:
		if (value > STACK_MAX)
			return CUDA_ERROR_INVALID_VALUE;
		value = (value + 15) & ~(size_t)15;
		break;
	/*
	 * There is no persisting L2 cache and no dynamic parallelism, so the only value in range is
	 * 0.
	 */
	case CU_LIMIT_PERSISTING_L2_CACHE_SIZE: value = 0; break;
	case CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH: return CUDA_ERROR_UNSUPPORTED_LIMIT;
	case CU_LIMIT_MAX_L2_FETCH_GRANULARITY:
		if (value > 128)
			return CUDA_ERROR_INVALID_VALUE;
		break;
	default: break;
	}
	context->limits[limit] = value;
	return CUDA_SUCCESS;
}

static int get_config(int *ret, bool banks)
{
	struct CUctx_st *context;
	int r = sg_current(&context);

	if (!r && !ret)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		*ret = banks ? context->bank_config : context->cache_config;
	return r;
}

static int set_config(int value, bool banks)
{
	struct CUctx_st *context;
	int r = sg_current(&context);

	if (!r && (value < 0 || value > (banks ? 2 : 3)))
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r && banks)
		context->bank_config = value;
	else if (!r)
		context->cache_config = value;
	return r;
}

API CUresult cuCtxGetCacheConfig(int *ret)
{
	return get_config(ret, false);
}

API CUresult cuCtxSetCacheConfig(int value)
{
	return set_config(value, false);
}

API CUresult cuCtxGetSharedMemConfig(int *ret)
{
	return get_config(ret, true);
}

API CUresult cuCtxSetSharedMemConfig(int value)
{
	return set_config(value, true);
}

/* Resolves the context that a call names. NULL names the current one. */
static int named(CUcontext handle, struct CUctx_st **ret)
{
	int r = handle ? sg_ready() : sg_current(ret);

	if (r || !handle)
		return r;
	if (!sg_context_is_live(handle))
		return CUDA_ERROR_INVALID_CONTEXT;
	*ret = handle;
	return __atomic_load_n(&handle->error, __ATOMIC_ACQUIRE);
}

API CUresult cuCtxGetId(CUcontext handle, unsigned long long *id)
{
	struct CUctx_st *context;
	int r = named(handle, &context);

	if (!r && !id)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		*id = context->id;
	return r;
}

API CUresult cuCtxGetDevice_v2(CUdevice *device, CUcontext handle)
{
	struct CUctx_st *context;
	int r = named(handle, &context);

	if (!r && !device)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		*device = (CUdevice)context->device;
	return r;
}

API CUresult cuCtxSynchronize_v2(CUcontext handle)
{
	struct CUctx_st *context;
	int r = named(handle, &context);

	if (!r)
		r = sg_capture_check_context(context);
	return r ? r : sg_context_synchronize(context);
}

bool sg_context_flags_are_good(unsigned flags)
{
	unsigned sched = flags & CU_CTX_SCHED_MASK;

	return !(flags & ~(unsigned)CU_CTX_FLAGS_MASK) &&
	       (sched == 0 || sched == 1 || sched == 2 || sched == 4);
}

API CUresult cuCtxSetFlags(unsigned flags)
{
	struct CUctx_st *context;
	int r = sg_current(&context);

	if (r)
		return r;
	if (!sg_context_flags_are_good(flags))
		return CUDA_ERROR_INVALID_VALUE;
	context->flags = flags;
	return CUDA_SUCCESS;
}

/* There is no persisting L2 cache to reset. */
API CUresult cuCtxResetPersistingL2Cache(void)
{
	struct CUctx_st *context;

	return sg_current(&context);
}

API CUresult cuCtxGetExecAffinity(void *ret, int type)
{
	struct CUctx_st *context;
	int r = sg_current(&context);

	if (!r && !ret)
		r = CUDA_ERROR_INVALID_VALUE;
	/* SM limits, the only type, need MPS. */
	if (!r && (type || !sg_mps_server()))
		r = CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
	if (r)
		return r;
	memcpy(ret, (uint32_t[]){0, context->sm_count}, 2 * sizeof(uint32_t));
	return CUDA_SUCCESS;
}

API CUresult cuDeviceGetExecAffinitySupport(int *ret, int type, CUdevice device)
{
	int r = sg_ready();

	if (r)
		return r;
	if (!ret || type)
		return CUDA_ERROR_INVALID_VALUE;
	if (device < 0 || device >= (int)sg.device_count)
		return CUDA_ERROR_INVALID_DEVICE;
	*ret = sg_mps_server() != 0;
	return CUDA_SUCCESS;
}

/* -- peer access: all devices of a server can access each other -- */

static int check_pair(CUdevice a, CUdevice b, const void *out)
{
	int r = sg_ready();

	if (r)
		return r;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	return a < 0 || b < 0 || a >= (int)sg.device_count || b >= (int)sg.device_count
		       ? CUDA_ERROR_INVALID_DEVICE
		       : CUDA_SUCCESS;
}

API CUresult cuDeviceCanAccessPeer(int *ret, CUdevice device, CUdevice peer)
{
	int r = check_pair(device, peer, ret);

	if (!r)
		*ret = device != peer;
	return r;
}

enum {
	CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK = 1,
	CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED = 2,
	CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED = 3,
	CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED = 4,
};

API CUresult cuDeviceGetP2PAttribute(int *ret, int attribute, CUdevice device, CUdevice peer)
{
	int r = check_pair(device, peer, ret);

	if (r)
		return r;
	if (device == peer || attribute < 1 || attribute > 5)
		return CUDA_ERROR_INVALID_VALUE;
	*ret = attribute == CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED ||
	       attribute == CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED;
	return CUDA_SUCCESS;
}

/* Atomics across the link are not supported. */
API CUresult cuDeviceGetP2PAtomicCapabilities(unsigned *capabilities, const int *operations,
	unsigned count, CUdevice device, CUdevice peer)
{
	int r = check_pair(device, peer, capabilities);

	if (!r && (!operations || !count || device == peer))
		r = CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; !r && i < count; i++)
		capabilities[i] = 0;
	return r;
}

API CUresult cuDeviceGetHostAtomicCapabilities(
	unsigned *capabilities, const int *operations, unsigned count, CUdevice device)
{
	int r = check_pair(device, device, capabilities);

	if (!r && (!operations || !count))
		r = CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; !r && i < count; i++)
		capabilities[i] = 0;
	return r;
}

static int peer_of(CUcontext peer, struct CUctx_st **ret)
{
	int r = sg_current(ret);

	if (r)
		return r;
	return !peer || peer == *ret || !sg_context_is_live(peer) ? CUDA_ERROR_INVALID_CONTEXT
								  : CUDA_SUCCESS;
}

/*
 * Peer access covers all memory of contexts on the peer's device. Contexts of the same device need
 * no peer access.
 */
API CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags)
{
	struct CUctx_st *context;
	int r = peer_of(peer, &context);
	uint32_t bit;

	if (r)
		return r;
	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (peer->device == context->device)
		return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
	bit = SG_DEVICE_BIT(peer->device);
	return __atomic_fetch_or(&context->peers, bit, __ATOMIC_RELAXED) & bit
		       ? CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED
		       : CUDA_SUCCESS;
}

API CUresult cuCtxDisablePeerAccess(CUcontext peer)
{
	struct CUctx_st *context;
	int r = peer_of(peer, &context);
	uint32_t bit;

	if (r)
		return r;
	bit = SG_DEVICE_BIT(peer->device);
	return __atomic_fetch_and(&context->peers, ~bit, __ATOMIC_RELAXED) & bit
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
}
