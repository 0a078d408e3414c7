/*
 * How well a guaranteed program keeps its speed beside a besteffort one that always has work, in a model on a clock of its own (tests/unit/protect_world.h), with
 * the daemon's and the library's own code: neither a GPU nor softgpu. Steps of 200 ms on the host and 200 ms on the GPU, in kernels of 5 ms that are
 * all queued at once or each launched after the one before; besteffort kernels of 0.5 ms; a slack of 1 %; 1000 steps to settle in, 4000 that count, five
 * seeds. Rows: by how much each step was longer than the same step alone; for each seed the rest. usage: protect
 */
#include <stdio.h>

#include "bench/row.h"
#include "protect_world.h"

#define MS     TD_NS_PER_MS
#define SEEDS  5u
#define SETTLE 1000u
#define JUDGED 4000u

static struct pm_result alone, run;
static double longer[SEEDS * JUDGED], rest[4][SEEDS];

static void measure(const char *policy, bool told, bool waits)
{
	static const char *const figures[] = {"steps within 1%", "besteffort, of what is left",
		"first kernel waits, mean", "first kernel waits, most"};
	static const char *const units[] = {"%", "%", "ms", "ms"};
	char name[96], figure[160];

	snprintf(name, sizeof(name), "%s, %s, %s", policy, told ? "steps told" : "steps found",
		waits ? "kernel by kernel" : "all queued");
	for (uint32_t seed = 0; seed < SEEDS; seed++) {
		struct pm_settings s = {.slack = "1%",
			.told = told,
			.waits = waits,
			.fill_ns = MS / 2,
			.seed = seed + 11,
			.phase_count = 1,
			.phases = {{.steps = 1,
				.host_ns = 200 * MS,
				.kernel_ns = 5 * MS,
				.kernels = 40,
				.noise = 0.005}}};
		struct pm_judgement j;

		pm_run(&s, SETTLE + JUDGED, &alone);
		s.policy = policy;
		pm_run(&s, SETTLE + JUDGED, &run);
		j = pm_judge(&run, &alone, SETTLE, SETTLE + JUDGED, 0.01);
		for (uint32_t i = 0; i < JUDGED; i++)
			longer[seed * JUDGED + i] =
				100 * ((double)run.step_ns[SETTLE + i] /
						      (double)alone.step_ns[SETTLE + i] -
					      1);
		rest[0][seed] = 100 * j.within_1;
		rest[1][seed] = 100 * j.of_what_is_left;
		rest[2][seed] = j.residual_ms;
		rest[3][seed] = j.residual_most_ms;
	}
	snprintf(figure, sizeof(figure), "%s: a step is longer by", name);
	bench_row(figure, "%", longer, SEEDS * JUDGED);
	for (unsigned i = 0; i < 4; i++) {
		snprintf(figure, sizeof(figure), "%s: %s", name, figures[i]);
		bench_row(figure, units[i], rest[i], SEEDS);
	}
}

int main(void)
{
	for (unsigned v = 0; v < 8; v++)
		measure(v & 4 ? "tandem" : "antman", v & 1, v & 2);
	return 0;
}
