/* Events that several processes share; memory that they share concerns nobody else. */
#pragma once

#include "softgpu/driver/graph/graph.h"

struct sg_shared_event;

int sg_shared_event_new(struct sg_shared_event **ret, int *ret_fd);
/* Counts a record; its number. */
uint64_t sg_shared_event_record(struct sg_shared_event *event);
void sg_shared_event_reach(struct sg_shared_event *event, uint64_t record);
uint64_t sg_shared_event_last(const struct sg_shared_event *event);
bool sg_shared_event_reached(const struct sg_shared_event *event, uint64_t record);
/* Until it is reached, *cancel is set, or the process that recorded it is gone. */
void sg_shared_event_wait(
	const struct sg_shared_event *event, uint64_t record, const volatile int *cancel);
/* An event of this process; shared may be NULL, and is taken over with its file descriptor (-1: it is another process's). */
int sg_event_new(struct CUctx_st *context, unsigned flags, struct sg_shared_event *shared,
	int shared_fd, CUevent *ret);
/* What was exported from that address cannot be opened any more. */
void sg_ipc_memory_gone(uint64_t address);
/* What a context has opened goes with it. */
void sg_ipc_context_gone(struct CUctx_st *context);
