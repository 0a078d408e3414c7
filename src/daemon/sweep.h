/*
 * The directory in which programs that share memory meet (proto/shared_dir.h): the daemon makes it, and removes what programs have left there that were
 * killed. Others may put into it what they like; no more of it is looked at than a bounded number of files, and only sockets with names like ours go.
 */
#pragma once

#include <stdint.h>

#include "proto/shared_dir.h"

struct td_sweep {
	char dir[TD_SHARED_DIR_MAX]; /* empty: there is none */
	uint64_t due_ns;             /* 0: nothing is expected to be there */
};

/* 0 or -errno: programs that cannot meet there meet elsewhere, or are told. Does not stop a daemon. */
int td_sweep_init(struct td_sweep *sweep, const char *socket);
/* Goes where nobody is left. */
void td_sweep_deinit(struct td_sweep *sweep);

/* Somebody has gone who may have left something. */
void td_sweep_soon(struct td_sweep *sweep, uint64_t now_ns);

/* When to call it again, or UINT64_MAX. */
uint64_t td_sweep_turn(struct td_sweep *sweep, uint64_t now_ns);
