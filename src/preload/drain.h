/*
 * Draining: waiting until the work of some contexts has ended, in a thread of its own, so that whoever asks keeps a deadline. The thread
 * may stay in the driver long after (a kernel that waits for the program); it is asked again when it is back.
 *
 * While a stream captures nothing is synchronised: that would invalidate the capture. Draining then waits for its end.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cuda/types.h"

/* True: ended by deadline_ns (CLOCK_MONOTONIC). */
bool td_drain(const CUcontext *contexts, unsigned count, uint64_t deadline_ns);

/* Without waiting: true if it was begun; then td_drain_ended() tells. False: still busy, or a stream captures. */
bool td_drain_begin(const CUcontext *contexts, unsigned count);
bool td_drain_ended(void);
uint64_t td_drain_ended_ns(void);

void td_drain_forked(void);
