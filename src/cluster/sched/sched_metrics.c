/* This file implements sched_metrics.h. */
#include "cluster/sched/sched_metrics.h"

#include "base/text.h"

static uint32_t nodes_of(const struct td_brain *brain)
{
	struct td_brain_node_state node;
	uint32_t count = 0;

	for (uint32_t n = 0; n < td_brain_params_of(brain)->shape.nodes_max; n++)
		count += td_brain_node_at(brain, n, &node);
	return count;
}

static void add(
	struct td_text *text, const char *name, const char *type, const char *help, double value)
{
	td_text_add(text, "# HELP %s %s\n# TYPE %s %s\n%s %.17g\n", name, help, name, type, name,
		value);
}

void td_sched_metrics_write(
	const struct td_sched_counts *count, const struct td_brain *brain, struct td_text *text)
{
	uint32_t jobs[TD_BRAIN_PHASE_N] = {0}, max = brain ? td_brain_jobs_max(brain) : 0;

	for (uint32_t at = 0; at < max; at++) {
		const struct td_brain_job *job = td_brain_job(brain, at);

		if (job)
			jobs[job->phase]++;
	}
#define METRIC(id, type, help, known, value)                                                       \
	if (known)                                                                                 \
		add(text, "tandem_sched_" #id, #type, help, (double)(value));
#include "cluster/sched/sched_metrics.def"
#undef METRIC
}
