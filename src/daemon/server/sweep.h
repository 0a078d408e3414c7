/*
 * The directory in which programs that share memory meet (proto/shared_dir.h). The daemon makes it,
 * restores it, and removes the sockets of programs that were killed. Others may put anything into
 * it: only sockets whose names have the right form are removed, all of them are checked, and few at
 * a time. A sweep is requested; at most one begins per second.
 */
#pragma once

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>

#include "proto/shared_dir.h"

struct td_sweep {
	char dir[TD_SHARED_DIR_MAX]; /* empty: there is none */
	DIR *entries;                /* a sweep is under way */
	uint64_t due_ns;             /* one is asked for; 0: nothing is expected to be there */
	uint64_t next_ns;            /* none begins before */
	uint64_t piece_ns;           /* the one under way goes on */
	bool again;                  /* it has seen some that were too young */
};

/*
 * 0 or -errno, which does not stop a daemon: programs that cannot meet there meet elsewhere, or get
 * an error.
 */
int td_sweep_init(struct td_sweep *sweep, const char *socket);
/* Goes where nobody is left. */
void td_sweep_deinit(struct td_sweep *sweep);

/*
 * Requests a sweep: a process has gone that may have left a socket, or did not find the directory.
 */
void td_sweep_soon(struct td_sweep *sweep, uint64_t now_ns);

/* Returns when to call it again, or UINT64_MAX. A call that is too early does nothing. */
uint64_t td_sweep_turn(struct td_sweep *sweep, uint64_t now_ns);
