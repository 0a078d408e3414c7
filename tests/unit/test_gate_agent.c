/*
 * The agent against a daemon that the test plays, over a real socket and real pages, with a fake GPU. The agent is one per process, so each
 * case runs in a child; EXPECT ends it with the line in its exit message.
 */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake_gpu.h"
#include "policy/policy.h"
#include "preload/agent.h"
#include "preload/client_internal.h"
#include "preload/context.h"
#include "preload/drain.h"
#include "preload/gate.h"
#include "preload/host.h"
#include "preload/pace.h"
#include "preload/place.h"
#include "proto/proto.h"
#include "proto/socket.h"

#define MIB   (1ull << 20)
#define MS    TD_NS_PER_MS
#define BOUND (10 * TD_NS_PER_S) /* only a hang reaches it */

#define EXPECT(cond)                                                                               \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			fprintf(stderr, "# %s:%d: %s\n", __FILE__, __LINE__, #cond);               \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

/* -- the daemon -- */

static struct {
	char directory[64], path[108];
	int listener, fd;
	struct td_gate_page *gate;
	struct td_meter_page *meter;
	uint32_t seq;
	struct td_msg_hello hello;
} d = {.listener = -1, .fd = -1};

static void daemon_listen(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const struct timeval patience = {10, 0};

	strcpy(address.sun_path, d.path);
	unlink(d.path);
	d.listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	EXPECT(!bind(d.listener, (struct sockaddr *)&address, sizeof(address)));
	EXPECT(!listen(d.listener, 4));
	setsockopt(d.listener, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
}

static int new_page(void **ret)
{
	int fd = memfd_create("page", MFD_CLOEXEC);

	EXPECT(fd >= 0 && !ftruncate(fd, TD_PAGE_BYTES));
	*ret = mmap(NULL, TD_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	EXPECT(*ret != MAP_FAILED);
	return fd;
}

/* Until a message of that type; MEMORY and others in between are passed over. */
static struct td_msg next(uint32_t type)
{
	struct td_msg msg;
	int r;

	do {
		r = td_socket_recv(d.fd, &msg, NULL, 0);
		if (r)
			fprintf(stderr, "# waiting for %s: %d\n", td_proto_name(type), r);
		EXPECT(!r);
	} while (msg.type != type);
	return msg;
}

/* Is a message of that type under way already? */
static bool came(uint32_t type)
{
	struct td_msg msg;

	while (!td_socket_recv(d.fd, &msg, NULL, MSG_DONTWAIT))
		if (msg.type == type)
			return true;
	return false;
}

static void word(uint32_t w)
{
	atomic_store(&d.gate->word, w);
	td_futex_wake_all(&d.gate->word, true);
}

static void plan(enum td_gate gate, bool others_wait, uint64_t limit_bytes)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_plan};

	msg.plan.seq = ++d.seq;
	msg.plan.gate = (uint8_t)gate;
	msg.plan.others_wait = others_wait;
	msg.plan.limit_bytes = limit_bytes;
	EXPECT(!td_socket_send(d.fd, &msg, NULL, 0));
}

/* In WELCOME. */
static uint32_t features = TD_FEATURE_PLACE;

static void daemon_greet(void)
{
	const struct timeval patience = {10, 0};
	struct td_msg msg = {.type = TD_MSG_TYPE_welcome, .welcome.features = features};
	void *gate, *meter;
	int fds[2];

	d.fd = accept(d.listener, NULL, NULL);
	EXPECT(d.fd >= 0);
	setsockopt(d.fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	d.hello = next(TD_MSG_TYPE_hello).hello;
	fds[0] = new_page(&gate);
	fds[1] = new_page(&meter);
	d.gate = gate;
	d.meter = meter;
	atomic_store(&d.gate->word, d.hello.holds ? 0 : TD_WORD_CLOSED);
	EXPECT(!td_socket_send(d.fd, &msg, fds, 2));
	close(fds[0]);
	close(fds[1]);
}

static void daemon_welcome(void)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_attached};

	daemon_greet();
	(void)next(TD_MSG_TYPE_attach);
	msg.attached.capacity_bytes = 100 * MIB;
	EXPECT(!td_socket_send(d.fd, &msg, NULL, 0));
}

