/* Actions of one thread in the middle of another thread's call. */
#include "unit/preload/agent_world.h"
#include "preload/base/agent_calls.h"

#include <signal.h>
#include <stdarg.h>

/*
 * While any thread captures in the usual mode, a thread of the usual mode that asks the driver
 * about an event is refused and spoils that capture, which may begin at any moment.
 */
CASE(pacing_looks_at_its_events_as_no_capture_forbids)
{
	start_open(1);
	atomic_store(&d.gate->window_ns, MS);
	word(TD_WORD_WINDOW | TD_WORD_STEP);
	for (unsigned i = 0; i < 4; i++)
		launch_on(FAKE_STREAM);
	EXPECT(atomic_load(&fake.queries) != 0);
	EXPECT(atomic_load(&fake.queries_not_relaxed) == 0);
	EXPECT(fake_mode_now == 0); /* the program's own is what it was */
}

/*
 * A stream that waits for an event of a capture joins it: while the driver has not answered, an
 * event that is put on it may become a part of the capture.
 */
CASE(nothing_is_recorded_while_a_stream_may_join_a_capture)
{
	start_open(1);
	td_context_stream_created(FAKE_STREAM);
	EXPECT(!td_context_join_begin()); /* there is none */
	td_context_capture_begin();
	td_context_capture_begun(true, FAKE_STREAM);
	EXPECT(td_context_join_begin());
	daemon_close_and_let_drain();
	EXPECT(atomic_load(&fake.records) == 0);
	atomic_store(&fake.capturing, true);
	td_context_join_end();
	(void)next(TD_MSG_TYPE_drained);
	EXPECT(atomic_load(&fake.records) != 0);
	EXPECT(atomic_load(&fake.records_on_capture) == 0);
}

static _Atomic int need_result = -1;

static void *ask_for_much(void *arg)
{
	(void)arg;
	atomic_store(&need_result, td_client_need(0, 80 * MIB, TD_MOVABLE));
	return NULL;
}

/*
 * One thread allocates, and waits for the daemon; another resets the GPU. No answer comes any more.
 */
CASE(who_asks_for_memory_of_a_context_that_ends_is_refused)
{
	pthread_t thread;

	start_open(1);
	EXPECT(!pthread_create(&thread, NULL, ask_for_much, NULL));
	(void)next(TD_MSG_TYPE_ask);
	td_context_gone(FAKE_CONTEXT);
	(void)next(TD_MSG_TYPE_detach);
	EXPECT(!pthread_join(thread, NULL));
	EXPECT(atomic_load(&need_result) == TD_NEED_REFUSED);
	/* It was about to ask. */
	atomic_store(&need_result, -1);
	EXPECT(!pthread_create(&thread, NULL, ask_for_much, NULL));
	EXPECT(!pthread_join(thread, NULL));
	EXPECT(atomic_load(&need_result) == TD_NEED_REFUSED);
}

static void *call_while_cancelled(void *arg)
{
	(void)arg;
	pthread_cancel(pthread_self());
	td_client_memory_changed(0); /* wakes the agent */
	td_agent_wake();
	td_gate_await(); /* sleeps */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	return &need_result;
}

/*
 * Calls of CUDA are no cancellation points, so a program may hold any lock there; and the library
 * holds reservations and locks.
 */
CASE(a_cancelled_thread_does_not_end_in_what_we_do_in_its_calls)
{
	pthread_t thread;
	void *result;

	start_open(1);
	EXPECT(!pthread_create(&thread, NULL, call_while_cancelled, NULL));
	EXPECT(!pthread_join(thread, &result));
	EXPECT(result != PTHREAD_CANCELED);
}

/* -- forks: of any thread, while another of ours is anywhere -- */

static _Atomic int forks_after; /* calls of mremap; 0: none */
static _Atomic bool fork_in_connect;
static _Atomic int child_status = -1, connecting_fd = -1;

/* Forks and checks in the child; the parent goes on. */
static void fork_now(void)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		td_agent_forked();
		td_client_forked();
		td_context_forked();
		td_drain_forked();
		td_marker_forked();
		td_gate_forked();
		EXPECT(td_gate_word() == 0);
		atomic_store(&td_meter.page.launches, 77); /* its own */
		if (atomic_load(&connecting_fd) >= 0)
			EXPECT(fcntl(atomic_load(&connecting_fd), F_GETFD) < 0);
		_exit(0);
	}
	EXPECT(waitpid(pid, &status, 0) == pid);
	atomic_store(&child_status, status);
}

/* libc's, in whose middle another thread forks. */
void *mremap(void *from, size_t old_size, size_t new_size, int flags, ...)
{
	va_list arguments;
	void *to, *r;

	va_start(arguments, flags);
	to = va_arg(arguments, void *);
	va_end(arguments);
	r = (void *)syscall(SYS_mremap, from, old_size, new_size, flags, to);
	if (atomic_load(&forks_after) && atomic_fetch_sub(&forks_after, 1) == 1)
		fork_now();
	return r;
}

CASE(a_child_has_pages_of_its_own_even_if_they_were_just_being_exchanged)
{
	struct td_meter_page *meter;
	void *page;
	int fds[2];

	begin();
	fds[0] = new_page(&page);
	fds[1] = new_page(&page);
	meter = page;
	/* Behind the meter's, or the gate's; where private ones were there before, or others. */
	for (int i = 0; i < 4; i++) {
		atomic_store(&child_status, -1);
		atomic_store(&forks_after, 1 + i % 2);
		EXPECT(!td_gate_map(fds[0], fds[1]));
		EXPECT(atomic_load(&child_status) == 0);
		EXPECT(atomic_load(&meter->launches) == 0);
		if (i == 1)
			EXPECT(!td_gate_unmap(0, 0));
	}
}

