/*
 * Executable graphs. Instantiation copies the operations in an order that keeps every edge; a launch copies them again into one operation of
 * the stream, so updates are for later launches. They run one after the other: an order that the edges allow, though a GPU would overlap
 * branches. A graph does not run beside itself (cuGraphLaunch): each launch comes after the one before it.
 */
#include <stdlib.h>
#include <string.h>

#include "softgpu/driver/graph.h"

struct step {
	int type;
	struct sg_work *work;
	struct CUevent_st *event;
	size_t source; /* index of its node in the graph */
	const struct CUgraphNode_st *node;
	struct CUgraphExec_st *child; /* of a GRAPH node */
	bool disabled;
};

struct CUgraphExec_st {
	struct td_list link;
	struct CUctx_st *context;
	uint64_t graph; /* id of what it was made from */
	struct sg_user_ref *user;
	uint64_t flags;
	struct step *steps;
	size_t count;
	struct {
		size_t *after;
		size_t after_count;
	} * shape;                 /* of each node, by index: for updates */
	struct sg_dependency last; /* the last launch */
};

struct graph_work {
	struct sg_work work;
	struct sg_user_ref *user; /* of a launch; NULL in one that is part of another */
	size_t count;
	struct step steps[];
};

static struct td_list execs = {&execs, &execs};

static bool is_live(CUgraphExec exec)
{
	struct td_list *it;

	td_list_for_each (it, &execs)
		if (td_container_of(it, struct CUgraphExec_st, link) == exec)
			return true;
	return false;
}

static void free_exec(struct CUgraphExec_st *exec)
{
	for (size_t i = 0; exec->steps && i < exec->count; i++) {
		sg_work_free(exec->steps[i].work);
		if (exec->steps[i].child)
			free_exec(exec->steps[i].child);
	}
	sg_user_refs_drop(&exec->user);
	for (size_t i = 0; exec->shape && i < exec->count; i++)
		free(exec->shape[i].after);
	free(exec->shape);
	free(exec->steps);
	free(exec);
}

static int fill(struct CUgraphExec_st *exec, struct CUgraph_st *graph);

static int fill_child(struct CUgraph_st *graph, struct CUgraphExec_st **ret)
{
	struct CUgraphExec_st *child = calloc(1, sizeof(*child));
	int r = child ? fill(child, graph) : CUDA_ERROR_OUT_OF_MEMORY;

	if (!r)
		*ret = child;
	else if (child)
		free_exec(child);
	return r;
}

/* After all that it comes after. Graphs have no circles: add_edge() refuses them. */
static int place(struct CUgraphExec_st *exec, const struct CUgraphNode_st *node, uint8_t *placed,
	size_t *count)
{
	struct step *step;
	int r;

	if (placed[node->index])
		return CUDA_SUCCESS;
	for (size_t i = 0; i < node->after_count; i++) {
		r = place(exec, node->after[i], placed, count);
		if (r)
			return r;
	}
	placed[node->index] = 1;
	step = &exec->steps[(*count)++];
	*step = (struct step){
		node->type, sg_work_copy(node->work), node->event, node->index, node, NULL, false};
	if (node->work && !step->work)
		return CUDA_ERROR_OUT_OF_MEMORY;
	return node->child ? fill_child(node->child, &step->child) : CUDA_SUCCESS;
}

static int keep_shape(struct CUgraphExec_st *exec, const struct CUgraphNode_st *node)
{
	size_t *after = calloc(node->after_count + 1, sizeof(*after));

	if (!after)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t i = 0; i < node->after_count; i++)
		after[i] = node->after[i]->index;
	exec->shape[node->index].after = after;
	exec->shape[node->index].after_count = node->after_count;
	return CUDA_SUCCESS;
}

static int fill(struct CUgraphExec_st *exec, struct CUgraph_st *graph)
{
	uint8_t *placed = calloc(graph->node_count + 1, 1);
	struct td_list *it;
	size_t count = 0;
	int r = placed ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;

	sg_graph_renumber(graph);
	exec->count = graph->node_count;
	exec->context = graph->context;
	exec->graph = graph->id;
	exec->steps = calloc(exec->count + 1, sizeof(*exec->steps));
	exec->shape = calloc(exec->count + 1, sizeof(*exec->shape));
	if (!exec->steps || !exec->shape)
		r = CUDA_ERROR_OUT_OF_MEMORY;
	td_list_for_each (it, &graph->nodes) {
		const struct CUgraphNode_st *node =
			td_container_of(it, struct CUgraphNode_st, link);

		if (!r)
			r = keep_shape(exec, node);
		if (!r)
			r = place(exec, node, placed, &count);
	}
	free(placed);
	if (!r)
		sg_user_refs_copy(graph->user, &exec->user);
	return r;
}

