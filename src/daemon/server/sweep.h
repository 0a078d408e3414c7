/*
 * The directory in which programs that share memory meet (proto/shared_dir.h): the daemon makes it, makes it again where it was lost, and removes what
 * programs have left there that were killed. Others may put into it what they like: only sockets with names like ours go, all of them are looked at, and
 * few of them at a time. A sweep is asked for; at most one begins in a second.
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

/* 0 or -errno: programs that cannot meet there meet elsewhere, or are told. Does not stop a daemon. */
int td_sweep_init(struct td_sweep *sweep, const char *socket);
/* Goes where nobody is left. */
void td_sweep_deinit(struct td_sweep *sweep);

/* Somebody has gone who may have left something, or has not found the directory. */
void td_sweep_soon(struct td_sweep *sweep, uint64_t now_ns);

/* When to call it again, or UINT64_MAX. Too early a call does nothing. */
uint64_t td_sweep_turn(struct td_sweep *sweep, uint64_t now_ns);
