/*
 * Getting and setting the parameters of a node, for later instantiations. The same for nodes of
 * executable graphs is in update.c.
 */
#include <stdlib.h>
#include <string.h>

#include "softgpu/driver/copy/copy.h"

/*
 * Returns a live node of that type with sg_graph_lock held. Otherwise returns NULL, and the lock is
 * not held.
 */
static struct CUgraphNode_st *lock_node(CUgraphNode node, int type)
{
	pthread_mutex_lock(&sg_graph_lock);
	if (sg_node_is_live(node) && (type < 0 || node->type == type))
		return node;
	sg_graph_unlock();
	return NULL;
}

/* -- getters: each is called with the lock held, for a node of its type -- */

/* cuda.h: "The kernelParams ... array returned ... is owned by the node." */
static int tell_kernel_v2(struct CUgraphNode_st *node, void *ret)
{
	CUDA_KERNEL_NODE_PARAMS_v2 *kernel = ret;
	void **params = NULL;
	int r;

	memset(kernel, 0, sizeof(*kernel));
	r = node->graph->context && !sg_work_is_valid(node->graph->context, node->work)
		    ? CUDA_ERROR_INVALID_VALUE
		    : sg_work_kernel_params(node->work, &kernel->v1, &params);
	if (r)
		return r;
	free(node->params);
	node->params = params;
	kernel->ctx = node->graph->context;
	return CUDA_SUCCESS;
}

static int tell_kernel(struct CUgraphNode_st *node, void *ret)
{
	CUDA_KERNEL_NODE_PARAMS_v2 kernel;
	int r = tell_kernel_v2(node, &kernel);

	if (!r)
		*(CUDA_KERNEL_NODE_PARAMS_v1 *)ret = kernel.v1;
	return r;
}

static int tell_copy(struct CUgraphNode_st *node, void *ret)
{
	if (!sg_work_box_params(node->work, ret))
		(void)sg_work_copy_params(node->work, ret);
	return CUDA_SUCCESS;
}

static int tell_set(struct CUgraphNode_st *node, void *ret)
{
	(void)sg_work_set_params(node->work, ret);
	return CUDA_SUCCESS;
}

static int tell_host(struct CUgraphNode_st *node, void *ret)
{
	sg_work_host_params(node->work, ret);
	return CUDA_SUCCESS;
}

static int tell_mem_ops(struct CUgraphNode_st *node, void *ret)
{
	CUDA_BATCH_MEM_OP_NODE_PARAMS *ops = ret;

	*ops = (CUDA_BATCH_MEM_OP_NODE_PARAMS){.ctx = node->graph->context};
	ops->paramArray = (CUstreamBatchMemOpParams *)sg_work_mem_ops_of(node->work, &ops->count);
	return CUDA_SUCCESS;
}

static int tell_alloc(struct CUgraphNode_st *node, void *ret)
{
	sg_block_alloc_params(sg_work_block(node->work), ret);
	return CUDA_SUCCESS;
}

static int tell_free(struct CUgraphNode_st *node, void *ret)
{
	*(CUdeviceptr *)ret = sg_block_address(sg_work_block(node->work));
	return CUDA_SUCCESS;
}

static int tell_event(struct CUgraphNode_st *node, void *ret)
{
	*(CUevent *)ret = node->event;
	return CUDA_SUCCESS;
}

/* cuda.h: "The graph ... is owned by the node", so later instantiations see changes to it. */
static int tell_child(struct CUgraphNode_st *node, void *ret)
{
	*(CUgraph *)ret = node->child;
	return CUDA_SUCCESS;
}

static int get(
	CUgraphNode node, int type, void *ret, int (*tell)(struct CUgraphNode_st *node, void *ret))
{
	int r = sg_ready();

	if (r)
		return r;
	if (!ret || !lock_node(node, type))
		return CUDA_ERROR_INVALID_VALUE;
	r = tell(node, ret);
	sg_graph_unlock();
	return r;
}