static bool is_instantiated(const struct CUgraph_st *graph)
{
	struct td_list *it;

	td_list_for_each (it, &execs)
		if (td_container_of(it, struct CUgraphExec_st, link)->graph == graph->id)
			return true;
	return false;
}

static int instantiate(CUgraphExec *ret, CUgraph graph, uint64_t flags)
{
	struct CUgraphExec_st *exec;
	int r = sg_ready();

	if (r)
		return r;
	/* Priorities of nodes change nothing, and uploading costs nothing here. */
	if (!ret || flags & ~15ull)
		return CUDA_ERROR_INVALID_VALUE;
	if (flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH)
		return flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH
			       ? CUDA_ERROR_INVALID_VALUE
			       : CUDA_ERROR_NOT_SUPPORTED;
	exec = calloc(1, sizeof(*exec));
	if (!exec)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&sg_graph_lock);
	/* "Only one instantiation of the graph may exist at any point in time" if it has memory of its own. */
	if (!sg_graph_is_live(graph) || graph->capturing ||
		(graph->has_memory && is_instantiated(graph)))
		r = CUDA_ERROR_INVALID_VALUE;
	else
		r = fill(exec, graph);
	if (!r) {
		exec->flags = flags;
		td_list_append(&execs, &exec->link);
		*ret = exec;
	} else {
		free_exec(exec);
	}
	sg_graph_unlock();
	return r;
}

/* To upload, a stream is needed: "Only supported by cuGraphInstantiateWithParams". */
API CUresult cuGraphInstantiateWithFlags(CUgraphExec *ret, CUgraph graph, unsigned long long flags)
{
	return flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD ? CUDA_ERROR_INVALID_VALUE
							  : instantiate(ret, graph, flags);
}

static int instantiate_v2(
	CUgraphExec *ret, CUgraph graph, CUgraphNode *error_node, char *log, size_t log_bytes)
{
	if (error_node)
		*error_node = NULL;
	if (log && log_bytes)
		*log = 0;
	return instantiate(ret, graph, 0);
}

API CUresult cuGraphInstantiate_v2(
	CUgraphExec *ret, CUgraph graph, CUgraphNode *error_node, char *log, size_t log_bytes)
{
	return instantiate_v2(ret, graph, error_node, log, log_bytes);
}

API CUresult cuGraphInstantiate(
	CUgraphExec *ret, CUgraph graph, CUgraphNode *error_node, char *log, size_t log_bytes)
{
	return instantiate_v2(ret, graph, error_node, log, log_bytes);
}

static int instantiate_params(
	CUgraphExec *ret, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
	int r;

	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	r = instantiate(ret, graph, params->flags);
	params->hErrNode_out = NULL;
	params->result_out = r ? 1 : 0;
	return r;
}

SG_BOTH(cuGraphInstantiateWithParams,
	(CUgraphExec * ret, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params),
	instantiate_params(ret, graph, params), instantiate_params(ret, graph, params))

API CUresult cuGraphExecDestroy(CUgraphExec exec)
{
	int r = sg_ready();

	if (r)
		return r;
	pthread_mutex_lock(&sg_graph_lock);
	if (is_live(exec)) {
		td_list_remove(&exec->link);
		free_exec(exec); /* launches that are queued have their own copies */
	} else {
		r = CUDA_ERROR_INVALID_VALUE;
	}
	sg_graph_unlock();
	return r;
}

/* -- launching -- */

static int run_graph(struct CUstream_st *stream, struct sg_work *work)
{
	struct graph_work *graph = (struct graph_work *)work;
	int r = CUDA_SUCCESS;

	for (size_t i = 0; !r && i < graph->count; i++)
		if (graph->steps[i].work)
			r = graph->steps[i].work->run(stream, graph->steps[i].work);
	return r;
}