static void daemon_open(uint64_t limit_bytes)
{
	plan(TD_GATE_OPEN, false, limit_bytes);
	EXPECT(next(TD_MSG_TYPE_ready).ready.seq == d.seq);
	word(0);
}

static uint32_t closings;

static void daemon_close(uint64_t limit_bytes)
{
	word(TD_WORD_CLOSED | ++closings * TD_WORD_STEP);
	plan(TD_GATE_CLOSED, true, limit_bytes);
}

static void daemon_die(void)
{
	close(d.fd);
	close(d.listener);
	unlink(d.path);
	d.fd = -1;
}

/* -- the program -- */

static _Atomic uint64_t launched;

static void launch_on(void *stream)
{
	struct td_slot *slot = td_gate_enter(stream, 0);

	atomic_fetch_add(&launched, 1);
	td_gate_leave(slot);
}

static void *launch_many(void *count)
{
	for (uint64_t i = 0; i < *(uint64_t *)count; i++)
		launch_on(NULL);
	return NULL;
}

static void until_launched(uint64_t n)
{
	uint64_t end = td_time_now_ns() + BOUND;

	while (atomic_load(&launched) < n) {
		EXPECT(td_time_now_ns() < end);
		td_time_sleep_until_ns(td_time_now_ns() + MS / 10);
	}
}

/* A thread that makes `count` launches; the first introduces the process to the daemon. */
static void program(uint64_t count)
{
	static uint64_t counts[16];
	static unsigned n;
	pthread_t thread;

	counts[n] = count;
	EXPECT(!pthread_create(&thread, NULL, launch_many, &counts[n++]));
	pthread_detach(thread);
}

static const char *drain_deadline = "10s", *grace = "50ms";

static void begin(void)
{
	setenv("TANDEM_SOCKET", d.path, 1);
	setenv("TANDEM_DRAIN_DEADLINE", drain_deadline, 1);
	setenv("TANDEM_GRACE", grace, 1);
	td_settings_read();
	td_place_read();
	td_slot_init();
	td_gate_init();
	td_agent_set_backend(&fake_backend);
	td_driver_set(&fake_driver);
}

static void start_open(uint64_t launches)
{
	daemon_listen();
	begin();
	program(launches);
	daemon_welcome();
	(void)next(TD_MSG_TYPE_want);
	daemon_open(50 * MIB);
	until_launched(launches);
}

static void in_child(void (*run)(void))
{
	int status;
	pid_t pid;

	strcpy(d.directory, "/tmp/tandem-agent-XXXXXX");
	CHECK(mkdtemp(d.directory) != NULL);
	snprintf(d.path, sizeof(d.path), "%s/socket", d.directory);
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		alarm(60);
		run();
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	unlink(d.path);
	rmdir(d.directory);
	CHECK_EQ(status, 0);
}

