/*
 * The directory in which programs that share memory find each other (proto/shared_dir.h). The
 * daemon makes it, restores it, and removes the sockets of programs that were killed. Users may put
 * anything into it. Only sockets whose names have the right form are removed; all of them are
 * checked, a few at a time. A sweep is requested; at most one begins per second.
 */
#pragma once

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>

#include "proto/shared_dir.h"

struct td_sweep {
	char dir[TD_SHARED_DIR_MAX]; /* empty: there is none */
	DIR *entries;                /* not NULL while a sweep is under way */
	uint64_t due_ns;             /* when the requested sweep is due; 0: none is requested */
	uint64_t next_ns;            /* no sweep begins before this time */
	uint64_t piece_ns;           /* when the sweep under way goes on */
	bool again;                  /* the sweep has found sockets that were too young */
};

/*
 * Makes the directory. Returns 0 or -errno. The daemon runs on after an error: programs that cannot
 * use this directory use another one, or get an error.
 */
int td_sweep_init(struct td_sweep *sweep, const char *socket);
/* Removes the directory if it is empty. */
void td_sweep_deinit(struct td_sweep *sweep);

/*
 * Requests a sweep, because a process that may have left a socket has gone, or because a process
 * did not find the directory.
 */
void td_sweep_soon(struct td_sweep *sweep, uint64_t now_ns);

/* Returns when to call it again, or UINT64_MAX. A call that is too early does nothing. */
uint64_t td_sweep_turn(struct td_sweep *sweep, uint64_t now_ns);
