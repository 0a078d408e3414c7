/*
 * Events. An event records a position in a stream and the modelled time at which the stream reached
 * it.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "softgpu/driver/device/handles.h"
#include "softgpu/driver/memory/ipc.h"

struct CUevent_st *sg_event_find(CUevent handle)
{
	return sg_handle_is(handle, SG_EVENT) ? handle : NULL;
}

struct sg_dependency sg_event_last(struct CUevent_st *event)
{
	struct sg_dependency last;

	pthread_mutex_lock(&event->context->lock);
	last = (struct sg_dependency){event->stream, event->ticket};
	pthread_mutex_unlock(&event->context->lock);
	return last;
}

/*
 * Finds the event that a call names. It may be of any context, but the calling thread must have a
 * current one.
 */
static int named(CUevent handle, struct CUevent_st **ret)
{
	struct CUctx_st *context;
	int r = sg_current(&context);

	if (r)
		return r;
	*ret = sg_event_find(handle);
	return *ret ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

int sg_event_new(struct CUctx_st *context, unsigned flags, struct sg_shared_event *shared,
	int shared_fd, CUevent *ret)
{
	struct CUevent_st *event = calloc(1, sizeof(*event));

	if (!event)
		return CUDA_ERROR_OUT_OF_MEMORY;
	event->context = context;
	event->flags = flags;
	event->shared = shared;
	event->shared_fd = shared_fd;
	if (!sg_handle_add(event, SG_EVENT)) {
		free(event);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	pthread_mutex_lock(&context->lock);
	td_list_append(&context->events, &event->link);
	pthread_mutex_unlock(&context->lock);
	*ret = event;
	return CUDA_SUCCESS;
}

API CUresult cuEventCreate(CUevent *ret, unsigned flags)
{
	struct sg_shared_event *shared = NULL;
	struct CUctx_st *context;
	int fd = -1, r = sg_current(&context);

	if (r)
		return r;
	if (!ret || flags > 7)
		return CUDA_ERROR_INVALID_VALUE;
	/* cuda.h, about interprocess events: "CU_EVENT_DISABLE_TIMING must be set". */
	if (flags & CU_EVENT_INTERPROCESS && !(flags & CU_EVENT_DISABLE_TIMING))
		return CUDA_ERROR_INVALID_VALUE;
	if (flags & CU_EVENT_INTERPROCESS)
		r = sg_shared_event_new(&shared, &fd);
	return r ? r : sg_event_new(context, flags, shared, fd, ret);
}

/* The struct is not freed, because a queued record may still refer to it. */
API CUresult cuEventDestroy_v2(CUevent handle)
{
	struct CUevent_st *event;
	int r = named(handle, &event);

	if (r)
		return r;
	sg_handle_remove(event);
	pthread_mutex_lock(&event->context->lock);
	td_list_remove(&event->link);
	/* processes that opened it have their own mapping; no other can open it now */
	if (event->shared_fd >= 0)
		close(event->shared_fd);
	event->shared_fd = -1;
	pthread_mutex_unlock(&event->context->lock);
	return CUDA_SUCCESS;
}

void sg_events_context_gone(struct CUctx_st *context)
{
	struct td_list *it;

	pthread_mutex_lock(&context->lock);
	td_list_for_each (it, &context->events)
		sg_handle_remove(td_container_of(it, struct CUevent_st, link));
	pthread_mutex_unlock(&context->lock);
}

struct record_work {
	struct sg_work work;
	struct CUevent_st *event;
	uint64_t ticket, shared_record;
};

static int run_record(struct CUstream_st *stream, struct sg_work *work)
{
	struct record_work *r = (struct record_work *)work;
	uint64_t at = stream->last_end_ns;

	/*
	 * The event's time is the modelled end of the work before it, or the submission of the
	 * record if that is later.
	 */
	if (at < work->submit_ns)
		at = work->submit_ns;
	pthread_mutex_lock(&stream->context->lock);
	if (r->event->stream == stream && r->event->ticket == r->ticket) {
		r->event->time_ns = at;
		r->event->reached = true;
	}
	pthread_mutex_unlock(&stream->context->lock);
	if (r->event->shared)
		sg_shared_event_reach(r->event->shared, r->shared_record);
	return CUDA_SUCCESS;
}

static void queue_record(struct CUstream_st *stream, struct sg_work *work, uint64_t ticket)
{
	struct record_work *r = (struct record_work *)work;

	r->ticket = r->event->ticket = ticket;
	r->event->stream = stream;
	r->event->reached = false;
	if (r->event->shared)
		r->shared_record = sg_shared_event_record(r->event->shared);
}

int sg_work_record(struct CUevent_st *event, struct sg_work **ret)
{
	struct record_work *work = calloc(1, sizeof(*work));

	if (!work)
		return CUDA_ERROR_OUT_OF_MEMORY;
	work->work.bytes = sizeof(*work);
	work->work.run = run_record;
	work->work.queued = queue_record;
	/* Other processes may wait for it, so the record also runs in a dead context. */
	work->work.when_dead = event->shared != NULL;
	work->event = event;
	*ret = &work->work;
	return CUDA_SUCCESS;
}

static int record(CUevent handle, CUstream stream_handle, unsigned flags, bool ptsz)
{
	struct CUstream_st *stream;
	struct CUevent_st *event;
	struct sg_work *work;
	int r = named(handle, &event);

	if (r)
		return r;
	if (flags > CU_EVENT_RECORD_EXTERNAL)
		return CUDA_ERROR_INVALID_VALUE;
	r = sg_stream_find(stream_handle, ptsz, &stream);
	/* cuda.h: "hEvent and hStream must be from the same context". */
	if (!r && stream->context != event->context)
		r = CUDA_ERROR_INVALID_HANDLE;
	if (!r)
		r = sg_capture_record(stream, event, flags);
	if (r != SG_NOT_CAPTURING)
		return r;
	r = sg_work_record(event, &work);
	return r ? r : sg_stream_submit(stream, work, NULL);
}

API CUresult cuEventQuery(CUevent handle)
{
	struct CUevent_st *event;
	struct sg_dependency last;
	int r = named(handle, &event);

	if (!r)
		r = sg_capture_check_event(event, true);
	if (r)
		return r;
	if (event->shared)
		return sg_shared_event_reached(event->shared, sg_shared_event_last(event->shared))
			       ? CUDA_SUCCESS
			       : CUDA_ERROR_NOT_READY;
	last = sg_event_last(event);
	if (last.stream && !sg_stream_reached(last.stream, last.ticket))
		return CUDA_ERROR_NOT_READY;
	return sg_context_check(event->context);
}

API CUresult cuEventSynchronize(CUevent handle)
{
	struct CUevent_st *event;
	struct sg_dependency last;
	int r = named(handle, &event);

	if (!r)
		r = sg_capture_check_event(event, true);
	if (r)
		return r;
	if (event->shared) {
		sg_shared_event_wait(event->shared, sg_shared_event_last(event->shared),
			&event->context->cancel);
		return sg_context_check(event->context);
	}
	last = sg_event_last(event);
	r = last.stream ? sg_stream_wait_ticket(last.stream, last.ticket)
			: sg_context_check(event->context);
	sg_pools_synchronized();
	return r;
}

/*
 * Returns when the event was reached. INVALID_HANDLE: its timing is disabled, or it was never
 * recorded.
 */
static int time_of(struct CUevent_st *event, uint64_t *ret_ns)
{
	int r = CUDA_SUCCESS;

	if (event->flags & CU_EVENT_DISABLE_TIMING)
		return CUDA_ERROR_INVALID_HANDLE;
	pthread_mutex_lock(&event->context->lock);
	if (!event->stream)
		r = CUDA_ERROR_INVALID_HANDLE;
	else if (!event->reached)
		r = CUDA_ERROR_NOT_READY;
	else
		*ret_ns = event->time_ns;
	pthread_mutex_unlock(&event->context->lock);
	return r;
}

static int elapsed(float *ms, CUevent start_handle, CUevent end_handle)
{
	uint64_t start_ns = 0, end_ns = 0;
	struct CUevent_st *start, *end;
	int r = named(start_handle, &start), r_end;

	if (!r)
		r = named(end_handle, &end);
	if (!r && !ms)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = sg_capture_check_event(start, false);
	if (!r)
		r = sg_capture_check_event(end, false);
	/* The clocks of two devices cannot be compared. */
	if (!r && start->context->device != end->context->device)
		r = CUDA_ERROR_INVALID_HANDLE;
	if (r)
		return r;
	r = time_of(start, &start_ns);
	r_end = time_of(end, &end_ns);
	if (r_end == CUDA_ERROR_INVALID_HANDLE || !r)
		r = r_end;
	if (!r)
		*ms = (float)((double)(int64_t)(end_ns - start_ns) / 1e6);
	return r;
}

API CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end)
{
	return elapsed(ms, start, end);
}

API CUresult cuEventElapsedTime_v2(float *ms, CUevent start, CUevent end)
{
	return elapsed(ms, start, end);
}

static int run_nothing(struct CUstream_st *stream, struct sg_work *work)
{
	(void)stream;
	(void)work;
	return CUDA_SUCCESS;
}

struct wait_work {
	struct sg_work work;
	const struct sg_shared_event *shared;
	uint64_t record;
};

static int run_shared_wait(struct CUstream_st *stream, struct sg_work *work)
{
	const struct wait_work *wait = (struct wait_work *)work;

	sg_shared_event_wait(wait->shared, wait->record, &stream->context->cancel);
	return CUDA_SUCCESS;
}

int sg_work_shared_wait(const struct CUevent_st *event, struct sg_work **ret)
{
	struct wait_work *work = calloc(1, sizeof(*work));

	if (!work)
		return CUDA_ERROR_OUT_OF_MEMORY;
	work->work.run = run_shared_wait;
	work->shared = event->shared;
	work->record = sg_shared_event_last(event->shared);
	*ret = &work->work;
	return CUDA_SUCCESS;
}

/* Makes the stream wait for the latest record of the event, by this process or another. */
static int submit_wait(struct CUstream_st *stream, struct CUevent_st *event)
{
	struct sg_dependency last = sg_event_last(event);
	struct sg_work *work;
	int r;

	if (event->shared) {
		r = sg_work_shared_wait(event, &work);
		return r ? r : sg_stream_submit(stream, work, NULL);
	}
	if (!last.stream)
		return CUDA_SUCCESS;
	work = calloc(1, sizeof(*work));
	if (!work)
		return CUDA_ERROR_OUT_OF_MEMORY;
	work->after = calloc(1, sizeof(*work->after));
	if (!work->after) {
		free(work);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	work->run = run_nothing;
	work->after_count = 1;
	work->after[0] = last;
	return sg_stream_submit(stream, work, NULL);
}

static int wait_event(CUstream stream_handle, CUevent handle, unsigned flags, bool ptsz)
{
	struct CUstream_st *stream;
	struct CUevent_st *event = NULL;
	int r = named(handle, &event);

	/* cuda.h: "hEvent may be from a different context or device than hStream." */
	if (!r)
		r = sg_stream_find(stream_handle, ptsz, &stream);
	if (!r)
		r = sg_capture_wait(stream, event, flags);
	return r == SG_NOT_CAPTURING ? submit_wait(stream, event) : r;
}

/* Makes the work depend on the current position of every stream of the context. */
static int wait_context(struct CUctx_st *context, struct sg_work *work)
{
	struct td_list *it;
	size_t n = 0;

	pthread_mutex_lock(&context->lock);
	td_list_for_each (it, &context->streams)
		n++;
	work->after = calloc(n + 1, sizeof(*work->after));
	td_list_for_each (it, &context->streams) {
		struct CUstream_st *stream = td_container_of(it, struct CUstream_st, link);

		if (work->after)
			work->after[work->after_count++] =
				(struct sg_dependency){stream, stream->submitted};
	}
	pthread_mutex_unlock(&context->lock);
	return work->after ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

API CUresult cuCtxRecordEvent(CUcontext context, CUevent handle)
{
	struct CUevent_st *event;
	struct sg_work *work;
	int r = sg_ready();

	if (r)
		return r;
	if (!sg_context_is_live(context))
		return CUDA_ERROR_INVALID_CONTEXT;
	event = sg_event_find(handle);
	if (!event || event->context != context)
		return CUDA_ERROR_INVALID_HANDLE;
	r = sg_capture_check_context(context);
	if (!r)
		r = sg_work_record(event, &work);
	if (r)
		return r;
	r = wait_context(context, work);
	if (r) {
		sg_work_free(work);
		return r;
	}
	return sg_stream_submit(context->legacy, work, NULL);
}

/*
 * Lists all streams of a context. The caller frees the array. Returns NULL if there is no memory.
 */
static struct CUstream_st **list_streams(struct CUctx_st *context, size_t *ret_count)
{
	struct CUstream_st **streams;
	struct td_list *it;
	size_t n = 0;

	pthread_mutex_lock(&context->lock);
	td_list_for_each (it, &context->streams)
		n++;
	streams = calloc(n + 1, sizeof(struct CUstream_st *));
	n = 0;
	td_list_for_each (it, &context->streams)
		if (streams && !td_container_of(it, struct CUstream_st, link)->closing)
			streams[n++] = td_container_of(it, struct CUstream_st, link);
	pthread_mutex_unlock(&context->lock);
	*ret_count = n;
	return streams;
}

/*
 * Makes all existing streams of the context wait; cuda.h does not include later ones. The event
 * "may be from a different context or device".
 */
API CUresult cuCtxWaitEvent(CUcontext context, CUevent handle)
{
	struct CUstream_st **streams;
	struct CUevent_st *event;
	size_t count;
	int r = sg_ready();

	if (r)
		return r;
	if (!sg_context_is_live(context))
		return CUDA_ERROR_INVALID_CONTEXT;
	event = sg_event_find(handle);
	if (!event)
		return CUDA_ERROR_INVALID_HANDLE;
	r = sg_capture_check_context(context);
	if (!r)
		r = sg_capture_check_event(event, false) ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
							 : CUDA_SUCCESS;
	if (r)
		return r;
	streams = list_streams(context, &count);
	if (!streams)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t i = 0; !r && i < count; i++)
		r = submit_wait(streams[i], event);
	free(streams);
	return r;
}

SG_BOTH(cuEventRecord, (CUevent event, CUstream stream), record(event, stream, 0, false),
	record(event, stream, 0, true))
SG_BOTH(cuEventRecordWithFlags, (CUevent event, CUstream stream, unsigned flags),
	record(event, stream, flags, false), record(event, stream, flags, true))

static int wait_flags(CUstream stream, CUevent event, unsigned flags, bool ptsz)
{
	return flags > CU_EVENT_WAIT_EXTERNAL ? CUDA_ERROR_INVALID_VALUE
					      : wait_event(stream, event, flags, ptsz);
}

SG_BOTH(cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned flags),
	wait_flags(stream, event, flags, false), wait_flags(stream, event, flags, true))
