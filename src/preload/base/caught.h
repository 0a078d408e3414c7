/*
 * The signals that end the program by default. A client of MPS that ends with work on the GPU may
 * hang the MPS server, and with it every neighbour (MuxFlow 4.2). So these signals are caught, and
 * what ends the program is clean_exit.c, once its work has ended.
 *
 * The program notices nothing of it. A signal is caught only where its disposition is SIG_DFL, and
 * sigaction() and signal() go on to say SIG_DFL. A handler of the program's own, SIG_IGN, a mask,
 * sigwait() and signalfd() are left as they are. The handler only notes the signal and wakes a
 * thread of the library. Then
 *
 *   a thread that runs, or sleeps in a call that the kernel restarts, goes on: the signal might as
 *     well have come a little later;
 *   a thread that sleeps in a call that reports signals (EINTR), or that has caused the signal
 *     itself (a fault, abort, a broken pipe), stays in the handler until the process ends.
 *
 * The child of a fork has the default disposition again. So has a new program, as after any exec.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

typedef int (*td_sigaction_fn)(int number, const struct sigaction *act, struct sigaction *old);

/* At load, before anything else here: libc's own sigaction(), which ours hides. */
void td_caught_init(td_sigaction_fn real);

/*
 * Catches them from now on. Called again, it catches those whose disposition has become SIG_DFL
 * meanwhile without our knowledge (SA_RESETHAND). In PID 1 it does nothing.
 */
void td_caught_arm(void);

/*
 * Is called by each thread that stays in the handler, before it waits there. Async-signal-safe.
 */
void td_caught_set_stay(void (*hook)(void));

/* Does for the program what sigaction() does. */
int td_caught_action(int number, const struct sigaction *act, struct sigaction *old);

/*
 * Does for the program what signal() and its relatives do, by one of libc's own. Returns the same,
 * but for our handler, which nobody is to see.
 */
typedef void (*td_handler_fn)(int number);
typedef td_handler_fn (*td_signal_fn)(int number, td_handler_fn handler);
td_handler_fn td_caught_signal(td_signal_fn real, int number, td_handler_fn handler);

/* Changes, and is woken as a futex, with each signal that was caught. */
extern _Atomic uint32_t td_caught_bell;
/* The first one that was caught; 0: none. */
int td_caught_first(void);
/* Does the thread that gets it cause it? Then it has to be that thread's end. */
bool td_caught_is_fault(int number);

/* From now on each thread that gets a caught signal stays in the handler. */
void td_caught_park(void);
/* Sends one to the thread. 0 or -errno. */
int td_caught_send(pid_t tid);

/*
 * Ends the process by the signal, as by default. A fault is repeated by its own thread. May return,
 * if that is not let run.
 */
void td_caught_die(int number);

void td_caught_forked(void);
