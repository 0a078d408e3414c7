/* A program that is asked to end raises SIGTERM at itself, when and as its disposition says. */
#include <signal.h>

#include "unit/preload/agent_world.h"

static _Atomic unsigned raised;

int __wrap_kill(pid_t pid, int signal);
int __wrap_kill(pid_t pid, int signal)
{
	if (pid == getpid() && signal == SIGTERM)
		atomic_fetch_add(&raised, 1);
	return 0;
}

static void leave(uint64_t patience_ns, bool drains)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_leave};

	msg.leave.patience_ns = patience_ns;
	msg.leave.drains = drains;
	EXPECT(!td_socket_send(d.fd, &msg, NULL, 0));
}

static void until_raised(unsigned count)
{
	uint64_t end_ns = td_time_now_ns() + BOUND;

	while (atomic_load(&raised) != count && td_time_now_ns() < end_ns)
		usleep(1000);
	EXPECT(atomic_load(&raised) == count);
}

static void handler(int number)
{
	(void)number;
}

CASE(by_default_the_gate_is_closed_and_work_ends_first)
{
	start_open(3);
	EXPECT(d.hello.can & TD_CAN_LEAVE);
	atomic_store(&fake.busy, true);
	leave(BOUND, true);
	EXPECT(next(TD_MSG_TYPE_leaving).leaving.how == TD_LEAVING_ENDS);
	daemon_close(0);
	/* The GPU is busy: it is asked for the time it takes to go round once more. */
	program(1);
	until_waiting();
	EXPECT(!atomic_load(&raised));
	atomic_store(&fake.busy, false);
	(void)next(TD_MSG_TYPE_drained);
	until_raised(1);
}

CASE(work_that_does_not_end_is_waited_for_as_long_as_the_patience_says)
{
	start_open(1);
	atomic_store(&fake.busy, true);
	leave(50 * MS, true);
	EXPECT(next(TD_MSG_TYPE_leaving).leaving.how == TD_LEAVING_ENDS);
	daemon_close(0);
	until_raised(1);
}

CASE(a_program_that_is_waiting_ends_at_once)
{
	daemon_listen();
	begin();
	program(1);
	daemon_welcome();
	until_waiting();
	leave(BOUND, true);
	until_raised(1);
	EXPECT(!atomic_load(&launched));
}

CASE(where_no_gate_is_closed_nothing_is_waited_for)
{
	start_open(1);
	atomic_store(&fake.busy, true);
	leave(BOUND, false);
	until_raised(1);
}

CASE(a_handler_is_called_at_once_and_once)
{
	EXPECT(signal(SIGTERM, handler) != SIG_ERR);
	start_open(1);
	atomic_store(&fake.busy, true);
	leave(BOUND, true);
	EXPECT(next(TD_MSG_TYPE_leaving).leaving.how == TD_LEAVING_HANDLES);
	until_raised(1);
	program(1);
	until_launched(2);
	EXPECT(atomic_load(&raised) == 1);
	/* Who asks again means it. */
	leave(BOUND, true);
	until_raised(2);
}

CASE(one_that_ignores_it_says_so)
{
	EXPECT(signal(SIGTERM, SIG_IGN) != SIG_ERR);
	start_open(1);
	leave(BOUND, true);
	EXPECT(next(TD_MSG_TYPE_leaving).leaving.how == TD_LEAVING_IGNORES);
	EXPECT(!atomic_load(&raised));
	daemon_close(0);
	(void)next(TD_MSG_TYPE_drained);
	until_raised(1);
}

CASE(without_the_daemon_it_ends_at_once)
{
	start_open(1);
	atomic_store(&fake.busy, true);
	leave(BOUND, true);
	EXPECT(next(TD_MSG_TYPE_leaving).leaving.how == TD_LEAVING_ENDS);
	daemon_die();
	until_raised(1);
}
