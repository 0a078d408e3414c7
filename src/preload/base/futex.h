/*
 * Fences and futexes. Every futex wait is bounded, and the calls keep errno, because they run
 * inside the program's calls.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Waits while *word == value, at most timeout_ns. It may return early without a reason, so the
 * caller checks again. shared: another process shares the word's page.
 */
void td_futex_wait(_Atomic uint32_t *word, uint32_t value, uint64_t timeout_ns, bool shared);

/*
 * A full fence. ThreadSanitizer does not know fences; there, an operation on a word that all
 * threads share replaces it.
 */
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