#define CASE(id)                                                                                   \
	static void run_##id(void);                                                                \
	TEST(id)                                                                                   \
	{                                                                                          \
		in_child(run_##id);                                                                \
	}                                                                                          \
	static void run_##id(void)

CASE(a_newcomer_waits_asks_once_and_goes_on_when_ready)
{
	daemon_listen();
	begin();
	program(5);
	daemon_welcome();
	EXPECT(!d.hello.holds);
	EXPECT(next(TD_MSG_TYPE_want).want.word == TD_WORD_CLOSED);
	EXPECT(atomic_load(&launched) == 0);
	daemon_open(50 * MIB);
	until_launched(5);
	EXPECT(!came(TD_MSG_TYPE_want));
	EXPECT(td_client_capacity(0) == 100 * MIB);
}

CASE(without_a_daemon_nothing_waits)
{
	begin();
	launch_on(NULL);
	EXPECT(td_client_need(0, MIB, true) == 0);
	EXPECT(td_gate_word() == 0);
}

CASE(a_closing_waits_for_the_device_then_memory_leaves)
{
	struct td_msg msg;

	start_open(3);
	atomic_store(&fake.demanded, 40 * MIB);
	atomic_store(&fake.resident, 40 * MIB);
	atomic_store(&fake.busy, true);
	daemon_close(10 * MIB);
	program(2);
	(void)next(TD_MSG_TYPE_want);
	EXPECT(atomic_load(&fake.shrinks) == 0);
	atomic_store(&fake.busy, false);
	msg = next(TD_MSG_TYPE_drained);
	EXPECT(msg.drained.launches == 3 && msg.drained.frozen_ns <= msg.drained.drained_ns);
	do
		msg = next(TD_MSG_TYPE_memory);
	while (msg.memory.seq != d.seq);
	EXPECT(msg.memory.resident_bytes == 10 * MIB && msg.memory.demanded_bytes == 40 * MIB);
	EXPECT(atomic_load(&launched) == 3);
	daemon_open(50 * MIB);
	until_launched(5);
	EXPECT(atomic_load(&fake.resident) == 40 * MIB);
}

/* Nobody tells when the host has a place again. */
CASE(what_could_not_leave_is_tried_again_by_itself)
{
	struct td_msg msg;

	start_open(1);
	atomic_store(&fake.demanded, 40 * MIB);
	atomic_store(&fake.resident, 40 * MIB);
	atomic_store(&fake.stuck, true);
	daemon_close(10 * MIB);
	do
		msg = next(TD_MSG_TYPE_memory);
	while (msg.memory.seq != d.seq);
	EXPECT(msg.memory.resident_bytes == 40 * MIB);
	while (atomic_load(&fake.shrinks) < 3)
		td_time_sleep_until_ns(td_time_now_ns() + MS);
	atomic_store(&fake.stuck, false);
	do
		msg = next(TD_MSG_TYPE_memory);
	while (msg.memory.resident_bytes != 10 * MIB);
}

CASE(the_daemon_is_told_when_what_could_not_leave_may_be_able_to)
{
	start_open(1);
	atomic_store(&fake.again_ns, td_time_now_ns() + 30 * MS);
	td_client_memory_changed(0);
	(void)next(TD_MSG_TYPE_memory);
	(void)next(TD_MSG_TYPE_memory);
	EXPECT(td_time_now_ns() >= atomic_load(&fake.again_ns));
}

CASE(a_drain_that_does_not_end_is_reported_and_the_program_goes_on)
{
	drain_deadline = "100ms";
	start_open(1);
	atomic_store(&fake.busy, true);
	daemon_close(0);
	program(1);
	EXPECT(next(TD_MSG_TYPE_stuck).stuck.waited_ns >= 100 * MS);
	word(0);
	until_launched(2);
	EXPECT(atomic_load(&fake.shrinks) == 0);
	/* The drain thread is still inside; the next closing waits for its own pass. */
	daemon_close(0);
	(void)next(TD_MSG_TYPE_stuck);
	word(0);
	atomic_store(&fake.busy, false);
	daemon_close(0);
	(void)next(TD_MSG_TYPE_drained);
}

static _Atomic int need_result = -1;

static void *ask_for_memory(void *arg)
{
	(void)arg;
	atomic_store(&need_result, td_client_need(0, 8 * MIB, true));
	return NULL;
}

CASE(an_allocation_is_answered_while_a_drain_waits)
{
	struct td_msg msg, answer = {.type = TD_MSG_TYPE_answer};
	pthread_t thread;

	start_open(1);
	atomic_store(&fake.demanded, 48 * MIB);
	atomic_store(&fake.busy, true);
	daemon_close(50 * MIB);
	pthread_create(&thread, NULL, ask_for_memory, NULL);
	msg = next(TD_MSG_TYPE_need);
	EXPECT(msg.need.bytes == 8 * MIB);
	answer.answer.ticket = msg.need.ticket;
	answer.answer.granted = 2;
	answer.answer.limit_bytes = 50 * MIB;
	EXPECT(!td_socket_send(d.fd, &answer, NULL, 0));
	pthread_join(thread, NULL);
	EXPECT(atomic_load(&need_result) == 2);
	EXPECT(!td_client_may_defer(0)); /* work is still running */
	atomic_store(&fake.busy, false);
	(void)next(TD_MSG_TYPE_drained);
	EXPECT(td_client_may_defer(0));
}

CASE(what_was_granted_and_has_not_landed_is_in_every_report)
{
	struct td_msg msg;

	start_open(1);
	EXPECT(td_client_need(0, 30 * MIB, true) == 0); /* the limit covers it */
	daemon_close(5 * MIB);
	(void)next(TD_MSG_TYPE_drained);
	td_client_memory_changed(0);
	msg = next(TD_MSG_TYPE_memory);
	EXPECT(msg.memory.demanded_bytes == 30 * MIB && msg.memory.resident_bytes == 30 * MIB);
	EXPECT(atomic_load(&fake.shrinks) == 0);
	atomic_store(&fake.demanded, 30 * MIB);
	atomic_store(&fake.resident, 30 * MIB);
	td_client_settled(0, 30 * MIB, 0, true);
	do
		msg = next(TD_MSG_TYPE_memory);
	while (msg.memory.seq != d.seq || msg.memory.resident_bytes != 5 * MIB);
	EXPECT(msg.memory.demanded_bytes == 30 * MIB);
}

static void *reserve(void *bytes)
{
	(void)td_host_reserve(*(uint64_t *)bytes);
	return NULL;
}

/* It believes in no more than it knows to be allocated. */
CASE(the_daemon_hears_of_an_allocation_before_a_place_for_it_on_the_host_is_asked_for)
{
	static uint64_t bytes = 30 * MIB;
	struct td_msg msg, host = {.type = TD_MSG_TYPE_host};
	uint64_t demanded = 0;
	pthread_t thread;

	setenv("TANDEM_HOST_FULL", "refuse", 1);
	start_open(1);
	host.host.seq = 1;
	EXPECT(!td_socket_send(d.fd, &host, NULL, 0));
	EXPECT(next(TD_MSG_TYPE_host_need).host_need.seq == 1);
	EXPECT(td_client_need(0, bytes, true) == 0); /* the limit covers it */
	EXPECT(!pthread_create(&thread, NULL, reserve, &bytes));
	do {
		EXPECT(!td_socket_recv(d.fd, &msg, NULL, 0));
		if (msg.type == TD_MSG_TYPE_memory)
			demanded = msg.memory.demanded_bytes;
	} while (msg.type != TD_MSG_TYPE_host_need);
	EXPECT(msg.host_need.ticket == 1 && msg.host_need.wanted_bytes == bytes);
	EXPECT(demanded == bytes);
	host.host.seq = 2;
	host.host.bytes = UINT64_MAX;
	EXPECT(!td_socket_send(d.fd, &host, NULL, 0));
	EXPECT(!pthread_join(thread, NULL));
}

CASE(what_was_granted_for_good_keeps_no_limit_from_falling)
{
	struct td_msg msg;

	start_open(1);
	EXPECT(td_client_need(0, 30 * MIB, false) == 0);
	/* Its thread may wait at the gate with it: it is there already, and stays. */
	daemon_close(5 * MIB);
	(void)next(TD_MSG_TYPE_drained);
	do
		msg = next(TD_MSG_TYPE_memory);
	while (msg.memory.seq != d.seq);
	EXPECT(msg.memory.resident_bytes == 30 * MIB && msg.memory.fixed_bytes == 30 * MIB);
	td_client_settled(0, 30 * MIB, 0, false);
	do
		msg = next(TD_MSG_TYPE_memory);
	while (msg.memory.resident_bytes);
	EXPECT(!msg.memory.fixed_bytes && !msg.memory.demanded_bytes);
}

CASE(a_place_on_the_host_is_asked_for_before_memory_is_to_lie_there)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_plan}, host = {.type = TD_MSG_TYPE_host};

	start_open(1);
	atomic_store(&fake.demanded, 40 * MIB);
	atomic_store(&fake.resident, 40 * MIB);
	daemon_close(50 * MIB);
	(void)next(TD_MSG_TYPE_drained);
	host.host.seq = 1;
	EXPECT(!td_socket_send(d.fd, &host, NULL, 0));
	EXPECT(next(TD_MSG_TYPE_host_need).host_need.wanted_bytes == 0);
	msg.plan.seq = ++d.seq;
	msg.plan.gate = TD_GATE_OPEN;
	msg.plan.spill = TD_SPILL_MOVES;
	msg.plan.limit_bytes = 10 * MIB;
	EXPECT(!td_socket_send(d.fd, &msg, NULL, 0));
	msg = next(TD_MSG_TYPE_host_need);
	EXPECT(msg.host_need.ticket == 1 && msg.host_need.wanted_bytes == 30 * MIB);
	EXPECT(atomic_load(&fake.reaches) == 0);
	host.host = (struct td_msg_host){.seq = 2, .bytes = 20 * MIB, .ticket = 1};
	EXPECT(!td_socket_send(d.fd, &host, NULL, 0));
	EXPECT(next(TD_MSG_TYPE_ready).ready.seq == d.seq);
	EXPECT(atomic_load(&fake.reaches) == 1);
}

