/* The mean load of each GPU over the last ten seconds. Pure, apart from allocating nothing. */
#pragma once

#include <stdint.h>

#include "cluster/node/record.h"

struct td_snapshot;

#define TD_LOADS_SAMPLES 20u

/* The last samples of one GPU: a ring. */
struct td_load {
	char uuid[TD_UUID_TEXT];
	uint64_t at_ns[TD_LOADS_SAMPLES]; /* 0: none yet */
	uint32_t ppm[TD_LOADS_SAMPLES];
	uint32_t next;
};

struct td_loads {
	struct td_load of[TD_RECORD_GPUS];
	uint32_t count;
};

/*
 * Notes a complete round. Writes the mean of each of its GPUs, TD_RECORD_UNKNOWN where there is no
 * sample; ret_ppm has room for TD_RECORD_GPUS.
 */
void td_loads_note(struct td_loads *loads, const struct td_snapshot *snapshot, uint64_t now_ns,
	uint32_t *ret_ppm);
