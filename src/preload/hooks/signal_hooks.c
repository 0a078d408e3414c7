/*
 * Hooks of the libc functions that set signal dispositions, and of those that end the process at
 * once. They act only in a process that is a client of MPS. Elsewhere each one only calls libc's
 * function (base/caught.h, agent/clean_exit.h).
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload/agent/clean_exit.h"
#include "preload/base/caught.h"
#include "preload/driver/real.h"

#define EXPORT __attribute__((visibility("default")))

/* The functions that take a signal number and a handler. */
#define SIGNALS(SIGNAL)                                                                            \
	SIGNAL(signal)                                                                             \
	SIGNAL(bsd_signal)                                                                         \
	SIGNAL(ssignal)                                                                            \
	SIGNAL(sysv_signal)                                                                        \
	SIGNAL(__sysv_signal)                                                                      \
	SIGNAL(sigset)

/* Pointers to libc's own functions. */
#define REAL(name) static td_signal_fn real_##name;
SIGNALS(REAL)

static _Atomic bool found;

void td_signal_hooks_find(void)
{
	td_sigaction_fn real;

	*(void **)&real = td_libc_symbol("sigaction");
	td_caught_init(real);
#define FIND(name) *(void **)&real_##name = td_libc_symbol(#name);
	SIGNALS(FIND)
	atomic_store_explicit(&found, true, memory_order_release);
}

/*
 * Finds libc's functions if td_begin() has not yet done so. A search in a signal handler would not
 * be safe.
 */
static void find_once(void)
{
	if (!atomic_load_explicit(&found, memory_order_acquire))
		td_signal_hooks_find();
}

/* libc declares some of these with attributes, and some not at all. */
EXPORT int sigaction(int number, const struct sigaction *act, struct sigaction *old);

EXPORT int sigaction(int number, const struct sigaction *act, struct sigaction *old)
{
	find_once();
	return td_caught_action(number, act, old);
}

/* If libc lacks the function, the call is ignored, as libc does with invalid numbers. */
#define SIGNAL(name)                                                                               \
	EXPORT td_handler_fn name(int number, td_handler_fn handler);                              \
	EXPORT td_handler_fn name(int number, td_handler_fn handler)                               \
	{                                                                                          \
		find_once();                                                                       \
		return real_##name ? td_caught_signal(real_##name, number, handler) : SIG_ERR;     \
	}

SIGNALS(SIGNAL)

#define EXIT(name)                                                                                 \
	EXPORT void name(int status) __attribute__((noreturn));                                    \
	EXPORT void name(int status)                                                               \
	{                                                                                          \
		td_exit_now(status);                                                               \
		for (;;)                                                                           \
			(void)syscall(SYS_exit_group, status);                                     \
	}

EXIT(_exit)
EXIT(_Exit)
