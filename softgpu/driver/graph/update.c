/*
 * Updates of executable graphs: single nodes, or from a graph of the same shape. Launches that are
 * queued have their own copies.
 */
#include <stdlib.h>

#include "softgpu/driver/graph/exec.h"

/* Finds a node's step. The nodes of child graphs are steps of the child's executable graph. */
static struct step *step_of(struct CUgraphExec_st *exec, CUgraphNode node)
{
	struct step *found = NULL;

	/* The node's index leads to its step, unless nodes were removed from the graph since. */
	if (sg_node_is_live(node) && node->index < exec->count &&
		exec->steps[exec->where[node->index]].node == node)
		return &exec->steps[exec->where[node->index]];
	for (size_t i = 0; i < exec->count && !found; i++) {
		if (exec->steps[i].node == node)
			found = &exec->steps[i];
		else if (exec->steps[i].child)
			found = step_of(exec->steps[i].child, node);
	}
	return found;
}

/*
 * Checks the limits of cuda.h on changing a node: a copy keeps the kind and device of its memory,
 * and a one-row copy stays one-row.
 */
static int check_change(const struct sg_work *from, const struct sg_work *to, bool one_row)
{
	if (!from || !to || from->run != to->run)
		return from || to ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
	if (from->node == CU_GRAPH_NODE_TYPE_MEMCPY + 1 ||
		from->node == CU_GRAPH_NODE_TYPE_MEMSET + 1)
		return sg_work_check_change(from, to, one_row);
	return CUDA_SUCCESS;
}

/*
 * Replaces the operation of one node for later launches. context is that of a kernel, which "cannot
 * change" (cuda.h), or NULL. Takes ownership of work.
 */
static int replace(CUgraphExec exec, CUgraphNode node, int type, struct sg_work *work,
	const struct CUctx_st *context)
{
	struct step *step;

	pthread_mutex_lock(&sg_graph_lock);
	step = sg_exec_is_live(exec) ? step_of(exec, node) : NULL;
	if (step && step->type == type && (!context || context == exec->context) &&
		!check_change(step->work, work, true)) {
		/* an attribute, which setting parameters keeps */
		if (type == CU_GRAPH_NODE_TYPE_KERNEL)
			*sg_work_cooperative(work) = *sg_work_cooperative(step->work);
		sg_work_free(step->work);
		step->work = work;
	} else {
		sg_work_free(work);
	}
	sg_graph_unlock();
	return step && step->work == work ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static int set_kernel(CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *params,
	CUcontext named)
{
	struct CUctx_st *context;
	struct sg_work *work;
	int r = sg_node_context(named, &context);

	if (!r && !params)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = sg_work_kernel(context, params, &work);
	return r ? r : replace(exec, node, CU_GRAPH_NODE_TYPE_KERNEL, work, context);
}

API CUresult cuGraphExecKernelNodeSetParams(
	CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
	return set_kernel(exec, node, params, NULL);
}

API CUresult cuGraphExecKernelNodeSetParams_v2(
	CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2 *params)
{
	CUDA_KERNEL_NODE_PARAMS_v1 v1;

	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	v1 = params->v1;
	if (!v1.func)
		v1.func = params->kern;
	return set_kernel(exec, node, &v1, params->ctx);
}

API CUresult cuGraphExecMemcpyNodeSetParams(
	CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D *copy, CUcontext context)
{
	struct sg_work *work;
	int r = sg_ready();

	(void)context;
	if (!r && !copy)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = sg_work_memcpy(copy, &work);
	return r ? r : replace(exec, node, CU_GRAPH_NODE_TYPE_MEMCPY, work, NULL);
}

API CUresult cuGraphExecMemsetNodeSetParams(
	CUgraphExec exec, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *set, CUcontext context)
{
	struct sg_work *work;
	int r = sg_ready();

	(void)context;
	if (!r && !set)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = sg_work_memset(set, &work);
	return r ? r : replace(exec, node, CU_GRAPH_NODE_TYPE_MEMSET, work, NULL);
}

API CUresult cuGraphExecHostNodeSetParams(
	CUgraphExec exec, CUgraphNode node, const CUDA_HOST_NODE_PARAMS *host)
{
	struct sg_work *work;
	int r = sg_ready();

	if (!r && (!host || !host->fn))
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = sg_work_host(host, &work);
	return r ? r : replace(exec, node, CU_GRAPH_NODE_TYPE_HOST, work, NULL);
}

API CUresult cuGraphExecBatchMemOpNodeSetParams(
	CUgraphExec exec, CUgraphNode node, const CUDA_BATCH_MEM_OP_NODE_PARAMS *params)
{
	struct sg_work *work;
	int r = sg_ready();

	if (!r && (!params || params->flags))
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = sg_work_mem_ops(params->paramArray, params->count, &work);
	return r ? r : replace(exec, node, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, work, NULL);
}

static int set_event(CUgraphExec exec, CUgraphNode node, int type, CUevent event)
{
	struct CUctx_st *context;
	struct step *step;
	int r = sg_current(&context);

	if (r)
		return r;
	if (!sg_event_find(event) ||
		(type == CU_GRAPH_NODE_TYPE_EVENT_RECORD && event->context != context))
		return CUDA_ERROR_INVALID_HANDLE;
	pthread_mutex_lock(&sg_graph_lock);
	step = sg_exec_is_live(exec) ? step_of(exec, node) : NULL;
	if (step && step->type == type)
		step->event = event;
	else
		r = CUDA_ERROR_INVALID_VALUE;
	sg_graph_unlock();
	return r;
}

API CUresult cuGraphExecEventRecordNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event)
{
	return set_event(exec, node, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
}

API CUresult cuGraphExecEventWaitNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event)
{
	return set_event(exec, node, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
}

API CUresult cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams *params)
{
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	switch (params->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		return cuGraphExecKernelNodeSetParams_v2(exec, node, &params->kernel);
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		return cuGraphExecMemcpyNodeSetParams(
			exec, node, &params->memcpy.copyParams, params->memcpy.copyCtx);
	case CU_GRAPH_NODE_TYPE_MEMSET:
		return cuGraphExecMemsetNodeSetParams(
			exec, node, &params->memset.v1, params->memset.ctx);
	case CU_GRAPH_NODE_TYPE_HOST:
		return cuGraphExecHostNodeSetParams(exec, node, &params->host);
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		return set_event(exec, node, params->type, params->event);
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		return cuGraphExecBatchMemOpNodeSetParams(exec, node, &params->memOp);
	default: return CUDA_ERROR_NOT_SUPPORTED;
	}
}

