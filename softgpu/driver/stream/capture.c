/*
 * Stream capture. The operations of a capturing stream become nodes of a graph. A call that queries
 * the stream, or would make it depend on work outside the capture, is refused and invalidates the
 * capture.
 * none --begin--> active --end--> none, returns a graph
 *                 active --refused call--> invalidated --end--> none, returns no graph
 * Another stream joins a capture by waiting for an event that was recorded in it, and must be
 * joined back by the capture's first stream before the end. The rules are those of cuda.h at
 * cuStreamBeginCapture, cuThreadExchangeStreamCaptureMode and the error codes. Where cuda.h does
 * not say whether a call is "potentially unsafe", it is treated so if it waits, allocates or loads.
 */
#include <stdlib.h>
#include <string.h>

#include "softgpu/driver/graph/graph.h"

struct sg_capture {
	struct td_list link;
	uint64_t id;
	int mode;
	pthread_t thread;
	struct CUstream_st *origin;
	struct CUgraph_st *graph;
	bool invalid,
		borrowed; /* The graph belongs to the program and outlives a failed capture. */
};

/* Guarded by sg_graph_lock, except the count, which may be read without it. */
static struct td_list captures = {&captures, &captures};
static unsigned capture_count;
static uint64_t last_id;
static _Thread_local int thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

static bool nobody_captures(void)
{
	return !__atomic_load_n(&capture_count, __ATOMIC_ACQUIRE);
}

static struct sg_capture *capture_at(struct td_list *it)
{
	return td_container_of(it, struct sg_capture, link);
}

/* Returns NULL if that capture is over. */
static struct sg_capture *find_capture(uint64_t id)
{
	struct td_list *it;

	td_list_for_each (it, &captures)
		if (capture_at(it)->id == id)
			return capture_at(it);
	return NULL;
}

static void set_front(struct CUgraphNode_st ***front, size_t *front_count,
	struct CUgraphNode_st *const *nodes, size_t count)
{
	struct CUgraphNode_st **fresh = calloc(count + 1, sizeof(*fresh));

	if (fresh && count)
		memcpy(fresh, nodes, count * sizeof(*fresh));
	free(*front);
	*front = fresh;
	*front_count = fresh ? count : 0;
}

static bool add_to_front(struct CUstream_st *stream, struct CUgraphNode_st *node)
{
	struct CUgraphNode_st **bigger;

	for (size_t i = 0; i < stream->front_count; i++)
		if (stream->front[i] == node)
			return true;
	bigger = realloc(stream->front, (stream->front_count + 2) * sizeof(*bigger));
	if (!bigger)
		return false;
	stream->front = bigger;
	bigger[stream->front_count++] = node;
	return true;
}

/* Calls a function for every stream of the capture. Takes context->lock under sg_graph_lock. */
static void for_streams(struct sg_capture *capture,
	void (*each)(struct sg_capture *capture, struct CUstream_st *stream))
{
	struct CUctx_st *context = capture->origin->context;
	struct td_list *it;

	pthread_mutex_lock(&context->lock);
	td_list_for_each (it, &context->streams) {
		struct CUstream_st *stream = td_container_of(it, struct CUstream_st, link);

		if (stream->capture == capture)
			each(capture, stream);
	}
	pthread_mutex_unlock(&context->lock);
}

static void leave(struct sg_capture *capture, struct CUstream_st *stream)
{
	(void)capture;
	stream->capture = NULL;
	free(stream->front);
	stream->front = NULL;
	stream->front_count = 0;
}

static void end_capture(struct sg_capture *capture)
{
	for_streams(capture, leave);
	td_list_remove(&capture->link);
	__atomic_sub_fetch(&capture_count, 1, __ATOMIC_RELEASE);
	capture->graph->capturing--;
	free(capture);
}

static int spoil(struct sg_capture *capture, int error)
{
	int r = capture->invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : error;

	capture->invalid = true;
	return r;
}

void sg_capture_context_gone(struct CUctx_st *context)
{
	struct td_list *it, *tmp;

	if (nobody_captures())
		return;
	pthread_mutex_lock(&sg_graph_lock);
	td_list_for_each_safe (it, tmp, &captures) {
		struct CUgraph_st *graph = capture_at(it)->graph;
		bool borrowed;

		if (capture_at(it)->origin->context != context)
			continue;
		borrowed = capture_at(it)->borrowed;
		end_capture(capture_at(it));
		if (!borrowed)
			sg_graph_free(graph);
	}
	sg_graph_unlock();
}