/* GETTER(call, node type, type of the result, getter) */
#define GETTERS(GETTER)                                                                            \
	GETTER(cuGraphKernelNodeGetParams, KERNEL, CUDA_KERNEL_NODE_PARAMS_v1, tell_kernel)        \
	GETTER(cuGraphKernelNodeGetParams_v2, KERNEL, CUDA_KERNEL_NODE_PARAMS_v2, tell_kernel_v2)  \
	GETTER(cuGraphMemcpyNodeGetParams, MEMCPY, CUDA_MEMCPY3D, tell_copy)                       \
	GETTER(cuGraphMemsetNodeGetParams, MEMSET, CUDA_MEMSET_NODE_PARAMS, tell_set)              \
	GETTER(cuGraphHostNodeGetParams, HOST, CUDA_HOST_NODE_PARAMS, tell_host)                   \
	GETTER(cuGraphBatchMemOpNodeGetParams, BATCH_MEM_OP, CUDA_BATCH_MEM_OP_NODE_PARAMS,        \
		tell_mem_ops)                                                                      \
	GETTER(cuGraphMemAllocNodeGetParams, MEM_ALLOC, CUDA_MEM_ALLOC_NODE_PARAMS, tell_alloc)    \
	GETTER(cuGraphMemFreeNodeGetParams, MEM_FREE, CUdeviceptr, tell_free)                      \
	GETTER(cuGraphEventRecordNodeGetEvent, EVENT_RECORD, CUevent, tell_event)                  \
	GETTER(cuGraphEventWaitNodeGetEvent, WAIT_EVENT, CUevent, tell_event)                      \
	GETTER(cuGraphChildGraphNodeGetGraph, GRAPH, CUgraph, tell_child)