API CUresult cuGraphExecGetFlags(CUgraphExec exec, uint64_t *flags)
{
	int r = sg_ready();

	if (r)
		return r;
	pthread_mutex_lock(&sg_graph_lock);
	if (flags && sg_exec_is_live(exec))
		*flags = exec->flags & ~(uint64_t)CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD;
	else
		r = CUDA_ERROR_INVALID_VALUE;
	sg_graph_unlock();
	return r;
}

/* cuda.h: "Currently only kernel, memset and memcpy nodes are supported." */
static int enabled(CUgraphExec exec, CUgraphNode node, const bool *set, unsigned *ret)
{
	struct step *step;
	int r = sg_ready();

	if (r)
		return r;
	pthread_mutex_lock(&sg_graph_lock);
	step = sg_exec_is_live(exec) ? step_of(exec, node) : NULL;
	if (!step || (step->type != CU_GRAPH_NODE_TYPE_KERNEL &&
			     step->type != CU_GRAPH_NODE_TYPE_MEMSET &&
			     step->type != CU_GRAPH_NODE_TYPE_MEMCPY))
		r = CUDA_ERROR_INVALID_VALUE;
	else if (set)
		step->disabled = !*set;
	else if (ret)
		*ret = !step->disabled;
	else
		r = CUDA_ERROR_INVALID_VALUE;
	sg_graph_unlock();
	return r;
}

API CUresult cuGraphNodeSetEnabled(CUgraphExec exec, CUgraphNode node, unsigned on)
{
	bool set = on != 0;

	return enabled(exec, node, &set, NULL);
}

API CUresult cuGraphNodeGetEnabled(CUgraphExec exec, CUgraphNode node, unsigned *ret)
{
	return enabled(exec, node, NULL, ret);
}

static int update_children(struct CUgraphExec_st *exec, struct CUgraph_st *graph);

/* The child graph is copied, so it may be changed or destroyed afterwards. */
API CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraph graph)
{
	struct step *step;
	int r = sg_ready();

	if (r)
		return r;
	pthread_mutex_lock(&sg_graph_lock);
	step = sg_exec_is_live(exec) ? step_of(exec, node) : NULL;
	if (!step || !step->child || !sg_graph_is_live(graph) || graph->capturing)
		r = CUDA_ERROR_INVALID_VALUE;
	else
		r = update_children(step->child, graph);
	sg_graph_unlock();
	return r;
}

