/* Finds the processes of a job by /proc. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/*
 * Returns whether the process is stopped by a signal or a debugger. Returns false if it is gone or
 * a zombie.
 */
bool td_process_is_stopped(pid_t pid);

/*
 * Sends the signal (0: none) to each living descendant of this process whose environment has
 * TANDEM_JOB. So a daemon that was started on the way gets none. The processes in `except` are left
 * out. SIGTERM is followed by SIGCONT, since a stopped process would not see it. Returns the number
 * of such processes, or -errno. This process must be a subreaper, so that processes whose parent
 * has ended are found.
 */
int td_processes_signal(int signal, const pid_t *except, unsigned except_count);

/*
 * Sends the signal to the process `root`, a child of this one, and to its living descendants. Those
 * whose parent has ended are not found. SIGTERM is followed by SIGCONT.
 */
void td_processes_signal_below(pid_t root, int signal);
/* Lists `root` and its living descendants. Returns their number, at most `max`. */
unsigned td_processes_below(pid_t root, pid_t *ret, unsigned max);
