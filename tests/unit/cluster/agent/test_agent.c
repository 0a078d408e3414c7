/* The agent between a daemon and a state that the test plays, on a fake clock. */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/time.h"
#include "cluster/agent/agent.h"
#include "cluster/state/memory.h"
#include "gpu/nvml.h"
#include "proto/proto.h"
#include "proto/socket.h"

#define S   TD_NS_PER_S
#define GIB (1ull << 30)
#define KEY "/tandem/v1/node/node1"

static struct td_memory_store *store;
static struct td_state *state, *scheduler;
static struct td_agent agent;
static struct td_record record;
static char folder[64], path[96], assign[96];
static int listener = -1, daemon_fd = -1;
static uint64_t now_ns, round_ns;

static void start_daemon(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	strcpy(address.sun_path, path);
	listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	CHECK(!bind(listener, (struct sockaddr *)&address, sizeof(address)));
	CHECK(!listen(listener, 4));
}

static void stop_daemon(void)
{
	if (daemon_fd >= 0)
		close(daemon_fd);
	close(listener);
	unlink(path);
	listener = daemon_fd = -1;
}

static void turn(void)
{
	(void)td_agent_turn(&agent, now_ns);
}

static void accept_agent(void)
{
	struct td_msg msg;

	turn();
	daemon_fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	CHECK(daemon_fd >= 0);
	CHECK_EQ(td_socket_recv(daemon_fd, &msg, NULL, 0), 0);
	CHECK_EQ(msg.type, TD_MSG_TYPE_watch);
	CHECK_EQ(msg.watch.period_ns, S);
}

/* The daemon sends a round with one GPU and, with a name, one job; the agent takes it. */
static void tell(uint32_t util_ppm, uint64_t demanded_bytes, const char *job)
{
	struct td_msg gpu = {.type = TD_MSG_TYPE_gpu}, row = {.type = TD_MSG_TYPE_job};
	struct td_msg done = {.type = TD_MSG_TYPE_end, .end.rows = 1};

	gpu.gpu.known = TD_GPU_KNOWS_UTILISATION;
	gpu.gpu.util_ppm = util_ppm;
	gpu.gpu.total_bytes = gpu.gpu.capacity_bytes = 80 * GIB;
	gpu.gpu.demanded_bytes = demanded_bytes;
	CHECK_EQ(td_socket_send(daemon_fd, &gpu, NULL, 0), 0);
	if (job) {
		strcpy(row.job.job, job);
		strcpy(row.job.class, "besteffort");
		CHECK_EQ(td_socket_send(daemon_fd, &row, NULL, 0), 0);
	}
	round_ns += S;
	done.end.time_ns = round_ns;
	CHECK_EQ(td_socket_send(daemon_fd, &done, NULL, 0), 0);
	now_ns += S;
	turn();
}

