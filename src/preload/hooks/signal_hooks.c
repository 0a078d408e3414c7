/*
 * The functions of libc by which a program sets dispositions of signals, and those by which it ends
 * at once. Outside of MPS, and in every other process than that which is a client of it, each only
 * calls libc's (base/caught.h, agent/clean_exit.h).
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload/agent/clean_exit.h"
#include "preload/base/caught.h"
#include "preload/driver/real.h"

#define EXPORT __attribute__((visibility("default")))

/* libc declares some of these with attributes, or not at all by these names. */
EXPORT int sigaction(int number, const struct sigaction *act, struct sigaction *old);

EXPORT int sigaction(int number, const struct sigaction *act, struct sigaction *old)
{
	static td_sigaction_fn real;

	if (!real) {
		*(void **)&real = td_libc_symbol("sigaction");
		td_caught_init(real);
	}
	return td_caught_action(number, act, old);
}

/* A process that libc gives no such function ignores the call, as libc does with bad numbers. */
#define SIGNAL(name)                                                                               \
	EXPORT td_handler_fn name(int number, td_handler_fn handler);                              \
	EXPORT td_handler_fn name(int number, td_handler_fn handler)                               \
	{                                                                                          \
		static td_signal_fn real;                                                          \
		if (!real)                                                                         \
			*(void **)&real = td_libc_symbol(#name);                                   \
		return real ? td_caught_signal(real, number, handler) : SIG_ERR;                   \
	}

SIGNAL(signal)
SIGNAL(bsd_signal)
SIGNAL(ssignal)
SIGNAL(sysv_signal)
SIGNAL(__sysv_signal)
SIGNAL(sigset)

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
