/* The server's process: directory, lock, socket, loop. */
#pragma once

#include <stdint.h>

struct td_err;
struct td_gpu_spec;

/*
 * Serves until stopped. features: SG_FEATURE_* of its GPUs. ready_fd (-1: none) gets a byte once connections are accepted, or a sentence of what is wrong. Returns an exit
 * status.
 */
int sg_serve(const char *dir, const struct td_gpu_spec *spec, uint32_t gpu_count, uint32_t features,
	int ready_fd);