int connect(int fd, const struct sockaddr *address, socklen_t len)
{
	if (atomic_exchange(&fork_in_connect, false)) {
		atomic_store(&connecting_fd, fd);
		fork_now();
		atomic_store(&connecting_fd, -1);
	}
	return (int)syscall(SYS_connect, fd, address, len);
}

/* The descriptor in the child would keep the daemon from noticing the parent's end. */
CASE(a_child_does_not_hold_the_connection_that_its_parent_was_just_making)
{
	sigset_t ended;

	sigemptyset(&ended);
	sigaddset(&ended, SIGCHLD);
	EXPECT(!pthread_sigmask(
		SIG_BLOCK, &ended, NULL)); /* nothing of the daemon's is interrupted */
	daemon_listen();
	begin();
	atomic_store(&fork_in_connect, true);
	program(1);
	daemon_welcome();
	EXPECT(atomic_load(&child_status) == 0);
	until_waiting();
	daemon_open(50 * MIB);
	until_launched(1);
}

static _Atomic bool left;

static void *leave_context(void *arg)
{
	td_context_gone(FAKE_CONTEXT);
	atomic_store(&left, true);
	return arg;
}

/*
 * Ends the context. The call returns only when no call of the library is under way in it, because a
 * driver may do anything with those.
 */
static void end_context(void)
{
	uint64_t serial = td_context_serial();
	pthread_t thread;

	EXPECT(!pthread_create(&thread, NULL, leave_context, NULL));
	pthread_detach(thread);
	while (td_context_is_alive(serial))
		td_time_sleep_until_ns(td_time_now_ns() + MS);
	td_time_sleep_until_ns(
		td_time_now_ns() + 20 * MS); /* in which it would, if it did not wait */
	EXPECT(!atomic_load(&left));
}

/*
 * The agent fills in one context; a thread of the program ends it. The copies fail, which does not
 * concern the process's other contexts.
 */
CASE(a_context_that_ends_amid_a_move_is_not_taken_for_one_that_failed)
{
	struct td_msg msg;

	daemon_listen();
	begin();
	program(1);
	daemon_welcome();
	until_waiting();
	atomic_store(&fake.failing, true);
	atomic_store(&fake.in_fill, end_context);
	plan(TD_GATE_OPEN, false, 50 * MIB);
	do {
		EXPECT(!td_socket_recv(d.fd, &msg, NULL, 0));
		EXPECT(msg.type != TD_MSG_TYPE_failed);
	} while (msg.type != TD_MSG_TYPE_detach);
	while (!atomic_load(&left))
		td_time_sleep_until_ns(td_time_now_ns() + MS);
}

/*
 * A process that does not know the others would use its job's whole limit alone, beside the memory
 * of the job's other processes.
 */
CASE(a_daemon_that_is_slow_to_answer_is_waited_for_for_as_long_as_the_agent_does)
{
	daemon_listen();
	begin();
	program(1);
	td_time_sleep_until_ns(td_time_now_ns() + 2500 * MS); /* half of what the agent gives it */
	EXPECT(atomic_load(&launched) == 0);
	daemon_welcome();
	until_waiting();
	daemon_open(50 * MIB);
	until_launched(1);
}

/*
 * The thread left its event at the gate; another one ended the context before the drain came by. A
 * driver may do anything with such an event.
 */
CASE(no_event_is_asked_about_after_its_context_has_ended)
{
	uint64_t end = td_time_now_ns() + BOUND, ticket, serial;
	struct td_marker *marker;

	begin();
	launch_on(TD_STREAM_PER_THREAD);
	marker = td_marker_claim();
	atomic_store(&fake.context, (void *)0xc8);
	EXPECT(td_context_use() >= 0);
	td_context_capture_begin();
	td_context_capture_begun(true, FAKE_STREAM); /* in that one */
	atomic_store(&fake.context, NULL);
	td_context_mark_own_stream(marker);
	EXPECT(atomic_load(&marker->own_mark.launches) == 1);
	atomic_store(&fake.ended_event, marker->own_mark.event);
	serial = td_context_serial();
	/*
	 * The context may be ending, and be gone before an answer: it is not asked, and nothing is
	 * known.
	 */
	EXPECT(td_context_leaving(FAKE_CONTEXT) == serial);
	EXPECT(!td_context_event_is_over(serial, marker->own_mark.event));
	EXPECT(td_context_ends(serial));
	td_context_left(FAKE_CONTEXT, serial, true);
	atomic_store(&fake.context, (void *)0xc8);
	ticket = td_drain_begin();
	while (!td_drain_is_done(ticket)) {
		EXPECT(td_time_now_ns() < end);
		td_time_sleep_until_ns(td_time_now_ns() + MS / 10);
	}
	/* The same holds when the thread needs another event. */
	launch_on(TD_STREAM_PER_THREAD);
	td_context_mark_own_stream(marker);
	EXPECT(marker->own_mark.event != atomic_load(&fake.ended_event));
	EXPECT(atomic_load(&fake.ended_named) == 0);
}
