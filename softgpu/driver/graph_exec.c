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
};

struct CUgraphExec_st {
	struct td_list link;
	struct CUctx_st *context;
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
	for (size_t i = 0; exec->steps && i < exec->count; i++)
		sg_work_free(exec->steps[i].work);
	for (size_t i = 0; exec->shape && i < exec->count; i++)
		free(exec->shape[i].after);
	free(exec->shape);
	free(exec->steps);
	free(exec);
}

static void renumber(struct CUgraph_st *graph)
{
	struct td_list *it;
	size_t n = 0;

	td_list_for_each (it, &graph->nodes)
		td_container_of(it, struct CUgraphNode_st, link)->index = n++;
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
	*step = (struct step){node->type, sg_work_copy(node->work), node->event, node->index, node};
	return node->work && !step->work ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
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

	renumber(graph);
	exec->count = graph->node_count;
	exec->context = graph->context;
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
	return r;
}

static int instantiate(CUgraphExec *ret, CUgraph graph, uint64_t flags)
{
	struct CUgraphExec_st *exec;
	int r = sg_ready();

	if (r)
		return r;
	/* Allocation nodes, device launch and priorities of nodes are not there; uploading costs nothing here. */
	if (!ret || flags & ~15ull)
		return CUDA_ERROR_INVALID_VALUE;
	if (flags & 4)
		return CUDA_ERROR_NOT_SUPPORTED;
	exec = calloc(1, sizeof(*exec));
	if (!exec)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&sg_graph_lock);
	r = sg_graph_is_live(graph) && !graph->capturing ? fill(exec, graph)
							 : CUDA_ERROR_INVALID_VALUE;
	if (!r)
		td_list_append(&execs, &exec->link);
	pthread_mutex_unlock(&sg_graph_lock);
	if (r)
		free_exec(exec);
	else
		*ret = exec;
	return r;
}

API CUresult cuGraphInstantiateWithFlags(CUgraphExec *ret, CUgraph graph, unsigned long long flags)
{
	return instantiate(ret, graph, flags);
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
	pthread_mutex_unlock(&sg_graph_lock);
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
}

/* Events are recorded at the launch, as a stream's would be: from here on they wait for it. */
static void queue_graph(struct CUstream_st *stream, struct sg_work *work, uint64_t ticket)
{
	struct graph_work *graph = (struct graph_work *)work;

	for (size_t i = 0; i < graph->count; i++)
		if (graph->steps[i].work && graph->steps[i].work->queued)
			graph->steps[i].work->queued(stream, graph->steps[i].work, ticket);
}

/* What the launch comes after: the one before, and the events of its wait nodes as they are recorded now. */
static int add_dependencies(struct graph_work *graph, const struct CUgraphExec_st *exec)
{
	struct sg_work *work = &graph->work;

	work->after = calloc(exec->count + 1, sizeof(*work->after));
	if (!work->after)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (exec->last.stream)
		work->after[work->after_count++] = exec->last;
	for (size_t i = 0; i < exec->count; i++) {
		const struct step *step = &exec->steps[i];

		if (step->type == CU_GRAPH_NODE_TYPE_WAIT_EVENT && step->event->stream)
			work->after[work->after_count++] =
				(struct sg_dependency){step->event->stream, step->event->ticket};
	}
	return CUDA_SUCCESS;
}

static int copy_step(struct CUctx_st *context, const struct step *from, struct step *to)
{
	*to = (struct step){.type = from->type};
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
	/* A capturing stream would get a child graph: those are not there. */
	if (sg_stream_is_capturing(stream))
		return sg_capture_refuse(stream);
	pthread_mutex_lock(&sg_graph_lock);
	if (!is_live(exec))
		r = CUDA_ERROR_INVALID_VALUE;
	else if (exec->context && exec->context != context)
		r = CUDA_ERROR_NOT_SUPPORTED;
	else
		r = make_launch(context, exec, &graph);
	pthread_mutex_unlock(&sg_graph_lock);
	if (r)
		return r;
	r = sg_stream_submit(stream, &graph->work, &ticket);
	if (r)
		return r;
	pthread_mutex_lock(&sg_graph_lock);
	if (is_live(exec))
		exec->last = (struct sg_dependency){stream, ticket};
	pthread_mutex_unlock(&sg_graph_lock);
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
	pthread_mutex_unlock(&sg_graph_lock);
	return r;
}

SG_BOTH(cuGraphUpload, (CUgraphExec exec, CUstream stream), upload(exec, stream, false),
	upload(exec, stream, true))

/* -- updates -- */

static struct step *step_of(struct CUgraphExec_st *exec, const struct CUgraphNode_st *node)
{
	for (size_t i = 0; i < exec->count; i++)
		if (exec->steps[i].node == node)
			return &exec->steps[i];
	return NULL;
}

static int set_kernel(CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
	struct CUctx_st *context;
	struct sg_work *work;
	struct step *step;
	int r = sg_current(&context);

	if (!r && !params)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = sg_work_kernel(context, params, &work);
	if (r)
		return r;
	pthread_mutex_lock(&sg_graph_lock);
	step = is_live(exec) && exec->context == context ? step_of(exec, node) : NULL;
	if (step && step->type == CU_GRAPH_NODE_TYPE_KERNEL) {
		sg_work_free(step->work);
		step->work = work;
	} else {
		sg_work_free(work);
		r = CUDA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_unlock(&sg_graph_lock);
	return r;
}

API CUresult cuGraphExecKernelNodeSetParams(
	CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
	return set_kernel(exec, node, params);
}

API CUresult cuGraphExecKernelNodeSetParams_v2(
	CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2 *params)
{
	return set_kernel(exec, node, params ? &params->v1 : NULL);
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
			if (exec->steps[k].source == i && exec->steps[k].type != node->type)
				return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
	}
	*ret_node = NULL;
	return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

/* All of them or none. */
static int take_over(struct CUgraphExec_st *exec, struct CUgraph_st *graph)
{
	struct CUgraphExec_st *fresh = calloc(1, sizeof(*fresh)), swap;
	int r = fresh ? fill(fresh, graph) : CUDA_ERROR_OUT_OF_MEMORY;

	if (!fresh)
		return r;
	if (!r) {
		/* Nodes are named by those of the graph that was instantiated. */
		for (size_t i = 0; i < exec->count; i++)
			for (size_t k = 0; k < exec->count; k++)
				if (exec->steps[k].source == fresh->steps[i].source)
					fresh->steps[i].node = exec->steps[k].node;
		swap = *exec;
		exec->steps = fresh->steps;
		exec->shape = fresh->shape;
		fresh->steps = swap.steps;
		fresh->shape = swap.shape;
	}
	free_exec(fresh);
	return r;
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
		renumber(graph);
		*ret_result = compare(exec, graph, ret_node);
		r = *ret_result ? CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE : take_over(exec, graph);
	}
	pthread_mutex_unlock(&sg_graph_lock);
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
