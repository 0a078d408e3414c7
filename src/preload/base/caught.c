/*
 * See caught.h. The disposition is read from the kernel each time, because parts of libc (system())
 * and some runtimes (Go) change it without calling our sigaction(). Their setting must be kept.
 */
#include "preload/base/caught.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/time.h"
#include "preload/base/futex.h"

#define NUMBERS 65 /* Linux has signals 1 to 64 */
/* A thread leaves the handler after this time. clean_exit.c has ended the process long before. */
#define STAY_MAX_NS (20 * TD_NS_PER_S)
#define SLICE_NS    (100 * TD_NS_PER_MS)
#define RERAISE_NS  TD_NS_PER_S

/* BY_ITSELF: the receiving thread has caused the signal and cannot go on, as with SIGSEGV. */
static const struct {
	int number;
	enum { FROM_OUTSIDE, BY_ITSELF } how;
} table[] = {
	{SIGHUP, FROM_OUTSIDE},
	{SIGINT, FROM_OUTSIDE},
	{SIGQUIT, FROM_OUTSIDE},
	{SIGTERM, FROM_OUTSIDE},
	{SIGALRM, FROM_OUTSIDE},
	{SIGUSR1, FROM_OUTSIDE},
	{SIGUSR2, FROM_OUTSIDE},
	{SIGXCPU, FROM_OUTSIDE},
	{SIGVTALRM, FROM_OUTSIDE},
	{SIGPROF, FROM_OUTSIDE},
	{SIGPOLL, FROM_OUTSIDE},
	{SIGABRT, BY_ITSELF},
	{SIGSEGV, BY_ITSELF},
	{SIGBUS, BY_ITSELF},
	{SIGFPE, BY_ITSELF},
	{SIGILL, BY_ITSELF},
	{SIGTRAP, BY_ITSELF},
	{SIGSYS, BY_ITSELF},
	{SIGPIPE, BY_ITSELF},
	{SIGXFSZ, BY_ITSELF},
};
#define COUNT (sizeof(table) / sizeof(*table))

_Atomic uint32_t td_caught_bell;

static td_sigaction_fn real_action = sigaction;
static _Atomic uint32_t busy; /* spin lock; all signals are blocked while it is held */
/* the dispositions that the program has set; guarded by `busy` */
static struct sigaction seen[NUMBERS];
static _Atomic pid_t owner; /* pid of the process whose signals are caught; 0: none */
/* tid of the thread that caused the first signal, if that is a fault; else 0 */
static _Atomic pid_t faulty;
static _Atomic int first; /* number of the first signal that was caught */
static void (*_Atomic stays)(void);
/* parks: every thread stays; let_go (futex): the fault may repeat */
static _Atomic uint32_t parks, let_go;

static bool is_in_table(int number)
{
	for (size_t i = 0; i < COUNT; i++)
		if (table[i].number == number)
			return true;
	return false;
}

bool td_caught_is_fault(int number)
{
	for (size_t i = 0; i < COUNT; i++)
		if (table[i].number == number)
			return table[i].how == BY_ITSELF;
	return false;
}

static void take(sigset_t *ret_before)
{
	sigset_t all;

	sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, ret_before);
	while (atomic_exchange(&busy, 1))
		td_futex_wait(&busy, 1, TD_NS_PER_MS, false);
}

static void drop(const sigset_t *before)
{
	atomic_store(&busy, 0);
	(void)pthread_sigmask(SIG_SETMASK, before, NULL);
}

/* -- in the handler: async-signal-safe -- */

static void set_default(int number)
{
	struct sigaction act = {.sa_handler = SIG_DFL};

	(void)real_action(number, &act, NULL);
}

static int send_to(pid_t tid, int number)
{
	return syscall(SYS_tgkill, getpid(), tid, number) < 0 ? -errno : 0;
}

/*
 * Restores the default and raises the signal again. It ends the process when the handler returns.
 */
static void raise_by_default(int number)
{
	set_default(number);
	(void)send_to((pid_t)syscall(SYS_gettid), number);
}

/*
 * Returns whether the signal interrupted a system call that will return EINTR. The register with
 * the call's result and the instruction before the return address tell. If the kernel restarts the
 * call, that register holds the call's number.
 */
static bool ends_a_sleep(void *context)
{
#if defined(__x86_64__)
	const ucontext_t *at = context;
	const unsigned char *next = (const unsigned char *)at->uc_mcontext.gregs[REG_RIP];

	return at->uc_mcontext.gregs[REG_RAX] == -EINTR && next[-2] == 0x0f && next[-1] == 0x05;
#else
	(void)context;
	return true;
#endif
}

/*
 * Returns whether the signal comes again when its handler returns. A fault does. A signal that
 * another process sent does not, nor do SIGTRAP and SIGSYS, which arrive after their instruction.
 */
static bool repeats(int number, const siginfo_t *info)
{
	return info->si_code > 0 && number != SIGTRAP && number != SIGSYS;
}

static void stay(int number, const siginfo_t *info)
{
	uint64_t end_ns = td_time_now_ns() + STAY_MAX_NS;
	void (*hook)(void) = atomic_load(&stays);

	if (hook)
		hook();
	while (td_time_now_ns() < end_ns) {
		uint32_t seen_go = atomic_load(&let_go);

		if (seen_go && td_caught_is_fault(number) && atomic_load(&first) == number) {
			if (!repeats(number, info))
				raise_by_default(number);
			return;
		}
		td_futex_wait(&let_go, seen_go, SLICE_NS, false);
	}
	raise_by_default(number);
}

