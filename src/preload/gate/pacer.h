/* What a process knows of its own work on GPUs while it has a window or a duty: pace.c's, pause.c's and clock.c's, which the models of tests have several of. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "preload/base/backend.h"
#include "preload/base/window.h"
#include "preload/gate/budget.h"
#include "preload/gate/hold.h"
#include "preload/gate/spans.h"

/* Zeroed: none yet. */
struct td_clock {
	pthread_mutex_t lock; /* of the rest; no other is taken under it */
	uint64_t context;     /* whose events tick */
	void *base;           /* complete */
	uint64_t base_ns;
	struct td_spans spans;
};

struct td_pacer {
	/* pace.c's */
	_Atomic uint64_t
		process_ns; /* sum of counted_ns over all threads: estimated time of the process's work in flight */
	_Atomic uint64_t
		expected_ns; /* the same, of what has a mark, by what such work took before: what the budget counts */
	_Atomic bool dependent_seen;
	struct td_budget budgets[TD_SLOT_MAX];
	struct td_solo solo;
	struct td_lengths lengths;
	_Atomic uint32_t duty_ppm;      /* of the duty in force; 0: none */
	_Atomic uint32_t last_duty_ppm; /* the last one that was */
	/* By size: a copy, or another piece of which nothing else is known, took so long; 0: not known. */
	_Atomic uint64_t unnamed_ns[TD_WINDOW_SIZES];
	_Atomic uint64_t submitted_ns; /* when the process submitted last, under a duty */
	_Atomic uint64_t
		new_since_ns; /* the first of what is new and not seen to end was let in then; 0: there is none; and the next one may be then */
	_Atomic uint64_t new_next_ns;
	/* Moments alone: the one that holds us up; the number of the last one that let a piece of work through before its time, and when one was measured. */
	td_hold held;
	_Atomic uint32_t let_through;
	_Atomic uint64_t measured_ns;

	/* pause.c's */
	_Atomic uint64_t busy_until_ns; /* by estimate, all of the process's work is done then */
	_Atomic(const struct td_window *) last; /* who has submitted last */
	_Atomic uint64_t
		long_since_ns; /* when the duty let in the last of those that come rarely; 0: none yet */

	struct td_clock clocks[TD_SLOT_MAX];
};

extern struct td_pacer td_pacer;
