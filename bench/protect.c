/*
 * How well a guaranteed program keeps its speed beside a besteffort one that always has work, in a
 * model on a simulated clock (tests/unit/daemon/execute/protect_world.h) that runs the daemon's and
 * the library's own code: neither a GPU nor softgpu.
 *
 * Steps are 200 ms on the host and 200 ms on the GPU, in kernels of 5 ms that are all queued at
 * once or each launched after the one before, beside besteffort kernels of 0.5 ms, with a slack of
 * 1 %. 1000 steps settle, 4000 count, five seeds. Then, under policy tandem with reported steps and
 * kernel by kernel: besteffort kernels of other lengths, also beside a job that never pauses (2 and
 * 400 ms), and shorter steps beside kernels of 0.05 ms. Rows: the excess of each step over the same
 * step alone; for each seed the part of the rest that was used.
 *
 * usage: protect
 */
#include <stdio.h>

#include "bench/row.h"
#include "unit/daemon/execute/protect_judge.h"

#define MS     TD_NS_PER_MS
#define SEEDS  5u
#define SETTLE 1000u
#define JUDGED 4000u

static struct pm_result alone, run;
static double longer[SEEDS * JUDGED], rest[4][SEEDS];

static struct pm_settings training(const char *policy, bool told, bool waits)
{
	return (struct pm_settings){.policy = policy,
		.slack = "1%",
		.told = told,
		.waits = waits,
		.fill_ns = MS / 2,
		.phase_count = 1,
		.phases = {{.steps = 1,
			.host_ns = 200 * MS,
			.kernel_ns = 5 * MS,
			.kernels = 40,
			.noise = 0.005}}};
}

static void measure(const char *name, struct pm_settings s)
{
	static const char *const figures[] = {"steps within 1%", "besteffort, of what is left",
		"first kernel waits, mean", "first kernel waits, most"};
	static const char *const units[] = {"%", "%", "ms", "ms"};
	const char *policy = s.policy;
	char figure[160];

	for (uint32_t seed = 0; seed < SEEDS; seed++) {
		struct pm_judgement j;

		s.seed = seed + 11;
		s.policy = NULL;
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

static void measure_policies(void)
{
	char name[96];

	for (unsigned v = 0; v < 8; v++) {
		struct pm_settings s = training(v & 4 ? "tandem" : "antman", v & 1, v & 2);

		snprintf(name, sizeof(name), "%s, %s, %s", s.policy,
			s.told ? "steps told" : "steps found",
			s.waits ? "kernel by kernel" : "all queued");
		measure(name, s);
	}
}

/* Beside besteffort kernels of several lengths. */
static void measure_kernels(const char *label, struct pm_settings s)
{
	static const unsigned lengths_ms[] = {1, 2, 4, 10, 20, 50, 100, 500};
	char name[96];

	for (unsigned i = 0; i < sizeof(lengths_ms) / sizeof(*lengths_ms); i++) {
		s.fill_ns = lengths_ms[i] * MS;
		snprintf(name, sizeof(name), "%sbesteffort kernels of %u ms", label, lengths_ms[i]);
		measure(name, s);
	}
}

/* Half on the host. */
static void measure_steps(void)
{
	static const unsigned lengths_ms[] = {8, 16, 32, 64, 128};
	char name[96];

	for (unsigned i = 0; i < sizeof(lengths_ms) / sizeof(*lengths_ms); i++) {
		struct pm_settings s = training("tandem", true, true);

		s.fill_ns = MS / 20;
		s.phases[0].host_ns = lengths_ms[i] * MS / 2;
		s.phases[0].kernels = 10;
		s.phases[0].kernel_ns = lengths_ms[i] * MS / 20;
		snprintf(name, sizeof(name), "steps of %u ms", lengths_ms[i]);
		measure(name, s);
	}
}

int main(void)
{
	struct pm_settings pauses = training("tandem", true, true), none = pauses;

	none.phases[0].host_ns = 2 * MS;
	none.phases[0].kernels = 80;
	measure_policies();
	measure_kernels("", pauses);
	measure_kernels("no pauses, ", none);
	measure_steps();
	return 0;
}
