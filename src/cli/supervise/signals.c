/* Receives signals by a signalfd, so that no handler is needed; see signals.h. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "cli/supervise/signals.h"

static bool is_ignored(int number)
{
	struct sigaction action;

	return !sigaction(number, NULL, &action) && action.sa_handler == SIG_IGN;
}

/*
 * Returns whether the process has a terminal. Then SIGHUP ends the job, since the terminal went
 * away. Without one, SIGHUP asks a daemon to read its settings again.
 */
static bool has_terminal(void)
{
	int fd = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

int td_signals_init(struct td_signals *signals)
{
	static const int ending[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP};
	sigset_t all;

	memset(signals, 0, sizeof(*signals));
	sigfillset(&all);
	sigemptyset(&signals->ending);
	for (size_t i = 0; i < sizeof(ending) / sizeof(*ending); i++)
		if (!is_ignored(ending[i]) && (ending[i] != SIGHUP || has_terminal()))
			sigaddset(&signals->ending, ending[i]);
	signals->fd = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
	if (signals->fd < 0)
		return -errno;
	return td_witness_start(&signals->witness);
}

void td_signals_deinit(struct td_signals *signals)
{
	td_witness_end(&signals->witness);
	if (signals->fd >= 0)
		close(signals->fd);
	signals->fd = -1;
}

/* -- passing signals on -- */

static void pass(const struct td_relay_signal *signal, pid_t program)
{
	if (!program)
		return;
	if (signal->is_queued)
		sigqueue(program, signal->number,
			(union sigval){.sival_ptr = (void *)signal->value});
	else
		kill(program, signal->number);
}

/*
 * Handles one signal that this process received. The terminal sends signals to a whole process
 * group. A program that has left the group does not get them, so each is passed on to it at once.
 */
static void take(struct td_signals *signals, const struct signalfd_siginfo *info, pid_t program,
	uint64_t now_ns)
{
	struct td_relay_signal signal = {.number = (int)info->ssi_signo,
		.is_queued = info->ssi_code == SI_QUEUE,
		.value = info->ssi_ptr};
	bool is_apart = program && getpgid(program) != getpgrp();

	if (is_apart || !td_relay_add(&signals->relay, &signal, now_ns))
		pass(&signal, program);
}

/*
 * Returns whether the supervisor or the witness caused the signal: SIGPIPE by a message to a closed
 * socket, or SIGCONT from the witness.
 */
static bool is_own(const struct td_signals *signals, const struct signalfd_siginfo *info)
{
	pid_t sender = (pid_t)info->ssi_pid;

	return info->ssi_code == SI_USER && sender &&
	       (sender == getpid() || sender == signals->witness.pid);
}

static void read_all(
	struct td_signals *signals, pid_t program, uint64_t now_ns, struct td_signals_news *news)
{
	struct signalfd_siginfo info;

	while (read(signals->fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		int number = (int)info.ssi_signo;

		if (number == SIGCHLD) {
			news->has_child = true;
			continue;
		}
		if (is_own(signals, &info))
			continue;
		if (sigismember(&signals->ending, number))
			news->ending = number;
		if (number == SIGTSTP && !is_ignored(SIGTSTP))
			news->stopping = number;
		take(signals, &info, program, now_ns);
	}
}

void td_signals_take(
	struct td_signals *signals, pid_t program, uint64_t now_ns, struct td_signals_news *ret)
{
	struct td_relay_signal signal;
	uint64_t mask;

	memset(ret, 0, sizeof(*ret));
	read_all(signals, program, now_ns, ret);
	if (!td_relay_is_due(&signals->relay, now_ns))
		return;
	/* A signal that the witness has came here too, perhaps after the first read_all(). */
	mask = td_witness_ask(&signals->witness);
	read_all(signals, program, now_ns, ret);
	td_relay_witness(&signals->relay, mask, now_ns);
	while (td_relay_take(&signals->relay, now_ns, &signal))
		pass(&signal, program);
}

/* -- stopping and dying -- */

/* Sends this process a signal with the default action, for example to end it. */
static void strike(int number)
{
	const struct sigaction initial = {.sa_handler = SIG_DFL};
	struct sigaction before;
	sigset_t one, blocked;

	sigemptyset(&one);
	sigaddset(&one, number);
	sigaction(number, &initial, &before);
	raise(number);
	sigprocmask(SIG_UNBLOCK, &one, &blocked);
	sigprocmask(SIG_SETMASK, &blocked, NULL);
	sigaction(number, &before, NULL);
}

void td_signals_stop(struct td_signals *signals, int number, pid_t program)
{
	if (program)
		td_witness_watch(&signals->witness, program);
	strike(number);
	td_witness_watch(&signals->witness, 0);
	td_relay_continue(&signals->relay);
}

void td_signals_die(int number)
{
	const struct rlimit none = {0, 0};

	/* The program has already written a core file, so this process writes none. */
	setrlimit(RLIMIT_CORE, &none);
	prctl(PR_SET_DUMPABLE, 0);
	strike(number);
}
