/*
 * The share of a GPU's time that besteffort work may have beside protected jobs, by the figures
 * that the node can see.
 *
 * Purpose. AntMan controls by the guaranteed job's step time, MuxFlow by the load of the GPU, Mudi
 * by the service's latency. Each needs a figure that not every node has. tandem takes the most
 * direct one that is there; of several answers the least counts:
 *
 *   a guaranteed job whose steps are seen:           td_duty_step        (duty.h)
 *   a guaranteed job without steps has work:         the floor
 *   an online job, its P99 and objective are known:  PID on P99 / objective, held at 0.8; with
 *                                                    latency curves from their forecast on
 *   an online job whose P99 is not known yet:        the forecast, if there are latency curves
 *   otherwise, the activity of the SMs is known:     PID on U_GPU        (load_factor.h, MuxFlow)
 *   none of these is known:                          no bound: the lock alone protects, and the
 *                                                    driver's slices
 *
 * With a forecast (forecast.h) the PID's bias is what the curves allow at the present rate, so that
 * a grown rate takes effect before any P99 shows it. Then a P99 below 0.8 raises the duty by the
 * integral alone: the proportional part would take back what the forecast has just lowered.
 *
 * A guaranteed job's steps are those of its slowest process on the GPU (slowest.h). Two guaranteed
 * jobs with steps have no single step time: besteffort work stays at the least of their floors, as
 * in antman_node.c. A guaranteed job without steps (it has just begun, or none are found in its
 * work) shows nothing of its tolerance: besteffort work has the floor while that job has work, and
 * all of the GPU in its pauses. A job without steps that has no work counts for nothing, so that a
 * program that only sits on a GPU does not keep besteffort work from the GPU. The clock is left out
 * of U_GPU, because its threshold would have to be known for each model.
 *
 * Pauses. At the end of each pause the job finds besteffort work in flight. Its cost may be a
 * quarter of the slack: per step, or per mean time between the ends of two pauses where that is
 * shorter or no steps are seen, so that many pauses in a step together cost no more than one. Half
 * of the slack was measured too, and gave besteffort work next to nothing more
 * (docs/results/protect.md). Longer work is let in if it will be over when the pause ends, as far
 * as pauses.h can tell; work that is longer still has the floor, so that it does not starve.
 * docs/decisions/0012.
 *
 * Outside the pauses the duty lets in work that makes a step too long by itself once in LONG_STEPS
 * steps, so that 99 of 100 are within their slack.
 *
 * Invariants
 * - floor <= duty <= 1, so besteffort work never starves. The floor is 2 %, or a fifth of the slack
 *   that the job states where that is less;
 * - no protected job on the GPU, or none of them at work: 1;
 * - same views, same duties.
 */
#pragma once

#include "policy/algo/control/cycle.h"
#include "policy/algo/control/duty.h"
#include "policy/algo/control/pid.h"
#include "policy/node/beside/pauses.h"
#include "policy/node/beside/slowest.h"
#include "policy/policy.h"

/* The state of one GPU. A zeroed struct has seen nothing. */
struct td_guard {
	struct td_duty duty;
	struct td_slowest slowest;
	struct td_pid latency, load;
	/* Set by the caller before each step: what the curves allow (forecast.h); 0: not known. */
	uint32_t forecast_ppm;
	bool at_work; /* a guaranteed job has work */
	struct td_cycle cycle;
	struct td_pauses pauses;
};

/* The room for all besteffort work of a GPU together. */
struct td_guard_room {
	uint32_t duty_ppm; /* share of the GPU's time; TD_PPM: no bound */
	/* Bound of the work in flight at once beside a guaranteed job; 0: none. */
	uint64_t window_ns;
	/*
	 * While a guaranteed job pauses, the duty does not count work that ends before
	 * pause_until_ns or that fits the window. 0: the duty counts all work.
	 */
	uint64_t pause_until_ns;
	/*
	 * A piece of work longer than long_ns makes a step exceed its slack. The duty may admit one
	 * in long_every_ns. 0: steps are not known.
	 */
	uint64_t long_ns, long_every_ns;
};

/*
 * Decides for one GPU; called for every plan. besteffort_jobs is the number on that GPU
 * (td_view_count_besteffort). Brings plan->next_wakeup_ns forward to when a step becomes too long,
 * a pause may end or a PID is due.
 */
struct td_guard_room td_guard_step(struct td_guard *guard, const struct td_view *view, uint32_t gpu,
	uint32_t besteffort_jobs, uint64_t most_window_ns, uint64_t now_ns, struct td_plan *plan);
