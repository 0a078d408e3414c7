/*
 * A daemon that exists and does not answer, because it is stopped or gets no processor. The test
 * moves the clock.
 */
#include "unit/preload/agent_world.h"
#include "preload/base/agent_calls.h"

#include <time.h>

static _Atomic uint64_t ahead_ns,
	stands_ns; /* stands: the clock goes by pass() alone; 0: it does not */

static uint64_t real_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * TD_NS_PER_S + (uint64_t)ts.tv_nsec;
}

uint64_t td_time_now_ns(void)
{
	uint64_t stands = atomic_load(&stands_ns);

	return (stands ? stands : real_ns()) + atomic_load(&ahead_ns);
}

void td_time_sleep_until_ns(uint64_t deadline_ns)
{
	uint64_t now = td_time_now_ns(), ns = deadline_ns > now ? deadline_ns - now : 0;
	struct timespec ts = {(time_t)(ns / TD_NS_PER_S), (long)(ns % TD_NS_PER_S)};

	(void)syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &ts, NULL);
}

/* However slow this machine is. */
static void stop_clock(void)
{
	atomic_store(&stands_ns, real_ns());
}

static void start_clock(void)
{
	atomic_store(&stands_ns, 0);
}

static void pass(uint64_t seconds)
{
	atomic_fetch_add(&ahead_ns, seconds * TD_NS_PER_S);
	td_agent_wake();
}

static _Atomic int need_result = -1;

static void *allocate(void *arg)
{
	(void)arg;
	atomic_store(&need_result, td_client_need(0, 8 * MIB, TD_MOVABLE));
	return NULL;
}

static void start_allocating(void)
{
	pthread_t thread;

	EXPECT(!pthread_create(&thread, NULL, allocate, NULL));
	pthread_detach(thread);
}

