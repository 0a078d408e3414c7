/*
 * The answers to a tool, by the user who runs it. Of another user's jobs it sees sums and nothing
 * else, and cannot tell them from jobs that do not exist.
 */
#include "test.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/model/job.h"
#include "daemon/server/peers/peer_internal.h"
#include "preload/base/backend.h"
#include "proto/socket.h"

#define MIB      (1ull << 20)
#define NOW      1000000000ull
#define ROWS_MAX 64

enum { ME = 1000, THEY = 1001, STRANGER = 1002, ROOT = 0 };

static struct td_loop loop;
static struct td_user user;
static struct td_server server;
static struct td_peer tool;
static int other_end;
static struct td_msg rows[ROWS_MAX];
static unsigned row_count;

static void send_nobody(void *peer, const struct td_msg *msg)
{
	(void)peer;
	(void)msg;
}

static void gate_nobody(void *peer, uint32_t word, const struct td_pacing *pacing)
{
	(void)peer;
	(void)word;
	(void)pacing;
}

static void event_to_follower(void *arg, const struct td_event *event)
{
	(void)arg;
	if (tool.follows)
		td_peer_send_event(&tool, event);
}

static void end(void)
{
	td_node_deinit(&server.node);
	td_outbox_deinit(&tool.out);
	close(tool.source.fd);
	close(other_end);
}

static void begin(void)
{
	const struct td_node_io io = {
		.send = send_nobody, .gate = gate_nobody, .event = event_to_follower};
	int fds[2];

	memset(&server, 0, sizeof(server));
	memset(&tool, 0, sizeof(tool));
	td_list_init(&tool.waiting);
	td_fair_init(&server.fair);
	CHECK_EQ(td_node_init(&server.node, &io), 0);
	CHECK_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
	tool.source.fd = fds[0];
	tool.server = &server;
	tool.user = &user;
	server.loop = &loop;
	td_outbox_init(&tool.out, 1 << 20);
	other_end = fds[1];
}

/* A process that wants the GPU, of which it has so much. */
static struct td_process *comes(pid_t pid, uid_t uid, const char *name, uint64_t bytes)
{
	struct td_msg_hello hello = {.weight = 1, .backend = TD_BACKEND_SWAP, .abi = TD_PAGES_ABI};
	struct td_msg attach = {.type = TD_MSG_TYPE_attach}, memory = {.type = TD_MSG_TYPE_used},
		      want = {.type = TD_MSG_TYPE_want};
	struct td_process *process;

	hello.class = TD_CLASS_BESTEFFORT;
	snprintf(hello.job, sizeof(hello.job), "job-%s", name);
	snprintf(hello.name, sizeof(hello.name), "%s", name);
	process = td_node_hello(&server.node, &server, pid, td_identity_local(uid), &hello, NOW);
	CHECK(process);
	memset(attach.attach.gpu, 1, 16);
	attach.attach.total_bytes = 64 * MIB;
	CHECK_EQ(td_node_message(&server.node, process, &attach, NOW), 0);
	memory.used.total_bytes = bytes;
	memory.used.device_bytes = bytes - MIB;
	memory.used.host_bytes = MIB;
	CHECK_EQ(td_node_message(&server.node, process, &memory, NOW), 0);
	CHECK_EQ(td_node_message(&server.node, process, &want, NOW), 0);
	(void)td_node_step(&server.node, NOW);
	return process;
}

/* All of it is there. */
static void fills(struct td_process *process)
{
	const struct td_client *client =
		td_container_of(process->clients.next, struct td_client, of_process);
	struct td_msg memory = {.type = TD_MSG_TYPE_used}, ready = {.type = TD_MSG_TYPE_ready};

	memory.used.acked_seq = ready.ready.seq = client->device.seq;
	memory.used.total_bytes = memory.used.device_bytes = client->total.used;
	CHECK_EQ(td_node_message(&server.node, process, &memory, NOW), 0);
	CHECK_EQ(td_node_message(&server.node, process, &ready, NOW), 0);
	(void)td_node_step(&server.node, NOW);
}

