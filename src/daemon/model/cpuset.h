/*
 * The CPUs of besteffort jobs (MuxFlow 6: "the cpuset of Cgroup"). In the unified hierarchy of
 * control groups the daemon divides its own group, which somebody must have given it
 * (Delegate=cpuset of systemd):
 *
 *	own               the group that the daemon was started in; no process is left in it
 *	own/tandemd       the daemon itself: a group with controllers has processes below it only
 *	own/besteffort    with cpuset.cpus: the processes of besteffort jobs
 *	own/jobs          processes that are besteffort no more, and of which it is not known where
 *	                  they came from
 *
 * Where that is not so, nothing is isolated, and `why` says why.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#define TD_CPUSET_PATH 512
#define TD_CPUSET_CPUS 108

/* Is it a list such as 0-3,8? */
bool td_cpuset_parse(const char *cpus);

struct td_cpuset {
	char own[TD_CPUSET_PATH]; /* its directory; "": not divided */
	char why[256];            /* why not; "": it is, or was not asked for */
};

/*
 * Divides the group, or changes the CPUs of one that is divided. root: where the unified hierarchy
 * is mounted; group: the daemon's, as /proc/self/cgroup has it; cpus "": all, as without this.
 * Returns 0, or -errno with *why.
 */
int td_cpuset_set(struct td_cpuset *cpuset, const char *root, const char *group, const char *cpus,
	pid_t self);

/* The process, with all its threads, gets the CPUs of besteffort jobs. 0 or -errno. */
int td_cpuset_join(const struct td_cpuset *cpuset, pid_t pid);
/* Back to the group where it was under root; "": not known. 0 or -errno. */
int td_cpuset_leave(const struct td_cpuset *cpuset, const char *root, const char *group, pid_t pid);

/* A group that somebody else has made for jobs of his own, such as Slurm or a container engine. */
bool td_cpuset_is_foreign(const char *group);
