/* Events that several processes share, and what other files call when shared memory goes away. */
#pragma once

#include "softgpu/driver/graph/graph.h"

struct sg_shared_event;

int sg_shared_event_new(struct sg_shared_event **ret, int *ret_fd);
/* Counts a record and returns its number. */
uint64_t sg_shared_event_record(struct sg_shared_event *event);
void sg_shared_event_reach(struct sg_shared_event *event, uint64_t record);
uint64_t sg_shared_event_last(const struct sg_shared_event *event);
bool sg_shared_event_reached(const struct sg_shared_event *event, uint64_t record);
/*
 * Returns when the record is reached, when *cancel is set, or when the recording process is gone.
 */
void sg_shared_event_wait(
	const struct sg_shared_event *event, uint64_t record, const volatile int *cancel);
/*
 * Creates an event in this process. shared may be NULL; otherwise the event takes ownership of it
 * and of its file descriptor, which is -1 if another process created it.
 */
int sg_event_new(struct CUctx_st *context, unsigned flags, struct sg_shared_event *shared,
	int shared_fd, CUevent *ret);
/* Invalidates the IPC handles of the allocation at this address. */
void sg_ipc_memory_gone(uint64_t address);
/* Closes the memory that a context has opened. */
void sg_ipc_context_gone(struct CUctx_st *context);
