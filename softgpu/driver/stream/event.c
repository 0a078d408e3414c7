/* Events: positions in streams, and when these were reached. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "softgpu/driver/memory/ipc.h"

#define EVENT_MAGIC 0x736765766e74ull

struct CUevent_st *sg_event_find(struct CUctx_st *context, CUevent handle)
{
	struct td_list *it;
	struct CUevent_st *found = NULL;

	pthread_mutex_lock(&context->lock);
	td_list_for_each (it, &context->events)
		if (td_container_of(it, struct CUevent_st, link) == handle &&
			handle->magic == EVENT_MAGIC)
			found = handle;
	pthread_mutex_unlock(&context->lock);
	return found;
}

int sg_event_new(struct CUctx_st *context, unsigned flags, struct sg_shared_event *shared,
	int shared_fd, CUevent *ret)
{
	struct CUevent_st *event = calloc(1, sizeof(*event));

	if (!event)
		return CUDA_ERROR_OUT_OF_MEMORY;
	event->magic = EVENT_MAGIC;
	event->context = context;
	event->flags = flags;
	event->shared = shared;
	event->shared_fd = shared_fd;
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
	/* "CU_EVENT_DISABLE_TIMING must be set" of one that several processes use. */
	if (flags & CU_EVENT_INTERPROCESS && !(flags & CU_EVENT_DISABLE_TIMING))
		return CUDA_ERROR_INVALID_VALUE;
	if (flags & CU_EVENT_INTERPROCESS)
		r = sg_shared_event_new(&shared, &fd);
	return r ? r : sg_event_new(context, flags, shared, fd, ret);
}

/* The struct stays: a record of it may still be queued. */
API CUresult cuEventDestroy_v2(CUevent handle)
{
	struct CUctx_st *context;
	struct CUevent_st *event;
	int r = sg_current(&context);

	if (r)
		return r;
	event = sg_event_find(context, handle);
	if (!event)
		return CUDA_ERROR_INVALID_HANDLE;
	pthread_mutex_lock(&context->lock);
	event->magic = 0;
	td_list_remove(&event->link);
	if (event->shared_fd >= 0)
		close(event->shared_fd); /* nobody can open it any more; whoever has, has it mapped */
	event->shared_fd = -1;
	pthread_mutex_unlock(&context->lock);
	return CUDA_SUCCESS;
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

	/* The modelled end of what came before; if that was long ago, the moment of the record. */
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
	/* Others may wait for it whatever becomes of this context. */
	work->work.when_dead = event->shared != NULL;
	work->event = event;
	*ret = &work->work;
	return CUDA_SUCCESS;
}

static int record(CUevent handle, CUstream stream_handle, unsigned flags, bool ptsz)
{
	struct CUctx_st *context;
	struct CUstream_st *stream;
	struct CUevent_st *event;
	struct sg_work *work;
	int r = sg_current(&context);

	if (r)
		return r;
	if (flags > CU_EVENT_RECORD_EXTERNAL)
		return CUDA_ERROR_INVALID_VALUE;
	event = sg_event_find(context, handle);
	if (!event)
		return CUDA_ERROR_INVALID_HANDLE;
	r = sg_stream_find(context, stream_handle, ptsz, &stream);
	if (!r)
		r = sg_capture_record(stream, event, flags);
	if (r != SG_NOT_CAPTURING)
		return r;
	r = sg_work_record(event, &work);
	return r ? r : sg_stream_submit(stream, work, NULL);
}

API CUresult cuEventQuery(CUevent handle)
{
	struct CUctx_st *context;
	struct CUevent_st *event;
	int r = sg_current(&context);

	if (r)
		return r;
	event = sg_event_find(context, handle);
	if (!event)
		return CUDA_ERROR_INVALID_HANDLE;
	r = sg_capture_check_event(event, true);
	if (r)
		return r;
	if (event->shared)
		return sg_shared_event_reached(event->shared, sg_shared_event_last(event->shared))
			       ? CUDA_SUCCESS
			       : CUDA_ERROR_NOT_READY;
	pthread_mutex_lock(&context->lock);
	r = !event->stream || sg_stream_reached(event->stream, event->ticket)
		    ? CUDA_SUCCESS
		    : CUDA_ERROR_NOT_READY;
	pthread_mutex_unlock(&context->lock);
	return r;
}

