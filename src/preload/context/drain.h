/*
 * The drain thread: waits for the GPU so that the agent need not, and can give up. It may stay blocked for as long as the
 * GPU's work does; a pass that is asked for meanwhile follows.
 *
 * A pass is complete when everything submitted before it was asked for has completed, on every context of the process. Started by the
 * first pass.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Any thread. Asks for a pass; returns its ticket, or 0 if there can be no thread. The agent is woken at its end. */
uint64_t td_drain_begin(void);

bool td_drain_is_done(uint64_t ticket);

/* Called by the drain thread behind each pass, and now and then. */
void td_drain_set_after(void (*after)(void));

/* Is the latest pass still under way? */
bool td_drain_is_busy(void);

void td_drain_forked(void);
