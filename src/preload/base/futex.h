/* Fences and futexes. The futex calls have a bound on every wait and keep errno: they run inside the program's calls. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Waits while *word == value, at most timeout_ns; may return early for no reason: the caller looks again. `shared`: the word's page is
 * shared with another process. */
void td_futex_wait(_Atomic uint32_t *word, uint32_t value, uint64_t timeout_ns, bool shared);

/* A full fence. ThreadSanitizer knows none: there, an operation on a word of everybody's stands for it. */
static inline void td_fence(void)
{
#ifdef __SANITIZE_THREAD__
	static _Atomic uint32_t everybodys;

	atomic_fetch_add(&everybodys, 1);
#else
	atomic_thread_fence(memory_order_seq_cst);
#endif
}

void td_futex_wake_all(_Atomic uint32_t *word, bool shared);
