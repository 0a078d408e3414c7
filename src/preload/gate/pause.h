/*
 * In a pause of somebody protected (gate_page.h: pause_until_ns) the duty does not count a piece of work that will be over when the pause is, as far as that can be
 * told, nor one that the window has room for with what is in flight: the protected program finds no more than that when it goes on.
 *
 * What is in flight is what the calling thread has not seen to end, or, where others of the process have submitted since, what all of it takes by estimate: other threads look at theirs when they come back, which
 * may be late.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "preload/base/window.h"

/* Under a duty: a piece of work that is expected to take ns was submitted. */
void td_pause_submitted(const struct td_window *window, uint64_t ns, uint64_t now_ns);

/* The thread has seen all that it had in flight end. */
void td_pause_dry(const struct td_window *window, uint64_t now_ns);

/* The window is another thread's from now on, or its work is not followed any more: what it had is in flight for as long as was estimated. */
void td_pause_abandoned(const struct td_window *window);

/* Is a piece that is expected to take ns free of the duty? word: of the gate. False where there is no pause. */
bool td_pause_is_free(const struct td_window *window, uint32_t word, uint64_t ns, uint64_t now_ns);

/* How long to wait before asking again: at most wait_ns, and less where something in flight will end sooner. */
uint64_t td_pause_wait_ns(const struct td_window *window, uint64_t wait_ns, uint64_t now_ns);

/* Under the duty: how long a piece that is expected to take ns has to wait as one of those that come rarely, at least wait_ns. */
uint64_t td_pause_wait_long_ns(uint64_t ns, uint64_t wait_ns, uint64_t now_ns);

/* It is let in, under the duty; or it was new, and turned out to take so long. */
void td_pause_note_long(uint64_t ns, uint64_t now_ns);

void td_pause_forked(void);