static void on_signal(int number, siginfo_t *info, void *context)
{
	int saved = errno, none = 0;

	/* This is a vfork child, or a forked child whose fork handlers did not run. */
	if (getpid() != atomic_load(&owner)) {
		raise_by_default(number);
	} else {
		if (atomic_compare_exchange_strong(&first, &none, number) &&
			td_caught_is_fault(number))
			atomic_store(&faulty, (pid_t)syscall(SYS_gettid));
		atomic_fetch_add(&td_caught_bell, 1);
		td_futex_wake_all(&td_caught_bell, false);
		if (atomic_load(&parks) || td_caught_is_fault(number) || ends_a_sleep(context))
			stay(number, info);
	}
	errno = saved;
}

/* -- dispositions -- */

static bool is_ours(const struct sigaction *action)
{
	return action->sa_flags & SA_SIGINFO && action->sa_sigaction == on_signal;
}

static bool is_default(const struct sigaction *action)
{
	return action->sa_handler == SIG_DFL; /* whatever SA_SIGINFO says */
}

/* The caller holds the lock `busy`. */
static int catch_it(int number, const struct sigaction *set)
{
	struct sigaction act = {
		.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};

	seen[number] = *set;
	return real_action(number, &act, NULL);
}

void td_caught_init(td_sigaction_fn real)
{
	if (real)
		real_action = real;
}

void td_caught_set_stay(void (*hook)(void))
{
	atomic_store(&stays, hook);
}

void td_caught_arm(void)
{
	struct sigaction now;
	sigset_t before;
	int saved = errno;

	/*
	 * The kernel sends PID 1 no signal whose disposition is the default, so there is nothing to
	 * catch.
	 */
	if (getpid() == 1)
		return;
	take(&before);
	atomic_store(&owner, getpid());
	for (size_t i = 0; i < COUNT; i++)
		if (!real_action(table[i].number, NULL, &now) && is_default(&now))
			(void)catch_it(table[i].number, &now);
	drop(&before);
	errno = saved;
}

/*
 * Called where a program changes dispositions after a signal was caught. The process is ending, so
 * the thread waits here and the change has no effect.
 */
static void wait_for_end(void)
{
	uint64_t end_ns = td_time_now_ns() + STAY_MAX_NS;

	while (atomic_load(&first) && atomic_load(&owner) == getpid() && td_time_now_ns() < end_ns)
		td_futex_wait(&let_go, atomic_load(&let_go), SLICE_NS, false);
}

static bool is_armed_for(int number)
{
	return atomic_load(&owner) == getpid() && is_in_table(number);
}

int td_caught_action(int number, const struct sigaction *act, struct sigaction *old)
{
	struct sigaction was, to = {.sa_handler = SIG_DFL};
	sigset_t before;
	int r, error;

	if (!is_armed_for(number))
		return real_action(number, act, old);
	if (act) {
		wait_for_end();
		to = *act;
	}
	take(&before);
	r = real_action(number, NULL, &was);
	if (!r && is_ours(&was))
		was = seen[number];
	if (!r && act)
		r = is_default(&to) ? catch_it(number, &to) : real_action(number, &to, NULL);
	error = errno;
	drop(&before);
	if (!r && old)
		*old = was;
	errno = error;
	return r;
}

td_handler_fn td_caught_signal(td_signal_fn real, int number, td_handler_fn handler)
{
	struct sigaction now;
	td_handler_fn was;
	sigset_t before;
	int error;

	if (!is_armed_for(number))
		return real(number, handler);
	wait_for_end();
	take(&before);
	was = real(number, handler);
	error = errno;
	if (was == (td_handler_fn)(void (*)(void))on_signal)
		was = SIG_DFL;
	if (was != SIG_ERR && !real_action(number, NULL, &now) && is_default(&now))
		(void)catch_it(number, &now);
	drop(&before);
	errno = error;
	return was;
}

/* -- the end -- */

int td_caught_first(void)
{
	return atomic_load(&first);
}

void td_caught_park(void)
{
	atomic_store(&parks, 1);
}

int td_caught_send(pid_t tid)
{
	struct sigaction now;

	/*
	 * The thread that caused the fault is in the handler already and must return to repeat the
	 * fault.
	 */
	if (tid == atomic_load(&faulty))
		return 0;
	/* The program may have set its own SIGTERM handler since, so the disposition is checked. */
	for (size_t i = 0; i < COUNT; i++)
		if (table[i].how == FROM_OUTSIDE && !real_action(table[i].number, NULL, &now) &&
			is_ours(&now))
			return send_to(tid, table[i].number);
	return -ENOENT;
}

static void let_it_go(void)
{
	atomic_store(&let_go, 1);
	td_futex_wake_all(&let_go, false);
	td_time_sleep_until_ns(td_time_now_ns() + RERAISE_NS);
}

void td_caught_die(int number)
{
	sigset_t only;

	set_default(number);
	if (td_caught_is_fault(number))
		let_it_go();
	sigemptyset(&only);
	sigaddset(&only, number);
	(void)pthread_sigmask(SIG_UNBLOCK, &only, NULL);
	(void)send_to((pid_t)syscall(SYS_gettid), number);
}

void td_caught_forked(void)
{
	struct sigaction now;

	if (!atomic_load(&owner))
		return;
	for (size_t i = 0; i < COUNT; i++)
		if (!real_action(table[i].number, NULL, &now) && is_ours(&now))
			(void)real_action(table[i].number, &seen[table[i].number], NULL);
	atomic_store(&owner, 0);
	atomic_store(&first, 0);
	atomic_store(&faulty, 0);
	atomic_store(&parks, 0);
	atomic_store(&let_go, 0);
	atomic_store(&busy, 0);
}
