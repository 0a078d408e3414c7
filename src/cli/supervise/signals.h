/* The signals of a supervisor: some are passed on to its program, others stop or end it. */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "cli/supervise/relay.h"
#include "cli/supervise/witness.h"

struct td_signals {
	int fd;          /* a signalfd of all signals; -1: none */
	sigset_t ending; /* those by which a user ends a job */
	struct td_witness witness;
	struct td_relay relay;
};

/* All signals are blocked. 0 or -errno. */
int td_signals_init(struct td_signals *signals);
void td_signals_deinit(struct td_signals *signals);

/* The signals of one reading. */
struct td_signals_news {
	bool has_child; /* SIGCHLD */
	int ending;     /* a signal by which the user ends the job; 0: none */
	int stopping;   /* SIGTSTP; 0: none */
};

/* Reads what has come, and passes on what is due, without waiting. `program` is 0 where none runs:
 * then nothing is passed on. */
void td_signals_take(
	struct td_signals *signals, pid_t program, uint64_t now_ns, struct td_signals_news *ret);
/* Stops this process by the signal that has stopped its program (0: none runs), until it is
 * continued. */
void td_signals_stop(struct td_signals *signals, int number, pid_t program);
/*
 * Ends this process by the signal, without a core file of its own; returns where it does not end.
 */
void td_signals_die(int number);
