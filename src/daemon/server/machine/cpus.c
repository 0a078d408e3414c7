/* This file implements cpus.h. */
#include "daemon/server/machine/cpus.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/model/job.h"
#include "daemon/model/node.h"
#include "daemon/model/machine/procfs.h"

/* Returns the root of the unified hierarchy. Beside version 1 it is one directory deeper. */
static const char *find_root(const char *option)
{
	if (strcmp(option, "auto"))
		return option;
	return access("/sys/fs/cgroup/cgroup.controllers", F_OK) ? "/sys/fs/cgroup/unified"
								 : "/sys/fs/cgroup";
}

static void change(struct td_cpus *cpus, const struct td_options *options)
{
	char group[TD_CPUSET_PATH];

	snprintf(cpus->root, sizeof(cpus->root), "%s", find_root(options->cgroup_root));
	if (td_procfs_group(getpid(), group, sizeof(group)))
		group[0] = 0;
	if (td_cpuset_set(&cpus->cpuset, cpus->root, group, cpus->set, getpid()))
		td_log(TD_LOG_WARN, "besteffort.cpus=%s %s", cpus->set, cpus->cpuset.why);
}

static void keep(struct td_cpus *cpus, struct td_node *node, struct td_process *process,
	const char *why, uint64_t now_ns)
{
	char detail[256];

	process->cpus = TD_CPUS_KEPT;
	snprintf(detail, sizeof(detail), "%s, which it would escape", why);
	td_node_event(node, TD_EVENT_CPUS, process, TD_GPU_ANY, now_ns, 0, 0, detail);
	cpus->kept = process->id;
	snprintf(cpus->kept_why, sizeof(cpus->kept_why), "process %d runs on all CPUs: %s",
		(int)process->pid, detail);
}

static void join(
	struct td_cpus *cpus, struct td_node *node, struct td_process *process, uint64_t now_ns)
{
	char group[TD_CPUSET_PATH], why[224];
	int r = td_procfs_group(process->pid, group, sizeof(group));

	if (!r && td_cpuset_is_foreign(group)) {
		process->cpus = TD_CPUS_KEPT;
		return;
	}
	if (!r && td_cpuset_escapes(&cpus->cpuset, cpus->root, group, why, sizeof(why))) {
		keep(cpus, node, process, why, now_ns);
		return;
	}
	if (!r)
		r = td_cpuset_join(&cpus->cpuset, process->pid);
	process->cpus = r ? TD_CPUS_KEPT : TD_CPUS_BESTEFFORT;
	if (r)
		td_log(TD_LOG_WARN,
			"pid=%d %s: the process cannot be moved to the CPUs of besteffort jobs, "
			"and runs on all",
			(int)process->pid, strerror(-r));
	else if (!strstr(group, "/besteffort"))
		process->came_from = strdup(group);
}

static void leave(struct td_cpus *cpus, struct td_process *process)
{
	(void)td_cpuset_leave(&cpus->cpuset, cpus->root,
		process->came_from ? process->came_from : "", process->pid);
	process->cpus = TD_CPUS_ANY;
}

void td_cpus_turn(struct td_cpus *cpus, struct td_node *node, uint64_t now_ns)
{
	const char *set = strcmp(node->options.cpus, "none") ? node->options.cpus : "";
	struct td_list *it;

	if (!cpus->looked || strcmp(set, cpus->set)) {
		cpus->looked = true;
		strcpy(cpus->set, set);
		change(cpus, &node->options);
	}
	if (!*cpus->cpuset.own)
		return;
	td_list_for_each (it, &node->processes) {
		struct td_process *process = td_process_at(it);
		bool is_besteffort = process->job->settings.class == TD_CLASS_BESTEFFORT;

		if (is_besteffort && *set && process->cpus == TD_CPUS_ANY)
			join(cpus, node, process, now_ns);
		else if (!is_besteffort && process->cpus == TD_CPUS_BESTEFFORT)
			leave(cpus, process);
	}
}

const char *td_cpus_why(
	const struct td_cpus *cpus, const struct td_node *node, struct td_identity reader)
{
	struct td_list *it;

	if (*cpus->cpuset.why || !*cpus->set)
		return cpus->cpuset.why;
	td_list_for_each (it, &node->processes)
		if (*cpus->kept_why && td_process_at(it)->id == cpus->kept &&
			td_identity_may(reader, td_process_at(it)->who))
			return cpus->kept_why;
	return "";
}