static void read_rows(void)
{
	for (row_count = 0; row_count < ROWS_MAX; row_count++)
		if (td_socket_recv(other_end, &rows[row_count], NULL, MSG_DONTWAIT))
			break;
}

/* The answer to the user: rows[row_count - 1] is END or ERROR. */
static void ask(uid_t uid, struct td_msg *msg)
{
	tool.who = td_identity_local(uid);
	CHECK_EQ(td_tool_request(&tool, msg, NOW + 1000), 0);
	read_rows();
	CHECK(row_count);
}

static const struct td_msg *last(void)
{
	return &rows[row_count - 1];
}

static unsigned count(uint32_t type)
{
	unsigned n = 0;

	for (unsigned i = 0; i < row_count; i++)
		n += rows[i].type == type;
	return n;
}

/* Nothing that was answered holds this text anywhere. */
static bool is_said(const char *text)
{
	for (unsigned i = 0; i < row_count; i++)
		if (memmem(&rows[i], sizeof(rows[i]), text, strlen(text)))
			return true;
	return false;
}

TEST(of_others_processes_there_is_a_row_of_sums_for_each_gpu)
{
	struct td_msg list = {.type = TD_MSG_TYPE_list_jobs};

	begin();
	comes(71, ME, "mine", 5 * MIB);
	comes(72, THEY, "theirs", 9 * MIB);
	comes(73, STRANGER, "strange", 12 * MIB);
	ask(ME, &list);
	CHECK_EQ(count(TD_MSG_TYPE_job), 1);
	CHECK_STR(rows[0].job.name, "mine");
	CHECK_EQ(rows[0].job.pid, 71);
	CHECK_EQ(count(TD_MSG_TYPE_others), 1);
	CHECK_EQ(rows[1].type, TD_MSG_TYPE_others);
	CHECK_EQ(rows[1].others.gpu, 0);
	CHECK_EQ(rows[1].others.processes, 2);
	CHECK_EQ(rows[1].others.demanded_bytes, 21 * MIB);
	CHECK_EQ(rows[1].others.resident_bytes, 19 * MIB);
	CHECK_EQ(rows[1].others.host_bytes, 2 * MIB);
	CHECK_EQ(last()->type, TD_MSG_TYPE_end);
	CHECK_EQ(last()->end.rows, 2);
	CHECK(!is_said("theirs") && !is_said("strange"));
	ask(ROOT, &list);
	CHECK_EQ(count(TD_MSG_TYPE_job), 3);
	CHECK_EQ(count(TD_MSG_TYPE_others), 0);
	end();
}

TEST(who_has_no_process_sees_the_sums_and_who_is_alone_no_such_row)
{
	struct td_msg list = {.type = TD_MSG_TYPE_list_jobs};

	begin();
	comes(71, ME, "mine", 5 * MIB);
	ask(ME, &list);
	CHECK_EQ(row_count, 2);
	CHECK_EQ(count(TD_MSG_TYPE_others), 0);
	ask(STRANGER, &list);
	CHECK_EQ(row_count, 2);
	CHECK_EQ(rows[0].others.processes, 1);
	CHECK_EQ(rows[0].others.demanded_bytes, 5 * MIB);
	CHECK(!is_said("mine"));
	end();
}

/* The two answers, but for the name that was asked for. */
static void check_same(struct td_msg *theirs, struct td_msg *nobodys)
{
	struct td_msg first;

	ask(ME, theirs);
	CHECK_EQ(row_count, 1);
	CHECK_EQ(last()->type, TD_MSG_TYPE_error);
	first = *last();
	CHECK_STR(first.error.text, "there is no job \"theirs\": see tandem ps");
	ask(ME, nobodys);
	CHECK_EQ(row_count, 1);
	CHECK_EQ(last()->type, TD_MSG_TYPE_error);
	CHECK_STR(last()->error.text, "there is no job \"nobody\": see tandem ps");
	CHECK_EQ(first.error.code, ENOENT);
	CHECK_EQ(last()->error.code, first.error.code);
	CHECK_STR(last()->error.rest, first.error.rest);
}

