/*
 * A driver of one device and one context, whose work ends when the test decides, and a backend that
 * counts. Header only: one user.
 */
#pragma once

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "base/time.h"
#include "preload/base/backend.h"
#include "preload/driver/driver.h"

static struct {
	_Atomic bool busy;         /* work is in flight and does not end */
	_Atomic bool tells_idle;   /* it answers whether a stream has work in flight */
	_Atomic bool nameless;     /* nobody is told its UUID */
	_Atomic bool capturing;    /* the stream at 0x10 */
	_Atomic bool lost_context; /* nothing is current */
	void *_Atomic context;     /* what is; NULL: the usual one */
	void *_Atomic ended_event; /* of a context that has ended: nobody is to name it */
	_Atomic unsigned ended_named;
	_Atomic unsigned context_syncs, syncs_in_capture, records, records_on_capture, pushes;
	_Atomic unsigned occupancies; /* times that it was asked for one */
	_Atomic unsigned queries,
		queries_not_relaxed; /* of events; by threads in another capture mode */
	_Atomic uint64_t demanded, resident, crossed;
	_Atomic unsigned fills, shrinks, reaches;
	_Atomic bool full;             /* no room on the device, nor on the host */
	_Atomic bool failing;          /* the context is beyond help */
	void (*_Atomic in_fill)(void); /* once, in the middle of a fill */
	_Atomic bool stuck;            /* nothing can leave: to be tried again at */
	_Atomic uint64_t again_ns;
	_Atomic uint64_t filled_to; /* the last fill's limit */
} fake;

#define FAKE_CONTEXT ((void *)0xc0)
#define FAKE_STREAM  ((void *)0x10)
#define FAKE_FAILURE 700 /* CUDA_ERROR_ILLEGAL_ADDRESS */

static int fake_ctx_get_current(void **ret)
{
	void *other = atomic_load(&fake.context);

	*ret = atomic_load(&fake.lost_context) ? NULL : other ? other : FAKE_CONTEXT;
	return 0;
}

static void fake_name_event(const void *event)
{
	if (event && event == atomic_load(&fake.ended_event))
		atomic_fetch_add(&fake.ended_named, 1);
}

static int fake_push(void *context)
{
	(void)context;
	atomic_fetch_add(&fake.pushes, 1);
	return 0;
}

static int fake_pop(void **ret)
{
	*ret = FAKE_CONTEXT;
	return 0;
}

static int fake_zero(int *ret)
{
	*ret = 0;
	return 0;
}

static int fake_ctx_synchronize(void)
{
	atomic_fetch_add(&fake.context_syncs, 1);
	if (atomic_load(&fake.capturing))
		atomic_fetch_add(&fake.syncs_in_capture, 1);
	while (atomic_load(&fake.busy))
		td_time_sleep_until_ns(td_time_now_ns() + 200000);
	return 0;
}

static int fake_uuid(uint8_t uuid[16], int device)
{
	memset(uuid, 7 + device, 16);
	return atomic_load(&fake.nameless) ? 801 : 0; /* CUDA_ERROR_NOT_SUPPORTED */
}

static int fake_name(char *name, int len, int device)
{
	(void)device;
	strncpy(name, "fake", (size_t)len);
	return 0;
}

static int fake_count(int *ret)
{
	*ret = 1;
	return 0;
}

static int fake_attribute(int *ret, int attribute, int device)
{
	(void)attribute;
	(void)device;
	*ret = 0;
	return 0;
}

static int fake_occupancy(int *ret, void *function, int threads, uint64_t shared_bytes)
{
	(void)function;
	(void)shared_bytes;
	atomic_fetch_add(&fake.occupancies, 1);
	*ret = 2048 / threads;
	return 0;
}

static int fake_total(uint64_t *ret, int device)
{
	(void)device;
	*ret = 1 << 30;
	return 0;
}

static int fake_info(uint64_t *ret_free, uint64_t *ret_total)
{
	*ret_total = *ret_free = 1 << 30;
	return 0;
}

static int fake_is_capturing(void *stream, int *ret)
{
	*ret = stream == FAKE_STREAM && atomic_load(&fake.capturing);
	return 0;
}

static int fake_stream_sync(void *stream)
{
	(void)stream;
	return 0;
}

static int fake_stream_query(void *stream)
{
	(void)stream;
	if (!atomic_load(&fake.tells_idle))
		return 801; /* CUDA_ERROR_NOT_SUPPORTED */
	return atomic_load(&fake.busy) ? TD_CUDA_ERROR_NOT_READY : 0;
}

/* The capture mode of the calling thread. */
static __thread int fake_mode_now;

static int fake_mode(int *mode)
{
	int before = fake_mode_now;

	fake_mode_now = *mode;
	*mode = before;
	return 0;
}

static int fake_event_create(void **ret, unsigned flags)
{
	(void)flags;
	*ret = (char *)0xe0 + ((uintptr_t)atomic_load(&fake.context) << 8);
	return 0;
}

