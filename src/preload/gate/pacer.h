/*
 * The state that a process keeps about its own work on GPUs while it has a window or a duty.
 * pace.c, pause.c and clock.c use it. It is a struct, because tests model several processes.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "preload/base/backend.h"
#include "preload/base/window.h"
#include "preload/gate/budget.h"
#include "preload/gate/hold.h"
#include "preload/measure/spans.h"

/* The paid time of one GPU (clock.h). Zeroed: no base event yet. */
struct td_clock {
	pthread_mutex_t lock; /* guards the fields below; no other lock is taken under it */
	uint64_t context;     /* serial number of the context of its events */
	void *base;           /* a completed event, the origin of all distances */
	uint64_t base_ns;
	struct td_spans spans;
};

struct td_pacer {
	/* Fields of pace.c: */
	/* Sum of counted_ns over all threads: the estimated time of work in flight. */
	_Atomic uint64_t process_ns;
	/*
	 * Sum over all threads of the expected time of marked work in flight, as the budget counts
	 * it.
	 */
	_Atomic uint64_t expected_ns;
	_Atomic bool dependent_seen;
	struct td_budget budgets[TD_SLOT_MAX];
	struct td_solo solo;
	struct td_lengths lengths;
	_Atomic uint32_t duty_ppm;      /* the duty in force, in ppm; 0: none */
	_Atomic uint32_t last_duty_ppm; /* the duty before the current one */
	/*
	 * Time of a copy, or of other work of which only the size is known, by size class; 0: not
	 * known.
	 */
	_Atomic uint64_t unnamed_ns[TD_WINDOW_SIZES];
	/* under a duty: when the process last submitted (monotonic ns) */
	_Atomic uint64_t submitted_ns;
	/*
	 * new_since_ns: when the first new piece that has not ended was let in; 0: there is none.
	 * new_next_ns: when the next new piece may be let in.
	 */
	_Atomic uint64_t new_since_ns;
	_Atomic uint64_t new_next_ns;
	/*
	 * Exclusive moments (policy/node/alone.h): the moment that holds this process; the number
	 * of the last moment that let a piece pass early; and when a moment was last measured.
	 */
	td_hold held;
	_Atomic uint32_t let_through;
	_Atomic uint64_t measured_ns;

	/* Fields of pause.c: */
	_Atomic uint64_t busy_until_ns; /* estimate of when all work of the process has ended */
	_Atomic(const struct td_window *) last; /* window of the thread that submitted last */
	/* When the duty last let in a rare long piece; 0: never. */
	_Atomic uint64_t long_since_ns;

	struct td_clock clocks[TD_SLOT_MAX];
};

extern struct td_pacer td_pacer;
