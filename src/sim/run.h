/* What tandem-sim run has read, made and found; run.c runs it, run_report.c writes it. */
#pragma once

#include <stdio.h>

#include "sim/metrics.h"
#include "sim/sched.h"

struct td_err;

#define TD_RUN_POLICIES_MAX 8u

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
	uint32_t *node_gpus;
	uint64_t memory_bytes;
	struct td_run_result {
		const struct td_sched *sched;
		double metrics[TD_METRIC_N];
		double *jct_s;
		struct td_sim_sample samples[TD_SIM_SAMPLES];
		uint32_t sample_count;
		bool stopped;
	} results[TD_RUN_POLICIES_MAX];
	uint32_t result_count;
};

/* jobs-POLICY.csv, of the run that has just been; the table; all other files. */
int td_run_write_jobs(
	const struct td_run *run, const struct td_run_result *result, struct td_err *err);
void td_run_put_table(const struct td_run *run, FILE *out);
int td_run_write_all(const struct td_run *run, struct td_err *err);
