/* Runs `tandem run` as the parent of its program: --restart, --requeue and --shadow. */
#pragma once

#include <stdbool.h>

#include "cli/scrape/scraper.h"
#include "cli/supervise/restart.h"
#include "proto/proto.h"

struct td_supervise {
	char *const *argv; /* the command; it gets this process's environment */
	/* called in the child before each start, to change the environment; or NULL */
	void (*prepare)(void);
	struct td_restart restart;
	bool may_queue;             /* --requeue */
	bool may_shadow;            /* --shadow */
	bool is_verbose;            /* print messages even if stderr is not a terminal */
	const char *socket_path;    /* the path of the daemon's socket; "": there is no daemon */
	const char *job;            /* the value of TANDEM_JOB */
	struct td_scraper *scraper; /* reads the program's /metrics; NULL: nobody does */
	struct td_msg_admit admit;  /* the question to the daemon before a queued job starts */
};

/*
 * Runs the command until it is not to be started again. Returns its exit status, 126 or 127 if it
 * could not be executed, or 125 after printing an error. If a signal ended the command, the same
 * signal ends this process.
 */
int td_supervise(const struct td_supervise *options);
