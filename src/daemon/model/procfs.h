/*
 * The state of a process by /proc and its control groups: is it stopped, and by what? The parsers
 * read text that others can influence: a program chooses its name, and the maker of a control group
 * chooses the group's name.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Why a process does not run. */
enum td_stop {
	TD_STOP_NONE,   /* it runs, or nothing is known of it */
	TD_STOP_SIGNAL, /* SIGSTOP, SIGTSTP (Ctrl-Z), `scontrol suspend` */
	TD_STOP_TRACED, /* a debugger has stopped it */
	TD_STOP_FROZEN, /* its control group is frozen: `docker pause` */
	TD_STOP_SILENT, /* it may run, but does not answer (stopped.h) */
	TD_STOP_N,
};

struct td_procfs_stat {
	char state;         /* of its first thread */
	uint64_t cpu_ticks; /* CPU time of all its threads so far, in clock ticks */
	/* Start time in clock ticks since boot: tells it from a later process with the same pid. */
	uint64_t start_ticks;
};

/* The text of /proc/PID/stat. False: it is not such a text. */
bool td_procfs_parse_stat(const char *text, struct td_procfs_stat *ret);

/*
 * Parses /proc/PID/cgroup: the path of its group in the hierarchy of that controller ("": the
 * unified one), without a slash at its end. False: there is none, it does not fit, or it leads out
 * of the visible tree.
 */
bool td_procfs_parse_cgroup(const char *text, const char *controller, char *ret, size_t len);

/* Parses a group's cgroup.events (unified) or freezer.state (version 1): is it frozen? */
bool td_procfs_parse_events(const char *text);
bool td_procfs_parse_freezer(const char *text);

/* Returns 0, or -errno if the process is gone or not visible here. */
int td_procfs_stat(pid_t pid, struct td_procfs_stat *ret);

/*
 * Returns the start time of the process that has this number now, if it is of that user (by its
 * real or effective uid); else 0. Called when a connection is accepted, it keeps the number from
 * standing for somebody else's process later.
 */
uint64_t td_procfs_start_ticks(pid_t pid, uid_t uid);

/* Its real uid. 0, or -errno if the process is gone or not visible here. */
int td_procfs_uid(pid_t pid, uid_t *ret);

/* Its group in the unified hierarchy ("" is the root), as td_procfs_parse_cgroup(). 0 or -errno. */
int td_procfs_group(pid_t pid, char *ret, size_t len);

/* Combines the state in its stat and its control groups. */
enum td_stop td_procfs_stop(pid_t pid, const struct td_procfs_stat *stat);

/*
 * Returns a descriptor that is readable once the process at the other end of the socket has ended,
 * or -errno. pid is from SO_PEERCRED.
 */
int td_procfs_pidfd(int socket, pid_t pid);

/*
 * Sends a signal to the process at the other end of the socket: never to a later one that has its
 * number. start_ticks: td_procfs_start_ticks() of it, 0 if not known. 0 or -errno; -ESRCH: it has
 * ended.
 */
int td_procfs_signal(int socket, pid_t pid, uint64_t start_ticks, int signal);
