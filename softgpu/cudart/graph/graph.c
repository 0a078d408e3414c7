/*
 * Graph nodes whose parameters differ between the two APIs: kernels, copies and sets. Calls that
 * are the same in both are in the table of forwarded calls.
 */
#include <string.h>

#include "softgpu/cudart/graph/graph.h"

int rt_kernel_params_from(const struct cudaKernelNodeParams *p, struct rt_kernel_params *ret)
{
	CUfunction function;
	int error = p ? rt_function(p->func, &function) : cudaErrorInvalidValue;

	if (error)
		return error;
	*ret = (struct rt_kernel_params){.func = function,
		.grid = p->gridDim,
		.block = p->blockDim,
		.sharedMemBytes = p->sharedMemBytes,
		.kernelParams = p->kernelParams,
		.extra = p->extra};
	return 0;
}

static int add_kernel(void **node, void *graph, const void **dependencies, size_t count,
	const struct cudaKernelNodeParams *p)
{
	struct rt_kernel_params params;
	int error = rt_kernel_params_from(p, &params);

	return error ? error
		     : CU(cuGraphAddKernelNode_v2)(node, graph, dependencies, count, &params);
}

static int set_kernel(void *exec, void *node, const struct cudaKernelNodeParams *p)
{
	struct rt_kernel_params params;
	int error = rt_kernel_params_from(p, &params);

	if (error)
		return error;
	return exec ? CU(cuGraphExecKernelNodeSetParams_v2)(exec, node, &params)
		    : CU(cuGraphKernelNodeSetParams_v2)(node, &params);
}

/* Returns the kernel under the name that the program gave it, if it did. */
static int get_kernel(void *node, struct cudaKernelNodeParams *ret)
{
	struct rt_kernel_params params;
	int error = ret ? CU(cuGraphKernelNodeGetParams_v2)(node, &params) : cudaErrorInvalidValue;
	const void *key;

	if (error)
		return error;
	key = rt_symbol_of_function(params.func);
	*ret = (struct cudaKernelNodeParams){.func = (void *)(key ? key : params.func),
		.gridDim = params.grid,
		.blockDim = params.block,
		.sharedMemBytes = params.sharedMemBytes,
		.kernelParams = params.kernelParams,
		.extra = params.extra};
	return 0;
}

ONE(cudaGraphAddKernelNode,
	(void **node, void *graph, const void **dependencies, size_t count,
		const struct cudaKernelNodeParams *p),
	add_kernel(node, graph, dependencies, count, p))
ONE(cudaGraphKernelNodeSetParams, (void *node, const struct cudaKernelNodeParams *p),
	set_kernel(NULL, node, p))
ONE(cudaGraphExecKernelNodeSetParams,
	(void *exec, void *node, const struct cudaKernelNodeParams *p),
	exec ? set_kernel(exec, node, p) : cudaErrorInvalidValue)
ONE(cudaGraphKernelNodeGetParams, (void *node, struct cudaKernelNodeParams *p), get_kernel(node, p))

/*
 * -- copies: each way of naming a copy is converted to one struct; then one of three calls is made
 * --
 */

static int add_copy(void **node, void *graph, const void **dependencies, size_t count, int error,
	const struct rt_copy3d *copy)
{
	CUcontext context;

	if (!error)
		error = rt_current(&context);
	return error ? error
		     : CU(cuGraphAddMemcpyNode)(node, graph, dependencies, count, copy, context);
}

static int set_copy(void *exec, void *node, int error, const struct rt_copy3d *copy)
{
	CUcontext context;

	if (!error)
		error = rt_current(&context);
	if (error)
		return error;
	return exec ? CU(cuGraphExecMemcpyNodeSetParams)(exec, node, copy, context)
		    : CU(cuGraphMemcpyNodeSetParams)(node, copy);
}

static int get_copy(void *node, struct cudaMemcpy3DParms *ret)
{
	struct rt_copy3d copy;
	int error = ret ? CU(cuGraphMemcpyNodeGetParams)(node, &copy) : cudaErrorInvalidValue;

	if (!error)
		rt_copy3d_to(&copy, ret);
	return error;
}

static int to_symbol(const void *symbol, const void *src, size_t bytes, size_t offset, int kind,
	struct rt_copy3d *ret)
{
	CUdeviceptr dst;
	int error = rt_symbol_range(symbol, offset, bytes, &dst);

	return error ? error : rt_copy1d((void *)dst, src, bytes, kind, ret);
}

static int from_symbol(
	void *dst, const void *symbol, size_t bytes, size_t offset, int kind, struct rt_copy3d *ret)
{
	CUdeviceptr src;
	int error = rt_symbol_range(symbol, offset, bytes, &src);

	return error ? error : rt_copy1d(dst, (void *)src, bytes, kind, ret);
}

