/* Helpers of the tests on the model of protect_world.h. Header only: one user per program. */
#pragma once

#include "test.h"

#include "unit/daemon/execute/protect_judge.h"

#define MS     TD_NS_PER_MS
#define SETTLE 700u
#define JUDGED 3000u

static struct pm_result alone, run;

/* Steps of 200 ms on the host and 200 ms on the GPU, as scripts/demo protect has them. */
static struct pm_settings training(const char *policy, bool told, bool waits, uint64_t seed)
{
	return (struct pm_settings){
		.policy = policy,
		.slack = "1%",
		.told = told,
		.waits = waits,
		.fill_ns = MS / 2,
		.seed = seed,
		.phases = {{.steps = 1,
			.host_ns = 200 * MS,
			.kernel_ns = 5 * MS,
			.kernels = 40,
			.noise = 0.005}},
		.phase_count = 1,
	};
}

static struct pm_judgement judge(struct pm_settings settings, uint32_t settle, uint32_t judged)
{
	struct pm_settings without = settings;

	without.policy = NULL;
	pm_run(&without, settle + judged, &alone);
	pm_run(&settings, settle + judged, &run);
	return pm_judge(&run, &alone, settle, settle + judged, 0.05);
}

static void show(const struct pm_settings *s, const struct pm_judgement *j)
{
	printf("# %s, %s, %s: %.2f%% of the steps within 1%%, %.1f%% of what is left, residual "
	       "%.2f ms\n",
		s->policy, s->told ? "told" : "found", s->waits ? "kernel by kernel" : "queued",
		100 * j->within_1, 100 * j->of_what_is_left, j->residual_most_ms);
}
