/*
 * The common beginning of tests of the agent: a daemon that the test plays, over a real socket and
 * real pages, with a fake GPU. A process has one agent, so each case runs in a child; EXPECT ends
 * it with the line in its exit message.
 */
#pragma once

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

#include "unit/preload/fake_gpu.h"
#include "policy/policy.h"
#include "preload/agent/agent.h"
#include "preload/agent/place.h"
#include "preload/base/backend.h"
#include "preload/base/page.h"
#include "preload/base/settings.h"
#include "preload/context/context.h"
#include "preload/context/drain.h"
#include "preload/gate/gate.h"
#include "preload/gate/pace.h"
#include "preload/link/client_internal.h"
#include "preload/link/host.h"
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

__attribute__((unused)) static void daemon_listen(void)
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

__attribute__((unused)) static int new_page(void **ret)
{
	int fd = memfd_create("page", MFD_CLOEXEC);

	EXPECT(fd >= 0 && !ftruncate(fd, TD_PAGE_BYTES));
	*ret = mmap(NULL, TD_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	EXPECT(*ret != MAP_FAILED);
	return fd;
}

/* Until a message of that type; USED and others in between are passed over. */
__attribute__((unused)) static struct td_msg next(uint32_t type)
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

/* Until a thread of the program waits at the closed gate. */
__attribute__((unused)) static void until_waiting(void)
{
	uint64_t end = td_time_now_ns() + 10 * TD_NS_PER_S;

	while (!td_client_has_waiters()) {
		EXPECT(td_time_now_ns() < end);
		td_time_sleep_until_ns(td_time_now_ns() + TD_NS_PER_MS / 10);
	}
}

/* Is a message of that type under way already? */
__attribute__((unused)) static bool came(uint32_t type)
{
	struct td_msg msg;

	while (!td_socket_recv(d.fd, &msg, NULL, MSG_DONTWAIT))
		if (msg.type == type)
			return true;
	return false;
}

__attribute__((unused)) static void word(uint32_t w)
{
	atomic_store(&d.gate->word, w);
	td_futex_wake_all(&d.gate->word, true);
}

static struct td_msg granted = {.type = TD_MSG_TYPE_grant}; /* as sent last */

__attribute__((unused)) static void grant(uint64_t device_bytes, uint64_t total_bytes)
{
	granted.grant.seq = ++d.seq;
	granted.grant.device_bytes = device_bytes;
	granted.grant.total_bytes = total_bytes;
	EXPECT(!td_socket_send(d.fd, &granted, NULL, 0));
}

__attribute__((unused)) static void plan(enum td_gate gate, bool others_wait, uint64_t limit_bytes)
{
	granted.grant.gate = (uint8_t)gate;
	granted.grant.others_wait = others_wait;
	grant(limit_bytes, limit_bytes);
}

__attribute__((unused)) static void answer(
	uint32_t ticket, enum td_answer verdict, uint64_t limit_bytes)
{
	granted.grant.ticket = ticket;
	granted.grant.verdict = (uint8_t)verdict;
	grant(limit_bytes, limit_bytes);
	granted.grant.verdict = TD_ANSWER_NONE;
}

__attribute__((unused)) static void daemon_greet(void)
{
	const struct timeval patience = {10, 0};
	struct td_msg msg = {.type = TD_MSG_TYPE_welcome};
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

__attribute__((unused)) static void daemon_welcome(void)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_attached};

	daemon_greet();
	EXPECT(next(TD_MSG_TYPE_attach).attach.total_bytes == 1u << 30);
	msg.attached.capacity_bytes = 100 * MIB;
	EXPECT(!td_socket_send(d.fd, &msg, NULL, 0));
}

__attribute__((unused)) static void daemon_open(uint64_t limit_bytes)
{
	plan(TD_GATE_OPEN, false, limit_bytes);
	EXPECT(next(TD_MSG_TYPE_ready).ready.seq == d.seq);
	word(0);
}

static uint32_t closings;

__attribute__((unused)) static void daemon_close(uint64_t limit_bytes)
{
	word(TD_WORD_CLOSED | ++closings * TD_WORD_STEP);
	plan(TD_GATE_CLOSED, true, limit_bytes);
}

/* The drain has begun, and comes by again and again. */
__attribute__((unused)) static void daemon_close_and_let_drain(void)
{
	unsigned pushes = atomic_load(&fake.pushes);

	daemon_close(0);
	while (atomic_load(&fake.pushes) == pushes)
		td_time_sleep_until_ns(td_time_now_ns() + MS);
	td_time_sleep_until_ns(td_time_now_ns() + 10 * MS);
}

/* All of its memory has left the device. */
__attribute__((unused)) static void daemon_close_and_shrink(uint64_t bytes)
{
	atomic_store(&fake.demanded, bytes);
	atomic_store(&fake.resident, bytes);
	daemon_close(0);
	(void)next(TD_MSG_TYPE_drained);
	while (atomic_load(&fake.resident))
		td_time_sleep_until_ns(td_time_now_ns() + MS);
}

__attribute__((unused)) static void daemon_die(void)
{
	close(d.fd);
	close(d.listener);
	unlink(d.path);
	d.fd = -1;
}

/* -- the program -- */

static _Atomic uint64_t launched;

__attribute__((unused)) static void launch_on(void *stream)
{
	struct td_marker *marker = td_gate_enter(stream, 0);

	atomic_fetch_add(&launched, 1);
	td_gate_leave(marker);
}

__attribute__((unused)) static void *launch_many(void *count)
{
	for (uint64_t i = 0; i < *(uint64_t *)count; i++)
		launch_on(NULL);
	return NULL;
}

__attribute__((unused)) static void until_launched(uint64_t n)
{
	uint64_t end = td_time_now_ns() + BOUND;

	while (atomic_load(&launched) < n) {
		EXPECT(td_time_now_ns() < end);
		td_time_sleep_until_ns(td_time_now_ns() + MS / 10);
	}
}

/* A thread that makes `count` launches; the first introduces the process to the daemon. */
__attribute__((unused)) static void program(uint64_t count)
{
	static uint64_t counts[16];
	static unsigned n;
	pthread_t thread;

	counts[n] = count;
	EXPECT(!pthread_create(&thread, NULL, launch_many, &counts[n++]));
	pthread_detach(thread);
}

static const char *drain_deadline = "10s", *grace = "50ms";

__attribute__((unused)) static void begin(void)
{
	setenv("TANDEM_SOCKET", d.path, 1);
	setenv("TANDEM_DRAIN_DEADLINE", drain_deadline, 1);
	setenv("TANDEM_GRACE", grace, 1);
	td_settings_read();
	td_place_read();
	td_marker_init();
	td_gate_init();
	td_agent_set_backend(&fake_backend);
	td_driver_set(&fake_driver);
}

__attribute__((unused)) static void start_open(uint64_t launches)
{
	daemon_listen();
	begin();
	program(launches);
	daemon_welcome();
	until_waiting();
	daemon_open(50 * MIB);
	until_launched(launches);
}

__attribute__((unused)) static void in_child(void (*run)(void))
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
