/* Events: positions in streams, and when these were reached. */
#include <stdlib.h>
#include <string.h>

#include "softgpu/driver/graph.h"

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

API CUresult cuEventCreate(CUevent *ret, unsigned flags)
{
	struct CUctx_st *context;
	struct CUevent_st *event;
	int r = sg_current(&context);

	if (r)
		return r;
	if (!ret || flags > 7)
		return CUDA_ERROR_INVALID_VALUE;
	if (flags & CU_EVENT_INTERPROCESS)
		return CUDA_ERROR_NOT_SUPPORTED;
	event = calloc(1, sizeof(*event));
	if (!event)
		return CUDA_ERROR_OUT_OF_MEMORY;
	event->magic = EVENT_MAGIC;
	event->context = context;
	event->flags = flags;
	pthread_mutex_lock(&context->lock);
	td_list_append(&context->events, &event->link);
	pthread_mutex_unlock(&context->lock);
	*ret = event;
	return CUDA_SUCCESS;
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
	pthread_mutex_unlock(&context->lock);
	return CUDA_SUCCESS;
}

struct record_work {
	struct sg_work work;
	struct CUevent_st *event;
	uint64_t ticket;
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
	return CUDA_SUCCESS;
}

static void queue_record(struct CUstream_st *stream, struct sg_work *work, uint64_t ticket)
{
	struct record_work *r = (struct record_work *)work;

	r->ticket = r->event->ticket = ticket;
	r->event->stream = stream;
	r->event->reached = false;
}

int sg_work_record(struct CUevent_st *event, struct sg_work **ret)
{
	struct record_work *work = calloc(1, sizeof(*work));

	if (!work)
		return CUDA_ERROR_OUT_OF_MEMORY;
	work->work.bytes = sizeof(*work);
	work->work.run = run_record;
	work->work.queued = queue_record;
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

static int wait_event(CUstream stream_handle, CUevent handle, unsigned flags, bool ptsz)
{
	struct CUctx_st *context;
	struct CUstream_st *stream;
	struct CUevent_st *event;
	struct sg_work *work;
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
	if (!event->stream)
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
	work->after[0] = (struct sg_dependency){event->stream, event->ticket};
	return sg_stream_submit(stream, work, NULL);
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