TEST(a_job_of_another_user_is_answered_as_one_that_is_not_there)
{
	struct td_msg theirs = {.type = TD_MSG_TYPE_explain},
		      nobodys = {.type = TD_MSG_TYPE_explain};

	begin();
	comes(72, THEY, "theirs", 9 * MIB);
	strcpy(theirs.explain.job, "theirs");
	strcpy(nobodys.explain.job, "nobody");
	check_same(&theirs, &nobodys);
	theirs = nobodys = (struct td_msg){.type = TD_MSG_TYPE_get};
	strcpy(theirs.get.job, "theirs");
	strcpy(nobodys.get.job, "nobody");
	check_same(&theirs, &nobodys);
	for (int check = 0; check < 2; check++) {
		for (int nonsense = 0; nonsense < 2; nonsense++) {
			theirs = nobodys = (struct td_msg){.type = TD_MSG_TYPE_set};
			strcpy(theirs.set.job, "theirs");
			strcpy(nobodys.set.job, "nobody");
			strcpy(theirs.set.key, nonsense ? "colour" : "weight");
			strcpy(nobodys.set.key, theirs.set.key);
			strcpy(theirs.set.value, "7");
			strcpy(nobodys.set.value, "7");
			theirs.set.check = nobodys.set.check = (uint8_t)check;
			check_same(&theirs, &nobodys);
		}
	}
	end();
}

/* Checks the explanation of a job that waits for another user's. */
TEST(an_explanation_says_nothing_of_another_users_job_but_that_it_is_there)
{
	struct td_msg explain = {.type = TD_MSG_TYPE_explain};
	char said[2 * TD_STR_MAX];

	begin();
	fills(comes(72, THEY, "theirs", 40 * MIB));
	comes(71, ME, "mine", 40 * MIB);
	strcpy(explain.explain.job, "mine");
	ask(ME, &explain);
	snprintf(said, sizeof(said), "%s", rows[0].cause.text);
	CHECK(strstr(said, "Another user's job has its GPU; 0 before it in the queue."));
	CHECK(!is_said("theirs") && !is_said("72") && !is_said("running"));
	ask(ROOT, &explain);
	CHECK(strstr(rows[0].cause.text, "theirs (pid 72) has been running on its GPU"));
	end();
}

TEST(events_of_others_are_not_told_whatever_their_pid_is_here)
{
	struct td_msg events = {.type = TD_MSG_TYPE_events};

	begin();
	/* A process of a PID namespace outside of ours has PID 0 for the kernel. */
	comes(0, THEY, "theirs", 9 * MIB);
	comes(71, ME, "mine", 5 * MIB);
	td_node_options_changed(&server.node, NOW, "window=1ms");
	ask(ME, &events);
	CHECK(is_said("mine") && is_said("window=1ms"));
	CHECK(!is_said("theirs"));
	ask(THEY, &events);
	CHECK(is_said("theirs") && !is_said("mine"));
	events.events.follow = 1;
	tool.who = td_identity_local(ME);
	CHECK_EQ(td_tool_request(&tool, &events, NOW), 0);
	read_rows();
	comes(0, THEY, "they again", 9 * MIB);
	comes(74, ME, "me again", 9 * MIB);
	read_rows();
	CHECK(is_said("me again") && !is_said("they again"));
	end();
}

/* The rows of a follower's answer have each event once, and in order. */
static void check_order(uint64_t *last_number)
{
	do {
		read_rows();
		for (unsigned i = 0; i < row_count; i++) {
			CHECK_EQ(rows[i].type, TD_MSG_TYPE_event);
			CHECK_EQ(rows[i].event.number, ++*last_number);
		}
	} while (row_count == ROWS_MAX);
}

TEST(who_follows_misses_no_event_between_two_parts_and_sees_none_twice)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_events, .events = {.follow = 1, .since = 7}};
	uint64_t number = 7;
	unsigned parts = 1;

	begin();
	tool.who = td_identity_local(ME);
	for (unsigned i = 0; i < 400; i++)
		td_node_options_changed(&server.node, NOW, "window=1ms");
	CHECK_EQ(td_tool_request(&tool, &msg, NOW), 0);
	for (; !tool.follows; parts++) {
		CHECK(parts < 20 && tool.answer.type);
		check_order(&number);
		td_node_options_changed(&server.node, NOW, "window=2ms");
		td_answer_send_part(&tool, NOW);
	}
	CHECK(parts > 2);
	td_node_options_changed(&server.node, NOW, "window=3ms");
	check_order(&number);
	CHECK_EQ(number, server.node.events.next - 1);
	CHECK_EQ(tool.answer.type, 0);
	end();
}

