/*
 * The drain thread waits for the GPU, so that the agent does not block and can give up. It may stay
 * blocked for as long as the GPU's work runs; a pass requested meanwhile follows.
 *
 * A pass is complete when all work submitted before its request has completed, in every context of
 * the process. The first pass starts the thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * Any thread. Requests a pass and returns its ticket, or 0 if there can be no drain thread. The
 * agent is woken when the pass ends.
 */
uint64_t td_drain_begin(void);

bool td_drain_is_done(uint64_t ticket);

/* Sets a function that the drain thread calls after each pass, and now and then. */
void td_drain_set_after(void (*after)(void));

/* Returns whether the latest pass of the drain is still in progress. */
bool td_drain_is_busy(void);

/*
 * The agent, with no thread inside a submitting call: has all submitted work ended already? Waits
 * for nothing. False also where only a pass can tell: a capture is open, a stream is not known, or
 * there are many.
 */
bool td_drain_is_idle(void);

void td_drain_forked(void);