CASE(idleness_is_told_once_others_wait_and_so_is_its_end)
{
	start_open(2);
	plan(TD_GATE_OPEN, true, 50 * MIB);
	EXPECT(next(TD_MSG_TYPE_idle).idle.launches == 2);
	launch_on(NULL);
	(void)next(TD_MSG_TYPE_want);
	(void)next(TD_MSG_TYPE_idle);
}

CASE(a_process_with_work_in_flight_is_not_idle)
{
	start_open(1);
	atomic_store(&fake.busy, true);
	plan(TD_GATE_OPEN, true, 50 * MIB);
	td_time_sleep_until_ns(td_time_now_ns() + 30 * MS);
	EXPECT(!came(TD_MSG_TYPE_idle));
	atomic_store(&fake.busy, false);
	(void)next(TD_MSG_TYPE_idle);
}

CASE(an_armed_gate_lets_through_and_tells)
{
	start_open(1);
	word(TD_WORD_ARMED | TD_WORD_STEP);
	launch_on(NULL);
	EXPECT(next(TD_MSG_TYPE_want).want.word == (TD_WORD_ARMED | TD_WORD_STEP));
	EXPECT(atomic_load(&launched) == 2);
}

CASE(a_holder_goes_on_without_its_daemon_and_tells_the_next)
{
	start_open(2);
	daemon_die();
	program(3);
	until_launched(5);
	daemon_listen();
	daemon_welcome();
	EXPECT(d.hello.holds);
	EXPECT(next(TD_MSG_TYPE_memory).memory.seq == 0);
	daemon_close(0);
	(void)next(TD_MSG_TYPE_drained);
}

