/*
 * Streams. Each is a queue with a worker thread. Events are in event.c.
 * An operation may wait for a stream of another context. The end of work is signalled only on its
 * own context's condition variable, so the worker then waits on that one.
 * The legacy default stream waits for all earlier work in the blocking streams of its context, and
 * they wait for it. An operation gets the list of positions it depends on when it is queued.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/stack.h"
#include "base/time.h"
#include "softgpu/driver/device/handles.h"
#include "softgpu/driver/graph/graph.h"

#define WORKER_STACK (1024 * 1024)
/* A worker that waits for another context checks this often whether its own context is dead. */
#define LOOK_EVERY_NS 10000000

static bool is_blocking(const struct CUstream_st *stream)
{
	return !(stream->flags & CU_STREAM_NON_BLOCKING);
}

bool sg_stream_reached(const struct CUstream_st *stream, uint64_t ticket)
{
	return __atomic_load_n(&stream->completed, __ATOMIC_ACQUIRE) >= ticket;
}

/*
 * Returns a dependency of the work that is not met yet, or NULL. In a dead context, dependencies on
 * other contexts are ignored.
 */
static const struct sg_dependency *unmet(const struct CUctx_st *context, const struct sg_work *work)
{
	bool dead = __atomic_load_n(&context->cancel, __ATOMIC_RELAXED);

	for (size_t i = 0; i < work->after_count; i++) {
		const struct sg_dependency *after = &work->after[i];

		if (!sg_stream_reached(after->stream, after->ticket) &&
			!(dead && after->stream->context != context))
			return after;
	}
	return NULL;
}

/*
 * Waits until the dependency may have changed. The locks of the two contexts are not held together,
 * because contexts have no lock order.
 */
static void wait_elsewhere(struct CUctx_st *own, const struct sg_dependency *after)
{
	struct CUctx_st *other = after->stream->context;

	pthread_mutex_unlock(&own->lock);
	pthread_mutex_lock(&other->lock);
	if (!sg_stream_reached(after->stream, after->ticket))
		(void)sg_bell_wait_until(
			&other->changed, &other->lock, td_time_now_ns() + LOOK_EVERY_NS);
	pthread_mutex_unlock(&other->lock);
	pthread_mutex_lock(&own->lock);
}

/* Runs one operation. Called without locks. */
static void perform(struct CUstream_st *stream, struct sg_work *work)
{
	int r = CUDA_SUCCESS;

	/* Operations in a dead context have no effect, but they still leave the queue. */
	if (work->when_dead || !__atomic_load_n(&stream->context->error, __ATOMIC_ACQUIRE)) {
		sg_pages_enter();
		r = work->run(stream, work);
		sg_pages_leave();
	}
	if (r)
		sg_context_kill(stream->context, r);
}

static void *serve_stream(void *arg)
{
	struct CUstream_st *stream = arg;
	struct CUctx_st *context = stream->context;

	pthread_mutex_lock(&context->lock);
	while (!stream->closing || stream->first) {
		struct sg_work *work = stream->first;
		const struct sg_dependency *after = work ? unmet(context, work) : NULL;

		if (after && after->stream->context != context) {
			wait_elsewhere(context, after);
			continue;
		}
		if (!work || after) {
			sg_bell_wait(&context->changed, &context->lock);
			continue;
		}
		pthread_mutex_unlock(&context->lock);
		perform(stream, work);
		pthread_mutex_lock(&context->lock);
		stream->first = work->next;
		if (!stream->first)
			stream->last = &stream->first;
		pthread_mutex_unlock(&context->lock);
		sg_work_free(work); /* may take sg_graph_lock and run destructors of user objects */
		pthread_mutex_lock(&context->lock);
		__atomic_store_n(&stream->completed, stream->completed + 1, __ATOMIC_RELEASE);
		sg_bell_ring(&context->changed);
	}
	td_list_remove(&stream->link);
	pthread_mutex_unlock(&context->lock);
	return NULL;
}

/* Called with context->lock held. */
static int start_worker(struct CUstream_st *stream)
{
	pthread_attr_t attributes;
	sigset_t all, before;
	int r;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, td_stack_bytes(WORKER_STACK));
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&stream->worker, &attributes, serve_stream, stream);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	stream->has_worker = r == 0;
	return r ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

struct CUstream_st *sg_stream_new(struct CUctx_st *context, unsigned flags, int priority)
{
	static uint64_t last_id;
	struct CUstream_st *stream = calloc(1, sizeof(*stream));

