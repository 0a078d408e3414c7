/* The signals of a supervisor. Some are passed on to its program; others stop or end it. */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "cli/supervise/relay.h"
#include "cli/supervise/witness.h"

struct td_signals {
	int fd;          /* a signalfd of all signals; -1: none */
	sigset_t ending; /* the signals by which a user ends a job */
	struct td_witness witness;
	struct td_relay relay;
};

/* Blocks all signals. Returns 0 or -errno. */
int td_signals_init(struct td_signals *signals);
void td_signals_deinit(struct td_signals *signals);

/* The news of one call of td_signals_take(). */
struct td_signals_news {
	bool has_child; /* SIGCHLD has come */
	int ending;     /* a signal by which the user ends the job; 0: none */
	int stopping;   /* SIGTSTP, if it has come; else 0 */
};

/*
 * Reads the signals that have come, and passes on those that are due, without waiting. `program` is
 * 0 if no program runs; then nothing is passed on.
 */
void td_signals_take(
	struct td_signals *signals, pid_t program, uint64_t now_ns, struct td_signals_news *ret);
/*
 * Stops this process by the signal that has stopped its program, until it is continued. `program`
 * is 0 if no program runs.
 */
void td_signals_stop(struct td_signals *signals, int number, pid_t program);
/*
 * Ends this process by the signal, without a core file of its own. Returns if the signal does not
 * end it.
 */
void td_signals_die(int number);
