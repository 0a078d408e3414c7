/* Graphs built by hand: their nodes. See graph.h. */
#include "softgpu/driver/graph/graph.h"

#include <stdlib.h>
#include <string.h>

#include "softgpu/driver/device/handles.h"

#define LEVELS_MAX 256u

pthread_mutex_t sg_graph_lock = PTHREAD_MUTEX_INITIALIZER;
struct td_list sg_graphs = {&sg_graphs, &sg_graphs};

static struct CUgraphNode_st *node_at(struct td_list *it)
{
	return td_container_of(it, struct CUgraphNode_st, link);
}

struct sg_work *sg_work_copy(const struct sg_work *work)
{
	struct sg_work *copy = work ? malloc(work->bytes) : NULL;

	if (!copy)
		return NULL;
	memcpy(copy, work, work->bytes);
	if (copy->copied)
		copy->copied(copy);
	return copy;
}

void sg_work_free(struct sg_work *work)
{
	if (!work)
		return;
	if (work->release)
		work->release(work);
	free(work->after);
	free(work);
}

struct CUgraph_st *sg_graph_new(void)
{
	static uint64_t last_id;
	struct CUgraph_st *graph = calloc(1, sizeof(*graph));

	if (!graph)
		return NULL;
	if (!sg_handle_add(graph, SG_GRAPH)) {
		free(graph);
		return NULL;
	}
	graph->id = ++last_id;
	td_list_init(&graph->nodes);
	td_list_init(&graph->order);
	td_list_append(&sg_graphs, &graph->link);
	return graph;
}

void sg_node_free(struct CUgraphNode_st *node)
{
	sg_handle_remove(node);
	td_list_remove(&node->link);
	td_list_remove(&node->in_order);
	node->graph->node_count--;
	sg_work_free(node->work);
	if (node->child)
		sg_graph_free(node->child);
	free(node->params);
	free(node->after);
	free(node);
}

void sg_graph_renumber(struct CUgraph_st *graph)
{
	struct td_list *it;
	size_t n = 0;

	td_list_for_each (it, &graph->nodes)
		node_at(it)->index = n++;
}

void sg_graph_free(struct CUgraph_st *graph)
{
	struct td_list *it, *tmp;

	td_list_for_each_safe (it, tmp, &graph->nodes)
		sg_node_free(node_at(it));
	sg_user_refs_drop(&graph->user);
	sg_handle_remove(graph);
	td_list_remove(&graph->link);
	free(graph);
}

bool sg_graph_is_live(CUgraph graph)
{
	return sg_handle_is(graph, SG_GRAPH);
}

bool sg_graph_holds(const struct CUgraph_st *graph, CUgraphNode node)
{
	return sg_node_is_live(node) && node->graph == graph;
}

bool sg_node_is_live(CUgraphNode node)
{
	return sg_handle_is(node, SG_NODE);
}

/*
 * Dependencies must be distinct nodes of this graph. cuda.h, cuGraphAdd*Node: "may not have any
 * duplicate entries".
 */
static bool are_nodes_of(const struct CUgraph_st *graph, CUgraphNode const *nodes, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (!sg_graph_holds(graph, nodes[i]))
			return false;
		for (size_t k = 0; k < i; k++)
			if (nodes[k] == nodes[i])
				return false;
	}
	return true;
}

