/*
 * Another user beside a flood of questions. Work is counted, not timed: each time that a user is
 * served there is a bounded number of rows, and another user's ping waits for two such turns at
 * most, however many answers of however many rows the flood has asked for.
 *
 * The server is whole, with its loop and its sockets. Whose a connection is is set by hand.
 */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/time.h"
#include "daemon/model/job.h"
#include "daemon/server/peers/peer_internal.h"
#include "preload/base/backend.h"
#include "proto/socket.h"

#define MIB       (1ull << 20)
#define PROGRAMS  150
#define TOOLS     20
#define NEWCOMERS 120
#define BATCH     1280
#define MOST_ROWS 160 /* of a part: answers.c */

enum { FLOOD = 70001, OTHER = 70002 };

static struct td_loop loop;
static struct td_server server;
static char directory[64], path[96];
static int ends[PROGRAMS + TOOLS + 1], listener;
static unsigned end_count;

/*
 * Rows sent so far; of the turn that has most of them; between turns; from when the loop has seen
 * the ping to the pong.
 */
static unsigned sent, most, outside, at_ping, before_pong;
static bool is_pinged;
static unsigned mark; /* `sent` when the last turn began or ended */
static unsigned answered;

int __real_td_outbox_send(struct td_outbox *box, int fd, const struct td_msg *msg);
struct td_list *__real_td_fair_next(struct td_fair *fair);
void __real_td_fair_charge(struct td_fair *fair, uint64_t cost);
int __wrap_td_outbox_send(struct td_outbox *box, int fd, const struct td_msg *msg);
struct td_list *__wrap_td_fair_next(struct td_fair *fair);
void __wrap_td_fair_charge(struct td_fair *fair, uint64_t cost);

/* Programs are told what the node decides, which is no row of an answer. */
static bool is_row(uint32_t type)
{
	switch (type) {
	case TD_MSG_TYPE_job:
	case TD_MSG_TYPE_gpu:
	case TD_MSG_TYPE_option:
	case TD_MSG_TYPE_event:
	case TD_MSG_TYPE_cause:
	case TD_MSG_TYPE_others:
	case TD_MSG_TYPE_view_row:
	case TD_MSG_TYPE_policy:
	case TD_MSG_TYPE_lack:
	case TD_MSG_TYPE_end: return true;
	default: return false;
	}
}

int __wrap_td_outbox_send(struct td_outbox *box, int fd, const struct td_msg *msg)
{
	sent += is_row(msg->type);
	answered += msg->type == TD_MSG_TYPE_end;
	if (msg->type == TD_MSG_TYPE_pong)
		before_pong = sent - at_ping;
	is_pinged |= msg->type == TD_MSG_TYPE_pong;
	return __real_td_outbox_send(box, fd, msg);
}

struct td_list *__wrap_td_fair_next(struct td_fair *fair)
{
	if (sent - mark > outside)
		outside = sent - mark;
	mark = sent;
	return __real_td_fair_next(fair);
}

void __wrap_td_fair_charge(struct td_fair *fair, uint64_t cost)
{
	if (sent - mark > most)
		most = sent - mark;
	mark = sent;
	__real_td_fair_charge(fair, cost);
}

/* A turn and the handlers, as in td_loop_run(), without its wait. */
static void turn(void)
{
	static struct epoll_event batch[BATCH];
	int n;

	(void)td_server_turn(&server, td_time_now_ns());
	n = epoll_wait(loop.epoll_fd, batch, BATCH, 0);
	for (int i = 0; i < n; i++) {
		struct td_source *source = batch[i].data.ptr;

		source->ready(source, batch[i].events);
	}
}