API CUresult cuEventSynchronize(CUevent handle)
{
	struct CUctx_st *context;
	struct CUevent_st *event;
	struct CUstream_st *stream;
	uint64_t ticket;
	int r = sg_current(&context);

	if (r)
		return r;
	event = sg_event_find(context, handle);
	if (!event)
		return CUDA_ERROR_INVALID_HANDLE;
	r = sg_capture_check_event(event, true);
	if (r)
		return r;
	if (event->shared) {
		sg_shared_event_wait(
			event->shared, sg_shared_event_last(event->shared), &context->cancel);
		return __atomic_load_n(&context->error, __ATOMIC_ACQUIRE);
	}
	pthread_mutex_lock(&context->lock);
	stream = event->stream;
	ticket = event->ticket;
	pthread_mutex_unlock(&context->lock);
	r = stream ? sg_stream_wait_ticket(stream, ticket) : CUDA_SUCCESS;
	sg_pools_synchronized();
	return r;
}

static int elapsed(float *ms, CUevent start_handle, CUevent end_handle)
{
	struct CUctx_st *context;
	struct CUevent_st *start, *end;
	int r = sg_current(&context);

	if (r)
		return r;
	start = sg_event_find(context, start_handle);
	end = sg_event_find(context, end_handle);
	if (!start || !end)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!ms)
		return CUDA_ERROR_INVALID_VALUE;
	r = sg_capture_check_event(start, false);
	if (!r)
		r = sg_capture_check_event(end, false);
	if (r)
		return r;
	if ((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING || !start->stream || !end->stream)
		return CUDA_ERROR_INVALID_HANDLE;
	pthread_mutex_lock(&context->lock);
	if (!start->reached || !end->reached)
		r = CUDA_ERROR_NOT_READY;
	else
		*ms = (float)((double)(int64_t)(end->time_ns - start->time_ns) / 1e6);
	pthread_mutex_unlock(&context->lock);
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

static int submit_shared_wait(struct CUstream_st *stream, const struct CUevent_st *event)
{
	struct wait_work *work = calloc(1, sizeof(*work));

	if (!work)
		return CUDA_ERROR_OUT_OF_MEMORY;
	work->work.run = run_shared_wait;
	work->shared = event->shared;
	work->record = sg_shared_event_last(event->shared);
	return sg_stream_submit(stream, &work->work, NULL);
}

static int submit_wait(struct CUstream_st *stream, const struct CUevent_st *event)
{
	struct sg_work *work = calloc(1, sizeof(*work));

	if (!work)
		return CUDA_ERROR_OUT_OF_MEMORY;
	work->after = calloc(1, sizeof(*work->after));
	if (!work->after) {
		free(work);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	work->run = run_nothing;
	work->after_count = 1;
	work->after[0] = (struct sg_dependency){event->stream, event->ticket};
	return sg_stream_submit(stream, work, NULL);
}

static int wait_event(CUstream stream_handle, CUevent handle, unsigned flags, bool ptsz)
{
	struct CUctx_st *context;
	struct CUstream_st *stream;
	struct CUevent_st *event;
	int r = sg_current(&context);

	if (r)
		return r;
	event = sg_event_find(context, handle);
	if (!event)
		return CUDA_ERROR_INVALID_HANDLE;
	r = sg_stream_find(context, stream_handle, ptsz, &stream);
	if (!r)
		r = sg_capture_wait(stream, event, flags);
	if (r != SG_NOT_CAPTURING)
		return r;
	if (event->shared)
		return submit_shared_wait(stream, event);
	return event->stream ? submit_wait(stream, event) : CUDA_SUCCESS;
}

/* "All work submitted to the context before": its streams' positions now, one by one. */
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
	event = sg_event_find(context, handle);
	if (!event)
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

/* Every stream that there is waits; one that is made later has nothing to come before. */
API CUresult cuCtxWaitEvent(CUcontext context, CUevent handle)
{
	struct CUstream_st *streams[256];
	struct CUevent_st *event;
	struct td_list *it;
	size_t n = 0;
	int r = sg_ready();

	if (r)
		return r;
	if (!sg_context_is_live(context))
		return CUDA_ERROR_INVALID_CONTEXT;
	event = sg_event_find(context, handle);
	if (!event)
		return CUDA_ERROR_INVALID_HANDLE;
	r = sg_capture_check_context(context);
	if (r || (!event->stream && !event->shared))
		return r;
	pthread_mutex_lock(&context->lock);
	td_list_for_each (it, &context->streams) {
		struct CUstream_st *stream = td_container_of(it, struct CUstream_st, link);

		if (!stream->closing && n < sizeof(streams) / sizeof(streams[0]))
			streams[n++] = stream;
		else if (!stream->closing)
			r = CUDA_ERROR_OUT_OF_MEMORY;
	}
	pthread_mutex_unlock(&context->lock);
	for (size_t i = 0; !r && i < n; i++)
		r = event->shared ? submit_shared_wait(streams[i], event)
				  : submit_wait(streams[i], event);
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
