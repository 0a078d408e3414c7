/*
 * A program that is a client of MPS, has work in flight without end, and ends in one of many ways.
 * mps_exit.py says what it expects of each. "ready" is printed when work is in flight; more is
 * printed only where something has gone wrong.
 */
#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ALL_CALLS
#include "softgpu/cuda.h"

static CUfunction nap;
static volatile sig_atomic_t handled;

static void launch_nap(void)
{
	unsigned ms = 30;
	void *params[] = {&ms};

	OK(cuLaunchKernel(nap, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
}

static void ready(void)
{
	printf("ready\n");
	fflush(stdout);
}

static void wrong(const char *what)
{
	printf("wrong: %s\n", what);
	fflush(stdout);
}

static void *launch_for_ever(void *arg)
{
	(void)arg;
	OK(cuCtxSetCurrent(context));
	for (;;) {
		launch_nap();
		launch_nap();
		OK(cuCtxSynchronize());
	}
	return NULL;
}

static void exits(int number)
{
	(void)number;
	exit(7);
}

static void exits_at_once(int number)
{
	(void)number;
	_exit(7);
}

static void notes(int number)
{
	handled = number;
}

static void pauses(void)
{
	for (;;) {
		pause();
		wrong("pause returns");
	}
}

static void sleeps(void)
{
	struct timespec time = {60, 0};

	nanosleep(&time, NULL);
	wrong("nanosleep returns");
}

static void polls(void)
{
	poll(NULL, 0, 60000);
	wrong("poll returns");
}

static void reads(void)
{
	char byte;

	(void)!read(0, &byte, 1);
	wrong("read returns");
}

static void synchronises(void)
{
	for (;;) {
		launch_nap();
		OK(cuCtxSynchronize());
	}
}

/* A context that is destroyed under it would show as an error. */
static void ask(void)
{
	CUresult r = cuStreamQuery(NULL);

	if (r == CUDA_SUCCESS)
		launch_nap();
	if (r != CUDA_SUCCESS && r != CUDA_ERROR_NOT_READY)
		wrong("an error that it would not have seen");
}

static void asks(void)
{
	for (;;)
		ask();
}

/* Its work would not end for a minute. */
static void queues(void)
{
	for (int i = 0; i < 2000; i++)
		launch_nap();
	ready();
	pauses();
}

static void handler_exits(void)
{
	signal(SIGTERM, exits);
	ready();
	pauses();
}

/* In there, most of the time. */
static void handler_exits_in_the_driver(void)
{
	signal(SIGTERM, exits);
	ready();
	synchronises();
}

/* Threads do not keep blocks of such sizes for themselves. */
static void *allocate_for_ever(void *arg)
{
	for (;;)
		free(malloc(4096 + (uintptr_t)arg));
	return NULL;
}

/* A thread that is stopped has the lock of malloc, more often than not. */
static void allocates(void)
{
	pthread_t thread;

	OK(!mallopt(M_ARENA_MAX, 1));
	for (uintptr_t i = 0; i < 4; i++)
		OK(pthread_create(&thread, NULL, allocate_for_ever, (void *)(i * 512)));
	ready();
	pauses();
}

static void handler_exits_at_once(void)
{
	sigset_t set;

	/*
	 * The signal is to come between two calls: in one, the handler would keep the driver's
	 * lock, without which no context can be destroyed, and MPS would rightly be suspect.
	 */
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	signal(SIGTERM, exits_at_once);
	ready();
	for (;;) {
		ask();
		pthread_sigmask(SIG_UNBLOCK, &set, NULL);
		pthread_sigmask(SIG_BLOCK, &set, NULL);
	}
}

static void handler_returns(void)
{
	const struct timespec moment = {0, 1000000};

	signal(SIGTERM, notes);
	ready();
	/* pause() would wait for ever if the signal came just before it. */
	while (!handled)
		nanosleep(&moment, NULL);
	exit(handled == SIGTERM ? 9 : 1);
}

static void resets(void)
{
	struct sigaction act = {.sa_handler = notes, .sa_flags = SA_RESETHAND}, now;

	sigaction(SIGTERM, &act, NULL);
	raise(SIGTERM);
	sigaction(SIGTERM, NULL, &now);
	if (handled != SIGTERM || now.sa_handler != SIG_DFL)
		wrong("SA_RESETHAND");
	sleep(2);
	ready();
	pauses();
}

static void ignores(void)
{
	char byte;

	signal(SIGTERM, SIG_IGN);
	ready();
	exit(read(0, &byte, 1) == 1 ? 2 : 1);
}

static void waits(void)
{
	sigset_t set;
	int number;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	ready();
	exit(sigwait(&set, &number) || number != SIGTERM ? 1 : 5);
}

static void raise_fault(void)
{
	volatile int *volatile nowhere = NULL;

	*nowhere = 1;
}

static void faults(void)
{
	ready();
	raise_fault();
}

static void aborts(void)
{
	ready();
	abort();
}

static void breaks_a_pipe(void)
{
	int fds[2];

	OK(pipe(fds));
	close(fds[0]);
	ready();
	(void)!write(fds[1], "", 1);
	wrong("write returns");
}

static void ends(void)
{
	ready();
	exit(4);
}

static void ends_at_once(void)
{
	ready();
	_exit(3);
}

static void end_of(pid_t pid, int expected, const char *what)
{
	int status = 0;

	if (waitpid(pid, &status, 0) != pid || status != expected)
		wrong(what);
}

/* Children have nothing of it. */
static void forks(void)
{
	char *command[] = {(char *)"sh", (char *)"-c", (char *)"kill -TERM $$; exit 1", NULL};
	extern char **environ;
	struct sigaction now;
	pid_t pid = fork();

	if (!pid) {
		sigaction(SIGTERM, NULL, &now);
		if (now.sa_handler != SIG_DFL)
			wrong("the child's disposition");
		raise(SIGTERM);
		_exit(1);
	}
	end_of(pid, SIGTERM, "a child's signal");
	pid = fork();
	if (!pid)
		_exit(6);
	end_of(pid, 6 << 8, "a child's _exit");
	pid = vfork();
	if (!pid)
		_exit(6);
	end_of(pid, 6 << 8, "the _exit of a vfork");
	pid = vfork();
	if (!pid) {
		kill(getpid(), SIGTERM);
		_exit(1);
	}
	end_of(pid, SIGTERM, "the signal of a vfork");
	if (posix_spawnp(&pid, "sh", NULL, NULL, command, environ))
		wrong("posix_spawn");
	end_of(pid, SIGTERM, "a program's signal");
	if (system("exit 3") != 3 << 8)
		wrong("system");
	ready();
	pauses();
}

static void expect(bool good, const char *what)
{
	if (!good)
		wrong(what);
}

/* All that a program can see of its dispositions. */
static void looks(void)
{
	struct sigaction act = {.sa_handler = SIG_DFL, .sa_flags = SA_NODEFER}, was;
	struct pollfd fd = {.events = POLLIN};
	sigset_t set;

	sigaddset(&act.sa_mask, SIGUSR1);
	expect(!sigaction(SIGTERM, NULL, &was) && was.sa_handler == SIG_DFL && !was.sa_flags,
		"the default");
	expect(signal(SIGINT, SIG_DFL) == SIG_DFL, "signal, first");
	expect(!sigaction(SIGTERM, &act, &was) && was.sa_handler == SIG_DFL && !was.sa_flags,
		"old");
	expect(!sigaction(SIGTERM, NULL, &was) && was.sa_handler == SIG_DFL &&
			was.sa_flags & SA_NODEFER && sigismember(&was.sa_mask, SIGUSR1) == 1,
		"what was set");
	expect(signal(SIGINT, notes) == SIG_DFL && signal(SIGINT, SIG_IGN) == notes &&
			signal(SIGINT, SIG_DFL) == SIG_IGN && signal(SIGINT, SIG_DFL) == SIG_DFL,
		"signal");
	expect(signal(SIGHUP, notes) == SIG_DFL && !raise(SIGHUP) && handled == SIGHUP &&
			signal(SIGHUP, SIG_DFL) == notes,
		"a handler");
	errno = 0;
	expect(sigaction(SIGKILL, &act, NULL) == -1 && errno == EINVAL, "SIGKILL");
	expect(signal(SIGSTOP, notes) == SIG_ERR && signal(999, notes) == SIG_ERR, "bad numbers");
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	fd.fd = signalfd(-1, &set, 0);
	kill(getpid(), SIGUSR2);
	expect(poll(&fd, 1, 10000) == 1 && !sigpending(&set) && sigismember(&set, SIGUSR2),
		"signalfd");
	ready();
	pauses();
}

static const struct {
	const char *name;
	void (*run)(void);
	bool says_ready;
} ways[] = {
	{"pause", pauses, false},
	{"sleep", sleeps, false},
	{"poll", polls, false},
	{"read", reads, false},
	{"synchronise", synchronises, false},
	{"ask", asks, false},
	{"queue", queues, true},
	{"handler-exits", handler_exits, true},
	{"handler-exits-in-the-driver", handler_exits_in_the_driver, true},
	{"allocate", allocates, true},
	{"handler-exits-at-once", handler_exits_at_once, true},
	{"handler-returns", handler_returns, true},
	{"resets", resets, true},
	{"ignore", ignores, true},
	{"sigwait", waits, true},
	{"fault", faults, true},
	{"abort", aborts, true},
	{"pipe", breaks_a_pipe, true},
	{"exit", ends, true},
	{"exit-at-once", ends_at_once, true},
	{"fork", forks, true},
	{"look", looks, true},
};

TEST(ends_in_one_of_many_ways)
{
	const char *way = getenv("WAY");
	pthread_t thread;
	sigset_t set;

	/* In all threads, or another one takes them. */
	sigemptyset(&set);
	sigaddset(&set,
		strcmp(way, "sigwait") && strcmp(way, "handler-exits-at-once") ? SIGUSR2 : SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	begin();
	nap = kernel("nap");
	launch_nap();
	OK(pthread_create(&thread, NULL, launch_for_ever, NULL));
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		if (strcmp(way, ways[i].name))
			continue;
		if (!ways[i].says_ready)
			ready();
		ways[i].run();
	}
	exit(1);
}
