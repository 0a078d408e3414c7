/*
 * The data of a `tandem-sim run`. run.c runs the policies, run_world.c makes jobs and nodes,
 * run_notes.c names columns without effect, run_said.c writes the summary, run_report.c the report.
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
	uint32_t misfits; /* jobs left out because no policy could place them on this cluster */
	uint32_t *node_gpus;
	uint64_t memory_bytes;
	struct td_run_result {
		const struct td_sched *sched;
		double metrics[TD_METRIC_N];
		double *jct_s;           /* completion times of the jobs that count, ascending */
		struct td_sim_job *jobs; /* the jobs as they were at the end of the run */
		uint64_t first_ns, end_ns;
		struct td_sim_sample samples[TD_SIM_SAMPLES];
		uint32_t sample_count;
		bool stopped;
	} results[TD_RUN_POLICIES_MAX];
	uint32_t result_count;
	/* Policies that were not run, because of a stop. */
	const struct td_sched *left[TD_RUN_POLICIES_MAX];
	uint32_t left_count;
	uint32_t counted; /* number of jobs done under every policy; all times are of these */
	char notes[TD_RUN_NOTES_MAX][256]; /* parts of the input without effect */
	uint32_t note_count;
};

/* --- run_world.c --- */

/*
 * Fills run->node_gpus and run->memory_bytes from the nodes. Call it before td_run_make_jobs().
 * Returns 0; -EINVAL with err; -ENOMEM.
 */
int td_run_take_nodes(struct td_run *run, struct td_err *err);
/*
 * Makes run->jobs from the trace, with run->profiles. Returns 0; -EINVAL with err: nothing to run,
 * or a job that td_cluster_misfit() names, unless bad lines are skipped; -ENOMEM.
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
 * Writes the summary for every form of the report: stopped policies, jobs that are not done, and
 * how the first policy compares with its baseline and with the best other one, over the jobs that
 * both have done.
 */
void td_run_say(const struct td_run *run, struct td_run_said *ret);
/* Returns the number of jobs that a policy failed or did not finish. */
uint32_t td_run_undone(const struct td_run_result *result);
/*
 * Tells whether no policy of the run has done more jobs than this one. Only then may it be called
 * the best in a figure.
 */
bool td_run_is_whole(const struct td_run *run, uint32_t result);
/*
 * Returns the result with which the first policy's is compared: that of fifo, or else of the first
 * other policy. NULL: only one policy was run.
 */
const struct td_run_result *td_run_baseline(const struct td_run *run);

/* --- */

/* Fills the notes, and prints each on stderr. */
void td_run_take_notes(struct td_run *run);

/* Write the report: jobs-POLICY.csv of a policy's run, the table, and all other files. */
int td_run_write_jobs(
	const struct td_run *run, const struct td_run_result *result, struct td_err *err);
void td_run_put_table(const struct td_run *run, FILE *out);
int td_run_write_all(const struct td_run *run, struct td_err *err);