CASE(who_waited_goes_on_after_a_grace_time_with_its_memory_back)
{
	start_open(1);
	atomic_store(&fake.demanded, 20 * MIB);
	atomic_store(&fake.resident, 20 * MIB);
	daemon_close(0);
	(void)next(TD_MSG_TYPE_drained);
	while (atomic_load(&fake.resident))
		td_time_sleep_until_ns(td_time_now_ns() + MS);
	program(1);
	(void)next(TD_MSG_TYPE_want);
	atomic_store(&fake.full, true);
	daemon_die();
	td_time_sleep_until_ns(td_time_now_ns() + 400 * MS); /* longer than grace and jitter */
	EXPECT(atomic_load(&launched) == 1);                 /* no room yet */
	atomic_store(&fake.full, false);
	until_launched(2);
	EXPECT(atomic_load(&fake.resident) == 20 * MIB);
}

CASE(who_waited_for_memory_that_cannot_come_back_goes_on_too)
{
	daemon_listen();
	begin();
	program(1);
	daemon_welcome();
	(void)next(TD_MSG_TYPE_want);
	atomic_store(&fake.demanded, 20 * MIB);
	atomic_store(&fake.failing, true);
	daemon_die();
	until_launched(1); /* and sees its error */
}

CASE(who_waited_and_meets_a_new_daemon_in_time_still_waits)
{
	grace = "60s";
	daemon_listen();
	begin();
	program(1);
	daemon_welcome();
	(void)next(TD_MSG_TYPE_want);
	daemon_die();
	daemon_listen();
	daemon_welcome();
	EXPECT(!d.hello.holds);
	(void)next(TD_MSG_TYPE_want);
	EXPECT(atomic_load(&launched) == 0);
	daemon_open(50 * MIB);
	until_launched(1);
}

