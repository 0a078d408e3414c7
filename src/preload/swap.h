/* What swap.c (allocations) and swap_move.c (the agent's moves) share; see backend.h for who calls what. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "preload/backend.h"
#include "preload/chunk.h"

struct td_range {
	struct td_range *next;
	uint64_t base, bytes, asked; /* asked: what the program asked for */
	unsigned slot;
	CUdevice device;
	size_t count;
	struct td_chunk chunks[];
};

struct td_swap {
	/* Guards all of it, and is held while chunks move: allocations wait meanwhile, launches do not exist then. */
	pthread_mutex_t lock;
	struct td_range *ranges;
	struct td_memory_stats totals[TD_SLOT_MAX];
	CUstream streams[TD_SLOT_MAX];         /* of the moves; each ends with its context */
	uint64_t stream_contexts[TD_SLOT_MAX]; /* their serials, see context.h */
};

extern struct td_swap td_swap;

int td_swap_shrink(unsigned slot, uint64_t limit_bytes, void (*progress)(unsigned slot));
int td_swap_fill(unsigned slot, uint64_t limit_bytes, void (*progress)(unsigned slot));
int td_swap_reach(unsigned slot);
