/*
 * Any bytes as a trace and a cluster, from the readers into the engine and to the run's figures,
 * under a scheduler that the first byte names. The trace precedes the first line of "--", the
 * cluster follows it. A run has few jobs and GPUs, and is cut after a few thousand events, because
 * invalid states show early.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "sim/base/csv.h"
#include "sim/command/run.h"

#define JOBS_MAX   48u
#define GPUS_MAX   64u
#define LOOKS_MAX  4 /* of the engine at its caller, 1,024 events apart */
#define WORK_MAX_S 1e6

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static struct td_cluster cluster;
static volatile sig_atomic_t stop;
static uint32_t looks;

static void look(double done, void *arg)
{
	(void)arg;
	if (!(done >= 0 && done <= 1))
		abort();
	if (++looks >= LOOKS_MAX)
		stop = 1;
}

static int read_both(
	const char *text, size_t len, const char *middle, struct td_run *run, struct td_err *err)
{
	struct td_csv csv;
	size_t before = (size_t)(middle - text), after = before + 4;
	int r = td_csv_open_text(&csv, "trace", text, before, err);

	if (r)
		return r;
	r = td_trace_take(&csv, run->skip_bad, &run->trace, err);
	td_csv_close(&csv);
	r = r ? r : td_csv_open_text(&csv, "cluster", text + after, len - after, err);
	if (r)
		return r;
	r = td_nodes_take(&csv, run->skip_bad, &run->nodes, err);
	td_csv_close(&csv);
	return r;
}

/* As much of it as a run of a few milliseconds can have. */
static void cut(struct td_run *run)
{
	run->trace.count = run->trace.count < JOBS_MAX ? run->trace.count : JOBS_MAX;
	for (uint32_t i = 0; i < run->trace.count; i++)
		run->trace.jobs[i].duration_s = fmin(run->trace.jobs[i].duration_s, WORK_MAX_S);
	for (uint32_t n = 0, gpus = 0; n < run->nodes.count; n++) {
		gpus += run->nodes.nodes[n].gpus;
		if (gpus <= GPUS_MAX)
			continue;
		run->nodes.gpus = gpus - run->nodes.nodes[n].gpus;
		run->nodes.count = n;
	}
}

static void check(const struct td_run *run)
{
	uint32_t on[GPUS_MAX] = {0}, counts[TD_SIM_STATUS_N] = {0};
	double metrics[TD_METRIC_N];

	for (uint32_t i = 0; i < run->job_count; i++) {
		const struct td_sim_job *job = &run->jobs[i];

		counts[job->status]++;
		if (!(job->left_s >= 0 && job->speed >= 0 && job->speed <= 1 + 1e-9))
			abort();
		if (job->status == TD_SIM_DONE &&
			(job->start_ns < job->submit_ns ||
				(double)(job->end_ns - job->start_ns) * 1e-9 <
					job->work_s * (1 - 1e-9) - 1e-6))
			abort(); /* faster than alone */
		for (uint32_t k = 0; job->status == TD_SIM_RUNNING && k < job->gpus; k++)
			on[cluster.places[job->place + k]]++;
	}
	for (uint32_t g = 0; g < cluster.gpu_count; g++)
		if (on[g] != cluster.gpus[g].count || on[g] > TD_SIM_OCCUPANTS)
			abort();
	if (counts[TD_SIM_DONE] + counts[TD_SIM_FAILED] != cluster.ended)
		abort();
	if (td_metrics_of(&cluster, metrics, NULL))
		return;
	if (metrics[TD_METRIC_BUSY_PERCENT] > 100 + 1e-6 ||
		metrics[TD_METRIC_JCT_MEAN_S] > metrics[TD_METRIC_SIMULATED_S] + 1e-6)
		abort();
}

static void simulate(struct td_run *run, const struct td_sched *sched)
{
	struct td_cluster_options options = td_run_options(run);

	stop = 0;
	looks = 0;
	options.stop = &stop;
	options.progress = look;
	if (td_cluster_init(&cluster, &options, run->profiles, run->node_gpus, run->nodes.count,
		    run->memory_bytes, run->jobs, run->job_count, sched))
		return;
	td_cluster_run(&cluster);
	check(run);
	td_cluster_deinit(&cluster);
}

static void deinit(struct td_run *run)
{
	td_trace_deinit(&run->trace);
	td_nodes_deinit(&run->nodes);
	free(run->jobs);
	free(run->node_gpus);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static const struct td_sched *const scheds[] = {&td_sched_fifo, &td_sched_preempt,
		&td_sched_gandiva, &td_sched_antman, &td_sched_tandem, &td_sched_round_robin,
		&td_sched_nvshare, &td_sched_dcuda};
	static struct td_profiles profiles;
	struct td_run run = {.trace_path = "trace",
		.cluster_path = "cluster",
		.profiles = &profiles,
		.restart_ns = 60000000000,
		.checkpoint_ns = 1800000000000};
	const char *text = (const char *)data + 1, *middle;
	struct td_err err;

	if (!len)
		return 0;
	run.skip_bad = data[0] & 8;
	run.proportional = data[0] & 16;
	run.guaranteed_ppm = data[0] & 32 ? 500000 : 0;
	middle = memmem(text, len - 1, "\n--\n", 4);
	if (!middle)
		return 0;
	if (!profiles.count)
		td_profiles_generic(&profiles);
	if (!read_both(text, len - 1, middle, &run, &err)) {
		cut(&run);
		if (!td_run_take_nodes(&run, &err) && !td_run_make_jobs(&run, &err))
			simulate(&run, scheds[data[0] % 8]);
	}
	deinit(&run);
	return 0;
}
