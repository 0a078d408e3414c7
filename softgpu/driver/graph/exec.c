/*
 * Executable graphs. Instantiation copies the operations in a topological order. A launch copies
 * them again into one operation of the stream, so updates only affect later launches. The steps run
 * one after the other: the edges allow this order, although a GPU would overlap independent
 * branches. A graph never runs concurrently with itself (cuGraphLaunch): each launch waits for the
 * previous one.
 */
#include <stdlib.h>
#include <string.h>

#include "softgpu/driver/device/handles.h"
#include "softgpu/driver/graph/exec.h"

struct graph_work {
	struct sg_work work;
	struct sg_user_ref *user; /* references of a launch; NULL in a child graph's work */
	size_t count;
	struct step steps[];
};

static struct td_list execs = {&execs, &execs};

bool sg_exec_is_live(CUgraphExec exec)
{
	return sg_handle_is(exec, SG_EXEC);
}

void sg_exec_free(struct CUgraphExec_st *exec)
{
	for (size_t i = 0; exec->steps && i < exec->count; i++) {
		sg_work_free(exec->steps[i].work);
		if (exec->steps[i].child)
			sg_exec_free(exec->steps[i].child);
	}
	sg_user_refs_drop(&exec->user);
	for (size_t i = 0; exec->shape && i < exec->count; i++)
		free(exec->shape[i].after);
	free(exec->shape);
	free(exec->where);
	free(exec->steps);
	free(exec);
}

static int fill_child(struct CUgraph_st *graph, struct CUgraphExec_st **ret)
{
	struct CUgraphExec_st *child = calloc(1, sizeof(*child));
	int r = child ? sg_exec_fill(child, graph) : CUDA_ERROR_OUT_OF_MEMORY;

	if (!r)
		*ret = child;
	else if (child)
		sg_exec_free(child);
	return r;
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

static int add_step(struct CUgraphExec_st *exec, size_t at, const struct CUgraphNode_st *node)
{
	struct step *step = &exec->steps[at];

	exec->where[node->index] = at;
	*step = (struct step){node->type, sg_work_copy(node->work), node->event, node, NULL, false};
	if (node->work && !step->work)
		return CUDA_ERROR_OUT_OF_MEMORY;
	return node->child ? fill_child(node->child, &step->child) : CUDA_SUCCESS;
}

int sg_exec_fill(struct CUgraphExec_st *exec, struct CUgraph_st *graph)
{
	size_t at = 0;
	struct td_list *it;
	int r = CUDA_SUCCESS;

	sg_graph_renumber(graph);
	exec->count = graph->node_count;
	exec->context = graph->context;
	exec->graph = graph->id;
	exec->steps = calloc(exec->count + 1, sizeof(*exec->steps));
	exec->shape = calloc(exec->count + 1, sizeof(*exec->shape));
	exec->where = calloc(exec->count + 1, sizeof(*exec->where));
	if (!exec->steps || !exec->shape || !exec->where)
		r = CUDA_ERROR_OUT_OF_MEMORY;
	td_list_for_each (it, &graph->order) {
		const struct CUgraphNode_st *node =
			td_container_of(it, struct CUgraphNode_st, in_order);

		if (!r)
			r = keep_shape(exec, node);
		if (!r)
			r = add_step(exec, at++, node);
	}
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
	/* Node priorities have no effect here, and uploading costs nothing. */
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
	/*
	 * cuda.h, for a graph with memory nodes: "Only one instantiation of the graph may exist at
	 * any point in time".
	 */
	if (!sg_graph_is_live(graph) || graph->capturing ||
		(graph->has_memory && is_instantiated(graph)))
		r = CUDA_ERROR_INVALID_VALUE;
	else
		r = sg_exec_fill(exec, graph);
	if (!r && !sg_handle_add(exec, SG_EXEC))
		r = CUDA_ERROR_OUT_OF_MEMORY;
	if (!r) {
		exec->flags = flags;
		td_list_append(&execs, &exec->link);
		*ret = exec;
	} else {
		sg_exec_free(exec);
	}
	sg_graph_unlock();
	return r;
}

/* The upload flag needs a stream. cuda.h: "Only supported by cuGraphInstantiateWithParams". */
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
	if (sg_exec_is_live(exec)) {
		sg_handle_remove(exec);
		td_list_remove(&exec->link);
		sg_exec_free(exec); /* queued launches have their own copies */
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

	/* As in a stream, only steps with when_dead run after an error. */
	for (size_t i = 0; i < graph->count; i++) {
		struct sg_work *step = graph->steps[i].work;
		int error = r ? r : __atomic_load_n(&stream->context->error, __ATOMIC_ACQUIRE);

		if (step && (!error || step->when_dead)) {
			error = step->run(stream, step);
			r = r ? r : error;
		}
	}
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

/*
 * The graph's events are recorded when the launch is queued, like those of a stream: waits from now
 * on wait for this launch.
 */
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

		if (step->type == CU_GRAPH_NODE_TYPE_WAIT_EVENT) {
			work->after[work->after_count] = sg_event_last(step->event);
			work->after_count += work->after[work->after_count].stream != NULL;
		}
		if (step->child)
			add_waits(work, step->child);
	}
}

