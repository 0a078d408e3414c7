/*
 * What besteffort work may have of a GPU's time beside protected jobs, by whatever the node can see of them.
 *
 * Purpose. AntMan controls by the guaranteed job's step time, MuxFlow by the load of the GPU, Mudi by the service's latency. Each needs
 * to see something; tandem takes what there is, the most direct first, and of several answers the least:
 *
 *   a guaranteed job, its steps are seen:            td_duty_step        (duty.h)
 *   a guaranteed job without steps has work:         the floor
 *   an online job, its P99 and objective are known:  PID on P99 / objective, held at 0.8
 *   else, the activity of the SMs is known:          PID on U_GPU        (load_factor.h, MuxFlow)
 *   nothing of it:                                   no bound: the lock alone protects, and the driver's slices
 *
 * A guaranteed job's steps are those of its slowest process on the GPU (slowest.h). Two guaranteed jobs with steps have no single step time: besteffort work stays at the least of their floors, as in antman_node.c.
 * Of one that has told of none (it has just begun, or none are found in what it does) nothing says what it bears: the floor while it has work, and all of the GPU in its pauses; while it has none it counts for nothing, so that
 * a program that sits on a GPU beside a training one does not keep besteffort work from what that one leaves. The clock is left
 * out of U_GPU: its threshold would have to be known for each model.
 *
 * Pauses. At the end of each the job finds what besteffort work has in flight. Of a step, or of the mean time from the end of one pause to the end of the next where that is shorter or no steps are seen, that
 * may be a quarter of the slack: many pauses in a step cost together no more than one. Half of it was measured too, and gave besteffort work next to nothing more
 * (docs/results/protect.md). What is longer than that is let in as long as it will be over when the pause ends, as far as pauses.h can tell; of what is longer still besteffort
 * work has the floor, so that it does not starve. docs/decisions/0012.
 *
 * Beside the pauses the duty lets in what makes a step too long by itself once in LONG_STEPS steps, so that 99 of 100 are within their slack.
 *
 * Invariants
 *  - floor (2 %, of a job that says its slack a fifth of that where it is less) <= duty <= 1: besteffort work never starves by it;
 *  - nobody protected on the GPU, or nobody of them at work: 1;
 *  - same views, same duties.
 */
#pragma once

#include "policy/algo/control/cycle.h"
#include "policy/algo/control/duty.h"
#include "policy/algo/control/pid.h"
#include "policy/node/pauses.h"
#include "policy/node/slowest.h"
#include "policy/policy.h"

/* Zeroed: has seen nothing. One per GPU. */
struct td_guard {
	struct td_duty duty;
	struct td_slowest slowest;
	struct td_pid latency, load;
	bool at_work; /* some guaranteed job */
	struct td_cycle cycle;
	struct td_pauses pauses;
};

/* For the besteffort work of a GPU together. */
struct td_guard_room {
	uint32_t duty_ppm;  /* of the GPU's time; TD_PPM: no bound */
	uint64_t window_ns; /* in flight at once beside a guaranteed job; 0: no bound */
	/* A guaranteed job pauses: the duty does not count what is over by then, or fits the window. 0: it counts all. */
	uint64_t pause_until_ns;
	/* One piece of work that takes longer than long_ns makes a step longer than its slack: the duty may let in one in long_every_ns. 0: steps are not known. */
	uint64_t long_ns, long_every_ns;
};

/* besteffort_jobs: on that GPU (td_view_count_besteffort). Brings the plan's wakeup forward where a step would become too long, a pause may end or a PID is due. To be asked with every plan. */
struct td_guard_room td_guard_step(struct td_guard *guard, const struct td_view *view, uint32_t gpu,
	uint32_t besteffort_jobs, uint64_t most_window_ns, uint64_t now_ns, struct td_plan *plan);