static int fake_event_record(void *event, void *stream)
{
	(void)event;
	atomic_fetch_add(&fake.records, 1);
	if (stream == FAKE_STREAM && atomic_load(&fake.capturing))
		atomic_fetch_add(&fake.records_on_capture, 1);
	return 0;
}

static int fake_event_query(void *event)
{
	fake_name_event(event);
	atomic_fetch_add(&fake.queries, 1);
	if (fake_mode_now != TD_CUDA_CAPTURE_RELAXED)
		atomic_fetch_add(&fake.queries_not_relaxed, 1);
	return atomic_load(&fake.busy) ? TD_CUDA_ERROR_NOT_READY : 0;
}

static int fake_elapsed(float *ret_ms, void *start, void *end)
{
	(void)start;
	(void)end;
	*ret_ms = 1;
	return 0;
}

static int fake_event_destroy(void *event)
{
	fake_name_event(event);
	return 0;
}

static const struct td_driver fake_driver = {
	.ctx_get_current = fake_ctx_get_current,
	.ctx_push_current = fake_push,
	.ctx_pop_current = fake_pop,
	.ctx_get_device = fake_zero,
	.ctx_get_sms = fake_zero,
	.ctx_synchronize = fake_ctx_synchronize,
	.device_get_uuid = fake_uuid,
	.device_get_name = fake_name,
	.device_get_count = fake_count,
	.device_get_attribute = fake_attribute,
	.occupancy = fake_occupancy,
	.device_total_mem = fake_total,
	.mem_get_info = fake_info,
	.stream_is_capturing = fake_is_capturing,
	.stream_synchronize = fake_stream_sync,
	.stream_query = fake_stream_query,
	.thread_exchange_capture_mode = fake_mode,
	.event_create = fake_event_create,
	.event_record = fake_event_record,
	.event_query = fake_event_query,
	.event_elapsed_ms = fake_elapsed,
	.event_destroy = fake_event_destroy,
};

static int fake_shrink(unsigned slot, uint64_t limit_bytes, void (*progress)(unsigned slot))
{
	atomic_fetch_add(&fake.shrinks, 1);
	if (atomic_load(&fake.failing))
		return -ENOTRECOVERABLE;
	if (atomic_load(&fake.stuck))
		atomic_store(&fake.again_ns, td_time_now_ns() + 20 * TD_NS_PER_MS);
	else if (atomic_load(&fake.resident) > limit_bytes)
		atomic_store(&fake.resident, limit_bytes);
	progress(slot);
	return 0;
}

static int fake_fill(unsigned slot, uint64_t limit_bytes, void (*progress)(unsigned slot))
{
	(void)progress;
	(void)slot;
	void (*in_fill)(void) = atomic_exchange(&fake.in_fill, NULL);

	atomic_store(&fake.filled_to, limit_bytes);
	atomic_fetch_add(&fake.fills, 1);
	if (in_fill)
		in_fill();
	if (atomic_load(&fake.failing))
		return -ENOTRECOVERABLE;
	if (atomic_load(&fake.demanded) > limit_bytes || atomic_load(&fake.full))
		return 1;
	atomic_store(&fake.resident, atomic_load(&fake.demanded));
	return 0;
}

static void fake_stats(unsigned slot, struct td_memory_stats *ret)
{
	(void)slot;
	memset(ret, 0, sizeof(*ret));
	ret->demanded_bytes = atomic_load(&fake.demanded);
	ret->crossed_bytes = atomic_load(&fake.crossed);
	ret->resident_bytes = atomic_load(&fake.resident);
	ret->host_bytes = ret->demanded_bytes - ret->resident_bytes;
	ret->failed = atomic_load(&fake.failing) ? FAKE_FAILURE : 0;
	ret->again_ns = atomic_load(&fake.again_ns);
	if (td_time_now_ns() >= ret->again_ns)
		ret->again_ns = 0;
	ret->stranded_bytes = ret->fixed_bytes = ret->again_ns ? ret->resident_bytes : 0;
}

static int fake_reach(unsigned slot, uint64_t limit_bytes, void (*progress)(unsigned slot))
{
	(void)slot;
	(void)progress;
	atomic_fetch_add(&fake.reaches, 1);
	if (atomic_load(&fake.full))
		return 1;
	atomic_store(&fake.resident, limit_bytes);
	return 0;
}

static uint64_t fake_host_bytes(unsigned slot, uint64_t limit_bytes, bool spills)
{
	uint64_t demanded = atomic_load(&fake.demanded);

	(void)slot;
	return spills && demanded > limit_bytes ? demanded - limit_bytes : 0;
}

static const struct td_backend fake_backend = {.name = "fake",
	.shrink = fake_shrink,
	.fill = fake_fill,
	.reach = fake_reach,
	.host_bytes = fake_host_bytes,
	.stats = fake_stats};
