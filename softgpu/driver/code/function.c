/*
 * Functions: attributes, occupancy, and the CUDA 3 launch calls, which set block shape and
 * parameters beforehand.
 */
#include <stdlib.h>
#include <string.h>

#include "cuda/signatures.h"
#include "model/kernel.h"
#include "softgpu/driver/code/module.h"

enum {
	FUNCTION_MAX_THREADS = 0,
	FUNCTION_SHARED = 1,
	FUNCTION_CONST = 2,
	FUNCTION_LOCAL = 3,
	FUNCTION_REGISTERS = 4,
	FUNCTION_PTX_VERSION = 5,
	FUNCTION_BINARY_VERSION = 6,
	FUNCTION_CACHE_MODE_CA = 7,
	FUNCTION_MAX_DYNAMIC_SHARED = 8,
	FUNCTION_CARVEOUT = 9,
	FUNCTION_N = 16,
};
#define LEGACY_PARAMS_MAX 4096u
#define LOADED            1 /* CU_FUNCTION_LOADING_STATE_LOADED */

int sg_function_find(struct CUctx_st *context, CUfunction handle, struct CUfunc_st **ret)
{
	struct CUfunc_st *found = NULL;
	struct td_list *it;

	pthread_mutex_lock(&context->lock);
	td_list_for_each (it, &context->modules)
		for (struct CUfunc_st *f = td_container_of(it, struct CUmod_st, link)->functions; f;
			f = f->next)
			if (f == handle)
				found = f;
	pthread_mutex_unlock(&context->lock);
	if (!found)
		return sg_kernel_function(context, handle, ret);
	*ret = found;
	return CUDA_SUCCESS;
}

static int named(CUfunction handle, struct CUctx_st **ret_context, struct CUfunc_st **ret)
{
	int r = sg_current(ret_context);

	if (r)
		return r;
	return sg_function_find(*ret_context, handle, ret);
}

API CUresult cuFuncGetAttribute(int *value, int attribute, CUfunction handle)
{
	struct CUctx_st *context;
	struct CUfunc_st *function;
	int r = named(handle, &context, &function);

	if (r)
		return r;
	if (!value || attribute < 0 || attribute >= FUNCTION_N)
		return CUDA_ERROR_INVALID_VALUE;
	switch (attribute) {
	case FUNCTION_MAX_THREADS: *value = (int)function->ptx->max_threads; break;
	case FUNCTION_SHARED: *value = (int)function->ptx->shared_bytes; break;
	case FUNCTION_LOCAL: *value = (int)function->ptx->local_bytes; break;
	case FUNCTION_REGISTERS: *value = (int)function->ptx->registers; break;
	case FUNCTION_PTX_VERSION:
	case FUNCTION_BINARY_VERSION:
		*value = (int)sg_ptx_module_target(function->module->ptx);
		break;
	case FUNCTION_MAX_DYNAMIC_SHARED: *value = (int)function->dynamic_shared_max; break;
	case FUNCTION_CARVEOUT: *value = -1; break; /* -1: the driver chooses */
	default: *value = 0; break;
	}
	return CUDA_SUCCESS;
}

API CUresult cuFuncSetAttribute(CUfunction handle, int attribute, int value)
{
	struct CUctx_st *context;
	struct CUfunc_st *function;
	int r = named(handle, &context, &function);

	if (r)
		return r;
	if (attribute == FUNCTION_CARVEOUT)
		return value < -1 || value > 100 ? CUDA_ERROR_INVALID_VALUE
						 : CUDA_SUCCESS; /* only a hint */
	if (attribute < 0 || attribute >= FUNCTION_N)
		return CUDA_ERROR_INVALID_VALUE;
	/* only the maximum dynamic shared memory can be set */
	if (attribute < FUNCTION_CACHE_MODE_CA)
		return CUDA_ERROR_INVALID_VALUE;
	if (attribute != FUNCTION_MAX_DYNAMIC_SHARED)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (value < 0 || (uint32_t)value + function->ptx->shared_bytes >
				 sg.devices[context->device].info.shared_per_block_bytes)
		return CUDA_ERROR_INVALID_VALUE;
	function->dynamic_shared_max = (uint32_t)value;
	return CUDA_SUCCESS;
}