CASE(a_program_that_closes_every_descriptor_loses_nothing_but_the_connection)
{
	int fd;

	start_open(1);
	for (fd = 500; fd < 1024; fd++)
		(void)syscall(SYS_close, fd); /* as rudely as a program does it */
	/* The numbers belong to the program now; not a byte of ours may get into them. */
	fd = fcntl(new_page((void *[]){NULL}), F_DUPFD, 700);
	EXPECT(fd >= 700);
	td_client_memory_changed(0);
	program(2);
	daemon_welcome();
	EXPECT(d.hello.holds);
	until_launched(3);
	EXPECT(lseek(fd, 0, SEEK_CUR) == 0);
}

CASE(the_child_of_a_fork_has_its_own_open_gate)
{
	int status;
	pid_t pid;

	start_open(1);
	daemon_close(0);
	(void)next(TD_MSG_TYPE_drained);
	pid = fork();
	if (pid == 0) {
#ifdef __SANITIZE_THREAD__
		/* It lets no thread be started in the child of a process with threads: no context, no agent. */
		atomic_store(&fake.lost_context, true);
#endif
		unlink(d.path);
		td_agent_forked();
		td_client_forked();
		td_context_forked();
		td_drain_forked();
		td_pace_forked();
		td_slot_forked();
		td_gate_forked();
		launch_on(NULL);
		_exit(td_slot_launches() == 1 ? 0 : 1);
	}
	EXPECT(waitpid(pid, &status, 0) == pid && status == 0);
	EXPECT(td_gate_word() & TD_WORD_CLOSED);
	program(1);
	(void)next(TD_MSG_TYPE_want);
	daemon_open(50 * MIB);
	until_launched(2);
}

CASE(the_window_bounds_what_is_in_flight_but_never_for_ever)
{
	uint64_t began;

	start_open(1);
	atomic_store(&d.gate->window_ns, MS);
	word(TD_WORD_WINDOW | TD_WORD_STEP);
	atomic_store(&fake.busy, true);
	began = td_time_now_ns();
	launch_on(FAKE_STREAM);
	launch_on(FAKE_STREAM);
	EXPECT(td_time_now_ns() - began < 40 * MS || atomic_load(&launched) == 3);
	began = td_time_now_ns();
	launch_on(FAKE_STREAM);
	EXPECT(td_time_now_ns() - began >= 45 * MS);
	EXPECT(atomic_load(&fake.records) >= 2);
	atomic_store(&fake.busy, false);
}

CASE(without_the_flag_no_event_is_ever_recorded)
{
	start_open(10);
	launch_on(FAKE_STREAM);
	EXPECT(atomic_load(&fake.records) == 0);
}

/* Such a daemon counts its changes in the flag's bit. */
CASE(a_daemon_that_knows_of_no_duty_paces_nobody)
{
	start_open(1);
	word(TD_WORD_ARMED | TD_WORD_DUTY);
	launch_on(FAKE_STREAM);
	launch_on(FAKE_STREAM);
	EXPECT(atomic_load(&fake.records) == 0);
}

