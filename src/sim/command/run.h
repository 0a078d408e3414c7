/*
 * The data of a `tandem-sim run`. run.c reads and runs it, run_world.c makes jobs and nodes,
 * run_notes.c names columns without effect, run_said.c sums up in words, run_report.c writes the
 * report.
 */
#pragma once

#include <stdio.h>

#include "sim/engine/metrics.h"
#include "sim/scheduler/schedulers.h"

struct td_err;

#define TD_RUN_POLICIES_MAX 8u
#define TD_RUN_NOTES_MAX    16u

struct td_run {
	const char *trace_path, *cluster_path, *policy, *compare, *out, *profiles_path, *gpu;
	uint64_t seed, restart_ns, checkpoint_ns;
	uint32_t guaranteed_ppm;
	bool proportional, skip_bad;
	struct td_trace trace;
	struct td_nodes nodes;
	struct td_profiles *profiles;
	struct td_sim_job *jobs;
	uint32_t job_count, unknown_models;
	uint32_t misfits; /* jobs left out that no policy could place on this cluster */
	uint32_t *node_gpus;
	uint64_t memory_bytes;
	struct td_run_result {
		const struct td_sched *sched;
		double metrics[TD_METRIC_N];
		double *jct_s;           /* counted of them, ascending */
		struct td_sim_job *jobs; /* as they were at its end */
		uint64_t first_ns, end_ns;
		struct td_sim_sample samples[TD_SIM_SAMPLES];
		uint32_t sample_count;
		bool stopped;
	} results[TD_RUN_POLICIES_MAX];
	uint32_t result_count;
	const struct td_sched *left[TD_RUN_POLICIES_MAX]; /* not run: stopped before */
	uint32_t left_count;
	uint32_t counted; /* jobs done under every policy that was run: what the times are of */
	char notes[TD_RUN_NOTES_MAX][256]; /* what of the input has no effect */
	uint32_t note_count;
};

/* --- run_world.c --- */

/*
 * Makes nodes with GPUs: run->node_gpus, run->memory_bytes. Call it before jobs are made. -EINVAL
 * with err, -ENOMEM.
 */
int td_run_take_nodes(struct td_run *run, struct td_err *err);
/*
 * Makes run->jobs of the trace, with run->profiles. -EINVAL with err: nothing to run, or a job that
 * td_cluster_misfit() names, unless bad lines are skipped. -ENOMEM.
 */
int td_run_make_jobs(struct td_run *run, struct td_err *err);
struct td_cluster_options td_run_options(const struct td_run *run);

/* --- run_said.c --- */

#define TD_RUN_SAID_MAX 16u

struct td_run_said {
	char text[TD_RUN_SAID_MAX][256];
	uint32_t count;
};

/*
 * Sums up in words, for every form of the report: stopped policies, undone jobs, and the first
 * policy against its baseline and against the best of the others, over the jobs that both have
 * done.
 */
void td_run_say(const struct td_run *run, struct td_run_said *ret);
/* Jobs that a policy failed or did not finish. */
uint32_t td_run_undone(const struct td_run_result *result);
/*
 * Tells whether no policy of the run left fewer jobs undone. Only such a policy may be called the
 * best at anything.
 */
bool td_run_is_whole(const struct td_run *run, uint32_t result);
/*
 * Returns the result to compare the first one with: fifo's, or that of the first other policy;
 * NULL: there is none.
 */
const struct td_run_result *td_run_baseline(const struct td_run *run);

/* --- */

/* Fills the notes, and puts each on stderr. */
void td_run_take_notes(struct td_run *run);

/* jobs-POLICY.csv, of the run that has just been; the table; all other files. */
int td_run_write_jobs(
	const struct td_run *run, const struct td_run_result *result, struct td_err *err);
void td_run_put_table(const struct td_run *run, FILE *out);
int td_run_write_all(const struct td_run *run, struct td_err *err);