static void release_graph(struct sg_work *work)
{
	struct graph_work *graph = (struct graph_work *)work;

	for (size_t i = 0; i < graph->count; i++)
		sg_work_free(graph->steps[i].work);
	if (!graph->user)
		return;
	pthread_mutex_lock(&sg_graph_lock);
	sg_user_refs_drop(&graph->user);
	sg_graph_unlock();
}

/* Events are recorded at the launch, as a stream's would be: from here on they wait for it. */
static void queue_graph(struct CUstream_st *stream, struct sg_work *work, uint64_t ticket)
{
	struct graph_work *graph = (struct graph_work *)work;

	for (size_t i = 0; i < graph->count; i++)
		if (graph->steps[i].work && graph->steps[i].work->queued)
			graph->steps[i].work->queued(stream, graph->steps[i].work, ticket);
}

static size_t count_waits(const struct CUgraphExec_st *exec)
{
	size_t n = 0;

	for (size_t i = 0; i < exec->count; i++) {
		n += exec->steps[i].type == CU_GRAPH_NODE_TYPE_WAIT_EVENT;
		if (exec->steps[i].child)
			n += count_waits(exec->steps[i].child);
	}
	return n;
}

static void add_waits(struct sg_work *work, const struct CUgraphExec_st *exec)
{
	for (size_t i = 0; i < exec->count; i++) {
		const struct step *step = &exec->steps[i];

		if (step->type == CU_GRAPH_NODE_TYPE_WAIT_EVENT && step->event->stream)
			work->after[work->after_count++] =
				(struct sg_dependency){step->event->stream, step->event->ticket};
		if (step->child)
			add_waits(work, step->child);
	}
}

/* What the launch comes after: the one before, and the events of its wait nodes as they are recorded now. */
static int add_dependencies(struct graph_work *graph, const struct CUgraphExec_st *exec)
{
	struct sg_work *work = &graph->work;

	work->after = calloc(count_waits(exec) + 1, sizeof(*work->after));
	if (!work->after)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (exec->last.stream)
		work->after[work->after_count++] = exec->last;
	add_waits(work, exec);
	return CUDA_SUCCESS;
}

/* In the order of the steps, so that what a graph frees it may allocate again. Memory that was found stays with the graph if a later step fails. */
static int take_memory(const struct CUgraphExec_st *exec, struct graph_work *launch)
{
	bool auto_free = exec->flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
	int r = CUDA_SUCCESS;

	for (size_t i = 0; !r && i < exec->count; i++)
		if (sg_work_block(exec->steps[i].work))
			r = sg_graph_block_check(sg_work_block(exec->steps[i].work),
				exec->steps[i].type == CU_GRAPH_NODE_TYPE_MEM_ALLOC, auto_free);
	for (size_t i = 0; !r && i < exec->count; i++)
		if (sg_work_block(launch->steps[i].work))
			sg_graph_block_commit(launch->steps[i].work);
	return r;
}

static int make_launch(
	struct CUctx_st *context, const struct CUgraphExec_st *exec, struct graph_work **ret);

