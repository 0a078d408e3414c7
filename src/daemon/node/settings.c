/* Settings of a job that a user changes while it runs: checked, set, and told to its processes. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "daemon/memory/capacity.h"
#include "daemon/model/job.h"
#include "daemon/model/node.h"
#include "daemon/node/tenant.h"

/*
 * Sends a job's settings to the job's own processes only. Otherwise one user could flood other
 * users' processes with changes of settings.
 */
void td_job_tell(struct td_node *node, const struct td_job *job)
{
	const struct td_job_settings *settings = &job->settings;
	struct td_msg msg = {.type = TD_MSG_TYPE_settings};
	struct td_list *it, *c;

	msg.settings.class = (uint8_t)settings->class;
	msg.settings.weight = settings->weight;
	msg.settings.upgrade = settings->upgrade;
	msg.settings.duty_ppm = settings->duty_ppm;
	msg.settings.slack_ppm = settings->slack_ppm;
	msg.settings.batch = settings->batch;
	snprintf(msg.settings.mem, sizeof(msg.settings.mem), "%s", settings->mem);
	snprintf(msg.settings.mem_soft, sizeof(msg.settings.mem_soft), "%s", settings->mem_soft);
	td_list_for_each (it, &job->members) {
		const struct td_process *process = td_container_of(it, struct td_process, of_job);

		/* The process reports these settings to its next daemon. */
		node->io.send(process->peer, &msg);
		td_list_for_each (c, &process->clients)
			td_capacity_tell(node, td_container_of(c, struct td_client, of_process));
	}
}

/*
 * Returns whether all clients of the process can keep memory on the host. A process that has not
 * come to a GPU yet is checked later.
 */
static bool can_spill(const struct td_process *process)
{
	struct td_list *it;

	td_list_for_each (it, &process->clients)
		if (!td_container_of(it, struct td_client, of_process)->spills)
			return false;
	return process->backend == TD_BACKEND_SWAP;
}

/* Root may change everybody's jobs. */
static bool may_change(struct td_identity who, const struct td_process *process)
{
	return td_identity_may(who, process->who);
}

int td_node_check_job(const struct td_node *node, struct td_identity who, const char *name,
	const char *key, const char *value, struct td_err *err)
{
	bool found = false;
	struct td_list *it;

	td_list_for_each (it, &node->processes) {
		const struct td_process *process = td_process_at(it);
		struct td_job_settings copy = process->job->settings;
		int r;

		if (!td_process_is_named(process, name) || !may_change(who, process))
			continue;
		r = td_job_set(&copy, key, value, err);
		if (r)
			return r;
		if (*copy.mem_soft && !strcmp(key, "mem-soft") && !can_spill(process))
			return td_err_set(err, -EINVAL,
				"the memory of job \"%.64s\" stays on the GPU: mem-soft is for "
				"jobs that were started with --backend swap, where the driver has "
				"memory of the host that the GPU can use",
				name);
		found = true;
	}
	if (!found)
		return td_job_unknown(name, err);
	return td_tenant_check(node, &(struct td_tenant_change){who, name, key, value}, err);
}

/* Changes all processes of that name that the user may change; on an error none. */
int td_node_set_job(struct td_node *node, struct td_identity who, const char *name, const char *key,
	const char *value, uint64_t now_ns, struct td_err *err)
{
	int r = td_node_check_job(node, who, name, key, value, err);
	char what[128];
	struct td_list *it;

	if (r)
		return r;
	snprintf(what, sizeof(what), "%.40s=%.40s", key, value);
	td_list_for_each (it, &node->processes) {
		const struct td_process *process = td_process_at(it);

		if (!td_process_is_named(process, name) || !may_change(who, process))
			continue;
		(void)td_job_set(&process->job->settings, key, value, NULL);
		process->job->changed = true;
		td_node_event(node, TD_EVENT_OPTION, process, TD_GPU_ANY, now_ns, 0, 0, what);
	}
	td_tenant_changed(node);
	td_list_for_each (it, &node->jobs) {
		struct td_job *job = td_container_of(it, struct td_job, of_node);

		if (job->changed)
			td_job_tell(node, job);
		job->changed = false;
	}
	return 0;
}
