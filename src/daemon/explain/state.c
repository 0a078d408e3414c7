/* The state of a process in one word, as `tandem ps` and `tandem explain` show it. */
#include <string.h>

#include "daemon/explain/facts.h"
#include "daemon/model/job.h"
#include "daemon/model/node.h"
#include "daemon/node/stopped.h"

uint64_t td_process_needs_since_ns(const struct td_process *process)
{
	uint64_t since = 0;
	struct td_list *it;

	td_list_for_each (it, &process->clients) {
		const struct td_client *client = td_container_of(it, struct td_client, of_process);

		if (client->needs && (!since || client->need_since_ns < since))
			since = client->need_since_ns;
	}
	return since;
}

const char *td_process_state(const struct td_process *process)
{
	if (process->foreign)
		return *process->ungoverned ? "ungoverned" : "foreign";
	if (process->failed)
		return "failed";
	if (process->stop.is == TD_STOP_LOCKED)
		return process->parking.is_saved ? "checkpointed" : "locked";
	if (process->stop.is)
		return process->stop.is == TD_STOP_SILENT ? "unresponsive" : "stopped";
	if (process->leave.asked_ns)
		return "leaving";
	if (process->job->settings.paused || process->job->held_back)
		return "paused";
	if (process->moving.closes)
		return "moving";
	switch (process->phase) {
	case TD_PHASE_OPEN: return process->wants ? "running" : "idle";
	case TD_PHASE_DRAINING: return "draining";
	case TD_PHASE_FILLING: return "filling";
	case TD_PHASE_CLOSED:
	case TD_PHASE_N: break;
	}
	return process->wants || td_process_needs_since_ns(process) ? "waiting" : "idle";
}

const char *td_process_state_now(const struct td_node *node, const struct td_process *process)
{
	const char *state = td_process_state(process);

	if (!strcmp(state, "failed") || process->stop.is >= TD_STOP_SILENT)
		return state;
	return td_stopped_now(node, process) ? "stopped" : state;
}
