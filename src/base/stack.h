/*
 * Stacks of threads that a library starts in somebody else's program. The C library takes a
 * program's static thread-local storage out of each thread's stack; it may be larger than that.
 */
#pragma once

#include <stddef.h>

/*
 * Returns the size to pass to pthread_attr_setstacksize so that a thread has this many bytes of
 * stack. Takes the dynamic linker's lock for a moment. The size may be larger than necessary, which
 * costs address space but no memory.
 */
size_t td_stack_bytes(size_t wanted);
