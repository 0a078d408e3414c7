/* A kernel that keeps a number of SMs busy for a time, for the examples that need work. */
#pragma once

#include <stdint.h>

#include "cuda/types.h"

/* Times are whole pieces of this. */
#define OCCUPY_PIECE_NS 100000u

/* Loads the kernel in the current context. The driver's result. */
CUresult occupy_load(CUfunction *ret);
/* Starts it on that many SMs, on the default stream. */
CUresult occupy_start(CUfunction function, unsigned sms, uint64_t ns);