	if (!stream)
		return NULL;
	stream->id = __atomic_add_fetch(&last_id, 1, __ATOMIC_RELAXED);
	stream->sync_policy = 1; /* CU_SYNC_POLICY_AUTO */
	stream->context = context;
	stream->flags = flags;
	stream->priority = priority;
	stream->last = &stream->first;
	pthread_mutex_lock(&context->lock);
	td_list_append(&context->streams, &stream->link);
	pthread_mutex_unlock(&context->lock);
	return stream;
}

/* Called with context->lock held. */
static void close_stream(struct CUstream_st *stream)
{
	if (stream->closing)
		return;
	sg_handle_remove(stream);
	stream->closing = true;
	if (!stream->has_worker)
		td_list_remove(&stream->link);
}

/*
 * The worker thread ends when its queue is empty, and then removes the stream from its context. The
 * struct is not freed, because dependencies may still refer to it.
 */
static void free_stream(struct CUstream_st *stream)
{
	struct CUctx_st *context = stream->context;

	pthread_mutex_lock(&context->lock);
	close_stream(stream);
	sg_bell_ring(&context->changed);
	pthread_mutex_unlock(&context->lock);
}

void sg_streams_context_gone(struct CUctx_st *context)
{
	struct td_list *it, *tmp;

	pthread_mutex_lock(&context->lock);
	td_list_for_each_safe (it, tmp, &context->streams)
		close_stream(td_container_of(it, struct CUstream_st, link));
	sg_bell_ring(&context->changed);
	pthread_mutex_unlock(&context->lock);
}

static struct CUstream_st *per_thread_stream(struct CUctx_st *context)
{
	struct td_list *it;
	struct CUstream_st *found = NULL;

	pthread_mutex_lock(&context->lock);
	td_list_for_each (it, &context->streams) {
		struct CUstream_st *stream = td_container_of(it, struct CUstream_st, link);

		if (stream->per_thread && pthread_equal(stream->thread, pthread_self()))
			found = stream;
	}
	pthread_mutex_unlock(&context->lock);
	if (found)
		return found;
	found = sg_stream_new(context, CU_STREAM_DEFAULT, 0);
	if (found) {
		found->thread = pthread_self();
		found->per_thread = true;
	}
	return found;
}

