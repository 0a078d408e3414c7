/* Starts a process for the daemon. */
#pragma once

#include <sys/types.h>

/*
 * Runs the program with the daemon's environment, in a process group of its own. Its descriptor
 * child_fd is the daemon's fd. In it all signals have their default effect, and none is blocked as
 * in the daemon. Returns 0 or a negative errno.
 */
int td_spawn(const char *program, char *const *argv, int fd, int child_fd, pid_t *ret_pid);
