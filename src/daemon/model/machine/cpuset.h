/*
 * The CPUs of besteffort jobs (MuxFlow 6: "the cpuset of Cgroup"). In the unified hierarchy of
 * control groups, the daemon divides its own group. An administrator must have delegated it
 * (Delegate=cpuset of systemd):
 *
 *   own               the group that the daemon was started in; no process is left in it
 *   own/tandemd       the daemon itself: a group with controllers has processes below it only
 *   own/besteffort    with cpuset.cpus: the processes of besteffort jobs
 *   own/jobs          processes that are besteffort no more and whose original group is unknown
 *
 * If the group cannot be divided, nothing is isolated, and `why` gives the reason.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define TD_CPUSET_PATH 512
#define TD_CPUSET_CPUS 108

/* Returns whether the text is a list of CPUs such as 0-3,8. */
bool td_cpuset_parse(const char *cpus);

struct td_cpuset {
	char own[TD_CPUSET_PATH]; /* the group's directory; "": it is not divided */
	/* Why the CPUs are not divided; "": they are divided, or nobody asked for it. */
	char why[256];
};

/*
 * Divides the group, or changes the CPUs of a group that is divided. `root` is the directory where
 * the unified hierarchy is mounted. `group` is the daemon's group as in /proc/self/cgroup. `cpus`
 * "" means all CPUs. Returns 0, or -errno with the reason in cpuset->why.
 */
int td_cpuset_set(struct td_cpuset *cpuset, const char *root, const char *group, const char *cpus,
	pid_t self);

/*
 * Restricts the process, with all its threads, to the CPUs of besteffort jobs. Returns 0 or -errno.
 */
int td_cpuset_join(const struct td_cpuset *cpuset, pid_t pid);
/*
 * Puts the process back into its original group under root; "" if that is unknown. Returns 0 or
 * -errno.
 */
int td_cpuset_leave(const struct td_cpuset *cpuset, const char *root, const char *group, pid_t pid);

/*
 * Returns whether the process would escape a limit by td_cpuset_join(): whether its group, or one
 * above it that is not above the daemon's own group, has a limit of memory, processes or CPU time,
 * or one that cannot be read. `group` is the process's own as in /proc/PID/cgroup, under root. If
 * so, writes a part of a sentence that names the group and the limit.
 */
bool td_cpuset_escapes(
	const struct td_cpuset *cpuset, const char *root, const char *group, char *why, size_t len);

/*
 * Returns whether another manager of jobs, such as Slurm or a container engine, made the group. It
 * goes by the names of the path's parts, such as docker-ID.scope or slurmstepd.scope.
 */
bool td_cpuset_is_foreign(const char *group);
