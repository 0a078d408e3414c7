/*
 * Names the columns of a trace or cluster that tandem-sim run ignores, once each on stderr and in
 * every report, so that nobody believes that they had an effect. The policies place jobs by GPUs,
 * tenants, classes and GPU memory alone.
 */
#include <stdarg.h>
#include <stdio.h>

#include "sim/command/run.h"

static void add_note(struct td_run *run, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void add_note(struct td_run *run, const char *format, ...)
{
	char *text = run->notes[run->note_count];
	va_list args;

	if (run->note_count == TD_RUN_NOTES_MAX)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(run->notes[0]), format, args);
	va_end(args);
	fprintf(stderr, "tandem-sim: %s\n", text);
	run->note_count++;
}

/*
 * Notes that guaranteed tenants were drawn, because the trace has no classes. Tenants differ in
 * size, so the seed matters.
 */
static void note_classes(struct td_run *run)
{
	uint32_t guaranteed = 0;
	bool classes = false;

	for (uint32_t i = 0; i < run->trace.count; i++)
		classes |= run->trace.jobs[i].class != TD_CLASS_BESTEFFORT;
	for (uint32_t i = 0; i < run->job_count; i++)
		guaranteed += run->jobs[i].class == TD_CLASS_GUARANTEED;
	if (classes && run->guaranteed_ppm)
		add_note(run, "--guaranteed is not used: the trace says who is (%u of %u jobs)",
			guaranteed, run->job_count);
	else if (run->guaranteed_ppm)
		add_note(run,
			"no job has a class: by --guaranteed %g %% of all tenants drawn are "
			"guaranteed, which "
			"are %u of %u jobs (%.1f %%)",
			run->guaranteed_ppm / 1e4, guaranteed, run->job_count,
			100. * guaranteed / run->job_count);
}

static void note_jobs(struct td_run *run)
{
	uint32_t all = run->trace.count, parts = 0, cpus = 0, memory = 0, batch = 0, online = 0;

	for (uint32_t i = 0; i < run->trace.count; i++) {
		const struct td_trace_job *job = &run->trace.jobs[i];

		parts += job->gpu_milli < 1000;
		cpus += job->cpu_milli > 0;
		memory += job->memory_mib > 0;
		batch += job->batch > 0;
		online += job->class == TD_CLASS_ONLINE;
	}
	if (run->trace.sets.count > 1)
		add_note(run,
			"column trace is not used: the %u traces that it names are run at once, "
			"one on "
			"top of the other; each needs a file of its own",
			run->trace.sets.count);
	if (run->trace.undated)
		add_note(run, "jobs without a duration are left out (%u of %u jobs)",
			run->trace.undated, all);
	note_classes(run);
	if (*run->trace.unknown)
		add_note(run, "columns of the trace that are not used: %s", run->trace.unknown);
	if (parts)
		add_note(run,
			"gpu_milli is not used: who asks for part of a GPU counts as a job of a "
			"whole one (%u of %u jobs)",
			parts, all);
	if (cpus)
		add_note(run,
			"cpu_milli is not used: every node has the CPUs that a job asks for (%u of "
			"%u jobs)",
			cpus, all);
	if (memory)
		add_note(run,
			"memory_mib is not used: every node has the host memory that a job asks "
			"for (%u of %u jobs)",
			memory, all);
	if (batch)
		add_note(run, "batch_size is not used (%u of %u jobs)", batch, all);
	if (online)
		add_note(run,
			"class online counts as guaranteed, and nobody's latency is looked at (%u "
			"of %u jobs)",
			online, all);
}

static void note_nodes(struct td_run *run)
{
	uint32_t first = TD_TRACE_NONE, others = 0, cpus = 0, memory = 0, smaller = 0;

	for (uint32_t n = 0; n < run->nodes.count; n++) {
		const struct td_node *node = &run->nodes.nodes[n];

		cpus += node->cpu_milli > 0;
		memory += node->memory_mib > 0;
		if (!node->gpus)
			continue;
		if (first == TD_TRACE_NONE)
			first = node->model;
		others += node->model != first;
		smaller += node->gpu_memory_bytes > run->memory_bytes;
	}
	if (*run->nodes.unknown)
		add_note(run, "columns of the cluster that are not used: %s", run->nodes.unknown);
	if (others)
		add_note(run,
			"gpu_model is not used: all GPUs are as fast as each other, of whatever "
			"model");
	if (smaller)
		add_note(run,
			"gpu_memory_gib: every GPU counts as one of %.6g GiB, the least (%u of %u "
			"nodes have more)",
			(double)run->memory_bytes / 0x1p30, smaller, run->nodes.count);
	if (cpus || memory)
		add_note(run, "cpu_milli and memory_mib of nodes are not used");
}

void td_run_take_notes(struct td_run *run)
{
	note_jobs(run);
	note_nodes(run);
}
