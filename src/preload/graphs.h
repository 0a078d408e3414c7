/* What executable graphs hold: known from their instantiation on, looked up at each launch. */
#pragma once

#include <stdint.h>

struct td_graph_weight {
	uint32_t kernels;      /* 0: not known */
	uint64_t memory_bytes; /* of its allocation nodes */
};

/* No lock. */
struct td_graph_weight td_graph_weight(const void *exec);

void td_graphs_forked(void);
