/*
 * The bursts of a program's launches, for an online program whose requests are not known: a request
 * or a batch of a service is a burst, or several if the program waits for the GPU within it. A
 * burst ends when there is no call for TD_BURST_GAP_NS. How long the GPU works on it is not seen.
 *
 * Any thread may call at any time, without locks; launches at the same instant may give a figure
 * that is off by one burst. The means are written to the meter page, where the daemon reads them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define TD_BURST_GAP_NS 2000000u

/* waits: the call does not launch, but is about to wait for the GPU, so no burst begins with it. */
void td_bursts_call(uint64_t now_ns, bool waits);