/* The program goes on by itself; then it allocates. */
static void begin_silent(const char *limit)
{
	const struct timeval patience = {10, 0};

	setenv("TANDEM_MEM", limit, 1);
	daemon_listen();
	begin();
	program(1);
	d.fd = accept(d.listener, NULL, NULL);
	EXPECT(d.fd >= 0);
	setsockopt(d.fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	d.hello = next(TD_MSG_TYPE_hello).hello;
	EXPECT(atomic_load(&launched) == 0);
	pass(6);
	until_launched(1);
	start_allocating();
}

/* In which it would be answered, if it were. */
static void waits(void)
{
	td_time_sleep_until_ns(td_time_now_ns() + 100 * MS);
	EXPECT(atomic_load(&need_result) == -1);
}

static int until_answered(void)
{
	uint64_t end = td_time_now_ns() + BOUND;

	while (atomic_load(&need_result) == -1) {
		EXPECT(td_time_now_ns() < end);
		td_time_sleep_until_ns(td_time_now_ns() + MS);
	}
	return atomic_load(&need_result);
}

/* Others of the job may have by it what this one would take by the job's limit alone. */
CASE(in_a_job_with_a_limit_memory_waits_for_a_daemon_that_is_silent)
{
	struct td_msg welcome = {.type = TD_MSG_TYPE_welcome},
		      attached = {.type = TD_MSG_TYPE_attached};
	void *gate, *meter;
	int fds[2];

	begin_silent("50m");
	waits();
	pass(50);
	waits();
	/* It runs again, and the connection is the same. */
	fds[0] = new_page(&gate);
	fds[1] = new_page(&meter);
	EXPECT(!td_socket_send(d.fd, &welcome, fds, 2));
	(void)next(TD_MSG_TYPE_attach);
	attached.attached.capacity_bytes = 100 * MIB;
	attached.attached.quota_bytes = 50 * MIB;
	EXPECT(!td_socket_send(d.fd, &attached, NULL, 0));
	answer(next(TD_MSG_TYPE_ask).ask.ticket, TD_ANSWER_NO, 0);
	EXPECT(until_answered() == TD_NEED_REFUSED); /* by the daemon: others have it */
}

CASE(a_daemon_that_is_silent_for_a_minute_is_waited_for_no_longer)
{
	begin_silent("50m");
	waits();
	pass(61);
	EXPECT(until_answered() == TD_NEED_DEVICE);
}

CASE(a_daemon_that_ends_while_it_is_silent_is_gone)
{
	begin_silent("50m");
	waits();
	daemon_die();
	EXPECT(until_answered() == TD_NEED_DEVICE);
}

CASE(without_a_limit_nothing_waits_for_a_daemon_that_is_silent)
{
	begin_silent("");
	EXPECT(until_answered() == TD_NEED_DEVICE);
}

/* -- one that falls silent later -- */

#define ROUNDS 500 /* only a hang reaches it */

/* A second goes by, and the agent has had the time to look. */
static void tick(void)
{
	pass(1);
	td_time_sleep_until_ns(td_time_now_ns() + 5 * MS);
}

static bool has_hung_up(void)
{
	struct td_msg msg;
	int r;

	while (!(r = td_socket_recv(d.fd, &msg, NULL, MSG_DONTWAIT)))
		;
	return r != -EAGAIN;
}

static unsigned until_hung_up(void)
{
	unsigned seconds = 0;

	while (!has_hung_up()) {
		EXPECT(++seconds < ROUNDS);
		tick();
	}
	return seconds;
}

/* Its gate is closed, and a thread comes to it. */
static void begin_waiting(void)
{
	start_open(1);
	daemon_close(0);
	(void)next(TD_MSG_TYPE_drained);
	program(1);
	until_waiting();
	stop_clock();
}

CASE(who_waits_at_the_gate_leaves_a_daemon_that_fell_silent_and_goes_on)
{
	begin_waiting();
	EXPECT(until_hung_up() >= 5); /* not before it was asked, and had its time */
	start_clock();
	until_launched(2);
	/* It goes on after all, and finds the programs again. */
	daemon_welcome();
	EXPECT(d.hello.pid == (uint32_t)getpid());
	program(1);
	daemon_open(50 * MIB);
	until_launched(3);
}

CASE(a_daemon_that_is_slow_and_answers_is_not_left)
{
	const struct td_msg pong = {.type = TD_MSG_TYPE_pong};

	begin_waiting();
	for (unsigned answered = 0, seconds = 0; answered < 10; seconds++) {
		EXPECT(seconds < ROUNDS);
		tick();
		if (!came(TD_MSG_TYPE_ping))
			continue;
		for (unsigned i = 0; i < 3; i++)
			tick();
		EXPECT(!td_socket_send(d.fd, &pong, NULL, 0));
		answered++;
	}
	EXPECT(!has_hung_up() && atomic_load(&launched) == 1);
}

/* A process that was stopped itself, or whose agent had long to move memory. */
CASE(time_in_which_nobody_looked_is_not_the_daemons)
{
	const struct td_msg pong = {.type = TD_MSG_TYPE_pong};

	begin_waiting();
	for (unsigned i = 0; i < 3; i++) {
		for (unsigned seconds = 0; !came(TD_MSG_TYPE_ping); seconds++) {
			EXPECT(seconds < ROUNDS);
			tick();
		}
		pass(3600);
		td_time_sleep_until_ns(td_time_now_ns() + 20 * MS);
		EXPECT(!td_socket_send(d.fd, &pong, NULL, 0));
	}
	EXPECT(!has_hung_up() && atomic_load(&launched) == 1);
}

CASE(where_nobody_waits_nothing_is_asked)
{
	start_open(1);
	for (unsigned i = 0; i < 20; i++) {
		tick();
		EXPECT(!came(TD_MSG_TYPE_ping));
	}
	daemon_close(0);
	(void)next(TD_MSG_TYPE_drained);
	for (unsigned i = 0; i < 20; i++) {
		tick();
		EXPECT(!came(TD_MSG_TYPE_ping));
	}
	EXPECT(!has_hung_up());
}

CASE(an_allocation_leaves_a_daemon_that_fell_silent_and_has_its_memory)
{
	start_open(1);
	atomic_store(&fake.demanded, 50 * MIB);
	atomic_store(&fake.resident, 50 * MIB);
	start_allocating();
	(void)next(TD_MSG_TYPE_ask);
	waits();
	(void)until_hung_up();
	EXPECT(until_answered() == TD_NEED_DEVICE);
}

/* Its work has not left the GPU: it is the holder, and keeps holding. */
CASE(who_is_in_the_midst_of_its_drain_goes_on_at_once)
{
	grace = drain_deadline = "1000s";
	start_open(1);
	atomic_store(&fake.busy, true);
	daemon_close_and_let_drain();
	program(1);
	until_waiting();
	(void)until_hung_up();
	until_launched(2);
}

static _Atomic bool agent_is_held;

/* The agent comes no further. */
int connect(int fd, const struct sockaddr *address, socklen_t len)
{
	while (atomic_load(&agent_is_held))
		td_time_sleep_until_ns(td_time_now_ns() + MS);
	return (int)syscall(SYS_connect, fd, address, len);
}

/* By its own bound each call would wait again. */
CASE(an_agent_that_is_not_let_run_is_waited_for_once)
{
	atomic_store(&agent_is_held, true);
	daemon_listen();
	begin();
	program(1);
	program(1);
	while (atomic_load(&launched) < 2) {
		pass(11);
		td_time_sleep_until_ns(td_time_now_ns() + MS);
	}
	program(1);
	until_launched(3);
}

/*
 * Its queue is full because it accepts nobody: the agent goes on all the same, and counts the
 * daemon as silent.
 */
CASE(a_daemon_that_accepts_nobody_is_silent_and_not_gone)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int r, fd;

	setenv("TANDEM_MEM", "50m", 1);
	daemon_listen();
	EXPECT(!listen(d.listener, 0));
	strcpy(address.sun_path, d.path);
	do {
		fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		r = connect(fd, (struct sockaddr *)&address, sizeof(address));
	} while (!r);
	EXPECT(errno == EAGAIN);
	begin();
	program(1);
	until_launched(1);
	start_allocating();
	waits();
	daemon_die();
	EXPECT(until_answered() == TD_NEED_DEVICE);
}