TEST(a_gpus_holder_is_named_to_its_own_user)
{
	begin();
	fills(comes(72, THEY, "theirs", 9 * MIB));
	for (unsigned i = 0; i < 3; i++) {
		static const uid_t users[] = {ME, THEY, ROOT};

		tool.who = td_identity_local(users[i]);
		tool.gpus_asked_ns = NOW;
		server.watch.sample.time_ns = NOW;
		CHECK_EQ(td_tool_turn(&tool, NOW), NOW); /* its turn is due */
		td_answer_send_part(&tool, NOW);
		read_rows();
		CHECK_EQ(rows[0].type, TD_MSG_TYPE_gpu);
		CHECK_STR(rows[0].gpu.holder, users[i] == ME ? "" : "theirs");
		CHECK_EQ(rows[0].gpu.demanded_bytes, 9 * MIB);
		CHECK_EQ(rows[0].gpu.resident_bytes, 9 * MIB);
	}
	end();
}

TEST(a_tool_that_comes_with_the_first_sample_hears_of_the_gpus)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_list_gpus};

	begin();
	tool.who = td_identity_local(ME);
	server.watch.sampler = (struct td_sampler *)&server; /* it is not asked */
	server.watch.period_ns = TD_NS_PER_S;
	server.watch.sample.time_ns = NOW;
	CHECK_EQ(td_tool_request(&tool, &msg, NOW + 1000), 0);
	read_rows();
	CHECK_EQ(row_count, 0);
	/* Later in the turn the node is given the sample. */
	fills(comes(72, THEY, "theirs", 9 * MIB));
	server.seen_ns = NOW;
	CHECK_EQ(td_tool_turn(&tool, NOW + 2000), NOW + 2000);
	td_answer_send_part(&tool, NOW + 2000);
	read_rows();
	CHECK_EQ(rows[0].type, TD_MSG_TYPE_gpu);
	CHECK_EQ(td_tool_request(&tool, &msg, NOW + 3000), 0);
	read_rows();
	CHECK_EQ(rows[0].type, TD_MSG_TYPE_gpu); /* at once */
	end();
}

TEST(each_policy_is_listed_with_all_that_it_lacks)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_list_policies};
	unsigned lacks = 0;

	begin();
	tool.who = td_identity_local(STRANGER);
	CHECK_EQ(td_tool_request(&tool, &msg, NOW + 1000), 0);
	/* NVML has been waited for. */
	(void)td_tool_turn(&tool, NOW + 60 * 1000000000ull);
	td_answer_send_part(&tool, NOW + 60 * 1000000000ull);
	read_rows();
	CHECK(row_count);
	for (unsigned i = 0; i + 1 < row_count; i++) {
		const struct td_policy *policy;

		CHECK(rows[i].type == TD_MSG_TYPE_policy || lacks);
		if (rows[i].type == TD_MSG_TYPE_lack) {
			CHECK(!strncmp(rows[i].lack.sentence, "This node cannot ", 17));
			lacks--;
			continue;
		}
		CHECK_EQ(lacks, 0);
		lacks = rows[i].policy.lacks;
		policy = td_policy_find(rows[i].policy.name);
		CHECK(policy);
		CHECK_EQ(lacks, (unsigned)__builtin_popcount(
					td_policy_lacks(policy, server.node.options.has)));
		CHECK_STR(rows[i].policy.state, !strcmp(policy->name, "tandem") ? "decides"
						: lacks                         ? "lacks"
										: "able");
	}
	CHECK_EQ(last()->type, TD_MSG_TYPE_end);
	CHECK_EQ(last()->end.rows, row_count - 1);
	end();
}
