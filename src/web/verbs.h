/*
 * Runs the verbs that a page asks for: `tandem VERB JOB` runs as a process beside the server, which
 * does not wait for it. Its output is the answer.
 */
#pragma once

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/text.h"

/* The most verbs that run at once, for all pages together. */
#define TD_VERB_RUNS 8

struct td_verb_run {
	pid_t pid; /* 0: this entry is free */
	int fd;    /* the pipe with its output */
	uint64_t deadline_ns;
	struct td_text said;
	/* Called at the end with the exit status, or 128 + the signal that ended it. */
	void (*done)(void *arg, int status, const char *said);
	void *arg;
};

struct td_verb_runs {
	struct td_verb_run runs[TD_VERB_RUNS];
};

/* Writes [{"name": "pause", "key": "p", "asks": false, "help": "..."}, ...]. */
void td_verbs_write(struct td_text *text);
/* Returns whether the page offers that verb. */
bool td_verb_is_known(const char *name);

/* Starts a verb. Returns 0, -EBUSY if TD_VERB_RUNS run already, or another -errno. */
int td_verb_start(struct td_verb_runs *runs, const char *verb, const char *job,
	void (*done)(void *arg, int status, const char *said), void *arg);

/* Writes the descriptors to poll, TD_VERB_RUNS of them. */
void td_verb_fds(const struct td_verb_runs *runs, struct pollfd *ret);
/*
 * Reads the output of the verbs, and ends those that take too long. Calls done() for each that has
 * ended.
 */
void td_verb_turn(struct td_verb_runs *runs, uint64_t now_ns, uint64_t *ret_wakeup_ns);
/* Ends all verbs; done() is not called. */
void td_verb_end_all(struct td_verb_runs *runs);
