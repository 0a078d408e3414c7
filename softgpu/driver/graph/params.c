/*
 * What a node does: told, and changed for later instantiations. The same for a node of an executable graph is in update.c.
 */
#include <stdlib.h>
#include <string.h>

#include "softgpu/driver/copy/copy.h"

/* A live node of that type, with sg_graph_lock taken; NULL: not, and the lock is not taken. */
static struct CUgraphNode_st *lock_node(CUgraphNode node, int type)
{
	pthread_mutex_lock(&sg_graph_lock);
	if (sg_node_is_live(node) && (type < 0 || node->type == type))
		return node;
	sg_graph_unlock();
	return NULL;
}

/* Takes over work. */
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
	if (type == CU_GRAPH_NODE_TYPE_KERNEL) /* an attribute, not a parameter */
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

/* "The kernelParams ... array returned ... is owned by the node." */
static int get_kernel(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v2 *ret)
{
	void **params = NULL;
	int r = sg_ready();

	if (r)
		return r;
	if (!ret || !lock_node(node, CU_GRAPH_NODE_TYPE_KERNEL))
		return CUDA_ERROR_INVALID_VALUE;
	memset(ret, 0, sizeof(*ret));
	r = node->graph->context && !sg_work_is_valid(node->graph->context, node->work)
		    ? CUDA_ERROR_INVALID_VALUE
		    : sg_work_kernel_params(node->work, &ret->v1, &params);
	if (!r) {
		free(node->params);
		node->params = params;
		ret->ctx = node->graph->context;
	}
	sg_graph_unlock();
	return r;
}

API CUresult cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1 *ret)
{
	CUDA_KERNEL_NODE_PARAMS_v2 v2;
	int r = ret ? get_kernel(node, &v2) : CUDA_ERROR_INVALID_VALUE;

	if (!r)
		*ret = v2.v1;
	return r;
}

API CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v2 *ret)
{
	return get_kernel(node, ret);
}

/* CUlaunchAttributeValue: 64 bytes, the number first. */
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

API CUresult cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D *ret)
{
	int r = sg_ready();

	if (r)
		return r;
	if (!ret || !lock_node(node, CU_GRAPH_NODE_TYPE_MEMCPY))
		return CUDA_ERROR_INVALID_VALUE;
	if (!sg_work_box_params(node->work, ret))
		(void)sg_work_copy_params(node->work, ret);
	sg_graph_unlock();
	return CUDA_SUCCESS;
}

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

API CUresult cuGraphMemsetNodeGetParams(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS *ret)
{
	int r = sg_ready();

	if (r)
		return r;
	if (!ret || !lock_node(node, CU_GRAPH_NODE_TYPE_MEMSET))
		return CUDA_ERROR_INVALID_VALUE;
	(void)sg_work_set_params(node->work, ret);
	sg_graph_unlock();
	return CUDA_SUCCESS;
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

API CUresult cuGraphHostNodeGetParams(CUgraphNode node, CUDA_HOST_NODE_PARAMS *ret)
{
	int r = sg_ready();

	if (r)
		return r;
	if (!ret || !lock_node(node, CU_GRAPH_NODE_TYPE_HOST))
		return CUDA_ERROR_INVALID_VALUE;
	sg_work_host_params(node->work, ret);
	sg_graph_unlock();
	return CUDA_SUCCESS;
}

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

API CUresult cuGraphBatchMemOpNodeGetParams(CUgraphNode node, CUDA_BATCH_MEM_OP_NODE_PARAMS *ret)
{
	int r = sg_ready();

	if (r)
		return r;
	if (!ret || !lock_node(node, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP))
		return CUDA_ERROR_INVALID_VALUE;
	*ret = (CUDA_BATCH_MEM_OP_NODE_PARAMS){.ctx = node->graph->context};
	ret->paramArray = (CUstreamBatchMemOpParams *)sg_work_mem_ops_of(node->work, &ret->count);
	sg_graph_unlock();
	return CUDA_SUCCESS;
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

API CUresult cuGraphMemAllocNodeGetParams(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS *ret)
{
	int r = sg_ready();

	if (r)
		return r;
	if (!ret || !lock_node(node, CU_GRAPH_NODE_TYPE_MEM_ALLOC))
		return CUDA_ERROR_INVALID_VALUE;
	sg_block_alloc_params(sg_work_block(node->work), ret);
	sg_graph_unlock();
	return CUDA_SUCCESS;
}

API CUresult cuGraphMemFreeNodeGetParams(CUgraphNode node, CUdeviceptr *ret)
{
	int r = sg_ready();

	if (r)
		return r;
	if (!ret || !lock_node(node, CU_GRAPH_NODE_TYPE_MEM_FREE))
		return CUDA_ERROR_INVALID_VALUE;
	*ret = sg_block_address(sg_work_block(node->work));
	sg_graph_unlock();
	return CUDA_SUCCESS;
}

static int get_event(CUgraphNode node, int type, CUevent *ret)
{
	int r = sg_ready();

	if (r)
		return r;
	if (!ret || !lock_node(node, type))
		return CUDA_ERROR_INVALID_VALUE;
	*ret = node->event;
	sg_graph_unlock();
	return CUDA_SUCCESS;
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

API CUresult cuGraphEventRecordNodeGetEvent(CUgraphNode node, CUevent *ret)
{
	return get_event(node, CU_GRAPH_NODE_TYPE_EVENT_RECORD, ret);
}

API CUresult cuGraphEventRecordNodeSetEvent(CUgraphNode node, CUevent event)
{
	return set_event(node, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
}

API CUresult cuGraphEventWaitNodeGetEvent(CUgraphNode node, CUevent *ret)
{
	return get_event(node, CU_GRAPH_NODE_TYPE_WAIT_EVENT, ret);
}

API CUresult cuGraphEventWaitNodeSetEvent(CUgraphNode node, CUevent event)
{
	return set_event(node, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
}

/* "The graph ... is owned by the node": changes reach later instantiations. */
API CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph *ret)
{
	int r = sg_ready();

	if (r)
		return r;
	if (!ret || !lock_node(node, CU_GRAPH_NODE_TYPE_GRAPH))
		return CUDA_ERROR_INVALID_VALUE;
	*ret = node->child;
	sg_graph_unlock();
	return CUDA_SUCCESS;
}

/* Any kind of node by one call; its type stays. */
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
