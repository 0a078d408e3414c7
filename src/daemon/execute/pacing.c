/*
 * Computes the fields of the gate page that tell a process how to pace its work. Reads the fields
 * of the meter page in which the process reports its work.
 */
#include "base/time.h"
#include "daemon/model/bursts.h"
#include "daemon/model/job.h"
#include "daemon/model/node.h"
#include "daemon/model/services/service.h"
#include "daemon/node/metering.h"

static bool uses_gpu_of(const struct td_process *a, const struct td_process *b)
{
	struct td_list *i, *j;

	td_list_for_each (i, &a->clients)
		td_list_for_each (j, &b->clients)
			if (td_container_of(i, struct td_client, of_process)->gpu ==
				td_container_of(j, struct td_client, of_process)->gpu)
				return true;
	return false;
}

/*
 * Returns whether another process wants the GPU. The flag is needed only by a process that has a
 * duty or is measured, and it needs no count.
 */
static bool has_rivals(const struct td_node *node, const struct td_process *process)
{
	struct td_list *it;

	td_list_for_each (it, &node->processes) {
		const struct td_process *other = td_process_at(it);

		if (other != process && !other->stop.is && other->phase != TD_PHASE_CLOSED &&
			other->wants && uses_gpu_of(process, other))
			return true;
	}
	return false;
}

/*
 * A batch size set by hand takes precedence over the plan's. Neither may exceed the service's
 * maximum.
 */
static uint32_t batch_of(const struct td_process *process, const struct td_grant *grant)
{
	uint32_t batch = process->job->settings.batch;
	uint32_t most = process->service ? process->service->batch_max : 0;

	batch = batch ? batch : grant->batch;
	return most && batch > most ? most : batch;
}

/* Returns the plan's pacing, limited by what was set for the job by hand. */
struct td_pacing td_node_pacing(
	const struct td_node *node, const struct td_process *process, const struct td_grant *grant)
{
	struct td_pacing pacing = {.window_ns = grant->window_ns,
		.duty_ppm = grant->duty_ppm,
		.steps = grant->steps ? TD_WANTED_STEPS : 0,
		.long_ns = grant->long_ns,
		.long_every_ns = grant->long_every_ns,
		.batch = batch_of(process, grant),
		.hold_new = grant->hold_new,
		.detect = grant->steps && !(process->steps.count && !process->steps.unit)};
	uint32_t cap = process->job->settings.duty_ppm;

	if (td_bursts_are_wanted(process)) {
		pacing.steps |= TD_WANTED_BURSTS;
		pacing.detect = 1;
	}
	/* A job with a duty cap of its own may use a pause of the others fully, up to that cap. */
	if (grant->pause_until_ns && cap) {
		pacing.duty_ppm = 0;
	} else {
		pacing.pause_until_ns = grant->pause_until_ns;
		pacing.sharers = grant->sharers;
	}
	if (cap && (!pacing.duty_ppm || cap < pacing.duty_ppm))
		pacing.duty_ppm = cap;
	if (pacing.duty_ppm >= TD_PPM)
		pacing.duty_ppm = 0;
	if (!pacing.duty_ppm && !pacing.window_ns && td_metering_is_wanted(node)) {
		pacing.window_ns = TD_WINDOW_METER;
		pacing.rivals = has_rivals(node, process) ? TD_RIVALS : 0;
	}
	if (pacing.duty_ppm) {
		pacing.rivals = process->shares_moments     ? TD_RIVALS_YIELD
				: has_rivals(node, process) ? TD_RIVALS
							    : 0;
		pacing.hold = process->hold;
		pacing.alone = process->alone;
	}
	return pacing;
}

uint32_t td_process_fresh(const struct td_process *process, uint32_t *ret_tries)
{
	uint32_t fresh;

	*ret_tries = 0;
	if (!process->meter)
		return 0;
	fresh = atomic_load(&process->meter->fresh);
	*ret_tries = fresh >> TD_FRESH_TRIES_SHIFT;
	return TD_FRESH_TOLD | (fresh & TD_FRESH_BIT_WAITS ? TD_FRESH_WAITS : 0) |
	       (fresh & TD_FRESH_BIT_IN_FLIGHT ? TD_FRESH_IN_FLIGHT : 0);
}
