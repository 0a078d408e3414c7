/* The MPS control daemon. */
#pragma once

#include <stddef.h>

/*
 * Runs the daemon of that pipe directory until quit. ready_fd, if not -1, gets one byte when it
 * serves, or a sentence. Returns the exit status.
 */
int mps_daemon_run(const char *pipe_directory, const char *log_directory, int ready_fd);