static void begin(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	strcpy(directory, "/tmp/tandem-flood-XXXXXX");
	CHECK(mkdtemp(directory) != NULL);
	/* Another daemon's locks of GPUs with the same numbers are not in the way. */
	snprintf(path, sizeof(path), "%s/locks", directory);
	CHECK_EQ(setenv("TANDEM_LOCKS", path, 1), 0);
	snprintf(path, sizeof(path), "%s/socket", directory);
	strcpy(address.sun_path, path);
	listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	CHECK_EQ(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	CHECK_EQ(listen(listener, 512), 0);
	CHECK_EQ(td_loop_init(&loop, td_server_turn, &server), 0);
	CHECK_EQ(td_server_init(&server, &loop, listener, path), 0);
	end_count = sent = mark = most = outside = at_ping = before_pong = answered = 0;
	is_pinged = false;
}

static void end(void)
{
	char command[128], sockets[sizeof(server.sweep.dir)];

	memcpy(sockets, server.sweep.dir, sizeof(sockets));
	td_server_deinit(&server);
	/* The directory of the programs' sockets goes with the server. */
	CHECK(*sockets && access(sockets, F_OK));
	td_loop_deinit(&loop);
	close(listener);
	for (unsigned i = 0; i < end_count; i++)
		close(ends[i]);
	snprintf(command, sizeof(command), "rm -rf %s", directory);
	CHECK_EQ(system(command), 0);
}

static void say(int end, const struct td_msg *msg)
{
	CHECK_EQ(td_socket_send(end, msg, NULL, 0), 0);
}

/* A connection that is the user's. */
static int comes(uid_t uid)
{
	int fd = td_socket_connect(path, TD_NS_PER_S);
	uint32_t before = server.peer_count;

	CHECK(fd >= 0);
	CHECK_EQ(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	ends[end_count++] = fd;
	while (server.peer_count == before)
		turn();
	td_container_of(server.peers.prev, struct td_peer, of_server)->who = td_identity_local(uid);
	return fd;
}

/* Its processes have one name, and each has a job of its own and two GPUs. */
static void program_comes(unsigned number)
{
	struct td_msg hello = {.type = TD_MSG_TYPE_hello}, attach = {.type = TD_MSG_TYPE_attach};
	uint32_t before = server.node.client_count;
	int fd = comes(FLOOD);

	hello.hello.abi = TD_PAGES_ABI;
	hello.hello.weight = 1;
	hello.hello.class = TD_CLASS_BESTEFFORT;
	hello.hello.backend = TD_BACKEND_SWAP;
	snprintf(hello.hello.job, sizeof(hello.hello.job), "job%u", number);
	strcpy(hello.hello.name, "same");
	say(fd, &hello);
	attach.attach.total_bytes = 64 * MIB;
	for (uint32_t slot = 0; slot < 2; slot++) {
		attach.attach.slot = slot;
		memset(attach.attach.gpu, (int)slot + 1, 16);
		say(fd, &attach);
	}
	while (server.node.client_count < before + 2)
		turn();
}

/* All that has been sent is read. */
static void read_all(void)
{
	char bytes[TD_PROTO_MAX];

	for (unsigned i = 0; i < end_count; i++)
		while (recv(ends[i], bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
			;
}

/* All tools ask this, and the other user's tool sends a ping while they are answered. */
static void flood(const struct td_msg *question, unsigned least_rows)
{
	const struct td_msg ping = {.type = TD_MSG_TYPE_ping};
	uint64_t until_ns = td_time_now_ns() + 60 * TD_NS_PER_S;

	begin();
	for (unsigned i = 0; i < PROGRAMS; i++)
		program_comes(i);
	for (unsigned i = 0; i < TD_EVENTS_KEPT; i++)
		td_node_event(&server.node, TD_EVENT_OPTION, NULL, TD_GPU_ANY, 1, 0, 0, "much");
	for (unsigned i = 0; i < TOOLS; i++)
		(void)comes(FLOOD);
	(void)comes(OTHER);
	turn();
	sent = mark = most = outside = 0;
	for (unsigned i = 0; i < TOOLS; i++)
		say(ends[PROGRAMS + i], question);
	turn();
	say(ends[PROGRAMS + TOOLS], &ping);
	turn(); /* at its end the loop has seen the ping */
	at_ping = sent;
	while (answered < TOOLS || !is_pinged) {
		CHECK(td_time_now_ns() < until_ns);
		turn();
		read_all();
	}
	printf("# %s: %u rows, %u in a turn, %u beside turns, %u before the ping's answer\n",
		td_proto_name(question->type), sent, most, outside, before_pong);
	CHECK(sent >= TOOLS * least_rows);
	CHECK(most <= MOST_ROWS);
	CHECK_EQ(outside, 0);
	CHECK(is_pinged && before_pong <= 2 * MOST_ROWS);
	end();
}

TEST(events_are_told_in_parts)
{
	struct td_msg question = {.type = TD_MSG_TYPE_events};

	flood(&question, TD_EVENTS_KEPT / 2);
}

TEST(settings_of_many_jobs_are_told_in_parts)
{
	struct td_msg question = {.type = TD_MSG_TYPE_get, .get = {.job = "same"}};

	flood(&question, PROGRAMS * 9);
}

TEST(jobs_are_listed_in_parts)
{
	struct td_msg question = {.type = TD_MSG_TYPE_list_jobs};

	flood(&question, 2 * PROGRAMS);
}

TEST(many_jobs_are_explained_in_parts)
{
	struct td_msg question = {.type = TD_MSG_TYPE_explain, .explain = {.job = "same"}};

	flood(&question, PROGRAMS);
}

TEST(rounds_are_sent_in_parts)
{
	struct td_msg question = {
		.type = TD_MSG_TYPE_watch, .watch = {.period_ns = 3600 * TD_NS_PER_S}};

	flood(&question, 2 * PROGRAMS);
}

TEST(who_has_waited_for_the_gpus_is_answered_in_turn)
{
	struct td_msg gpus = {.type = TD_MSG_TYPE_list_gpus},
		      policies = {.type = TD_MSG_TYPE_list_policies};

	flood(&gpus, 2);
	flood(&policies, 10);
}

TEST(a_view_is_told_in_parts)
{
	struct td_msg question = {.type = TD_MSG_TYPE_view, .view = {.job = "job1"}};

	flood(&question, 3);
}

/* One in a turn would let a user who connects again and again keep others out for long. */
TEST(those_who_wait_to_be_accepted_are_taken_many_at_a_time)
{
	unsigned turns = 0;

	begin();
	for (end_count = 0; end_count < NEWCOMERS; end_count++)
		ends[end_count] = td_socket_connect(path, TD_NS_PER_S);
	for (; server.peer_count < NEWCOMERS; turns++) {
		CHECK(turns < NEWCOMERS);
		turn();
	}
	printf("# %u turns for %u\n", turns, NEWCOMERS);
	CHECK(turns < NEWCOMERS / 2);
	end();
}

TEST(what_a_plan_says_is_on_the_programs_page)
{
	const struct td_pacing pacing = {.window_ns = 1,
		.duty_ppm = 2,
		.rivals = 3,
		.steps = 4,
		.hold = 5,
		.alone = 6,
		.pause_until_ns = 7,
		.sharers = 8,
		.long_ns = 9,
		.long_every_ns = 10,
		.hold_new = 11,
		.batch = 12};
	struct td_peer *peer;

	begin();
	program_comes(0);
	peer = td_container_of(server.peers.prev, struct td_peer, of_server);
	server.node.io.gate(peer, TD_WORD_WINDOW, &pacing);
	CHECK_EQ(atomic_load(&peer->gate->word), TD_WORD_WINDOW);
	CHECK_EQ(atomic_load(&peer->gate->window_ns), 1);
	CHECK_EQ(atomic_load(&peer->gate->duty_ppm), 2);
	CHECK_EQ(atomic_load(&peer->gate->rivals), 3);
	CHECK_EQ(atomic_load(&peer->gate->steps), 4);
	CHECK_EQ(atomic_load(&peer->gate->hold), 5);
	CHECK_EQ(atomic_load(&peer->gate->alone), 6);
	CHECK_EQ(atomic_load(&peer->gate->pause_until_ns), 7);
	CHECK_EQ(atomic_load(&peer->gate->sharers), 8);
	CHECK_EQ(atomic_load(&peer->gate->long_ns), 9);
	CHECK_EQ(atomic_load(&peer->gate->long_every_ns), 10);
	CHECK_EQ(atomic_load(&peer->gate->hold_new), 11);
	CHECK_EQ(atomic_load(&peer->gate->batch), 12);
	end();
}

/* Otherwise a node on which nothing runs would ask the driver for figures all the time. */
TEST(the_gpus_figures_are_read_only_while_a_program_uses_one)
{
	uint64_t until_ns = td_time_now_ns() + 60 * TD_NS_PER_S;

	begin();
	turn();
	CHECK(server.watch.sampler != NULL);
	CHECK(!server.watch.wanted);
	program_comes(0);
	turn();
	CHECK(server.watch.wanted);
	CHECK_EQ(shutdown(ends[0], SHUT_RDWR), 0);
	while (server.node.client_count) {
		CHECK(td_time_now_ns() < until_ns);
		turn();
	}
	turn();
	CHECK(!server.watch.wanted);
	end();
}
