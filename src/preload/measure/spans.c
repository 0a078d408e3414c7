/* A few disjoint spans of time; see spans.h. */
#include "preload/measure/spans.h"

#include <string.h>

static void remove_span(struct td_spans *spans, uint32_t i)
{
	uint32_t behind = --spans->count - i;

	memmove(&spans->from[i], &spans->from[i + 1], behind * sizeof(spans->from[0]));
	memmove(&spans->to[i], &spans->to[i + 1], behind * sizeof(spans->to[0]));
}

static void insert(struct td_spans *spans, uint64_t from, uint64_t to)
{
	uint32_t i = 0;

	if (spans->count == TD_SPANS && from < spans->from[0])
		return;
	if (spans->count == TD_SPANS)
		remove_span(spans, 0);
	while (i < spans->count && spans->from[i] < from)
		i++;
	memmove(&spans->from[i + 1], &spans->from[i], (spans->count - i) * sizeof(spans->from[0]));
	memmove(&spans->to[i + 1], &spans->to[i], (spans->count - i) * sizeof(spans->to[0]));
	spans->from[i] = from;
	spans->to[i] = to;
	spans->count++;
}

uint64_t td_spans_add(struct td_spans *spans, uint64_t from, uint64_t to)
{
	uint64_t whole_from = from, whole_to = to, fresh;

	if (to <= from)
		return 0;
	fresh = to - from;
	for (uint32_t i = 0; i < spans->count;) {
		uint64_t a = spans->from[i], b = spans->to[i];

		if (b < from || a > to) {
			i++;
			continue;
		}
		fresh -= (b < to ? b : to) - (a > from ? a : from);
		whole_from = a < whole_from ? a : whole_from;
		whole_to = b > whole_to ? b : whole_to;
		remove_span(spans, i);
	}
	insert(spans, whole_from, whole_to);
	return fresh;
}
