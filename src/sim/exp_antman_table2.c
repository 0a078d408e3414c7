/*
 * antman-table2: two jobs on one GPU of 32 GB. Only order and mechanism are tested: what host memory costs Job-B is fitted to UMem's cell.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "policy/duty.h"
#include "sim/antman_bound.h"
#include "sim/experiment.h"
#include "sim/sched.h"

#define GIB 0x1p30

#define A_S    2580. /* 43.0 min */
#define B_S    5466. /* 91.1 min */
#define B_MOST 1.02  /* of that, what counts as reproduced */

static void put_minutes(struct td_experiment_run *run, const char *metric, const char *paper,
	bool held, double seconds, const char *note)
{
	td_row_put(run, held ? TD_REPRODUCED : TD_NOT_REPRODUCED, metric, paper, "", note,
		"%.1f min", seconds / 60);
}

static int run_two(const struct td_profiles *profiles, const struct td_sched *sched,
	const char *const names[2], struct td_sim_job *jobs, struct td_err *err)
{
	static struct td_cluster cluster;
	struct td_cluster_options options = {.contention = {.capped_pressure = 1}};
	uint32_t nodes[] = {1};
	int r;

	for (int i = 0; i < 2; i++) {
		int kind = td_profiles_find(profiles, names[i]);

		if (kind < 0)
			return td_err_set(err, -ENOENT, "there is no profile of %s", names[i]);
		jobs[i] = (struct td_sim_job){.submit_ns = i ? 1560000000000ull : 0,
			.work_s = i ? B_S : A_S,
			.gpus = 1,
			.tenant = (uint32_t)i,
			.profile = (uint32_t)kind,
			.class = i ? TD_CLASS_GUARANTEED : TD_CLASS_BESTEFFORT,
			.memory_bytes = (uint64_t)((i ? 30. : 3.5) * GIB),
			.host_cost = 0.37};
	}
	r = td_cluster_init(&cluster, &options, profiles, nodes, 1, 32ull << 30, jobs, 2, sched);
	if (r)
		return td_err_set(err, r, "%s cannot run two jobs", sched->name);
	td_cluster_run(&cluster);
	td_cluster_deinit(&cluster);
	return 0;
}

static double took_s(const struct td_sim_job *job)
{
	return (double)(job->end_ns - job->submit_ns) * 1e-9;
}

/* Of all measured jobs in the place of Job-A, the one that has ended first under AntMan; and how many of them Job-B was within its limit with. */
struct lightest {
	const char *name;
	double a_s, b_s;
	uint32_t within, kinds;
};

static int find_lightest(const struct td_profiles *profiles, const char *job_b,
	struct lightest *ret, struct td_err *err)
{
	*ret = (struct lightest){.name = "", .a_s = INFINITY, .kinds = profiles->count};
	for (uint32_t k = 0; k < profiles->count; k++) {
		const char *const names[] = {profiles->profiles[k].name, job_b};
		struct td_sim_job jobs[2];
		int r = run_two(profiles, &td_sched_antman, names, jobs, err);

		if (r)
			return r;
		ret->within += took_s(&jobs[1]) <= B_MOST * B_S;
		if (!(took_s(&jobs[0]) < ret->a_s))
			continue;
		ret->name = names[0];
		ret->a_s = took_s(&jobs[0]);
		ret->b_s = took_s(&jobs[1]);
	}
	return 0;
}

/* Job-B's times whatever AntMan does. */
struct least {
	double floor_s; /* if Job-A had the floor of the duty beside it throughout */
	double done_s;  /* if what is left of Job-A is done beside it, under whatever duty */
};

static void put_antman(struct td_experiment_run *run, double a_s, double b_s,
	const struct least *least, const struct lightest *lightest)
{
	char note[200];

	snprintf(note, sizeof(note),
		"as A3C; bound, of all measured jobs the soonest is %s: %.1f min, Job-B then %.1f",
		lightest->name, lightest->a_s / 60, lightest->b_s / 60);
	td_row_put(run,
		a_s <= 1.05 * A_S            ? TD_REPRODUCED
		: lightest->a_s > 1.05 * A_S ? TD_BOUNDED
					     : TD_NOT_REPRODUCED,
		"AntMan: Job-A, at most 1.05 of alone", "43.9 min", "", note, "%.1f min", a_s / 60);
	snprintf(note, sizeof(note),
		"at the least duty that Job-A has, %.0f %% of the time, %.1f min; bound, if "
		"Job-A's rest is done beside it as in the paper, under whatever duty: %.1f; within "
		"the limit beside %u of the %u measured jobs",
		td_duty_default.floor_ppm / 1e4, least->floor_s / 60, least->done_s / 60,
		lightest->within, lightest->kinds);
	td_row_put(run,
		b_s <= B_MOST * B_S            ? TD_REPRODUCED
		: least->done_s > B_MOST * B_S ? TD_BOUNDED
					       : TD_NOT_REPRODUCED,
		"AntMan: Job-B, at most 1.02 of Preempt", "91.8 min", "", note, "%.1f min",
		b_s / 60);
}

