/* Libraries: code that becomes a module of each context that uses it, with variables of its own there. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "cuda/signatures.h"

/* Kernels that were given out of libraries whose variables count. They may be launched as they are, in any context. */
extern _Atomic uint32_t td_library_kernels;

static inline bool td_library_has_kernels(void)
{
	return atomic_load_explicit(&td_library_kernels, memory_order_relaxed);
}

/* Before a launch in that stream (NULL: of the current context), if there are such kernels: CUDA_ERROR_OUT_OF_MEMORY if this is one, and the variables of its library do not fit. */
CUresult td_library_launches(const void *function, void *stream);

/* What counted under this key of TD_KEY_LIBRARY or TD_KEY_LIBRARY_MANAGED has ended with its context. */
void td_library_gone(uint64_t key);
void td_libraries_forked(void);