int sg_stream_find(CUstream handle, bool ptsz, struct CUstream_st **ret)
{
	struct CUctx_st *context;
	int r = sg_current(&context);

	if (r)
		return r;
	if (handle == CU_STREAM_PER_THREAD || (!handle && ptsz)) {
		*ret = per_thread_stream(context);
		return *ret ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (!handle || handle == CU_STREAM_LEGACY) {
		*ret = context->legacy;
		return CUDA_SUCCESS;
	}
	if (!sg_handle_is(handle, SG_STREAM))
		return CUDA_ERROR_INVALID_HANDLE;
	r = handle->context == context ? CUDA_SUCCESS : sg_context_check(handle->context);
	if (!r)
		*ret = handle;
	return r;
}

/*
 * Adds what the operation depends on besides earlier work of its own stream. Called with
 * context->lock held.
 */
static int add_dependencies(struct CUstream_st *stream, struct sg_work *work)
{
	struct CUctx_st *context = stream->context;
	struct td_list *it;
	size_t room = work->after_count;

	if (!is_blocking(stream))
		return CUDA_SUCCESS;
	td_list_for_each (it, &context->streams)
		room++;
	work->after = realloc(work->after, room * sizeof(*work->after));
	if (!work->after)
		return CUDA_ERROR_OUT_OF_MEMORY;
	td_list_for_each (it, &context->streams) {
		struct CUstream_st *other = td_container_of(it, struct CUstream_st, link);

		if (other == stream || !is_blocking(other) || other->completed == other->submitted)
			continue;
		if (stream == context->legacy || other == context->legacy)
			work->after[work->after_count++] =
				(struct sg_dependency){other, other->submitted};
	}
	return CUDA_SUCCESS;
}

int sg_stream_submit(struct CUstream_st *stream, struct sg_work *work, uint64_t *ret_ticket)
{
	struct CUctx_st *context = stream->context;
	int r = sg_capture_take(stream, work);

	if (r != SG_NOT_CAPTURING)
		return r;
	work->next = NULL;
	work->submit_ns = td_time_now_ns();
	pthread_mutex_lock(&context->lock);
	r = stream->closing ? CUDA_ERROR_INVALID_HANDLE : add_dependencies(stream, work);
	if (!r && !stream->has_worker)
		r = start_worker(stream);
	if (!r) {
		*stream->last = work;
		stream->last = &work->next;
		stream->submitted++;
		if (ret_ticket)
			*ret_ticket = stream->submitted;
		if (work->queued)
			work->queued(stream, work, stream->submitted);
		sg_bell_ring(&context->changed);
	}
	pthread_mutex_unlock(&context->lock);
	if (r)
		sg_work_free(work);
	return r;
}

int sg_stream_wait_ticket(struct CUstream_st *stream, uint64_t ticket)
{
	struct CUctx_st *context = stream->context;

	pthread_mutex_lock(&context->lock);
	while (!sg_stream_reached(stream, ticket))
		sg_bell_wait(&context->changed, &context->lock);
	pthread_mutex_unlock(&context->lock);
	return __atomic_load_n(&context->error, __ATOMIC_ACQUIRE);
}

static int create(CUstream *ret, unsigned flags, int priority)
{
	struct CUstream_st *stream;
	struct CUctx_st *context;
	int r = sg_current(&context);

	if (r)
		return r;
	if (!ret || flags > CU_STREAM_NON_BLOCKING)
		return CUDA_ERROR_INVALID_VALUE;
	priority = priority > 0 ? 0 : priority < -5 ? -5 : priority;
	stream = sg_stream_new(context, flags, priority);
	if (!stream || !sg_handle_add(stream, SG_STREAM)) {
		if (stream)
			free_stream(stream);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*ret = stream;
	return CUDA_SUCCESS;
}

API CUresult cuStreamCreate(CUstream *ret, unsigned flags)
{
	return create(ret, flags, 0);
}

API CUresult cuStreamCreateWithPriority(CUstream *ret, unsigned flags, int priority)
{
	return create(ret, flags, priority);
}

API CUresult cuStreamDestroy_v2(CUstream handle)
{
	struct CUstream_st *stream;
	int r = sg_stream_find(handle, false, &stream);

	if (!r && (!handle || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD))
		r = CUDA_ERROR_INVALID_HANDLE;
	if (!r && sg_stream_is_capturing(stream))
		r = sg_capture_refuse(stream);
	if (!r)
		free_stream(stream);
	return r;
}

/*
 * Called with context->lock held. A query or wait for the legacy stream covers all blocking
 * streams.
 */
static bool is_blocking_busy(const struct CUctx_st *context)
{
	bool busy = false;
	struct td_list *it;

	td_list_for_each (it, &context->streams) {
		const struct CUstream_st *stream = td_container_of(it, struct CUstream_st, link);

		busy |= is_blocking(stream) && stream->completed < stream->submitted;
	}
	return busy;
}

static int wait_blocking(struct CUctx_st *context)
{
	pthread_mutex_lock(&context->lock);
	while (is_blocking_busy(context))
		sg_bell_wait(&context->changed, &context->lock);
	pthread_mutex_unlock(&context->lock);
	sg_pools_synchronized();
	return __atomic_load_n(&context->error, __ATOMIC_ACQUIRE);
}

static int synchronize(CUstream handle, bool ptsz)
{
	struct CUstream_st *stream;
	int r = sg_stream_find(handle, ptsz, &stream);
	uint64_t ticket;

	if (!r)
		r = sg_capture_check_stream(stream);
	if (r)
		return r;
	if (stream == stream->context->legacy)
		return wait_blocking(stream->context);
	pthread_mutex_lock(&stream->context->lock);
	ticket = stream->submitted;
	pthread_mutex_unlock(&stream->context->lock);
	r = sg_stream_wait_ticket(stream, ticket);
	sg_pools_synchronized();
	return r;
}

static int query(CUstream handle, bool ptsz)
{
	struct CUstream_st *stream;
	int r = sg_stream_find(handle, ptsz, &stream);
	bool busy;

	if (!r)
		r = sg_capture_check_stream(stream);
	if (r)
		return r;
	pthread_mutex_lock(&stream->context->lock);
	busy = stream == stream->context->legacy ? is_blocking_busy(stream->context)
						 : stream->completed < stream->submitted;
	pthread_mutex_unlock(&stream->context->lock);
	return busy ? CUDA_ERROR_NOT_READY : sg_context_check(stream->context);
}

struct callback_work {
	struct sg_work work;
	CUhostFn function;
	CUstreamCallback callback;
	void *arg;
	CUstream handle;
};

static int run_callback(struct CUstream_st *stream, struct sg_work *work)
{
	struct callback_work *c = (struct callback_work *)work;

	sg_in_host_function = true;
	if (c->function)
		c->function(c->arg);
	else
		c->callback(c->handle, __atomic_load_n(&stream->context->error, __ATOMIC_ACQUIRE),
			c->arg);
	sg_in_host_function = false;
	return CUDA_SUCCESS;
}

int sg_work_host(const CUDA_HOST_NODE_PARAMS *host, struct sg_work **ret)
{
	struct callback_work *c = calloc(1, sizeof(*c));

	if (!c)
		return CUDA_ERROR_OUT_OF_MEMORY;
	c->work.bytes = sizeof(*c);
	c->work.node = CU_GRAPH_NODE_TYPE_HOST + 1;
	c->work.run = run_callback;
	c->function = host->fn;
	c->arg = host->userData;
	*ret = &c->work;
	return CUDA_SUCCESS;
}

void sg_work_host_params(const struct sg_work *work, CUDA_HOST_NODE_PARAMS *ret)
{
	const struct callback_work *c = (const struct callback_work *)work;

	*ret = (CUDA_HOST_NODE_PARAMS){c->function, c->arg};
}

static int add_callback(
	CUstream handle, bool ptsz, CUhostFn function, CUstreamCallback callback, void *arg)
{
	struct CUstream_st *stream;
	struct callback_work *c;
	int r = sg_stream_find(handle, ptsz, &stream);

	if (r)
		return r;
	if (!function && !callback)
		return CUDA_ERROR_INVALID_VALUE;
	c = calloc(1, sizeof(*c));
	if (!c)
		return CUDA_ERROR_OUT_OF_MEMORY;
	c->work.bytes = sizeof(*c);
	c->work.node = function ? CU_GRAPH_NODE_TYPE_HOST + 1 : 0;
	c->work.run = run_callback;
	/*
	 * A stream callback is called after a device error too and is given it. A host function is
	 * then not called (cuStreamAddCallback, cuLaunchHostFunc).
	 */
	c->work.when_dead = callback != NULL;
	c->function = function;
	c->callback = callback;
	c->arg = arg;
	c->handle = handle;
	return sg_stream_submit(stream, &c->work, NULL);
}

SG_BOTH(cuStreamSynchronize, (CUstream stream), synchronize(stream, false),
	synchronize(stream, true))
SG_BOTH(cuStreamQuery, (CUstream stream), query(stream, false), query(stream, true))
SG_BOTH(cuLaunchHostFunc, (CUstream stream, CUhostFn function, void *arg),
	add_callback(stream, false, function, NULL, arg),
	add_callback(stream, true, function, NULL, arg))

static int callback_flags(
	CUstream stream, CUstreamCallback callback, void *arg, unsigned flags, bool ptsz)
{
	return flags ? CUDA_ERROR_INVALID_VALUE : add_callback(stream, ptsz, NULL, callback, arg);
}

SG_BOTH(cuStreamAddCallback,
	(CUstream stream, CUstreamCallback callback, void *arg, unsigned flags),
	callback_flags(stream, callback, arg, flags, false),
	callback_flags(stream, callback, arg, flags, true))

static int get_flags(CUstream handle, bool ptsz, unsigned *flags)
{
	struct CUstream_st *stream;
	int r = sg_stream_find(handle, ptsz, &stream);

	if (!r && !flags)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		*flags = stream->flags;
	return r;
}

SG_BOTH(cuStreamGetFlags, (CUstream stream, unsigned *flags), get_flags(stream, false, flags),
	get_flags(stream, true, flags))

static int get_priority(CUstream handle, bool ptsz, int *priority)
{
	struct CUstream_st *stream;
	int r = sg_stream_find(handle, ptsz, &stream);

	if (!r && !priority)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		*priority = stream->priority;
	return r;
}

SG_BOTH(cuStreamGetPriority, (CUstream stream, int *priority),
	get_priority(stream, false, priority), get_priority(stream, true, priority))

static int get_context(CUstream handle, bool ptsz, CUcontext *context)
{
	struct CUstream_st *stream;
	int r = sg_stream_find(handle, ptsz, &stream);

	if (!r && !context)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		*context = stream->context;
	return r;
}

SG_BOTH(cuStreamGetCtx, (CUstream stream, CUcontext *context), get_context(stream, false, context),
	get_context(stream, true, context))