CASE(beside_a_capture_nothing_is_synchronised_context_wide_or_recorded_on_it)
{
	start_open(1);
	td_context_stream_created(FAKE_STREAM);
	td_context_capture_begin();
	atomic_store(&fake.capturing, true);
	td_context_capture_begun(true);
	atomic_store(&fake.busy, true);
	daemon_close(0);
	while (!atomic_load(&fake.records))
		td_time_sleep_until_ns(td_time_now_ns() + MS);
	launch_on(FAKE_STREAM); /* captured: it passes the closed gate */
	EXPECT(td_slot_launches() == 1);
	EXPECT(!came(TD_MSG_TYPE_drained));
	atomic_store(&fake.busy, false);
	(void)next(TD_MSG_TYPE_drained);
	EXPECT(atomic_load(&fake.syncs_in_capture) == 0);
	EXPECT(atomic_load(&fake.records_on_capture) == 0);
}

static void *set_on(void *stream)
{
	struct td_slot *slot = td_gate_enter(stream, TD_SUBMIT_CALL);

	atomic_fetch_add(&launched, 1);
	td_gate_leave(slot);
	return NULL;
}

/* A driver looks up the memory that a captured copy or set names: while the gate is closed it may be anywhere. */
CASE(a_captured_set_waits_where_a_captured_launch_passes)
{
	pthread_t thread;
	uint64_t waits;

	start_open(1);
	td_context_stream_created(FAKE_STREAM);
	td_context_capture_begin();
	atomic_store(&fake.capturing, true);
	td_context_capture_begun(true);
	daemon_close(0);
	(void)next(TD_MSG_TYPE_drained);
	waits = atomic_load(&td_meter.page.gate_waits);
	launch_on(FAKE_STREAM);
	EXPECT(atomic_load(&launched) == 2);
	EXPECT(!pthread_create(&thread, NULL, set_on, FAKE_STREAM));
	while (atomic_load(&td_meter.page.gate_waits) == waits && atomic_load(&launched) == 2)
		td_time_sleep_until_ns(td_time_now_ns() + MS);
	EXPECT(atomic_load(&launched) == 2);
	word(0);
	EXPECT(!pthread_join(thread, NULL));
	EXPECT(atomic_load(&launched) == 3);
}

CASE(beside_a_capture_own_streams_are_covered_by_their_threads)
{
	struct td_slot *slot;

	drain_deadline = "100ms";
	start_open(1);
	slot = td_gate_enter(TD_STREAM_PER_THREAD, 0);
	td_gate_leave(slot);
	td_context_capture_begin();
	atomic_store(&fake.capturing, true);
	td_context_capture_begun(true);
	daemon_close(0);
	(void)next(
		TD_MSG_TYPE_stuck); /* only this thread can name its stream, and it did not come by */
	word(0);
	launch_on(NULL);
	atomic_store(&fake.capturing, false);
	td_context_capture_ended();
	daemon_close(0);
	(void)next(TD_MSG_TYPE_drained);
}

/* -- placement -- */

#define FIRST  "GPU-01010101-0101-0101-0101-010101010101"
#define SECOND "MIG-02020202-0202-0202-0202-020202020202"
#define THIRD  "GPU-03030303-0303-0303-0303-030303030303"

static struct td_placed placed;
static _Atomic bool is_placed;

static void *want_gpus(void *arg)
{
	(void)arg;
	td_place_get(&placed);
	atomic_store(&is_placed, true);
	return NULL;
}

/* A program that may see `count` of the three. */
static void begin_placed(const char *gpus, const char *count)
{
	pthread_t thread;

	setenv("TANDEM_GPUS", gpus, 1);
	setenv("TANDEM_GPU_COUNT", count, 1);
	begin();
	EXPECT(!pthread_create(&thread, NULL, want_gpus, NULL));
	pthread_detach(thread);
}

static void until_placed(void)
{
	uint64_t end = td_time_now_ns() + BOUND;

	while (!atomic_load(&is_placed)) {
		EXPECT(td_time_now_ns() < end);
		td_time_sleep_until_ns(td_time_now_ns() + MS / 10);
	}
}

static void expect_candidates(uint32_t count, uint32_t candidates, const uint8_t *first_bytes)
{
	for (uint32_t i = 0; i < candidates; i++) {
		struct td_msg msg = next(TD_MSG_TYPE_place);

		EXPECT(msg.place.count == count && msg.place.candidates == candidates);
		EXPECT(msg.place.index == i && msg.place.gpu[0] == first_bytes[i]);
	}
}