/*
 * A launch depends on the previous launch, and on the current records of the events that its nodes
 * wait for.
 */
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

/*
 * Checks memory in the order of the steps, so that a graph can allocate again what it freed. If a
 * later step fails, the graph keeps the memory it has got.
 */
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
	if (from->type == CU_GRAPH_NODE_TYPE_WAIT_EVENT && from->event->shared)
		return sg_work_shared_wait(from->event, &to->work);
	if (!from->work)
		return CUDA_SUCCESS;
	if (!sg_work_is_valid(context, from->work))
		return CUDA_ERROR_INVALID_HANDLE;
	to->work = sg_work_copy(from->work);
	return to->work ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Called with sg_graph_lock held. */
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
	graph->work.when_dead = true; /* run_graph() decides for each step */
	r = add_dependencies(graph, exec);
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

/*
 * cuda.h: "If the executable graph is in-flight, it will ... be freed asynchronously on
 * completion". The launch therefore holds references to the user objects until it is complete.
 */
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
	uint64_t ticket;
	int r = sg_stream_find(handle, ptsz, &stream);

	if (r)
		return r;
	/*
	 * A captured launch would become a child graph node. The source graph is not kept with the
	 * executable one, so this is not supported.
	 */
	if (sg_stream_is_capturing(stream))
		return sg_capture_refuse(stream);
	pthread_mutex_lock(&sg_graph_lock);
	if (!sg_exec_is_live(exec))
		r = CUDA_ERROR_INVALID_VALUE;
	else if (exec->context && exec->context != stream->context)
		r = CUDA_ERROR_NOT_SUPPORTED; /* the kernels belong to another context */
	else
		r = make_launch(stream->context, exec, &graph);
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
	if (sg_exec_is_live(exec))
		exec->last = (struct sg_dependency){stream, ticket};
	sg_graph_unlock();
	return CUDA_SUCCESS;
}

SG_BOTH(cuGraphLaunch, (CUgraphExec exec, CUstream stream), launch(exec, stream, false),
	launch(exec, stream, true))

static int upload(CUgraphExec exec, CUstream handle, bool ptsz)
{
	struct CUstream_st *stream;
	int r = sg_stream_find(handle, ptsz, &stream);

	pthread_mutex_lock(&sg_graph_lock);
	if (!r && !sg_exec_is_live(exec))
		r = CUDA_ERROR_INVALID_VALUE;
	sg_graph_unlock();
	return r;
}

SG_BOTH(cuGraphUpload, (CUgraphExec exec, CUstream stream), upload(exec, stream, false),
	upload(exec, stream, true))
