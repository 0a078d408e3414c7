/*
 * Makes jobs and nodes of the engine from a trace and a cluster that were read; see run.h. Nothing
 * here opens a file, so that a fuzzer reaches all of it.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/time.h"
#include "sim/base/random.h"
#include "sim/command/run.h"

/*
 * Tells whether a tenant was drawn as guaranteed, for traces without classes. It is the same for
 * all of a tenant's jobs.
 */
static bool is_drawn(const struct td_run *run, uint32_t tenant, uint32_t job)
{
	uint64_t state = run->seed * 1000003 + (tenant == TD_TRACE_NONE ? job + 77777u : tenant);

	return td_random_unit(&state) * TD_PPM < run->guaranteed_ppm;
}

static uint32_t kind_of(struct td_run *run, const struct td_trace_job *from, uint32_t job)
{
	int kind = td_profiles_find(run->profiles, td_names_text(&run->trace.names, from->model));
	uint64_t state = run->seed * 7919 + job;

	if (kind >= 0)
		return (uint32_t)kind;
	run->unknown_models++;
	return td_random_below(&state, run->profiles->count);
}

/* Tells whether no policy could ever place the job on this cluster. err then says why. */
static bool misfits(const struct td_run *run, const struct td_trace_job *from,
	const struct td_sim_job *job, struct td_err *err)
{
	const char *why = td_cluster_misfit(job, run->nodes.gpus, run->memory_bytes);

	if (why)
		td_err_set(err, -EINVAL,
			"%.100s:%u: job \"%.40s\" asks for %s: %u of %u GPUs, %.6g of %.6g GiB on "
			"each; --skip-bad leaves such jobs out",
			run->trace_path, from->line, td_names_text(&run->trace.names, from->id),
			why, job->gpus, run->nodes.gpus, (double)job->memory_bytes / 0x1p30,
			(double)run->memory_bytes / 0x1p30);
	return why;
}

int td_run_make_jobs(struct td_run *run, struct td_err *err)
{
	bool classes = false;

	if (!run->trace.has_durations)
		return td_err_set(err, -EINVAL,
			"%.120s: there is no column duration_s, so the trace cannot be run",
			run->trace_path);
	for (uint32_t i = 0; i < run->trace.count; i++)
		classes |= run->trace.jobs[i].class != TD_CLASS_BESTEFFORT;
	run->jobs = calloc(run->trace.count + 1, sizeof(*run->jobs));
	if (!run->jobs)
		return td_err_set(err, -ENOMEM, "out of memory");
	for (uint32_t i = 0; i < run->trace.count; i++) {
		const struct td_trace_job *from = &run->trace.jobs[i];
		struct td_sim_job *job = &run->jobs[run->job_count];

		if (from->duration_s < 0)
			continue;
		*job = (struct td_sim_job){.submit_ns = (uint64_t)(from->submit_s * 1e9),
			.work_s = from->duration_s,
			.gpus = from->gpus,
			.tenant = from->tenant == TD_TRACE_NONE ? 0 : from->tenant,
			.profile = kind_of(run, from, i),
			.class = from->class,
			.memory_bytes = from->memory_bytes,
			.host_cost = 4,
			.trace_index = i};
		if (from->class == TD_CLASS_ONLINE || (!classes && is_drawn(run, from->tenant, i)))
			job->class = TD_CLASS_GUARANTEED;
		if (!misfits(run, from, job, err))
			run->job_count++;
		else if (run->skip_bad)
			run->misfits++;
		else
			return -EINVAL;
	}
	if (!run->job_count)
		return td_err_set(err, -EINVAL, "%.120s: the trace has no job that can be run",
			run->trace_path);
	return 0;
}

int td_run_take_nodes(struct td_run *run, struct td_err *err)
{
	uint32_t count = 0;

	run->node_gpus = calloc(run->nodes.count + 1, sizeof(uint32_t));
	if (!run->node_gpus)
		return td_err_set(err, -ENOMEM, "out of memory");
	for (uint32_t n = 0; n < run->nodes.count; n++) {
		const struct td_node *node = &run->nodes.nodes[n];

		if (node->gpus > 16)
			return td_err_set(err, -EINVAL,
				"%.120s:%u: node \"%.40s\" has %u GPUs: expected 16 at most",
				run->cluster_path, node->line,
				td_names_text(&run->nodes.names, node->name), node->gpus);
		if (!node->gpus)
			continue;
		/*
		 * The engine knows one size of memory: the smallest, which every job can count on.
		 */
		if (node->gpu_memory_bytes &&
			(!run->memory_bytes || node->gpu_memory_bytes < run->memory_bytes))
			run->memory_bytes = node->gpu_memory_bytes;
		run->nodes.nodes[count] = *node;
		run->node_gpus[count++] = node->gpus;
	}
	run->nodes.count = count;
	if (!count)
		return td_err_set(err, -EINVAL, "%.120s: no node has a GPU", run->cluster_path);
	return 0;
}

struct td_cluster_options td_run_options(const struct td_run *run)
{
	return (struct td_cluster_options){
		.contention = {.proportional = run->proportional, .capped_pressure = 1},
		.costs = {.restart_s = (double)run->restart_ns * 1e-9,
			.checkpoint_s = (double)run->checkpoint_ns * 1e-9},
		.seed = run->seed};
}
