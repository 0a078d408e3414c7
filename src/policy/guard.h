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
 * may be a quarter of the slack: many pauses in a step cost together no more than one.
 *
 * Invariants
 *  - floor (2 %, of a job that says its slack a fifth of that where it is less) <= duty <= 1: besteffort work never starves by it;
 *  - nobody protected on the GPU, or nobody of them at work: 1;
 *  - same views, same duties.
 */
#pragma once

#include "policy/cycle.h"
#include "policy/duty.h"
#include "policy/pid.h"
#include "policy/policy.h"
#include "policy/slowest.h"

/* Zeroed: has seen nothing. One per GPU. */
struct td_guard {
	struct td_duty duty;
	struct td_slowest slowest;
	struct td_pid latency, load;
	bool at_work; /* some guaranteed job */
	struct td_cycle cycle;
};

/* ppm of the GPU's time for its besteffort work together, of so many jobs on that GPU (td_view_count_besteffort); brings the plan's wakeup forward where a step would become too long or a PID is due. */
uint32_t td_guard_step(struct td_guard *guard, const struct td_view *view, uint32_t gpu,
	uint32_t besteffort_jobs, uint64_t now_ns, struct td_plan *plan);

/*
 * What besteffort work may have in flight at the end of a guaranteed job's pause, at most most_ns: a quarter of what that may lose. Half of it was measured too, and gave
 * besteffort work next to nothing more (docs/results/protect.md). To be asked with every plan.
 */
uint64_t td_guard_window_ns(struct td_guard *guard, const struct td_view *view, uint32_t gpu,
	uint64_t most_ns, uint64_t now_ns, const struct td_plan *plan);
