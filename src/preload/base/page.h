/*
 * The two pages that the process shares with the daemon (proto/gate_page.h): the daemon writes the
 * gate page, the process writes the meter page.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "proto/gate_page.h"

/*
 * Where page protection is coarser than TD_PAGE_BYTES, the page must still be the only data in the
 * span that is mapped over.
 */
#if defined(__x86_64__)
#define TD_GATE_SPAN 4096
#else
#define TD_GATE_SPAN 65536
#endif

union td_gate_static {
	struct td_gate_page page;
	char span[TD_GATE_SPAN];
};

union td_meter_static {
	struct td_meter_page page;
	char span[TD_GATE_SPAN];
};

/* All zeros (open) until the daemon's page, or a private page, is mapped over it. */
extern union td_gate_static td_gate;
extern union td_meter_static td_meter;

/*
 * True if the kernel refuses membarrier here, so every thread has to fence for itself. Set at load,
 * or by the agent if a seccomp filter refuses it later. Only a forked child clears it.
 */
extern _Atomic bool td_gate_fenced;

/*
 * True if hooks only forward the call: TANDEM_DISABLE is set, or the calling thread is the
 * library's.
 */
bool td_gate_disabled(void);

static inline uint32_t td_gate_word(void)
{
	return atomic_load_explicit(&td_gate.page.word, memory_order_acquire);
}

/* Is the end of each step to be reported at once? */
static inline bool td_gate_wants_steps(void)
{
	return atomic_load_explicit(&td_gate.page.steps, memory_order_relaxed) & TD_WANTED_STEPS;
}