/* Preferences have no effect: see device/context_settings.c. */
static int set_preference(CUfunction handle, int value, int last)
{
	struct CUctx_st *context;
	struct CUfunc_st *function;
	int r = named(handle, &context, &function);

	return r ? r : value < 0 || value > last ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

API CUresult cuFuncSetCacheConfig(CUfunction handle, int config)
{
	return set_preference(handle, config, 3);
}

API CUresult cuFuncSetSharedMemConfig(CUfunction handle, int config)
{
	return set_preference(handle, config, 2);
}

API CUresult cuFuncGetModule(CUmodule *ret, CUfunction handle)
{
	struct CUctx_st *context;
	struct CUfunc_st *function;
	int r = named(handle, &context, &function);

	if (!r && !ret)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		*ret = function->module;
	return r;
}

API CUresult cuFuncGetName(const char **ret, CUfunction handle)
{
	struct CUctx_st *context;
	struct CUfunc_st *function;
	int r = named(handle, &context, &function);

	if (!r && !ret)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		*ret = function->ptx->name;
	return r;
}

API CUresult cuFuncGetParamInfo(CUfunction handle, size_t index, size_t *offset, size_t *bytes)
{
	struct CUctx_st *context;
	struct CUfunc_st *function;
	int r = named(handle, &context, &function);

	if (!r && (!offset || index >= function->ptx->param_count))
		r = CUDA_ERROR_INVALID_VALUE;
	if (r)
		return r;
	*offset = function->ptx->params[index].offset;
	if (bytes)
		*bytes = function->ptx->params[index].size;
	return CUDA_SUCCESS;
}

API CUresult cuFuncIsLoaded(int *state, CUfunction handle)
{
	struct CUctx_st *context;
	struct CUfunc_st *function;
	int r = named(handle, &context, &function);

	if (!r && !state)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		*state = LOADED;
	return r;
}

API CUresult cuFuncLoad(CUfunction handle)
{
	struct CUctx_st *context;
	struct CUfunc_st *function;

	return named(handle, &context, &function);
}

/* -- occupancy: src/model/kernel.h computes how many blocks fit an SM -- */

typedef size_t (*dynamic_bytes)(int threads);

static int blocks_of(const struct CUctx_st *context, const struct CUfunc_st *function, int threads,
	size_t shared)
{
	const struct sg_device *device = &sg.devices[context->device];
	const struct td_block_needs needs = {(uint32_t)threads, function->ptx->registers,
		function->ptx->shared_bytes + (uint32_t)shared};

	return shared > device->info.shared_per_block_bytes
		       ? 0
		       : (int)td_model_blocks_per_sm(&device->spec, &needs);
}

static int active_blocks(int *blocks, CUfunction handle, int threads, size_t shared, unsigned flags)
{
	struct CUctx_st *context;
	struct CUfunc_st *function;
	int r = named(handle, &context, &function);

	if (r)
		return r;
	if (!blocks || threads <= 0 || flags > 1 || shared > UINT32_MAX / 2)
		return CUDA_ERROR_INVALID_VALUE;
	*blocks = threads > (int)function->ptx->max_threads
			  ? 0
			  : blocks_of(context, function, threads, shared);
	return CUDA_SUCCESS;
}

API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(
	int *blocks, CUfunction handle, int threads, size_t shared)
{
	return active_blocks(blocks, handle, threads, shared, 0);
}

API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
	int *blocks, CUfunction handle, int threads, size_t shared, unsigned flags)
{
	return active_blocks(blocks, handle, threads, shared, flags);
}

/*
 * Finds the block size, in whole warps, with the most resident threads per SM. Among equals the
 * largest block wins.
 */
static int potential(int *grid, int *block, CUfunction handle, dynamic_bytes bytes_of,
	size_t shared, int limit, unsigned flags)
{
	struct CUctx_st *context;
	struct CUfunc_st *function;
	int most = 0, threads, r = named(handle, &context, &function);

	if (r)
		return r;
	if (!grid || !block || flags > 1 || limit < 0)
		return CUDA_ERROR_INVALID_VALUE;
	*grid = *block = 0;
	threads = (int)function->ptx->max_threads;
	if (limit && limit < threads)
		threads = limit;
	for (int n = threads >= 32 ? threads & ~31 : threads; n > 0; n -= n > 32 ? 32 : n) {
		int blocks = blocks_of(context, function, n, bytes_of ? bytes_of(n) : shared);

		if (blocks * n <= most)
			continue;
		most = blocks * n;
		*block = n;
		*grid = blocks * (int)context->sm_count;
	}
	return most ? CUDA_SUCCESS : CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
}

API CUresult cuOccupancyMaxPotentialBlockSize(
	int *grid, int *block, CUfunction handle, dynamic_bytes bytes_of, size_t shared, int limit)
{
	return potential(grid, block, handle, bytes_of, shared, limit, 0);
}

API CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int *grid, int *block, CUfunction handle,
	dynamic_bytes bytes_of, size_t shared, int limit, unsigned flags)
{
	return potential(grid, block, handle, bytes_of, shared, limit, flags);
}

