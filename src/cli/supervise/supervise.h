/* `tandem run` as the parent of its program: --restart and --requeue. */
#pragma once

#include <stdbool.h>

#include "cli/supervise/restart.h"
#include "proto/proto.h"

struct td_supervise {
	char *const *argv;     /* the command; its environment is that of this process */
	void (*prepare)(void); /* called in the child before each start, to change that; NULL */
	struct td_restart restart;
	bool may_queue;            /* --requeue */
	bool is_verbose;           /* says what it does even if stderr is no terminal */
	const char *socket_path;   /* of the daemon; "": there is none */
	const char *job;           /* the value of TANDEM_JOB */
	struct td_msg_admit admit; /* asked before a queued job starts */
};

/*
 * Runs the command until it is not to be started again. Returns its exit status, or 126 or 127 if
 * it could not be executed, or 125 after complaining. If a signal ended it, the same signal ends
 * this process.
 */
int td_supervise(const struct td_supervise *options);
