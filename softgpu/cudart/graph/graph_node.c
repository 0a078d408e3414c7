/*
 * Handles nodes of any type by one struct: cudaGraphAddNode, and the calls that set its parameters.
 */
#include <string.h>

#include "softgpu/cudart/graph/graph.h"

/* CUgraphNodeParams of cuda.h */
struct node_params {
	int type;
	int reserved0[3];
	union {
		long long reserved1[29];
		struct rt_kernel_params kernel;
		struct {
			int flags, reserved;
			CUcontext context;
			struct rt_copy3d copy;
		} memcpy;
		struct {
			struct cudaMemsetParams params;
			CUcontext context;
		} memset;
		struct {
			struct cudaConditionalNodeParams params;
			CUcontext context;
		} conditional;
	};
	long long reserved2;
};
_Static_assert(sizeof(struct node_params) == 256, "CUgraphNodeParams of cuda.h");

static int convert_copy(
	const struct cudaMemcpyNodeParams *p, CUcontext context, struct node_params *ret)
{
	if (p->flags || p->reserved[0] || p->reserved[1] || p->reserved[2])
		return cudaErrorInvalidValue;
	ret->memcpy.flags = ret->memcpy.reserved = 0;
	ret->memcpy.context = context;
	return rt_copy3d_from(&p->copyParams, &ret->memcpy.copy);
}

/* Converts the parameters of the node types that differ; the others are the same in both APIs. */
static int convert(const struct cudaGraphNodeParams *p, CUcontext context, struct node_params *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->type = p->type;
	switch (p->type) {
	case cudaGraphNodeTypeKernel: return rt_kernel_params_from(&p->kernel, &ret->kernel);
	case cudaGraphNodeTypeMemcpy: return convert_copy(&p->memcpy, context, ret);
	case cudaGraphNodeTypeMemset:
		ret->memset.params = p->memset;
		ret->memset.context = context;
		return 0;
	case cudaGraphNodeTypeConditional:
		ret->conditional.params = p->conditional;
		ret->conditional.context = context;
		return 0;
	case cudaGraphNodeTypeHost:
	case cudaGraphNodeTypeGraph:
	case cudaGraphNodeTypeEmpty:
	case cudaGraphNodeTypeWaitEvent:
	case cudaGraphNodeTypeEventRecord:
	case cudaGraphNodeTypeMemAlloc:
	case cudaGraphNodeTypeMemFree:
		memcpy(ret->reserved1, p->reserved1, sizeof(ret->reserved1));
		return 0;
	default: return cudaErrorNotSupported;
	}
}

/* Copies back the values that the driver returns through the struct. */
static void give_back(const struct node_params *driver, struct cudaGraphNodeParams *p)
{
	if (p->type == cudaGraphNodeTypeMemAlloc)
		memcpy(p->reserved1, driver->reserved1, sizeof(p->reserved1));
	if (p->type == cudaGraphNodeTypeConditional)
		p->conditional.phGraph_out = driver->conditional.params.phGraph_out;
}

static int add(void **node, void *graph, const void **dependencies, const void *data, size_t count,
	struct cudaGraphNodeParams *p)
{
	struct node_params params;
	CUcontext context;
	int error = p ? rt_current(&context) : cudaErrorInvalidValue;

	if (!error)
		error = convert(p, context, &params);
	if (!error)
		error = CU(cuGraphAddNode_v2)(node, graph, dependencies, data, count, &params);
	if (!error)
		give_back(&params, p);
	return error;
}

static int set(void *exec, void *node, const struct cudaGraphNodeParams *p)
{
	struct node_params params;
	CUcontext context;
	int error = p ? rt_current(&context) : cudaErrorInvalidValue;

	if (!error)
		error = convert(p, context, &params);
	if (error)
		return error;
	return exec ? CU(cuGraphExecNodeSetParams)(exec, node, &params)
		    : CU(cuGraphNodeSetParams)(node, &params);
}

ONE(cudaGraphAddNode,
	(void **node, void *graph, const void **dependencies, const void *data, size_t count,
		struct cudaGraphNodeParams *p),
	add(node, graph, dependencies, data, count, p))
ONE(cudaGraphNodeSetParams, (void *node, struct cudaGraphNodeParams *p), set(NULL, node, p))
ONE(cudaGraphExecNodeSetParams, (void *exec, void *node, struct cudaGraphNodeParams *p),
	exec ? set(exec, node, p) : cudaErrorInvalidValue)