/* -- checks of calls during a capture -- */

/*
 * Returns STREAM_CAPTURE_IMPLICIT if the legacy stream would have to wait for a capturing stream.
 * With `spoils` the call also invalidates that capture; calls that only query the stream do not.
 */
static int check_legacy(const struct CUstream_st *stream, bool spoils)
{
	struct CUctx_st *context = stream->context;
	int r = CUDA_SUCCESS;
	struct td_list *it;

	if (stream != context->legacy)
		return CUDA_SUCCESS;
	pthread_mutex_lock(&context->lock);
	td_list_for_each (it, &context->streams) {
		const struct CUstream_st *other = td_container_of(it, struct CUstream_st, link);

		if (!other->capture || other->flags & CU_STREAM_NON_BLOCKING)
			continue;
		if (spoils)
			other->capture->invalid = true;
		r = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	}
	pthread_mutex_unlock(&context->lock);
	return r;
}

int sg_capture_refuse(struct CUstream_st *stream)
{
	int r;

	pthread_mutex_lock(&sg_graph_lock);
	r = stream->capture ? spoil(stream->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)
			    : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	sg_graph_unlock();
	return r;
}

bool sg_stream_is_capturing(struct CUstream_st *stream)
{
	bool is;

	if (nobody_captures())
		return false;
	pthread_mutex_lock(&sg_graph_lock);
	is = stream->capture != NULL;
	sg_graph_unlock();
	return is;
}

int sg_capture_check_stream(struct CUstream_st *stream)
{
	int r;

	if (nobody_captures())
		return CUDA_SUCCESS;
	pthread_mutex_lock(&sg_graph_lock);
	r = stream->capture ? spoil(stream->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)
			    : check_legacy(stream, true);
	sg_graph_unlock();
	return r ? r : sg_capture_check_unsafe();
}