/* The main measure, mean completion, and its guard: Job-B within 5 %. */
static void put_tandem(
	struct td_experiment_run *run, const double antman_s[2], const double tandem_s[2])
{
	double gain = (antman_s[0] + antman_s[1]) / (tandem_s[0] + tandem_s[1]);
	bool held = tandem_s[1] <= 1.05 * B_S;
	char note[128];

	snprintf(note, sizeof(note), "Job-A %.1f, Job-B %.1f min%s", tandem_s[0] / 60,
		tandem_s[1] / 60, held ? "" : ": the guard does not hold");
	td_row_put(run, held && gain >= 1 ? TD_AT_LEAST : TD_LOSS,
		"tandem: mean completion, AntMan / tandem", "", "", note, "%.3fx", gain);
}

#define LEFT_S (A_S - 1560) /* of Job-A when Job-B comes */

static struct least find_least(const struct td_profiles *profiles, const char *const names[2])
{
	const struct td_contention contention = {.capped_pressure = 1};
	struct td_contender pair[2];
	struct least least;
	double speeds[2];

	for (int i = 0; i < 2; i++)
		pair[i] = profiles->profiles[td_profiles_find(profiles, names[i])].contender;
	least.done_s = B_S + LEFT_S * td_least_cost_beside(&contention, pair);
	pair[0].duty = td_duty_default.floor_ppm / 1e6;
	td_contention_speeds(&contention, pair, 2, speeds);
	least.floor_s = B_S / speeds[1];
	return least;
}

int td_exp_antman_table2(struct td_experiment_run *run, struct td_err *err)
{
	/* GCN is small and irregular, as A3C; Job-B is ResNet-50 with a large batch. */
	static const char *const names[] = {"A3C", "ResNet-50 (batch size 128)"};
	struct td_profiles *profiles = calloc(1, sizeof(*profiles));
	struct td_sim_job jobs[2];
	struct lightest lightest;
	double host_cost = (541.6 / 91.1 - 1) / (1.5 / 30);
	int r = profiles ? td_profiles_fit(run->data, "p100", profiles, err) : -ENOMEM;

	r = r ? r : run_two(profiles, &td_sched_preempt, names, jobs, err);
	if (!r) {
		put_minutes(run, "Preempt: Job-B", "91.1 min", fabs(took_s(&jobs[1]) - B_S) < 1,
			took_s(&jobs[1]), "Job-A is stopped when B arrives");
		td_row_put(run, jobs[0].evictions ? TD_REPRODUCED : TD_NOT_REPRODUCED,
			"Preempt: Job-A", "failed", "", "here it is queued again, there it failed",
			"%s", jobs[0].evictions ? "stopped" : "undisturbed");
		r = run_two(profiles, &td_sched_fifo, names, jobs, err);
	}
	if (!r) {
		put_minutes(run, "FIFO: Job-A", "43.0 min", fabs(took_s(&jobs[0]) - A_S) < 1,
			took_s(&jobs[0]), "");
		put_minutes(run, "FIFO: Job-B", "108.2 min",
			fabs(took_s(&jobs[1]) - 108.2 * 60) < 60, took_s(&jobs[1]),
			"it waits for A");
		r = run_two(profiles, &td_sched_antman, names, jobs, err);
	}
	if (!r) {
		const struct least least = find_least(profiles, names);
		double a_s = took_s(&jobs[0]), b_s = took_s(&jobs[1]);

		r = find_lightest(profiles, names[1], &lightest, err);
		if (!r)
			put_antman(run, a_s, b_s, &least, &lightest);
		r = r ? r : run_two(profiles, &td_sched_tandem, names, jobs, err);
		if (!r)
			put_tandem(run, (const double[]){a_s, b_s},
				(const double[]){took_s(&jobs[0]), took_s(&jobs[1])});
	}
	td_row_put(run, TD_SHOWN, "Pack: Job-B", "failed", "",
		"arithmetic: 28.5 GB are left of the 30 GB that it needs", "out of memory");
	td_row_put(run, TD_CALIBRATED, "UMem: Job-B", "541.6 min (table), 514.6 (text)", "",
		"fitted to this cell", "%.1f min",
		B_S / 60 /
			td_spilled_speed((uint64_t)(30 * GIB), (uint64_t)(28.5 * GIB), host_cost));
	fputs("Differences: the paper's Job-A is a GCN and its Job-B a ResNet with a batch of 360, "
	      "on "
	      "a V100; no measured table has these two together. Here they are Gavel's A3C and "
	      "ResNet-50 with a batch of 128, P100 fit, with the paper's times alone and sizes; "
	      "all "
	      "other measured jobs are tried in Job-A's place, too. Who is preempted failed there "
	      "and "
	      "is queued again here.\n",
		run->report);
	free(profiles);
	return r == -ENOMEM ? td_err_set(err, r, "out of memory") : r;
}