/* Records the blocks of allocation and free nodes with the graph. */
static int note_memory(struct CUgraph_st *graph, int type, const struct sg_work *work)
{
	struct sg_graph_block *block = sg_work_block(work);
	int r = CUDA_SUCCESS;

	if (!block)
		return CUDA_SUCCESS;
	if (type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
		sg_graph_block_note_alloc(block, graph);
	else
		r = sg_graph_block_note_free(block, graph);
	if (!r)
		graph->has_memory = true;
	return r;
}

int sg_node_add(struct CUgraph_st *graph, int type, struct sg_work *work, struct CUevent_st *event,
	CUgraphNode const *after, size_t after_count, CUgraphNode *ret)
{
	struct CUgraphNode_st *node = NULL;
	int r = note_memory(graph, type, work);

	if (r) {
		sg_work_free(work);
		return r;
	}
	node = calloc(1, sizeof(*node));
	if (node)
		node->after = calloc(after_count + 1, sizeof(*node->after));
	if (!node || !node->after || !sg_handle_add(node, SG_NODE)) {
		if (node)
			free(node->after);
		free(node);
		sg_work_free(work);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (after_count)
		memcpy(node->after, after, after_count * sizeof(*after));
	node->after_count = after_count;
	node->graph = graph;
	node->type = type;
	node->work = work;
	node->event = event;
	node->index = graph->node_count++;
	td_list_init(&node->in_order);
	sg_node_put_last(node);
	td_list_append(&graph->nodes, &node->link);
	*ret = node;
	return CUDA_SUCCESS;
}

API CUresult cuGraphCreate(CUgraph *ret, unsigned flags)
{
	int r = sg_ready();

	if (r)
		return r;
	if (!ret || flags)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&sg_graph_lock);
	*ret = sg_graph_new();
	sg_graph_unlock();
	return *ret ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

API CUresult cuGraphDestroy(CUgraph graph)
{
	int r = sg_ready();

	if (r)
		return r;
	pthread_mutex_lock(&sg_graph_lock);
	if (!sg_graph_is_live(graph))
		r = CUDA_ERROR_INVALID_VALUE;
	else if (graph->parent)
		r = CUDA_ERROR_INVALID_VALUE; /* a child graph is destroyed with its node */
	/* cuda.h: "all operations other than destroy ... are permitted" */
	else if (graph->capturing)
		r = CUDA_ERROR_ILLEGAL_STATE;
	else
		sg_graph_free(graph);
	sg_graph_unlock();
	return r;
}

/*
 * Adds a node for an operation. All operations of a graph have the same context. Takes ownership of
 * work.
 */
static int add(CUgraphNode *ret, CUgraph graph, CUgraphNode const *after, size_t after_count,
	int type, struct sg_work *work, struct CUevent_st *event, struct CUctx_st *context)
{
	int r = CUDA_SUCCESS;

	pthread_mutex_lock(&sg_graph_lock);
	if (!ret || !sg_graph_is_live(graph) || (after_count && !after) ||
		!are_nodes_of(graph, after, after_count))
		r = CUDA_ERROR_INVALID_VALUE;
	else if (context && graph->context && graph->context != context)
		r = CUDA_ERROR_NOT_SUPPORTED;
	else if (graph->parent && sg_work_block(work)) /* see cuGraphChildGraphNodeGetGraph */
		r = CUDA_ERROR_NOT_SUPPORTED;
	if (r) {
		sg_work_free(work);
	} else {
		if (context)
			graph->context = context;
		r = sg_node_add(graph, type, work, event, after, after_count, ret);
	}
	sg_graph_unlock();
	return r;
}

/* Checks the context that a node names. NULL means any context. */
static int check_context(const struct CUctx_st *context)
{
	return context && !sg_context_is_live(context) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

#define NODE CUgraphNode *ret, CUgraph graph, const CUgraphNode *after, size_t after_count

int sg_node_context(CUcontext named, struct CUctx_st **ret)
{
	int r = sg_current(ret);

	if (r || !named)
		return r;
	*ret = named;
	return check_context(named);
}

static int add_kernel(NODE, const CUDA_KERNEL_NODE_PARAMS_v1 *params, CUcontext named)
{
	struct CUctx_st *context;
	struct sg_work *work;
	int r = sg_node_context(named, &context);

	if (!r && !params)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = sg_work_kernel(context, params, &work);
	return r ? r
		 : add(ret, graph, after, after_count, CU_GRAPH_NODE_TYPE_KERNEL, work, NULL,
			   context);
}

API CUresult cuGraphAddKernelNode(NODE, const CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
	return add_kernel(ret, graph, after, after_count, params, NULL);
}

/* The parameters name either a function or a library's kernel. */
API CUresult cuGraphAddKernelNode_v2(NODE, const CUDA_KERNEL_NODE_PARAMS_v2 *params)
{
	CUDA_KERNEL_NODE_PARAMS_v1 v1;

	if (!params)
		return add_kernel(ret, graph, after, after_count, NULL, NULL);
	v1 = params->v1;
	if (!v1.func)
		v1.func = params->kern;
	return add_kernel(ret, graph, after, after_count, &v1, params->ctx);
}

API CUresult cuGraphAddMemcpyNode(NODE, const CUDA_MEMCPY3D *copy, CUcontext context)
{
	struct sg_work *work;
	int r = sg_ready();

	if (!r && !copy)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = check_context(context);
	if (!r)
		r = sg_work_memcpy(copy, &work);
	return r ? r
		 : add(ret, graph, after, after_count, CU_GRAPH_NODE_TYPE_MEMCPY, work, NULL,
			   context);
}

API CUresult cuGraphAddMemsetNode(NODE, const CUDA_MEMSET_NODE_PARAMS *set, CUcontext context)
{
	struct sg_work *work;
	int r = sg_ready();

	if (!r && !set)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = check_context(context);
	if (!r)
		r = sg_work_memset(set, &work);
	return r ? r
		 : add(ret, graph, after, after_count, CU_GRAPH_NODE_TYPE_MEMSET, work, NULL,
			   context);
}

API CUresult cuGraphAddHostNode(NODE, const CUDA_HOST_NODE_PARAMS *host)
{
	struct sg_work *work;
	int r = sg_ready();

	if (!r && (!host || !host->fn))
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = sg_work_host(host, &work);
	return r ? r
		 : add(ret, graph, after, after_count, CU_GRAPH_NODE_TYPE_HOST, work, NULL, NULL);
}

API CUresult cuGraphAddBatchMemOpNode(NODE, const CUDA_BATCH_MEM_OP_NODE_PARAMS *params)
{
	struct sg_work *work;
	int r = sg_ready();

	if (!r && (!params || params->flags))
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = check_context(params->ctx);
	if (!r)
		r = sg_work_mem_ops(params->paramArray, params->count, &work);
	return r ? r
		 : add(ret, graph, after, after_count, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, work, NULL,
			   params->ctx);
}

/*
 * Returns the depth of nested child graphs, including this one. The depth is limited, because
 * functions that walk them are recursive.
 */
static unsigned levels_of(const struct CUgraph_st *graph)
{
	unsigned most = 0;
	struct td_list *it;

	td_list_for_each (it, &graph->nodes) {
		unsigned levels = node_at(it)->child ? levels_of(node_at(it)->child) : 0;

		if (levels > most)
			most = levels;
	}
	return most + 1;
}

static bool is_too_deep(const struct CUgraph_st *graph, const struct CUgraph_st *child)
{
	unsigned levels = levels_of(child) + 1;

	while (graph->parent) {
		graph = graph->parent->graph;
		levels++;
	}
	return levels > LEVELS_MAX;
}

/* The node gets a copy of the child, so later changes of the original do not affect it. */
API CUresult cuGraphAddChildGraphNode(NODE, CUgraph child)
{
	struct CUgraph_st *copy = NULL;
	int r = sg_ready();

	if (r)
		return r;
	pthread_mutex_lock(&sg_graph_lock);
	if (!ret || !sg_graph_is_live(graph) || !sg_graph_is_live(child) || child->capturing ||
		(after_count && !after) || !are_nodes_of(graph, after, after_count))
		r = CUDA_ERROR_INVALID_VALUE;
	else if (child->has_memory || is_too_deep(graph, child) ||
		 (child->context && graph->context && child->context != graph->context))
		r = CUDA_ERROR_NOT_SUPPORTED;
	if (!r) {
		copy = sg_graph_clone(child);
		r = copy ? sg_node_add(graph, CU_GRAPH_NODE_TYPE_GRAPH, NULL, NULL, after,
				   after_count, ret)
			 : CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (!r) {
		(*ret)->child = copy;
		copy->parent = *ret;
		if (!graph->context)
			graph->context = copy->context;
	} else if (copy) {
		sg_graph_free(copy);
	}
	sg_graph_unlock();
	return r;
}

API CUresult cuGraphAddMemAllocNode(NODE, CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
	struct CUctx_st *context;
	struct sg_work *work;
	int r = sg_current(&context);

	if (!r && !params)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = sg_work_alloc(params, &work);
	return r ? r
		 : add(ret, graph, after, after_count, CU_GRAPH_NODE_TYPE_MEM_ALLOC, work, NULL,
			   context);
}

API CUresult cuGraphAddMemFreeNode(NODE, CUdeviceptr address)
{
	struct CUctx_st *context;
	struct sg_work *work;
	int r = sg_current(&context);

	if (!r)
		r = sg_work_free_block(address, &work);
	return r ? r
		 : add(ret, graph, after, after_count, CU_GRAPH_NODE_TYPE_MEM_FREE, work, NULL,
			   context);
}

API CUresult cuGraphAddEmptyNode(NODE)
{
	int r = sg_ready();

	return r ? r
		 : add(ret, graph, after, after_count, CU_GRAPH_NODE_TYPE_EMPTY, NULL, NULL, NULL);
}

static int add_event(NODE, CUevent handle, int type)
{
	struct CUctx_st *context;
	struct CUevent_st *event;
	int r = sg_current(&context);

	if (r)
		return r;
	event = sg_event_find(handle);
	/*
	 * cuda.h, cuGraphAddEventWaitNode: the event "may be from a different context or device
	 * than the launch stream".
	 */
	if (!event || (type == CU_GRAPH_NODE_TYPE_EVENT_RECORD && event->context != context))
		return CUDA_ERROR_INVALID_HANDLE;
	return add(ret, graph, after, after_count, type, NULL, event, context);
}

API CUresult cuGraphAddEventRecordNode(NODE, CUevent event)
{
	return add_event(ret, graph, after, after_count, event, CU_GRAPH_NODE_TYPE_EVENT_RECORD);
}

API CUresult cuGraphAddEventWaitNode(NODE, CUevent event)
{
	return add_event(ret, graph, after, after_count, event, CU_GRAPH_NODE_TYPE_WAIT_EVENT);
}

API CUresult cuGraphNodeGetType(CUgraphNode node, int *type)
{
	int r = sg_ready();

	if (r)
		return r;
	pthread_mutex_lock(&sg_graph_lock);
	if (!type || !sg_node_is_live(node))
		r = CUDA_ERROR_INVALID_VALUE;
	else
		*type = node->type;
	sg_graph_unlock();
	return r;
}

/*
 * In: *count is the capacity of the arrays, if given. Out: the number of nodes, or the number
 * written if the capacity is smaller.
 */
static int list_nodes(CUgraph graph, CUgraphNode *nodes, size_t *count, bool roots)
{
	struct td_list *it;
	size_t n = 0;
	int r = sg_ready();

	if (r)
		return r;
	pthread_mutex_lock(&sg_graph_lock);
	if (!count || !sg_graph_is_live(graph)) {
		r = CUDA_ERROR_INVALID_VALUE;
	} else {
		td_list_for_each (it, &graph->nodes) {
			if (roots && node_at(it)->after_count)
				continue;
			if (nodes && n < *count)
				nodes[n] = node_at(it);
			n++;
		}
		/*
		 * cuda.h: "If numNodes is higher than the actual number of nodes, the remaining
		 * entries will be set to NULL."
		 */
		for (size_t i = n; nodes && i < *count; i++)
			nodes[i] = NULL;
		*count = nodes && n > *count ? *count : n;
	}
	sg_graph_unlock();
	return r;
}

API CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
	return list_nodes(graph, nodes, count, false);
}

API CUresult cuGraphGetRootNodes(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
	return list_nodes(graph, nodes, count, true);
}

API CUresult cuGraphGetEdges_v2(
	CUgraph graph, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *data, size_t *count)
{
	struct td_list *it;
	size_t n = 0;
	int r = sg_ready();

	if (r)
		return r;
	if (!count || !from != !to || (data && !from))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&sg_graph_lock);
	if (!sg_graph_is_live(graph)) {
		sg_graph_unlock();
		return CUDA_ERROR_INVALID_VALUE;
	}
	td_list_for_each (it, &graph->nodes) {
		struct CUgraphNode_st *node = node_at(it);

		for (size_t i = 0; i < node->after_count; i++, n++) {
			if (!from || n >= *count)
				continue;
			from[n] = node->after[i];
			to[n] = node;
			if (data)
				data[n] = (CUgraphEdgeData){{0}};
		}
	}
	/* cuda.h: "the remaining entries in from and to will be set to NULL". */
	for (size_t i = n; from && i < *count; i++)
		from[i] = to[i] = NULL;
	*count = from && n > *count ? *count : n;
	sg_graph_unlock();
	return CUDA_SUCCESS;
}

API CUresult cuGraphGetEdges(CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *count)
{
	return cuGraphGetEdges_v2(graph, from, to, NULL, count);
}

/* Adds a node of any type (cuGraphAddNode). */
static int add_any(NODE, CUgraphNodeParams *params)
{
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	switch (params->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		return cuGraphAddKernelNode_v2(ret, graph, after, after_count, &params->kernel);
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		if (params->memcpy.flags || params->memcpy.reserved)
			return CUDA_ERROR_INVALID_VALUE;
		return cuGraphAddMemcpyNode(ret, graph, after, after_count,
			&params->memcpy.copyParams, params->memcpy.copyCtx);
	case CU_GRAPH_NODE_TYPE_MEMSET:
		return cuGraphAddMemsetNode(
			ret, graph, after, after_count, &params->memset.v1, params->memset.ctx);
	case CU_GRAPH_NODE_TYPE_HOST:
		return cuGraphAddHostNode(ret, graph, after, after_count, &params->host);
	case CU_GRAPH_NODE_TYPE_GRAPH:
		/* 0 copies the child graph. Moving its ownership is not supported. */
		return params->graph.ownership ? CUDA_ERROR_NOT_SUPPORTED
					       : cuGraphAddChildGraphNode(ret, graph, after,
							 after_count, params->graph.graph);
	case CU_GRAPH_NODE_TYPE_EMPTY: return cuGraphAddEmptyNode(ret, graph, after, after_count);
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
		return cuGraphAddEventWaitNode(ret, graph, after, after_count, params->event);
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		return cuGraphAddEventRecordNode(ret, graph, after, after_count, params->event);
	case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
		return cuGraphAddMemAllocNode(ret, graph, after, after_count, &params->alloc);
	case CU_GRAPH_NODE_TYPE_MEM_FREE:
		return cuGraphAddMemFreeNode(ret, graph, after, after_count, params->free);
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		return cuGraphAddBatchMemOpNode(ret, graph, after, after_count, &params->memOp);
	default: return CUDA_ERROR_NOT_SUPPORTED; /* external semaphores, conditional nodes */
	}
}

API CUresult cuGraphAddNode(NODE, CUgraphNodeParams *params)
{
	return add_any(ret, graph, after, after_count, params);
}

API CUresult cuGraphAddNode_v2(CUgraphNode *ret, CUgraph graph, const CUgraphNode *after,
	const CUgraphEdgeData *edges, size_t after_count, CUgraphNodeParams *params)
{
	int r = sg_check_edges(edges, after_count);

	return r ? r : add_any(ret, graph, after, after_count, params);
}
