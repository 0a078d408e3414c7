/*
 * A kernel that keeps a number of SMs busy for a time and takes a part of the memory bandwidth
 * meanwhile. It needs a GPU of compute capability 9.0.
 */
#pragma once

#include <stdint.h>

#include "cuda/types.h"

struct stream_kernel {
	CUfunction function;
	CUdeviceptr memory;
};

/* In the current context. */
CUresult stream_load(struct stream_kernel *ret);

/* Starts it on the default stream: on so many SMs, for that long, with so many bytes a second. */
CUresult stream_start(
	const struct stream_kernel *kernel, unsigned sms, uint64_t ns, uint64_t bytes_per_s);
