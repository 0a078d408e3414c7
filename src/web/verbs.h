/*
 * Verbs that a page asks for, as they are typed: `tandem VERB JOB` runs beside the server, which
 * goes on meanwhile. What it prints is the answer.
 */
#pragma once

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/text.h"

/* At once, of all pages together. */
#define TD_VERB_RUNS 8

struct td_verb_run {
	pid_t pid; /* 0: this place is free */
	int fd;    /* what it prints, until its end */
	uint64_t deadline_ns;
	struct td_text said;
	/* Is called with its exit status, 128 + signal if one ended it. */
	void (*done)(void *arg, int status, const char *said);
	void *arg;
};

struct td_verb_runs {
	struct td_verb_run runs[TD_VERB_RUNS];
};

/* [{"name": "pause", "key": "p", "asks": false, "help": "..."}, ...] */
void td_verbs_write(struct td_text *text);
/* Is there such a verb? */
bool td_verb_is_known(const char *name);

/* 0; -EBUSY: as many as may be run; -errno. */
int td_verb_start(struct td_verb_runs *runs, const char *verb, const char *job,
	void (*done)(void *arg, int status, const char *said), void *arg);

/* Descriptors to poll, TD_VERB_RUNS of them. */
void td_verb_fds(const struct td_verb_runs *runs, struct pollfd *ret);
/* Reads what they print, and ends those that have ended or take too long. */
void td_verb_turn(struct td_verb_runs *runs, uint64_t now_ns, uint64_t *ret_wakeup_ns);
/* Forgets all: nobody is told. */
void td_verb_end_all(struct td_verb_runs *runs);
