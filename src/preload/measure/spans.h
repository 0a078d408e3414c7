/*
 * Spans of GPU time that are already accounted for, so that no time counts twice. Only the latest
 * few are kept. Pure.
 */
#pragma once

#include <stdint.h>

#define TD_SPANS 16

/* Spans in order of time, disjoint. Zeroed: none. */
struct td_spans {
	uint64_t from[TD_SPANS], to[TD_SPANS];
	uint32_t count;
};

/*
 * Accounts for from..to and returns how much of it was not accounted for before. A span that was
 * forgotten because of its age counts as not accounted for.
 */
uint64_t td_spans_add(struct td_spans *spans, uint64_t from, uint64_t to);