#define GETTER(call, type, what, tell)                                                             \
	API CUresult call(CUgraphNode node, what *ret)                                             \
	{                                                                                          \
		return get(node, CU_GRAPH_NODE_TYPE_##type, ret, tell);                            \
	}
GETTERS(GETTER)
#undef GETTER

/* -- setters -- */

/* Takes ownership of work. */
static int replace(CUgraphNode node, int type, struct sg_work *work, const struct CUctx_st *context)
{
	if (!lock_node(node, type)) {
		sg_work_free(work);
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (context && node->graph->context && node->graph->context != context) {
		sg_graph_unlock();
		sg_work_free(work);
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (type == CU_GRAPH_NODE_TYPE_KERNEL) /* an attribute, which setting parameters keeps */
		*sg_work_cooperative(work) = *sg_work_cooperative(node->work);
	sg_work_free(node->work);
	node->work = work;
	free(node->params);
	node->params = NULL;
	sg_graph_unlock();
	return CUDA_SUCCESS;
}

/* -- kernels -- */

static int set_kernel(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *params, CUcontext named)
{
	struct CUctx_st *context;
	struct sg_work *work;
	int r = sg_node_context(named, &context);

	if (!r && !params)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = sg_work_kernel(context, params, &work);
	return r ? r : replace(node, CU_GRAPH_NODE_TYPE_KERNEL, work, context);
}

API CUresult cuGraphKernelNodeSetParams(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
	return set_kernel(node, params, NULL);
}

static int set_kernel_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2 *params)
{
	CUDA_KERNEL_NODE_PARAMS_v1 v1;

	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	v1 = params->v1;
	if (!v1.func)
		v1.func = params->kern;
	return set_kernel(node, &v1, params->ctx);
}

API CUresult cuGraphKernelNodeSetParams_v2(
	CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2 *params)
{
	return set_kernel_v2(node, params);
}

/* CUlaunchAttributeValue: 64 bytes, with the value first. */
union value {
	char bytes[64];
	int number;
};

API CUresult cuGraphKernelNodeGetAttribute(CUgraphNode node, int id, union value *ret)
{
	int r = sg_ready();

	if (r)
		return r;
	if (!ret || !lock_node(node, CU_GRAPH_NODE_TYPE_KERNEL))
		return CUDA_ERROR_INVALID_VALUE;
	memset(ret, 0, sizeof(*ret));
	if (id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
		ret->number = *sg_work_cooperative(node->work);
	else if (id == CU_LAUNCH_ATTRIBUTE_PRIORITY)
		ret->number = node->priority;
	else
		r = CUDA_ERROR_INVALID_VALUE;
	sg_graph_unlock();
	return r;
}

API CUresult cuGraphKernelNodeSetAttribute(CUgraphNode node, int id, const union value *value)
{
	int r = sg_ready();

	if (r)
		return r;
	if (!value || !lock_node(node, CU_GRAPH_NODE_TYPE_KERNEL))
		return CUDA_ERROR_INVALID_VALUE;
	if (id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
		*sg_work_cooperative(node->work) = value->number != 0;
	else if (id == CU_LAUNCH_ATTRIBUTE_PRIORITY)
		node->priority = value->number;
	else
		r = CUDA_ERROR_INVALID_VALUE;
	sg_graph_unlock();
	return r;
}

API CUresult cuGraphKernelNodeCopyAttributes(CUgraphNode to, CUgraphNode from)
{
	int r = sg_ready();

	if (r)
		return r;
	if (!lock_node(to, CU_GRAPH_NODE_TYPE_KERNEL))
		return CUDA_ERROR_INVALID_VALUE;
	if (sg_node_is_live(from) && from->type == CU_GRAPH_NODE_TYPE_KERNEL) {
		*sg_work_cooperative(to->work) = *sg_work_cooperative(from->work);
		to->priority = from->priority;
	} else {
		r = CUDA_ERROR_INVALID_VALUE;
	}
	sg_graph_unlock();
	return r;
}

/* -- copies and sets -- */

API CUresult cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D *copy)
{
	struct sg_work *work;
	int r = sg_ready();

	if (!r && !copy)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = sg_work_memcpy(copy, &work);
	return r ? r : replace(node, CU_GRAPH_NODE_TYPE_MEMCPY, work, NULL);
}

API CUresult cuGraphMemsetNodeSetParams(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *set)
{
	struct sg_work *work;
	int r = sg_ready();

	if (!r && !set)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = sg_work_memset(set, &work);
	return r ? r : replace(node, CU_GRAPH_NODE_TYPE_MEMSET, work, NULL);
}

/* -- host functions, memory operations, memory, events, children -- */

API CUresult cuGraphHostNodeSetParams(CUgraphNode node, const CUDA_HOST_NODE_PARAMS *host)
{
	struct sg_work *work;
	int r = sg_ready();

	if (!r && (!host || !host->fn))
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = sg_work_host(host, &work);
	return r ? r : replace(node, CU_GRAPH_NODE_TYPE_HOST, work, NULL);
}

API CUresult cuGraphBatchMemOpNodeSetParams(
	CUgraphNode node, const CUDA_BATCH_MEM_OP_NODE_PARAMS *params)
{
	struct sg_work *work;
	int r = sg_ready();

	if (!r && (!params || params->flags))
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = sg_work_mem_ops(params->paramArray, params->count, &work);
	return r ? r : replace(node, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, work, NULL);
}

static int set_event(CUgraphNode node, int type, CUevent event)
{
	struct CUctx_st *context;
	int r = sg_current(&context);

	if (r)
		return r;
	if (!sg_event_find(event) ||
		(type == CU_GRAPH_NODE_TYPE_EVENT_RECORD && event->context != context))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!lock_node(node, type))
		return CUDA_ERROR_INVALID_VALUE;
	node->event = event;
	sg_graph_unlock();
	return CUDA_SUCCESS;
}

API CUresult cuGraphEventRecordNodeSetEvent(CUgraphNode node, CUevent event)
{
	return set_event(node, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
}

API CUresult cuGraphEventWaitNodeSetEvent(CUgraphNode node, CUevent event)
{
	return set_event(node, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
}

/* Sets the parameters of a node of any type. The type cannot change. */
API CUresult cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams *params)
{
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	switch (params->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL: return set_kernel_v2(node, &params->kernel);
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		return cuGraphMemcpyNodeSetParams(node, &params->memcpy.copyParams);
	case CU_GRAPH_NODE_TYPE_MEMSET: return cuGraphMemsetNodeSetParams(node, &params->memset.v1);
	case CU_GRAPH_NODE_TYPE_HOST: return cuGraphHostNodeSetParams(node, &params->host);
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD: return set_event(node, params->type, params->event);
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		return cuGraphBatchMemOpNodeSetParams(node, &params->memOp);
	default: return CUDA_ERROR_NOT_SUPPORTED;
	}
}
