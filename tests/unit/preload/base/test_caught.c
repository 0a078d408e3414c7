/*
 * Signals that are caught, each in a process of its own, which the test sees end. The exit thread
 * is the test's.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/time.h"
#include "preload/base/caught.h"
#include "test.h"

#define LONG_NS (10 * TD_NS_PER_S) /* only a hang reaches it */
#define FINE    7

static _Atomic pid_t stayed; /* who */

static void stays(void)
{
	atomic_store(&stayed, gettid());
}

static bool wait_for_stay(void)
{
	uint64_t end_ns = td_time_now_ns() + LONG_NS;

	while (!atomic_load(&stayed) && td_time_now_ns() < end_ns)
		td_time_sleep_until_ns(td_time_now_ns() + TD_NS_PER_MS);
	return atomic_load(&stayed);
}

static int end_of(void (*run)(void))
{
	int status = 0;
	pid_t child = fork();

	if (child == 0) {
		alarm(20);
		run();
		_exit(0);
	}
	CHECK(child > 0);
	CHECK_EQ(waitpid(child, &status, 0), child);
	return status;
}

static void *raise_one(void *number)
{
	raise(*(int *)number);
	return NULL;
}

static void *step_on_trap(void *arg)
{
	(void)arg;
#if defined(__x86_64__)
	__asm__ volatile("int3");
#else
	raise(SIGTRAP);
#endif
	_exit(FINE + 1); /* it has gone on */
}

static void start(void *(*run)(void *), int *number)
{
	pthread_t thread;

	td_caught_set_stay(stays);
	td_caught_arm();
	if (pthread_create(&thread, NULL, run, number))
		_exit(FINE + 2);
}

static void stay_with_hook(void)
{
	static int number = SIGPIPE;

	start(raise_one, &number);
	if (wait_for_stay() && atomic_load(&stayed) != gettid() && td_caught_first() == SIGPIPE)
		_exit(FINE);
}

TEST(who_stays_in_the_handler_has_said_so_before)
{
	int status = end_of(stay_with_hook);

	CHECK(WIFEXITED(status));
	CHECK_EQ(WEXITSTATUS(status), FINE);
}

static void trap(void)
{
	start(step_on_trap, NULL);
	if (wait_for_stay())
		td_caught_die(td_caught_first());
}

TEST(a_trap_does_not_repeat_itself_and_ends_the_process_all_the_same)
{
	int status = end_of(trap);

	CHECK(WIFSIGNALED(status));
	CHECK_EQ(WTERMSIG(status), SIGTRAP);
}

static void set_default_with_flag(void)
{
	struct sigaction act = {.sa_handler = SIG_DFL, .sa_flags = SA_SIGINFO};

	if (sigaction(SIGTERM, &act, NULL))
		return;
	td_caught_arm();
	raise(SIGTERM); /* is noted, and this goes on */
	if (td_caught_first() == SIGTERM)
		_exit(FINE);
}

TEST(a_default_is_one_with_any_flag)
{
	int status = end_of(set_default_with_flag);

	CHECK(WIFEXITED(status));
	CHECK_EQ(WEXITSTATUS(status), FINE);
}

static void *end_later(void *arg)
{
	td_time_sleep_until_ns(td_time_now_ns() + 200 * TD_NS_PER_MS);
	_exit(*(int *)arg);
}

/* The other thread ends the process while this one must still be waiting. */
static void ignore_too_late(void)
{
	static int number = SIGPIPE, status = FINE;
	const struct sigaction ignore = {.sa_handler = SIG_IGN};
	pthread_t thread;

	start(raise_one, &number);
	if (!wait_for_stay() || pthread_create(&thread, NULL, end_later, &status))
		return;
	(void)td_caught_action(SIGPIPE, &ignore, NULL);
	_exit(FINE + 1);
}

TEST(a_disposition_set_after_the_signal_came_has_no_effect)
{
	int status = end_of(ignore_too_late);

	CHECK(WIFEXITED(status));
	CHECK_EQ(WEXITSTATUS(status), FINE);
}

static void be_first_of_namespace(void)
{
	int status = 0;
	pid_t first;

	if (unshare(CLONE_NEWPID) && unshare(CLONE_NEWUSER | CLONE_NEWPID))
		_exit(FINE + 3);
	first = fork();
	if (first == 0) {
		struct sigaction now;

		td_caught_arm();
		raise(SIGTERM);
		_exit(getpid() == 1 && !td_caught_first() && !sigaction(SIGTERM, NULL, &now) &&
					now.sa_handler == SIG_DFL
				? FINE
				: 1);
	}
	if (first > 0 && waitpid(first, &status, 0) == first && WIFEXITED(status))
		_exit(WEXITSTATUS(status));
}

TEST(pid_1_is_left_as_it_is)
{
	int status = end_of(be_first_of_namespace);

	CHECK(WIFEXITED(status));
	if (WEXITSTATUS(status) == FINE + 3)
		SKIP("no namespace of pids can be made here");
	CHECK_EQ(WEXITSTATUS(status), FINE);
}