/* Finds the largest dynamic shared memory with which that many blocks still fit. */
API CUresult cuOccupancyAvailableDynamicSMemPerBlock(
	size_t *ret, CUfunction handle, int blocks, int threads)
{
	struct CUctx_st *context;
	struct CUfunc_st *function;
	uint32_t low = 0, high;
	int r = named(handle, &context, &function);

	if (r)
		return r;
	if (!ret || blocks <= 0 || threads <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (threads > (int)function->ptx->max_threads ||
		blocks_of(context, function, threads, 0) < blocks)
		return CUDA_ERROR_INVALID_VALUE;
	high = sg.devices[context->device].info.shared_per_block_bytes -
	       function->ptx->shared_bytes;
	while (low < high) {
		uint32_t middle = low + (high - low + 1) / 2;

		if (blocks_of(context, function, threads, middle) >= blocks)
			low = middle;
		else
			high = middle - 1;
	}
	*ret = low;
	return CUDA_SUCCESS;
}

/* Clusters are not supported (CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH is 0). */
static int no_clusters(const int *ret, CUfunction handle, const CUlaunchConfig *config)
{
	struct CUctx_st *context;
	struct CUfunc_st *function;
	int r = named(handle, &context, &function);

	if (r)
		return r;
	return ret && config ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
}

API CUresult cuOccupancyMaxPotentialClusterSize(
	int *ret, CUfunction handle, const CUlaunchConfig *config)
{
	return no_clusters(ret, handle, config);
}

API CUresult cuOccupancyMaxActiveClusters(int *ret, CUfunction handle, const CUlaunchConfig *config)
{
	return no_clusters(ret, handle, config);
}

/* -- launches of CUDA 3 -- */

API CUresult cuFuncSetBlockShape(CUfunction handle, int x, int y, int z)
{
	struct CUctx_st *context;
	struct CUfunc_st *function;
	int r = named(handle, &context, &function);

	if (!r && (x <= 0 || y <= 0 || z <= 0))
		r = CUDA_ERROR_INVALID_VALUE;
	if (r)
		return r;
	function->legacy.block[0] = (unsigned)x;
	function->legacy.block[1] = (unsigned)y;
	function->legacy.block[2] = (unsigned)z;
	return CUDA_SUCCESS;
}

API CUresult cuFuncSetSharedSize(CUfunction handle, unsigned bytes)
{
	struct CUctx_st *context;
	struct CUfunc_st *function;
	int r = named(handle, &context, &function);

	if (!r)
		function->legacy.shared = bytes;
	return r;
}

API CUresult cuParamSetSize(CUfunction handle, unsigned bytes)
{
	struct CUctx_st *context;
	struct CUfunc_st *function;
	int r = named(handle, &context, &function);

	if (!r && bytes > LEGACY_PARAMS_MAX)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		function->legacy.bytes = bytes;
	return r;
}

static int set_param(CUfunction handle, int offset, const void *value, unsigned bytes)
{
	struct CUctx_st *context;
	struct CUfunc_st *function;
	int r = named(handle, &context, &function);

	if (r)
		return r;
	if (offset < 0 || !value || bytes > LEGACY_PARAMS_MAX ||
		(unsigned)offset > LEGACY_PARAMS_MAX - bytes)
		return CUDA_ERROR_INVALID_VALUE;
	if (!function->legacy.params)
		function->legacy.params = calloc(1, LEGACY_PARAMS_MAX);
	if (!function->legacy.params)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(function->legacy.params + offset, value, bytes);
	return CUDA_SUCCESS;
}

API CUresult cuParamSeti(CUfunction handle, int offset, unsigned value)
{
	return set_param(handle, offset, &value, sizeof(value));
}

API CUresult cuParamSetf(CUfunction handle, int offset, float value)
{
	return set_param(handle, offset, &value, sizeof(value));
}

API CUresult cuParamSetv(CUfunction handle, int offset, void *value, unsigned bytes)
{
	return set_param(handle, offset, value, bytes);
}

CUresult cuLaunchKernel TD_PARAMS_cuLaunchKernel;

static int launch_grid(CUfunction handle, int width, int height, CUstream stream)
{
	struct CUctx_st *context;
	struct CUfunc_st *f;
	static char none[LEGACY_PARAMS_MAX];
	unsigned block[3];
	size_t bytes;
	int r = named(handle, &context, &f);

	if (!r && (width <= 0 || height <= 0))
		r = CUDA_ERROR_INVALID_VALUE;
	if (r)
		return r;
	bytes = f->legacy.bytes;
	memcpy(block, f->legacy.block, sizeof(block));
	r = cuLaunchKernel(handle, (unsigned)width, (unsigned)height, 1, block[0], block[1],
		block[2], f->legacy.shared, stream, NULL,
		(void *[]){CU_LAUNCH_PARAM_BUFFER_POINTER,
			f->legacy.params ? f->legacy.params : none, CU_LAUNCH_PARAM_BUFFER_SIZE,
			&bytes, CU_LAUNCH_PARAM_END});
	memcpy(f->legacy.block, block,
		/* cuLaunchKernel reset them, but only a program's own call of it should */
		sizeof(block));
	return r;
}

API CUresult cuLaunch(CUfunction handle)
{
	return launch_grid(handle, 1, 1, NULL);
}

API CUresult cuLaunchGrid(CUfunction handle, int width, int height)
{
	return launch_grid(handle, width, height, NULL);
}

API CUresult cuLaunchGridAsync(CUfunction handle, int width, int height, CUstream stream)
{
	return launch_grid(handle, width, height, stream);
}