static int copy_step(struct CUctx_st *context, const struct step *from, struct step *to)
{
	*to = (struct step){.type = from->type};
	if (from->disabled)
		return CUDA_SUCCESS;
	if (from->child) {
		struct graph_work *child;
		int r = make_launch(context, from->child, &child);

		if (!r)
			to->work = &child->work;
		return r;
	}
	if (from->type == CU_GRAPH_NODE_TYPE_EVENT_RECORD)
		return sg_work_record(from->event, &to->work);
	if (!from->work)
		return CUDA_SUCCESS;
	if (!sg_work_is_valid(context, from->work))
		return CUDA_ERROR_INVALID_HANDLE;
	to->work = sg_work_copy(from->work);
	return to->work ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* sg_graph_lock is held. */
static int make_launch(
	struct CUctx_st *context, const struct CUgraphExec_st *exec, struct graph_work **ret)
{
	size_t bytes = sizeof(**ret) + exec->count * sizeof(struct step);
	struct graph_work *graph = calloc(1, bytes);
	int r;

	if (!graph)
		return CUDA_ERROR_OUT_OF_MEMORY;
	graph->work.run = run_graph;
	graph->work.release = release_graph;
	graph->work.queued = queue_graph;
	graph->work.bytes = bytes;
	graph->work.node = CU_GRAPH_NODE_TYPE_GRAPH + 1;
	pthread_mutex_lock(&context->lock); /* of the events */
	r = add_dependencies(graph, exec);
	pthread_mutex_unlock(&context->lock);
	for (size_t i = 0; !r && i < exec->count; i++) {
		graph->count = i + 1;
		r = copy_step(context, &exec->steps[i], &graph->steps[i]);
	}
	if (r)
		sg_work_free(&graph->work);
	else
		*ret = graph;
	return r;
}

/* "If the executable graph is in-flight, it will ... be freed asynchronously on completion": what it needs stays for as long. */
static void hold_objects(const struct CUgraphExec_st *exec, struct sg_user_ref **ret)
{
	sg_user_refs_copy(exec->user, ret);
	for (size_t i = 0; i < exec->count; i++)
		if (exec->steps[i].child)
			hold_objects(exec->steps[i].child, ret);
}

static int launch(CUgraphExec exec, CUstream handle, bool ptsz)
{
	struct graph_work *graph;
	struct CUstream_st *stream;
	struct CUctx_st *context;
	uint64_t ticket;
	int r = sg_current(&context);

	if (!r)
		r = sg_stream_find(context, handle, ptsz, &stream);
	if (r)
		return r;
	/* A capturing stream would get a child graph, but of an executable one nobody has the graph any more. */
	if (sg_stream_is_capturing(stream))
		return sg_capture_refuse(stream);
	pthread_mutex_lock(&sg_graph_lock);
	if (!is_live(exec))
		r = CUDA_ERROR_INVALID_VALUE;
	else if (exec->context && exec->context != context)
		r = CUDA_ERROR_NOT_SUPPORTED;
	else
		r = make_launch(context, exec, &graph);
	if (!r) {
		r = take_memory(exec, graph);
		if (r)
			sg_work_free(&graph->work);
		else
			hold_objects(exec, &graph->user);
	}
	sg_graph_unlock();
	if (r)
		return r;
	r = sg_stream_submit(stream, &graph->work, &ticket);
	if (r)
		return r;
	pthread_mutex_lock(&sg_graph_lock);
	if (is_live(exec))
		exec->last = (struct sg_dependency){stream, ticket};
	sg_graph_unlock();
	return CUDA_SUCCESS;
}

SG_BOTH(cuGraphLaunch, (CUgraphExec exec, CUstream stream), launch(exec, stream, false),
	launch(exec, stream, true))

static int upload(CUgraphExec exec, CUstream handle, bool ptsz)
{
	struct CUstream_st *stream;
	struct CUctx_st *context;
	int r = sg_current(&context);

	if (!r)
		r = sg_stream_find(context, handle, ptsz, &stream);
	pthread_mutex_lock(&sg_graph_lock);
	if (!r && !is_live(exec))
		r = CUDA_ERROR_INVALID_VALUE;
	sg_graph_unlock();
	return r;
}

SG_BOTH(cuGraphUpload, (CUgraphExec exec, CUstream stream), upload(exec, stream, false),
	upload(exec, stream, true))

/* -- updates -- */

/* Nodes of children are steps of their executable graphs. */
static struct step *step_of(struct CUgraphExec_st *exec, const struct CUgraphNode_st *node)
{
	struct step *found = NULL;

	for (size_t i = 0; i < exec->count && !found; i++) {
		if (exec->steps[i].node == node)
			found = &exec->steps[i];
		else if (exec->steps[i].child)
			found = step_of(exec->steps[i].child, node);
	}
	return found;
}

/* Does the operation of a node stay what cuda.h says it must: memory of the same kind and device, rows that stay rows, cooperation? */
static int check_change(const struct sg_work *from, const struct sg_work *to, bool one_row)
{
	if (!from || !to || from->run != to->run)
		return from || to ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
	if (from->node == CU_GRAPH_NODE_TYPE_MEMCPY + 1 ||
		from->node == CU_GRAPH_NODE_TYPE_MEMSET + 1)
		return sg_work_check_change(from, to, one_row);
	return CUDA_SUCCESS;
}

/* The operation of one node, for later launches; context: of a kernel, which "cannot change". Takes over work. */
static int replace(CUgraphExec exec, CUgraphNode node, int type, struct sg_work *work,
	const struct CUctx_st *context)
{
	struct step *step;

	pthread_mutex_lock(&sg_graph_lock);
	step = is_live(exec) ? step_of(exec, node) : NULL;
	if (step && step->type == type && (!context || context == exec->context) &&
		!check_change(step->work, work, true)) {
		if (type == CU_GRAPH_NODE_TYPE_KERNEL) /* an attribute, not a parameter */
			*sg_work_cooperative(work) = *sg_work_cooperative(step->work);
		sg_work_free(step->work);
		step->work = work;
	} else {
		sg_work_free(work);
	}
	sg_graph_unlock();
	return step && step->work == work ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static int set_kernel(CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
	struct CUctx_st *context;
	struct sg_work *work;
	int r = sg_current(&context);

	if (!r && !params)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = sg_work_kernel(context, params, &work);
	return r ? r : replace(exec, node, CU_GRAPH_NODE_TYPE_KERNEL, work, context);
}

API CUresult cuGraphExecKernelNodeSetParams(
	CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
	return set_kernel(exec, node, params);
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
	return set_kernel(exec, node, &v1);
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
	if (!sg_event_find(context, event))
		return CUDA_ERROR_INVALID_HANDLE;
	pthread_mutex_lock(&sg_graph_lock);
	step = is_live(exec) ? step_of(exec, node) : NULL;
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
	if (flags && is_live(exec))
		*flags = exec->flags & ~(uint64_t)CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD;
	else
		r = CUDA_ERROR_INVALID_VALUE;
	sg_graph_unlock();
	return r;
}

/* "Currently only kernel, memset and memcpy nodes are supported." */
static int enabled(CUgraphExec exec, CUgraphNode node, const bool *set, unsigned *ret)
{
	struct step *step;
	int r = sg_ready();

	if (r)
		return r;
	pthread_mutex_lock(&sg_graph_lock);
	step = is_live(exec) ? step_of(exec, node) : NULL;
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

/* The graph is copied: it may be changed and destroyed. */
API CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraph graph)
{
	struct step *step;
	int r = sg_ready();

	if (r)
		return r;
	pthread_mutex_lock(&sg_graph_lock);
	step = is_live(exec) ? step_of(exec, node) : NULL;
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

/* Same nodes in the same order with the same edges; what they do may differ. */
static int compare(
	const struct CUgraphExec_st *exec, const struct CUgraph_st *graph, CUgraphNode *ret_node)
{
	struct td_list *it;

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
		for (size_t k = 0; k < exec->count; k++)
			if (exec->steps[k].source == i) {
				int r = compare_step(&exec->steps[k], node, ret_node);

				if (r)
					return r;
			}
	}
	*ret_node = NULL;
	return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

/* Nodes are named by those of the graph that was instantiated, in children too. */
static void keep_names(const struct CUgraphExec_st *exec, struct CUgraphExec_st *fresh)
{
	for (size_t i = 0; i < exec->count; i++) {
		for (size_t k = 0; k < exec->count; k++) {
			if (exec->steps[k].source != fresh->steps[i].source)
				continue;
			fresh->steps[i].node = exec->steps[k].node;
			fresh->steps[i].disabled = exec->steps[k].disabled;
			if (fresh->steps[i].child)
				keep_names(exec->steps[k].child, fresh->steps[i].child);
		}
	}
}

/* All of them or none. */
static int take_over(struct CUgraphExec_st *exec, struct CUgraph_st *graph)
{
	struct CUgraphExec_st *fresh = calloc(1, sizeof(*fresh)), swap;
	int r = fresh ? fill(fresh, graph) : CUDA_ERROR_OUT_OF_MEMORY;

	if (!fresh)
		return r;
	if (!r) {
		keep_names(exec, fresh);
		swap = *exec;
		exec->steps = fresh->steps;
		exec->shape = fresh->shape;
		exec->user = fresh->user;
		fresh->steps = swap.steps;
		fresh->shape = swap.shape;
		fresh->user = swap.user;
	}
	free_exec(fresh);
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
	if (!is_live(exec) || !sg_graph_is_live(graph) || graph->capturing) {
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