int sg_capture_check_unsafe(void)
{
	int r = CUDA_SUCCESS;
	struct td_list *it;

	if (nobody_captures() || thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_SUCCESS;
	pthread_mutex_lock(&sg_graph_lock);
	td_list_for_each (it, &captures) {
		struct sg_capture *capture = capture_at(it);
		bool own = pthread_equal(capture->thread, pthread_self());

		if (own ? capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED
			: thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
					capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL) {
			capture->invalid = true;
			r = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
		}
	}
	sg_graph_unlock();
	return r;
}

int sg_capture_check_context(struct CUctx_st *context)
{
	int r = CUDA_SUCCESS;
	struct td_list *it;

	if (nobody_captures())
		return CUDA_SUCCESS;
	pthread_mutex_lock(&sg_graph_lock);
	td_list_for_each (it, &captures) {
		if (capture_at(it)->origin->context != context)
			continue;
		capture_at(it)->invalid = true;
		r = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	}
	sg_graph_unlock();
	return r ? r : sg_capture_check_unsafe();
}

int sg_capture_check_event(struct CUevent_st *event, bool waits)
{
	struct sg_capture *capture;
	int r = CUDA_SUCCESS;

	pthread_mutex_lock(&sg_graph_lock);
	if (event->capture_id) {
		capture = find_capture(event->capture_id);
		if (capture)
			capture->invalid = true;
		r = CUDA_ERROR_CAPTURED_EVENT;
	}
	sg_graph_unlock();
	return r || !waits ? r : sg_capture_check_unsafe();
}

/* -- operations of a capturing stream -- */

/* Called with sg_graph_lock held. Takes ownership of work. */
static int add_node(
	struct CUstream_st *stream, int type, struct sg_work *work, struct CUevent_st *event)
{
	struct CUgraphNode_st *node;
	int r;

	if (stream->capture->invalid) {
		sg_work_free(work);
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	}
	r = sg_node_add(stream->capture->graph, type, work, event, stream->front,
		stream->front_count, &node);
	if (!r)
		set_front(&stream->front, &stream->front_count, &node, 1);
	return r;
}

int sg_capture_take(struct CUstream_st *stream, struct sg_work *work)
{
	int r;

	if (nobody_captures())
		return SG_NOT_CAPTURING;
	pthread_mutex_lock(&sg_graph_lock);
	if (stream->capture && work->node) {
		r = add_node(stream, work->node - 1, work, NULL);
	} else if (stream->capture) {
		r = spoil(stream->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
		sg_work_free(work);
	} else {
		r = check_legacy(stream, true);
		if (r)
			sg_work_free(work);
		else
			r = SG_NOT_CAPTURING;
	}
	sg_graph_unlock();
	return r;
}

int sg_capture_record(struct CUstream_st *stream, struct CUevent_st *event, unsigned flags)
{
	int r = SG_NOT_CAPTURING;

	pthread_mutex_lock(&sg_graph_lock);
	if (!stream->capture) {
		r = check_legacy(stream, true);
		/* cuda.h, CU_EVENT_RECORD_EXTERNAL: "invalid when used outside of capture". */
		if (!r)
			r = flags ? CUDA_ERROR_INVALID_VALUE : SG_NOT_CAPTURING;
		if (r == SG_NOT_CAPTURING)
			event->capture_id = 0;
	} else if (stream->capture->invalid) {
		r = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	} else if (flags) {
		r = add_node(stream, CU_GRAPH_NODE_TYPE_EVENT_RECORD, NULL, event);
	} else {
		event->capture_id = stream->capture->id;
		set_front(&event->front, &event->front_count, stream->front, stream->front_count);
		r = CUDA_SUCCESS;
	}
	sg_graph_unlock();
	return r;
}

/*
 * Called with sg_graph_lock held. The stream's next operation will also depend on the nodes before
 * the event's record. A stream that is not capturing joins the capture.
 */
static int join(struct CUstream_st *stream, const struct CUevent_st *event)
{
	struct sg_capture *capture = find_capture(event->capture_id);

	if (!capture)
		return CUDA_ERROR_CAPTURED_EVENT;
	if (stream->capture && stream->capture != capture) {
		(void)spoil(capture, 0);
		return spoil(stream->capture, CUDA_ERROR_STREAM_CAPTURE_MERGE);
	}
	if (capture->invalid)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	if (stream->context != capture->origin->context)
		return spoil(capture, CUDA_ERROR_NOT_SUPPORTED); /* a graph has one context here */
	if (stream == stream->context->legacy)
		return spoil(capture, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
	stream->capture = capture;
	for (size_t i = 0; i < event->front_count; i++)
		if (!add_to_front(stream, event->front[i]))
			return CUDA_ERROR_OUT_OF_MEMORY;
	return CUDA_SUCCESS;
}

int sg_capture_wait(struct CUstream_st *stream, struct CUevent_st *event, unsigned flags)
{
	int r = SG_NOT_CAPTURING;

	pthread_mutex_lock(&sg_graph_lock);
	if (flags && !stream->capture)
		r = CUDA_ERROR_INVALID_VALUE; /* CU_EVENT_WAIT_EXTERNAL outside of capture */
	else if (flags)
		r = add_node(stream, CU_GRAPH_NODE_TYPE_WAIT_EVENT, NULL, event);
	else if (event->capture_id)
		r = join(stream, event);
	else if (stream->capture && (event->shared || sg_event_last(event).stream))
		r = spoil(stream->capture, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
	else if (stream->capture)
		r = CUDA_SUCCESS; /* never recorded, so nothing to wait for */
	else if ((r = check_legacy(stream, true)) == CUDA_SUCCESS)
		r = SG_NOT_CAPTURING;
	sg_graph_unlock();
	return r;
}

/* -- the calls -- */

/* Called with sg_graph_lock held. */
static int start(struct CUstream_st *stream, int mode, struct CUgraph_st *into)
{
	struct sg_capture *capture = calloc(1, sizeof(*capture));

	if (capture)
		capture->graph = into ? into : sg_graph_new();
	if (!capture || !capture->graph) {
		free(capture);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	capture->id = ++last_id;
	capture->mode = mode;
	capture->thread = pthread_self();
	capture->origin = stream;
	capture->borrowed = into;
	capture->graph->capturing++;
	capture->graph->context = stream->context;
	td_list_append(&captures, &capture->link);
	__atomic_add_fetch(&capture_count, 1, __ATOMIC_RELEASE);
	stream->capture = capture;
	return CUDA_SUCCESS;
}

static int begin_capture(CUstream handle, int mode, bool ptsz)
{
	struct CUstream_st *stream;
	int r = sg_stream_find(handle, ptsz, &stream);

	if (r)
		return r;
	if (mode < 0 || mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	/* cuda.h: "Capture may not be initiated if stream is CU_STREAM_LEGACY." */
	if (stream == stream->context->legacy)
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	pthread_mutex_lock(&sg_graph_lock);
	r = stream->capture ? CUDA_ERROR_ILLEGAL_STATE : start(stream, mode, NULL);
	sg_graph_unlock();
	return r;
}

SG_BOTH(cuStreamBeginCapture_v2, (CUstream stream, int mode), begin_capture(stream, mode, false),
	begin_capture(stream, mode, true))
SG_BOTH(cuStreamBeginCapture, (CUstream stream),
	begin_capture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL, false),
	begin_capture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL, true))

/* Captures into an existing graph. The first nodes depend on those in `after`. */
static int begin_to_graph(CUstream handle, CUgraph graph, const CUgraphNode *after,
	const CUgraphEdgeData *edges, size_t count, int mode, bool ptsz)
{
	struct CUstream_st *stream;
	int r = sg_stream_find(handle, ptsz, &stream);

	if (r)
		return r;
	if (mode < 0 || mode > CU_STREAM_CAPTURE_MODE_RELAXED || (count && !after))
		return CUDA_ERROR_INVALID_VALUE;
	if (stream == stream->context->legacy)
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	pthread_mutex_lock(&sg_graph_lock);
	if (!sg_graph_is_live(graph) || graph->parent ||
		(graph->context && graph->context != stream->context))
		r = CUDA_ERROR_INVALID_VALUE;
	else
		r = sg_check_edges(edges, count);
	for (size_t i = 0; !r && i < count; i++)
		r = sg_graph_holds(graph, after[i]) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = stream->capture ? CUDA_ERROR_ILLEGAL_STATE : start(stream, mode, graph);
	if (!r)
		set_front(&stream->front, &stream->front_count, after, count);
	sg_graph_unlock();
	return r;
}

SG_BOTH(cuStreamBeginCaptureToGraph,
	(CUstream stream, CUgraph graph, const CUgraphNode *after, const CUgraphEdgeData *edges,
		size_t count, int mode),
	begin_to_graph(stream, graph, after, edges, count, mode, false),
	begin_to_graph(stream, graph, after, edges, count, mode, true))

/* Changes the set of nodes that the stream's next operation depends on. */
static int update_front(CUstream handle, CUgraphNode *nodes, const CUgraphEdgeData *edges,
	size_t count, unsigned flags, bool ptsz)
{
	struct CUstream_st *stream;
	int r = sg_stream_find(handle, ptsz, &stream);

	if (r)
		return r;
	if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES || (count && !nodes))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&sg_graph_lock);
	if (!stream->capture)
		r = CUDA_ERROR_ILLEGAL_STATE;
	else if (stream->capture->invalid)
		r = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	else
		r = sg_check_edges(edges, count);
	for (size_t i = 0; !r && i < count; i++)
		r = sg_graph_holds(stream->capture->graph, nodes[i]) ? CUDA_SUCCESS
								     : CUDA_ERROR_INVALID_VALUE;
	if (!r && flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES)
		set_front(&stream->front, &stream->front_count, nodes, count);
	for (size_t i = 0; !r && flags == CU_STREAM_ADD_CAPTURE_DEPENDENCIES && i < count; i++)
		r = add_to_front(stream, nodes[i]) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	sg_graph_unlock();
	return r;
}

SG_BOTH(cuStreamUpdateCaptureDependencies,
	(CUstream stream, CUgraphNode *nodes, size_t count, unsigned flags),
	update_front(stream, nodes, NULL, count, flags, false),
	update_front(stream, nodes, NULL, count, flags, true))
SG_BOTH(cuStreamUpdateCaptureDependencies_v2,
	(CUstream stream, CUgraphNode *nodes, const CUgraphEdgeData *edges, size_t count,
		unsigned flags),
	update_front(stream, nodes, edges, count, flags, false),
	update_front(stream, nodes, edges, count, flags, true))

/* Checks that the last nodes of all forked streams are dependencies of the first stream. */
static int check_joined(struct sg_capture *capture)
{
	struct CUstream_st *origin = capture->origin;
	struct CUctx_st *context = origin->context;
	int r = CUDA_SUCCESS;
	struct td_list *it;

	pthread_mutex_lock(&context->lock);
	td_list_for_each (it, &context->streams) {
		const struct CUstream_st *other = td_container_of(it, struct CUstream_st, link);

		if (other->capture != capture || other == origin)
			continue;
		for (size_t i = 0; !r && i < other->front_count; i++) {
			bool joined;

			r = sg_node_reaches(
				other->front[i], origin->front, origin->front_count, &joined);
			if (!r && !joined)
				r = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
		}
	}
	pthread_mutex_unlock(&context->lock);
	return r;
}

/* Called with sg_graph_lock held. */
static int finish_capture(struct CUstream_st *stream, CUgraph *ret)
{
	struct sg_capture *capture = stream->capture;
	struct CUgraph_st *graph;
	bool borrowed;
	int r = CUDA_SUCCESS;

	if (!capture)
		return CUDA_ERROR_ILLEGAL_STATE;
	if (capture->origin != stream)
		return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
	if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
		!pthread_equal(capture->thread, pthread_self()))
		return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
	if (capture->invalid)
		r = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	else
		r = check_joined(capture);
	graph = capture->graph;
	borrowed = capture->borrowed;
	end_capture(capture);
	if (r && !borrowed)
		sg_graph_free(graph);
	*ret = r ? NULL : graph;
	return r;
}

static int end(CUstream handle, CUgraph *ret, bool ptsz)
{
	struct CUstream_st *stream;
	int r = sg_stream_find(handle, ptsz, &stream);

	if (!r && !ret)
		r = CUDA_ERROR_INVALID_VALUE;
	if (r)
		return r;
	pthread_mutex_lock(&sg_graph_lock);
	r = finish_capture(stream, ret);
	sg_graph_unlock();
	return r;
}

SG_BOTH(cuStreamEndCapture, (CUstream stream, CUgraph *graph), end(stream, graph, false),
	end(stream, graph, true))

struct info {
	int *status;
	uint64_t *id;
	CUgraph *graph;
	const CUgraphNode **nodes;
	const CUgraphEdgeData **edges;
	size_t *count;
};

static int status_of(const struct CUstream_st *stream)
{
	if (!stream->capture)
		return CU_STREAM_CAPTURE_STATUS_NONE;
	return stream->capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
					: CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

static int get_info(CUstream handle, bool ptsz, const struct info *info)
{
	struct CUstream_st *stream;
	int r = sg_stream_find(handle, ptsz, &stream);

	if (!r && (!info->status || (info->edges && !info->nodes)))
		r = CUDA_ERROR_INVALID_VALUE;
	if (r)
		return r;
	pthread_mutex_lock(&sg_graph_lock);
	r = check_legacy(stream, false);
	if (!r) {
		*info->status = status_of(stream);
		if (*info->status == CU_STREAM_CAPTURE_STATUS_ACTIVE) {
			if (info->id)
				*info->id = stream->capture->id;
			if (info->graph)
				*info->graph = stream->capture->graph;
			if (info->nodes)
				*info->nodes = stream->front;
			if (info->edges)
				*info->edges = NULL; /* all edges are plain */
			if (info->count)
				*info->count = stream->front_count;
		}
	}
	sg_graph_unlock();
	return r;
}

SG_BOTH(cuStreamIsCapturing, (CUstream stream, int *status),
	get_info(stream, false, &(struct info){.status = status}),
	get_info(stream, true, &(struct info){.status = status}))
SG_BOTH(cuStreamGetCaptureInfo, (CUstream stream, int *status, uint64_t *id),
	get_info(stream, false, &(struct info){status, id, NULL, NULL, NULL, NULL}),
	get_info(stream, true, &(struct info){status, id, NULL, NULL, NULL, NULL}))
SG_BOTH(cuStreamGetCaptureInfo_v2,
	(CUstream stream, int *status, uint64_t *id, CUgraph *graph, const CUgraphNode **nodes,
		size_t *count),
	get_info(stream, false, &(struct info){status, id, graph, nodes, NULL, count}),
	get_info(stream, true, &(struct info){status, id, graph, nodes, NULL, count}))
SG_BOTH(cuStreamGetCaptureInfo_v3,
	(CUstream stream, int *status, uint64_t *id, CUgraph *graph, const CUgraphNode **nodes,
		const CUgraphEdgeData **edges, size_t *count),
	get_info(stream, false, &(struct info){status, id, graph, nodes, edges, count}),
	get_info(stream, true, &(struct info){status, id, graph, nodes, edges, count}))

API CUresult cuThreadExchangeStreamCaptureMode(int *mode)
{
	int before = thread_mode;

	if (!mode || *mode < 0 || *mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	thread_mode = *mode;
	*mode = before;
	return CUDA_SUCCESS;
}