static void give(uint32_t index, uint32_t count, uint8_t gpu)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_placed};

	msg.placed.index = index;
	msg.placed.count = count;
	memset(msg.placed.gpu, gpu, 16);
	EXPECT(!td_socket_send(d.fd, &msg, NULL, 0));
}

CASE(the_daemon_chooses_and_each_later_one_is_told)
{
	daemon_listen();
	begin_placed(FIRST "," SECOND "," THIRD, "2");
	daemon_greet();
	expect_candidates(2, 3, (const uint8_t[]){1, 2, 3});
	EXPECT(!atomic_load(&is_placed));
	give(1, 2, 3); /* out of order: not taken */
	give(0, 2, 2);
	EXPECT(!atomic_load(&is_placed));
	give(1, 2, 3);
	until_placed();
	EXPECT(placed.count == 2 && placed.uuid[0][0] == 2);
	/* what was a part of a GPU is named as one */
	EXPECT(!strcmp(placed.text[0], SECOND) && !strcmp(placed.text[1], THIRD));
	daemon_die();
	daemon_listen();
	daemon_greet();
	expect_candidates(2, 2, (const uint8_t[]){2, 3});
	give(0, 1, 1); /* too late */
	td_place_get(&placed);
	EXPECT(placed.count == 2 && placed.uuid[1][0] == 3);
}

CASE(an_older_daemon_does_not_choose_and_nobody_waits)
{
	uint64_t start_ns = td_time_now_ns();

	features = 0;
	daemon_listen();
	begin_placed(FIRST "," THIRD, "1");
	daemon_greet();
	until_placed();
	EXPECT(placed.count == 2 && !strcmp(placed.text[1], THIRD));
	EXPECT(td_time_now_ns() < start_ns + 5 * TD_NS_PER_S);
}

CASE(a_daemon_that_is_being_replaced_is_waited_for)
{
	grace = "10s";
	daemon_listen();
	begin_placed(FIRST "," THIRD, "1");
	d.fd = accept(d.listener, NULL, NULL);
	EXPECT(d.fd >= 0);
	daemon_die();
	daemon_listen();
	daemon_greet();
	expect_candidates(1, 2, (const uint8_t[]){1, 3});
	give(0, 1, 3);
	until_placed();
	EXPECT(placed.count == 1 && !strcmp(placed.text[0], THIRD));
}

CASE(without_a_daemon_nobody_waits_for_its_choice)
{
	uint64_t start_ns = td_time_now_ns();

	begin_placed(FIRST "," THIRD, "1");
	until_placed();
	EXPECT(placed.count == 2);
	EXPECT(td_time_now_ns() < start_ns + 5 * TD_NS_PER_S);
}

CASE(where_there_is_no_choice_nobody_is_asked)
{
	begin_placed(THIRD "," FIRST, "2");
	until_placed();
	EXPECT(placed.count == 2 && !strcmp(placed.text[0], THIRD));
	EXPECT(!*td_settings.rejected);
}

CASE(lists_of_gpus_that_make_no_sense_count_as_not_given_and_are_told_once)
{
	static const char *const bad[] = {"0", FIRST ",", "," FIRST, FIRST " ", "GPU-", "any"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		setenv("TANDEM_GPUS", bad[i], 1);
		td_settings_read();
		td_place_read();
		EXPECT(!td_place_is_wanted());
		EXPECT(strstr(td_settings.rejected, bad[i]));
	}
	setenv("TANDEM_GPUS", "0", 1);
	daemon_listen();
	begin();
	program(1);
	daemon_greet();
	EXPECT(!strcmp(next(TD_MSG_TYPE_rejected).rejected.setting, "TANDEM_GPUS=0"));
	daemon_die();
	daemon_listen();
	daemon_greet();
	(void)next(TD_MSG_TYPE_attach);
	EXPECT(!came(TD_MSG_TYPE_rejected));
}