static int compare(
	const struct CUgraphExec_st *exec, const struct CUgraph_st *graph, CUgraphNode *ret_node);

static int compare_step(const struct step *step, struct CUgraphNode_st *node, CUgraphNode *ret_node)
{
	if (step->type != node->type)
		return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
	if (step->type == CU_GRAPH_NODE_TYPE_KERNEL &&
		*sg_work_cooperative(step->work) != *sg_work_cooperative(node->work))
		return CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED;
	if (step->type == CU_GRAPH_NODE_TYPE_MEMCPY || step->type == CU_GRAPH_NODE_TYPE_MEMSET)
		return check_change(step->work, node->work, false)
			       ? CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED
			       : CU_GRAPH_EXEC_UPDATE_SUCCESS;
	if (!step->child)
		return CU_GRAPH_EXEC_UPDATE_SUCCESS;
	sg_graph_renumber(node->child);
	return compare(step->child, node->child, ret_node);
}

/*
 * Compares the graphs: they must have the same nodes in the same order, with the same edges.
 * Parameters may differ.
 */
static int compare(
	const struct CUgraphExec_st *exec, const struct CUgraph_st *graph, CUgraphNode *ret_node)
{
	struct td_list *it;
	int r;

	*ret_node = NULL;
	if (exec->count != graph->node_count || exec->context != graph->context)
		return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
	td_list_for_each (it, &graph->nodes) {
		struct CUgraphNode_st *node = td_container_of(it, struct CUgraphNode_st, link);
		size_t i = node->index;

		*ret_node = node;
		if (node->after_count != exec->shape[i].after_count)
			return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
		for (size_t k = 0; k < node->after_count; k++)
			if (node->after[k]->index != exec->shape[i].after[k])
				return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
		r = compare_step(&exec->steps[exec->where[i]], node, ret_node);
		if (r)
			return r;
	}
	*ret_node = NULL;
	return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

/*
 * The program identifies steps by the nodes of the graph that was instantiated first, so they keep
 * these nodes, in child graphs too.
 */
static void keep_names(const struct CUgraphExec_st *exec, struct CUgraphExec_st *fresh)
{
	for (size_t i = 0; i < exec->count; i++) {
		const struct step *before = &exec->steps[exec->where[i]];
		struct step *now = &fresh->steps[fresh->where[i]];

		now->node = before->node;
		now->disabled = before->disabled;
		if (now->child)
			keep_names(before->child, now->child);
	}
}

/* Replaces all steps, or none if an error occurs. */
static int take_over(struct CUgraphExec_st *exec, struct CUgraph_st *graph)
{
	struct CUgraphExec_st *fresh = calloc(1, sizeof(*fresh)), swap;
	int r = fresh ? sg_exec_fill(fresh, graph) : CUDA_ERROR_OUT_OF_MEMORY;

	if (!fresh)
		return r;
	if (!r) {
		keep_names(exec, fresh);
		swap = *exec;
		exec->steps = fresh->steps;
		exec->shape = fresh->shape;
		exec->where = fresh->where;
		exec->user = fresh->user;
		fresh->steps = swap.steps;
		fresh->shape = swap.shape;
		fresh->where = swap.where;
		fresh->user = swap.user;
	}
	sg_exec_free(fresh);
	return r;
}

static int update_children(struct CUgraphExec_st *exec, struct CUgraph_st *graph)
{
	CUgraphNode unused;

	sg_graph_renumber(graph);
	return compare(exec, graph, &unused) ? CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE
					     : take_over(exec, graph);
}

static int update(CUgraphExec exec, CUgraph graph, CUgraphNode *ret_node, int *ret_result)
{
	int r = sg_ready();

	if (r)
		return r;
	pthread_mutex_lock(&sg_graph_lock);
	if (!sg_exec_is_live(exec) || !sg_graph_is_live(graph) || graph->capturing) {
		r = CUDA_ERROR_INVALID_VALUE;
	} else {
		sg_graph_renumber(graph);
		*ret_result = compare(exec, graph, ret_node);
		r = *ret_result ? CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE : take_over(exec, graph);
	}
	sg_graph_unlock();
	return r;
}

API CUresult cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *ret)
{
	return ret ? update(exec, graph, &ret->errorNode, &ret->result) : CUDA_ERROR_INVALID_VALUE;
}

API CUresult cuGraphExecUpdate(
	CUgraphExec exec, CUgraph graph, CUgraphNode *error_node, int *result)
{
	if (!error_node || !result)
		return CUDA_ERROR_INVALID_VALUE;
	return update(exec, graph, error_node, result);
}
