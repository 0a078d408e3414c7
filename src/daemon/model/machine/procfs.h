/*
 * The state of a process from /proc and its control groups: whether it is stopped, and by what. The
 * parsers read text that others can influence: a program chooses its name, and the maker of a
 * control group chooses the group's name.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Why a process does not run. */
enum td_stop {
	TD_STOP_NONE,   /* the process runs, or its state is unknown */
	TD_STOP_SIGNAL, /* SIGSTOP, SIGTSTP (Ctrl-Z), `scontrol suspend` */
	TD_STOP_TRACED, /* a debugger has stopped it */
	TD_STOP_FROZEN, /* the process's control group is frozen, as by `docker pause` */
	TD_STOP_SILENT, /* the process may run, but does not answer the daemon (stopped.h) */
	TD_STOP_LOCKED, /* the driver blocks its calls for a checkpoint (execute/parking.h) */
	TD_STOP_N,
};

struct td_procfs_stat {
	char state;         /* the state of its first thread */
	uint64_t cpu_ticks; /* CPU time of all its threads so far, in clock ticks */
	/*
	 * The start time in clock ticks since boot. It tells the process from a later one with the
	 * same pid.
	 */
	uint64_t start_ticks;
};

/* Parses the text of /proc/PID/stat. Returns false if it is not such a text. */
bool td_procfs_parse_stat(const char *text, struct td_procfs_stat *ret);

/*
 * Parses /proc/PID/cgroup. Writes the path of the process's group in the hierarchy of the
 * controller ("": the unified hierarchy), without a slash at its end. Returns false if there is
 * none, if it does not fit, or if it leads out of the visible tree.
 */
bool td_procfs_parse_cgroup(const char *text, const char *controller, char *ret, size_t len);

/*
 * These parse a group's cgroup.events (unified) or freezer.state (version 1), and return whether it
 * is frozen.
 */
bool td_procfs_parse_events(const char *text);
bool td_procfs_parse_freezer(const char *text);

/* Returns 0, or -errno if the process is gone or not visible here. */
int td_procfs_stat(pid_t pid, struct td_procfs_stat *ret);

/*
 * Returns the start time of the process that has this pid now, if it belongs to that user (by its
 * real or effective uid); else 0. It is read when a connection is accepted, so that the pid is not
 * mistaken for another process later.
 */
uint64_t td_procfs_start_ticks(pid_t pid, uid_t uid);

/*
 * Reads the real uid of a process. Returns 0, or -errno if the process is gone or not visible here.
 */
int td_procfs_uid(pid_t pid, uid_t *ret);

/*
 * Reads the process's group in the unified hierarchy ("" is the root), as td_procfs_parse_cgroup()
 * does. Returns 0 or -errno.
 */
int td_procfs_group(pid_t pid, char *ret, size_t len);

/* Returns why the process does not run, from the state in `stat` and from its control groups. */
enum td_stop td_procfs_stop(pid_t pid, const struct td_procfs_stat *stat);

/*
 * Returns a descriptor that becomes readable when the process at the other end of the socket ends,
 * or -errno. pid is from SO_PEERCRED.
 */
int td_procfs_pidfd(int socket, pid_t pid);

/*
 * Sends a signal to the process at the other end of the socket, and never to a later one with its
 * pid. start_ticks is its td_procfs_start_ticks(), or 0 if unknown. Returns 0 or -errno; -ESRCH:
 * the process has ended.
 */
int td_procfs_signal(int socket, pid_t pid, uint64_t start_ticks, int signal);
