/*
 * The functions of libc by which a program sets dispositions of signals, and those by which it ends
 * at once. Outside of MPS, and in every other process than that which is a client of it, each only
 * calls libc's (base/caught.h, agent/clean_exit.h).
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

/* Those that take a number and a handler. */
#define SIGNALS(SIGNAL)                                                                            \
	SIGNAL(signal)                                                                             \
	SIGNAL(bsd_signal)                                                                         \
	SIGNAL(ssignal)                                                                            \
	SIGNAL(sysv_signal)                                                                        \
	SIGNAL(__sysv_signal)                                                                      \
	SIGNAL(sigset)

/* libc's own. */
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

/* Only a call from before td_begin() searches: in a handler that would not be safe. */
static void find_once(void)
{
	if (!atomic_load_explicit(&found, memory_order_acquire))
		td_signal_hooks_find();
}

/* libc declares some of these with attributes, or not at all by these names. */
EXPORT int sigaction(int number, const struct sigaction *act, struct sigaction *old);

EXPORT int sigaction(int number, const struct sigaction *act, struct sigaction *old)
{
	find_once();
	return td_caught_action(number, act, old);
}

/* A process that libc gives no such function ignores the call, as libc does with bad numbers. */
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
