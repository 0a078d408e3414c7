/*
 * Libraries of cuLibraryLoadData. In each context that uses a library, its code becomes a module
 * with variables of its own.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "cuda/signatures.h"

/*
 * The number of kernels that the program got from libraries whose variables are counted. It may
 * launch them by their handle in any context.
 */
extern _Atomic uint32_t td_library_kernels;

static inline bool td_library_has_kernels(void)
{
	return atomic_load_explicit(&td_library_kernels, memory_order_relaxed);
}

/*
 * Called before a kernel is launched in the stream; NULL: in the current context. A kernel of a
 * library may load the library's variables into the context. Returns CUDA_ERROR_OUT_OF_MEMORY if
 * there is no room for them.
 */
CUresult td_library_launches(const void *function, void *stream);

/*
 * Called when a context has ended in which this key (TD_KEY_LIBRARY or TD_KEY_LIBRARY_MANAGED)
 * counted.
 */
void td_library_gone(uint64_t key);
void td_libraries_forked(void);