static void begin(void)
{
	const struct td_agent_options options = {.node = "node1",
		.socket = path,
		.prefix = "/tandem/v1/",
		.folder = assign,
		.lease_s = 10,
		.refresh_ns = 5 * S};

	strcpy(folder, "/tmp/tandem-agent-XXXXXX");
	CHECK(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/socket", folder);
	snprintf(assign, sizeof(assign), "%s/assign", folder);
	now_ns = 1000 * S;
	store = td_memory_store_new();
	CHECK(store);
	state = td_memory_open(store);
	scheduler = td_memory_open(store);
	CHECK(state && scheduler);
	(void)td_state_turn(state, now_ns);
	start_daemon();
	CHECK_EQ(td_agent_init(&agent, &options, state), 0);
}

static void end(void)
{
	char command[128];

	td_agent_deinit(&agent);
	stop_daemon();
	td_state_free(state);
	td_state_free(scheduler);
	td_memory_store_free(store);
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	CHECK_EQ(system(command), 0);
}

/* Reads the record as a scheduler does. Returns whether there is one. */
static bool read_record(void)
{
	struct td_state_item item;
	int r = td_state_get(scheduler, KEY, &item);

	if (r == TD_STATE_ABSENT)
		return false;
	CHECK_EQ(r, 0);
	CHECK(item.lease);
	CHECK_EQ(td_record_read(item.value, item.length, &record), 0);
	td_state_item_deinit(&item);
	return true;
}

TEST(a_node_appears_with_the_first_round)
{
	begin();
	accept_agent();
	CHECK(!read_record());
	tell(500000, 20 * GIB, "17.a");
	CHECK(read_record());
	CHECK(record.answers);
	CHECK_STR(record.node, "node1");
	CHECK_EQ(record.gpu[0].room_bytes, 60 * GIB);
	CHECK_EQ(record.gpu[0].load_ppm, 500000);
	CHECK_STR(record.job[0].job, "17.a");
	end();
}

TEST(a_node_whose_daemon_does_not_run_says_so)
{
	begin();
	CHECK(!td_rounds_is_refused(&agent.rounds)); /* it has not asked yet */
	stop_daemon();
	turn();
	CHECK(td_rounds_is_refused(&agent.rounds));
	CHECK(!read_record());
	now_ns += 3 * S;
	turn();
	CHECK(read_record());
	CHECK(!record.answers);
	start_daemon();
	now_ns += S;
	accept_agent();
	CHECK(!td_rounds_is_refused(&agent.rounds));
	tell(0, 0, NULL);
	CHECK(read_record());
	CHECK(record.answers && record.gpu[0].accepts);
	stop_daemon();
	now_ns += S;
	turn();
	CHECK(read_record());
	CHECK(!record.answers && !record.gpu[0].accepts);
	CHECK_EQ(record.gpus, 1);
	end();
}

TEST(what_stays_the_same_is_written_every_five_seconds)
{
	begin();
	accept_agent();
	tell(500000, 20 * GIB, "17.a");
	CHECK_EQ(agent.writes, 1);
	for (int i = 0; i < 20; i++)
		tell(500000 + (i % 2) * 20000, 20 * GIB, "17.a");
	CHECK_EQ(agent.writes, 5);
	tell(500000, 30 * GIB, "17.a");
	CHECK_EQ(agent.writes, 6);
	tell(500000, 30 * GIB, NULL);
	CHECK_EQ(agent.writes, 7);
	end();
}

TEST(a_change_is_written_once_a_second_at_most)
{
	begin();
	accept_agent();
	tell(0, 0, NULL);
	now_ns -= S - S / 10; /* the next round comes a tenth of a second later */
	tell(0, 40 * GIB, NULL);
	CHECK_EQ(agent.writes, 1);
	now_ns += S;
	turn();
	CHECK_EQ(agent.writes, 2);
	end();
}

TEST(the_load_is_the_mean_of_ten_seconds)
{
	begin();
	accept_agent();
	for (int i = 0; i < 10; i++)
		tell(0, 0, NULL);
	for (int i = 0; i < 5; i++)
		tell(1000000, 0, NULL);
	CHECK_EQ(agent.now.gpu[0].load_ppm, 500000);
	for (int i = 0; i < 5; i++)
		tell(1000000, 0, NULL);
	CHECK_EQ(agent.now.gpu[0].load_ppm, 1000000);
	end();
}

TEST(a_node_whose_agent_dies_is_gone_with_its_lease)
{
	begin();
	accept_agent();
	for (int i = 0; i < 30; i++)
		tell(0, 0, NULL);
	CHECK(read_record());
	now_ns += 10 * S; /* the agent does nothing */
	(void)td_state_turn(scheduler, now_ns);
	CHECK(!read_record());
	now_ns += 2 * S;
	turn();
	now_ns += S;
	turn();
	CHECK(read_record());
	end();
}

TEST(a_state_that_is_away_is_tried_once_a_second)
{
	uint64_t next_ns;

	begin();
	accept_agent();
	tell(0, 0, NULL);
	td_memory_cut(state, true);
	tell(0, 40 * GIB, NULL);
	CHECK_EQ(agent.trouble, TD_STATE_AWAY);
	next_ns = td_agent_turn(&agent, now_ns);
	CHECK(next_ns >= now_ns + S / 2);
	for (int i = 0; i < 4; i++)
		tell(0, 40 * GIB, NULL);
	td_memory_cut(state, false);
	tell(0, 40 * GIB, NULL);
	CHECK_EQ(agent.trouble, 0);
	CHECK(read_record());
	CHECK_EQ(record.gpu[0].room_bytes, 40 * GIB);
	end();
}

static bool has_file(const char *job, const char *text)
{
	char name[160], found[256] = "";
	FILE *file;

	snprintf(name, sizeof(name), "%s/%s", assign, job);
	file = fopen(name, "r");
	if (!file)
		return false;
	if (!fgets(found, sizeof(found), file))
		found[0] = 0;
	fclose(file);
	found[strcspn(found, "\n")] = 0;
	CHECK_STR(found, text);
	return true;
}

static void put_assign(const char *job, const char *value)
{
	char key[64];
	const struct td_state_write write = {
		.key = key, .value = value, .length = value ? strlen(value) : 0};

	snprintf(key, sizeof(key), "/tandem/v1/assign/%s", job);
	CHECK_EQ(td_state_put(scheduler, &write, NULL), 0);
}

TEST(assignments_of_this_node_are_files)
{
	static const char here[] = "{\"epoch\": 1, \"places\": [{\"node\": \"node2\", \"gpu\": 0}, "
				   "{\"node\": \"node1\", \"gpu\": 3}]}";
	static const char there[] = "{\"epoch\": 2, \"places\": [{\"node\": \"node2\"}]}";
	char name[160];
	FILE *left;

	begin();
	put_assign("17", here);
	put_assign("18", there);
	put_assign("../19", here);
	put_assign(".20", here);
	put_assign("21", "no JSON");
	snprintf(name, sizeof(name), "%s/16", assign);
	left = fopen(name, "w"); /* of an earlier agent */
	CHECK(left && !fclose(left));
	turn();
	CHECK(has_file("17", here));
	CHECK(!has_file("18", "") && !has_file("../19", "") && !has_file(".20", ""));
	CHECK(!has_file("16", "") && !has_file("21", ""));
	put_assign("18", here);
	put_assign("17", there);
	turn();
	CHECK(has_file("18", here) && !has_file("17", ""));
	put_assign("18", NULL);
	turn();
	CHECK(!has_file("18", ""));
	end();
}

/* The daemon tells of a guest. Returns which one the agent upgrades; "": none. */
static const char *upgraded(const char *job, uint32_t pid, uint32_t uid, const char *beside)
{
	struct td_msg row = {.type = TD_MSG_TYPE_job, .job.pid = pid, .job.uid = uid};
	struct td_msg other = {.type = TD_MSG_TYPE_job, .job.pid = 1, .job.uid = 1};
	struct td_msg done = {.type = TD_MSG_TYPE_end, .end.rows = 2};
	static struct td_msg asked;
	int fd;

	strcpy(row.job.job, job);
	strcpy(row.job.class, "besteffort");
	strcpy(other.job.job, beside);
	strcpy(other.job.class, "besteffort");
	CHECK_EQ(td_socket_send(daemon_fd, &row, NULL, 0), 0);
	CHECK_EQ(td_socket_send(daemon_fd, &other, NULL, 0), 0);
	round_ns += S;
	done.end.time_ns = round_ns;
	CHECK_EQ(td_socket_send(daemon_fd, &done, NULL, 0), 0);
	now_ns += S;
	turn();
	fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	*asked.set.job = 0;
	if (fd < 0)
		return "";
	CHECK_EQ(td_socket_recv(fd, &asked, NULL, 0), 0);
	CHECK_EQ(asked.type, TD_MSG_TYPE_set);
	CHECK_STR(asked.set.value, "guaranteed");
	close(fd);
	return asked.set.job;
}

TEST(a_guest_is_upgraded_for_the_user_whose_job_it_is)
{
	const char *value = "{\"guest\": false, \"guaranteed\": true, \"job\": \"slurm.17\", "
			    "\"uid\": 1000, \"places\": [{\"node\": \"node1\", \"gpu\": 0}]}";

	begin();
	accept_agent();
	CHECK_EQ(fcntl(listener, F_SETFL, O_NONBLOCK), 0);
	put_assign("17", value);
	tell(0, 0, NULL);
	CHECK_STR(upgraded("slurm.17", 4321, 1000, "slurm.17"), "4321");
	CHECK_STR(upgraded("slurm.17", 4321, 1001, "x"), "");
	CHECK_STR(upgraded("slurm.18", 4321, 1000, "x"), "");
	CHECK_STR(upgraded("slurm.17", 4321, 1000, "4321"), "");
	put_assign("17", "{\"guest\": false, \"guaranteed\": true, \"job\": \"slurm.17\", "
			 "\"places\": [{\"node\": \"node1\", \"gpu\": 0}]}");
	tell(0, 0, NULL);
	CHECK_STR(upgraded("slurm.17", 4321, 1000, "x"), "");
	end();
}

TEST(names_that_cannot_be_a_key_are_refused)
{
	static const char *const bad[] = {"", "a/b", ".a", "a b", "a\"", "\xc3\xa4"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		CHECK(!td_agent_is_name(bad[i]));
	CHECK(td_agent_is_name("gpu-17.example.org"));
}
