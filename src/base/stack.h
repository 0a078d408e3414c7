/*
 * Stacks of threads that a library starts in somebody else's program. The C library takes a
 * program's static thread-local storage out of each thread's stack; it may be larger than that.
 */
#pragma once

#include <stddef.h>

/*
 * What pthread_attr_setstacksize is to be told so that a thread has this many bytes of stack. Takes
 * the dynamic linker's lock for a moment. It may say more than it takes: address space, no memory.
 */
size_t td_stack_bytes(size_t wanted);
