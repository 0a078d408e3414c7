/*
 * Finds where the steps of an unmodified program end. Training repeats the same launches, copies
 * and synchronisations in each step, so the period of that stream is the step (AntMan 2.3:
 * "mini-batches apply mostly similar computations").
 *
 * The input is a stream of signatures and times. A signature says which function, kind of copy or
 * synchronisation it is; sizes and grids are left out, as they vary with the data. Each signature
 * is tried as the mark of a step's end. An interval between two of its occurrences is regular if
 * about the usual set of signatures occurred within it, about as many of them, in less than four
 * times the usual time. Of the marks whose regular intervals cover most of the time, the one that
 * varies least is taken; among equals, the one with the shortest period. Therefore:
 * - a layer that repeats within a step covers only a part of the step, and is no step;
 * - an interval with a validation, a checkpoint or a pause is not regular, and no step ends with
 *   it;
 * - during validation another period is found, as steps of another unit; training is recognised
 *   again by its second step.
 *
 * Occurrences closer than TD_PERIOD_MIN_NS count as one: that work was queued at once. Intervals
 * longer than TD_PERIOD_MAX_NS are no steps: epochs with their validations are as regular, and
 * cover all of the time.
 *
 * The unit names the mark; times of one unit can be compared. Gradient accumulation may appear as
 * steps of one micro-batch each, which shows just as well whether the job is disturbed.
 *
 * The functions are pure: the time is a parameter. An event costs a look-up and a move in a list,
 * and at most once per signature and millisecond a walk over the signatures since its last
 * occurrence. All memory is in the struct. Beyond TD_PERIOD_SIGNATURES, a new signature replaces
 * the one not seen for longest.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define TD_PERIOD_SIGNATURES 512
#define TD_PERIOD_MIN_NS     1000000ull
#define TD_PERIOD_MAX_NS     60000000000ull

struct td_period_mark {
	uint32_t signature;
	uint16_t newer, older; /* list in the order of last occurrence; index + 1, 0: none */
	uint16_t chain;        /* next mark with the same hash */
	/* rises when an interval is like `set`, else falls; 0: no usual set */
	uint8_t votes;
	uint8_t run, misses; /* regular intervals in a row; irregular ones in a row */
	bool known;          /* has been the mark before */
	bool alone;          /* between two occurrences of this signature, no other one occurs */
	uint64_t last_ns;
	uint64_t began_ns, began_event;              /* begin of the current interval */
	uint64_t mean_ns, deviation_ns, mean_events; /* over regular intervals */
	uint64_t regular_ns, total_ns;               /* sums; both are halved now and then */
	uint32_t intervals;
	/* share of regular ones among the last intervals */
	uint32_t regular_ppm;
	/* the usual set of signatures, one bit per index */
	uint64_t set[TD_PERIOD_SIGNATURES / 64];
};

/* Zeroed: nothing seen. */
struct td_period {
	struct td_period_mark marks[TD_PERIOD_SIGNATURES];
	uint16_t buckets[2 * TD_PERIOD_SIGNATURES];
	uint16_t count, newest, oldest;
	uint16_t mark; /* index + 1 of the mark of the steps; 0: no period known */
	uint64_t events;
};

enum td_period_verdict {
	TD_PERIOD_NOTHING,
	TD_PERIOD_STEP,  /* a step has ended here */
	TD_PERIOD_BREAK, /* a step begins here, but no step has ended */
};

struct td_period_step {
	uint64_t step_ns;  /* STEP: duration of the step */
	uint32_t unit;     /* identifies the mark; not 0 */
	uint32_t sure_ppm; /* share of regular ones among the last intervals */
};

/*
 * Feeds a signature (any value) at a time that never decreases. *ret is written unless NOTHING is
 * returned.
 */
enum td_period_verdict td_period_event(
	struct td_period *period, uint32_t signature, uint64_t now_ns, struct td_period_step *ret);
