/*
 * Libraries: code that becomes a module of each context that uses it, with its own variables there.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "cuda/signatures.h"

/*
 * The number of kernels taken from libraries whose variables count. They may be launched by their
 * handle, in any context.
 */
extern _Atomic uint32_t td_library_kernels;

static inline bool td_library_has_kernels(void)
{
	return atomic_load_explicit(&td_library_kernels, memory_order_relaxed);
}

/*
 * Called before a launch in that stream (NULL: of the current context), if there are such kernels.
 * CUDA_ERROR_OUT_OF_MEMORY: it is such a kernel, and the variables of its library do not fit.
 */
CUresult td_library_launches(const void *function, void *stream);

/* The context ended that this key of TD_KEY_LIBRARY or TD_KEY_LIBRARY_MANAGED counted for. */
void td_library_gone(uint64_t key);
void td_libraries_forked(void);
