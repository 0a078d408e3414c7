/*
 * Catches the signals that end the program by default. A client of MPS that ends with work on the
 * GPU may hang the MPS server, and with it every other client (MuxFlow 4.2). So these signals are
 * caught, and clean_exit.c ends the program once its work has ended.
 *
 * The program does not notice. A signal is caught only where its disposition is SIG_DFL, and
 * sigaction() and signal() still report SIG_DFL. The program's own handlers, SIG_IGN, masks,
 * sigwait() and signalfd() are left alone. The handler only notes the signal and wakes the exit
 * thread. Then
 * - a thread that runs, or sleeps in a call that the kernel restarts, goes on, as if the signal had
 *   come a little later;
 * - a thread that sleeps in a call that returns EINTR, or that has caused the signal itself (a
 *   fault, abort, a broken pipe), stays in the handler until the process ends.
 *
 * A forked child, and a new program after exec, have the default disposition again.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

typedef int (*td_sigaction_fn)(int number, const struct sigaction *act, struct sigaction *old);

/* Called first, at load. real: libc's own sigaction(), which our hook hides. */
void td_caught_init(td_sigaction_fn real);

/*
 * Starts to catch the signals. Later calls also catch signals whose disposition has become SIG_DFL
 * without a call to our hooks (SA_RESETHAND). In PID 1 it does nothing.
 */
void td_caught_arm(void);

/*
 * Sets a function that each thread calls before it waits in the handler. It must be
 * async-signal-safe.
 */
void td_caught_set_stay(void (*hook)(void));

/* The hook of sigaction(): same arguments, result and errno. */
int td_caught_action(int number, const struct sigaction *act, struct sigaction *old);

/*
 * The hook of signal() and its variants; `real` is libc's function. Returns the same result, but
 * SIG_DFL in place of our own handler.
 */
typedef void (*td_handler_fn)(int number);
typedef td_handler_fn (*td_signal_fn)(int number, td_handler_fn handler);
td_handler_fn td_caught_signal(td_signal_fn real, int number, td_handler_fn handler);

/* A futex that changes and is woken with each signal that was caught. */
extern _Atomic uint32_t td_caught_bell;
/* Returns the first signal that was caught, or 0. */
int td_caught_first(void);
/*
 * Returns whether a thread itself causes this signal, as it does SIGSEGV. Then that thread must end
 * by it.
 */
bool td_caught_is_fault(int number);

/* From now on each thread that gets a caught signal stays in the handler. */
void td_caught_park(void);
/*
 * Stops a thread: sends it one of the signals that are caught, so that it stays in the handler.
 * Returns 0 or -errno.
 */
int td_caught_send(pid_t tid);

/*
 * Ends the process by the signal, with its default disposition. A fault is repeated by the thread
 * that caused it. May return if that thread does not get to run in time.
 */
void td_caught_die(int number);

void td_caught_forked(void);
