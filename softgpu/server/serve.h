/* The server's process: directory, lock, socket, loop. */
#pragma once

#include <stdint.h>

struct td_gpu_spec;

/* The first byte that ready_fd gets; behind it, but for SG_STARTED, a sentence of what is wrong. */
enum sg_start {
	SG_STARTED, /* it accepts connections */
	/* Another server has the directory, and accepts connections or is about to begin or end. */
	SG_BUSY,
	SG_FAILED,
};

/*
 * Serves until stopped. features: SG_FEATURE_* of its GPUs. ready_fd (-1: none) gets an enum
 * sg_start and its details. Returns an exit status.
 */
int sg_serve(const char *dir, const struct td_gpu_spec *spec, uint32_t gpu_count, uint32_t features,
	int ready_fd);
