/* Spans of time that are accounted for, so that none is twice: of the latest ones, a few. Pure. */
#pragma once

#include <stdint.h>

#define TD_SPANS 16

/* Zeroed: none. In order, apart. */
struct td_spans {
	uint64_t from[TD_SPANS], to[TD_SPANS];
	uint32_t count;
};

/* From here on from..to is accounted for. Returns how much of it was not before; what was forgotten, because it is long ago, counts as not. */
uint64_t td_spans_add(struct td_spans *spans, uint64_t from, uint64_t to);
