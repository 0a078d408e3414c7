/*
 * While a protected program pauses (gate_page.h: pause_until_ns), the duty does not count work that
 * is expected to end before the pause does, nor work that fits the window together with the work in
 * flight. The protected program finds no more work than that when it goes on.
 *
 * Work in flight is the work that the calling thread has not seen end. Where other threads have
 * submitted since, it is the estimate of all: they look at their own work only when they come back.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "preload/base/window.h"

/* Under a duty: notes that work of about ns was submitted. */
void td_pause_submitted(const struct td_window *window, uint64_t ns, uint64_t now_ns);

/* Called when the thread has seen all its work end. */
void td_pause_dry(const struct td_window *window, uint64_t now_ns);

/*
 * The window passes to another thread, or its work is not followed any more. Its work counts as in
 * flight for its estimated time.
 */
void td_pause_abandoned(const struct td_window *window);

/*
 * Returns whether work of `ns` may start now under the duty. word is the gate word. Returns false
 * where there is no pause.
 */
bool td_pause_is_free(const struct td_window *window, uint32_t word, uint64_t ns, uint64_t now_ns);

/*
 * Returns how long to wait before asking again: at most wait_ns, and less where work in flight ends
 * sooner.
 */
uint64_t td_pause_wait_ns(const struct td_window *window, uint64_t wait_ns, uint64_t now_ns);

/* Under the duty: returns how long a piece of ns waits as a rare long one, at least wait_ns. */
uint64_t td_pause_wait_long_ns(uint64_t ns, uint64_t wait_ns, uint64_t now_ns);

/* Under the duty, notes that a long piece was let in, or that a new piece proved to be long. */
void td_pause_note_long(uint64_t ns, uint64_t now_ns);

void td_pause_forked(void);
