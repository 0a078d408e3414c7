/* The processes of a job, by /proc. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* Is it stopped, by a signal or by a debugger? False also where it is gone or a zombie. */
bool td_process_is_stopped(pid_t pid);

/*
 * Sends the signal (0: none) to each living descendant of this process that belongs to a job,
 * which its environment says (TANDEM_JOB): so to nothing that has only been started on the way, as
 * a daemon. The processes of `except` are left out. SIGTERM comes with SIGCONT, since a stopped
 * process would not see it. Returns how many there are, or -errno. This process has to be a
 * subreaper, so that none is lost whose parent has ended.
 */
int td_processes_signal(int signal, const pid_t *except, unsigned except_count);
