/*
 * Judges a run of protect_world.h: how much longer steps were than alone, and how much of the rest
 * besteffort programs had.
 */
#pragma once

#include "unit/daemon/execute/protect_world.h"

struct pm_judgement {
	uint32_t steps;
	double within_1, within_slack; /* parts of the steps, against the same step alone */
	double within_1_of_median; /* against the median alone, as where nothing else is known */
	double median, p99, most;  /* by which part they were longer */
	double share, of_what_is_left; /* of the GPU's time, the besteffort programs' */
	double residual_ms, residual_most_ms;
};

static uint64_t pm_median(const struct pm_result *result, uint32_t from, uint32_t to)
{
	static uint64_t sorted[STEPS_MAX];

	for (uint32_t i = from; i < to; i++) {
		uint32_t at = i - from;

		for (; at && sorted[at - 1] > result->step_ns[i]; at--)
			sorted[at] = sorted[at - 1];
		sorted[at] = result->step_ns[i];
	}
	return sorted[(to - from) / 2];
}

/* From one step to another, against a run of the guaranteed program alone of the same seed. */
static struct pm_judgement pm_judge(const struct pm_result *run, const struct pm_result *alone,
	uint32_t from, uint32_t to, double slack)
{
	static double longer[STEPS_MAX];
	struct pm_judgement j = {.steps = to - from};
	uint32_t within_1 = 0, within_slack = 0, within_1_of_median = 0;
	uint64_t median_ns = pm_median(alone, from, to);
	uint64_t used_ns = 0, took_ns = run->ended_ns[to - 1] - run->ended_ns[from - 1];
	uint64_t alone_ns = alone->ended_ns[to - 1] - alone->ended_ns[from - 1];

	for (uint32_t i = from; i < to; i++) {
		double by = (double)run->step_ns[i] / (double)alone->step_ns[i] - 1,
		       residual = (double)run->residual_ns[i] / 1e6;
		uint32_t at = i - from;

		within_1 += by <= 0.01;
		within_slack += by <= slack;
		within_1_of_median += (double)run->step_ns[i] <= 1.01 * (double)median_ns;
		j.residual_ms += residual / j.steps;
		j.residual_most_ms = residual > j.residual_most_ms ? residual : j.residual_most_ms;
		for (; at && longer[at - 1] > by; at--)
			longer[at] = longer[at - 1];
		longer[at] = by;
	}
	j.within_1 = (double)within_1 / j.steps;
	j.within_slack = (double)within_slack / j.steps;
	j.within_1_of_median = (double)within_1_of_median / j.steps;
	j.median = longer[j.steps / 2];
	j.p99 = longer[j.steps - 1 - j.steps / 100];
	j.most = longer[j.steps - 1];
	for (uint32_t i = 0; i < pm.settings.phase_count; i++)
		used_ns += pm.settings.phases[i].kernels * pm.settings.phases[i].kernel_ns *
			   pm.settings.phases[i].steps;
	/* Where phases alternate, only whole rounds count. */
	{
		uint32_t round = 0;

		for (uint32_t i = 0; i < pm.settings.phase_count; i++)
			round += pm.settings.phases[i].steps;
		used_ns = (uint64_t)((double)used_ns / round * j.steps);
	}
	j.share = (double)(run->filled_ns[to - 1] - run->filled_ns[from - 1]) / (double)took_ns;
	j.of_what_is_left = j.share / (1 - (double)used_ns / (double)alone_ns);
	return j;
}