/*
 * The three calls for one way of naming a copy: suffix of their names, parameters after the node's,
 * and the expression that fills `copy`. The names of SetParams for the graph's own node and for an
 * executable graph differ in one word.
 */
#define UNPACK(...) __VA_ARGS__
#define COPY_NODE(suffix, parameters, fill)                                                        \
	API int cudaGraphAddMemcpyNode##suffix(void **node, void *graph,                           \
		const void **dependencies, size_t count, UNPACK parameters)                        \
	{                                                                                          \
		struct rt_copy3d copy;                                                             \
		int error = rt_enter();                                                            \
                                                                                                   \
		if (!error)                                                                        \
			error = (fill);                                                            \
		return rt_done(add_copy(node, graph, dependencies, count, error, &copy));          \
	}                                                                                          \
	API int cudaGraphMemcpyNodeSetParams##suffix(void *node, UNPACK parameters)                \
	{                                                                                          \
		struct rt_copy3d copy;                                                             \
		int error = rt_enter();                                                            \
                                                                                                   \
		if (!error)                                                                        \
			error = (fill);                                                            \
		return rt_done(set_copy(NULL, node, error, &copy));                                \
	}                                                                                          \
	API int cudaGraphExecMemcpyNodeSetParams##suffix(                                          \
		void *exec, void *node, UNPACK parameters)                                         \
	{                                                                                          \
		struct rt_copy3d copy;                                                             \
		int error = exec ? rt_enter() : cudaErrorInvalidValue;                             \
                                                                                                   \
		if (!error)                                                                        \
			error = (fill);                                                            \
		return rt_done(set_copy(exec, node, error, &copy));                                \
	}

COPY_NODE(, (const struct cudaMemcpy3DParms *p), rt_copy3d_from(p, &copy))
COPY_NODE(1D, (void *dst, const void *src, size_t bytes, int kind),
	rt_copy1d(dst, src, bytes, kind, &copy))
COPY_NODE(ToSymbol, (const void *symbol, const void *src, size_t bytes, size_t offset, int kind),
	to_symbol(symbol, src, bytes, offset, kind, &copy))
COPY_NODE(FromSymbol, (void *dst, const void *symbol, size_t bytes, size_t offset, int kind),
	from_symbol(dst, symbol, bytes, offset, kind, &copy))
ONE(cudaGraphMemcpyNodeGetParams, (void *node, struct cudaMemcpy3DParms *p), get_copy(node, p))

/* -- sets: the runtime's struct is the driver's, without the context -- */

static int add_set(void **node, void *graph, const void **dependencies, size_t count,
	const struct cudaMemsetParams *p)
{
	CUcontext context;
	int error = rt_current(&context);

	return error ? error
		     : CU(cuGraphAddMemsetNode)(node, graph, dependencies, count, p, context);
}

static int set_set(void *exec, void *node, const struct cudaMemsetParams *p)
{
	CUcontext context;
	int error = rt_current(&context);

	return error ? error : CU(cuGraphExecMemsetNodeSetParams)(exec, node, p, context);
}

ONE(cudaGraphAddMemsetNode,
	(void **node, void *graph, const void **dependencies, size_t count,
		const struct cudaMemsetParams *p),
	add_set(node, graph, dependencies, count, p))
ONE(cudaGraphExecMemsetNodeSetParams, (void *exec, void *node, const struct cudaMemsetParams *p),
	set_set(exec, node, p))

static int new_conditional(uint64_t *ret, void *graph, unsigned value, unsigned flags)
{
	CUcontext context;
	int error = rt_current(&context);

	return error ? error
		     : CU(cuGraphConditionalHandleCreate)(ret, graph, context, value, flags);
}

ONE(cudaGraphConditionalHandleCreate, (uint64_t * ret, void *graph, unsigned value, unsigned flags),
	new_conditional(ret, graph, value, flags))

/* CUDA_GRAPH_INSTANTIATE_PARAMS of cuda.h, which the runtime's struct equals. */
struct instantiate {
	unsigned long long flags;
	CUstream upload;
	void *error_node;
	int result;
};
_Static_assert(sizeof(struct instantiate) == 32, "cudaGraphInstantiateParams_st of driver_types.h");

static int instantiate(void **ret, void *graph, struct instantiate *params, bool ptsz)
{
	struct instantiate own;
	int error;

	if (!params)
		return cudaErrorInvalidValue;
	own = *params;
	own.upload = ON(own.upload);
	error = CU(cuGraphInstantiateWithParams)(ret, graph, &own);
	params->error_node = own.error_node;
	params->result = own.result;
	return error;
}

BOTH(cudaGraphInstantiateWithParams, _ptsz, (void **ret, void *graph, struct instantiate *params),
	instantiate(ret, graph, params, ptsz))
