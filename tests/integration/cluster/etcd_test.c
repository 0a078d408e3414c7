/*
 * The state in a real etcd: the cases of every kind, and what only etcd does (restarts, death,
 * hanging, rights). etcd is started by the test; without one, all is skipped.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "base/err.h"
#include "cluster/state/cases.h"
#include "cluster/state/etcd/etcd.h"
#include "cluster/state/kind.h"
#include "cluster/state/leader.h"
#include "etcd_process.h"

#define LONG_NS (60 * TD_NS_PER_S) /* only a hang takes longer */

static struct etcd_process etcd;

static void need_etcd(void)
{
	if (!etcd.program && !etcd_make(&etcd))
		SKIP("etcd is not here: scripts/test fetches Debian's");
	if (!etcd.pid)
		etcd_start(&etcd, NULL);
}

static struct td_state *open_with(const struct td_etcd_options *options)
{
	struct td_state *state = NULL;
	struct td_err err;

	if (td_etcd_open(options, &state, &err))
		test_fail(__FILE__, __LINE__, "%s", err.msg);
	return state;
}

static struct td_state *open_state(void)
{
	need_etcd();
	return open_with(&(struct td_etcd_options){.endpoints = etcd.url});
}

/* A large answer, or the first one of an etcd, takes its time on a busy machine. */
static struct td_state *open_patient_state(void)
{
	need_etcd();
	return open_with(&(struct td_etcd_options){.endpoints = etcd.url, .timeout_ns = LONG_NS});
}

/* Waits until one of the times or until the state's descriptor is readable. */
static void wait_until(const struct td_state *state, uint64_t next_ns, uint64_t end_ns)
{
	struct pollfd fd = {.fd = td_state_fd(state), .events = POLLIN};
	uint64_t now_ns = td_time_now_ns();

	if (next_ns > end_ns)
		next_ns = end_ns;
	if (next_ns > now_ns)
		(void)poll(&fd, 1, (int)((next_ns - now_ns) / TD_NS_PER_MS) + 1);
}

static void turn_until(struct td_state *state, uint64_t end_ns)
{
	wait_until(state, td_state_turn(state, td_time_now_ns()), end_ns);
}

static void let_pass(struct td_state *state, unsigned seconds)
{
	uint64_t end_ns = td_time_now_ns() + seconds * TD_NS_PER_S;

	while (td_time_now_ns() < end_ns)
		turn_until(state, end_ns);
}

/* etcd's own tool, with its answer thrown away. */
static int etcdctl(const char *arguments)
{
	char command[512];

	snprintf(command, sizeof(command),
		"ETCDCTL_API=3 \"$(dirname %s)/etcdctl\" --endpoints %s %s >/dev/null 2>&1",
		etcd.program, etcd.url, arguments);
	return system(command);
}

static void compact(uint64_t revision)
{
	char arguments[64];

	if (etcdctl("version"))
		SKIP("etcdctl is not here");
	snprintf(arguments, sizeof(arguments), "compaction %llu", (unsigned long long)revision);
	CHECK_EQ(etcdctl(arguments), 0);
}

/* The next event or outcome of the watch, or TD_STATE_NOTHING after the time that is given. */
static int await_for(struct td_state_watch *watch, uint64_t time_ns, struct td_state_event *ret)
{
	struct td_state *state = watch->state;
	uint64_t end_ns = td_time_now_ns() + time_ns;
	int r = td_state_next(watch, ret);

	while (r == TD_STATE_NOTHING && td_time_now_ns() < end_ns) {
		uint64_t next_ns = td_state_turn(state, td_time_now_ns());

		/* The turn may have read it, so that nothing more will come. */
		r = td_state_next(watch, ret);
		if (r != TD_STATE_NOTHING)
			break;
		wait_until(state, next_ns, end_ns);
		r = td_state_next(watch, ret);
	}
	return r;
}

static int await(struct td_state_watch *watch, struct td_state_event *ret)
{
	return await_for(watch, LONG_NS, ret);
}

static int await_nothing(struct td_state_watch *watch, struct td_state_event *ret)
{
	return await_for(watch, TD_NS_PER_S, ret);
}

TEST(a_list_of_many_pages_is_whole)
{
	struct td_state *state = open_patient_state();
	struct td_state_write write[TD_STATE_WRITES];
	char key[TD_STATE_WRITES][32];
	struct td_state_list list;

	for (unsigned i = 0; i < 2500; i += TD_STATE_WRITES) {
		for (unsigned j = 0; j < TD_STATE_WRITES; j++) {
			snprintf(key[j], sizeof(key[j]), "/pages/%05u", i + j);
			write[j] = text_write(key[j], key[j], 0);
		}
		CHECK_EQ(td_state_commit(state,
				 &(struct td_state_commit){
					 .write = write, .writes = TD_STATE_WRITES},
				 NULL),
			0);
	}
	CHECK_EQ(td_state_list(state, "/pages/", &list), 0);
	CHECK_EQ(list.count, 2500);
	for (unsigned i = 0; i < list.count; i++) {
		snprintf(key[0], sizeof(key[0]), "/pages/%05u", i);
		CHECK_STR(list.item[i].key, key[0]);
		CHECK_STR(list.item[i].value, key[0]);
	}
	td_state_list_deinit(&list);
	td_state_free(state);
}

TEST(a_large_value_comes_whole_by_request_and_by_watch)
{
	struct td_state *state = open_state();
	size_t length = 1000000;
	char *value = malloc(length);
	struct td_state_write write = {.key = "/large/a", .value = value, .length = length};
	struct td_state_watch *watch;
	struct td_state_event event;
	uint64_t revision;

	CHECK(value);
	for (size_t i = 0; i < length; i++)
		value[i] = (char)(i * 7 % 251);
	CHECK_EQ(td_state_put(state, &write, &revision), 0);
	CHECK_EQ(td_state_watch(state, "/large/", revision, &watch), 0);
	CHECK_EQ(await(watch, &event), 0);
	CHECK_EQ(event.item.length, length);
	CHECK(!memcmp(event.item.value, value, length));
	free(value);
	td_state_free(state);
}

TEST(a_list_of_large_values_is_whole)
{
	struct td_state *state = open_patient_state();
	size_t length = 1000000;
	char *value = calloc(1, length), key[32];
	struct td_state_write write = {.key = key, .value = value, .length = length};
	struct td_state_list list;

	CHECK(value);
	for (unsigned i = 0; i < 60; i++) {
		snprintf(key, sizeof(key), "/largest/%02u", i);
		memcpy(value, key, sizeof(key));
		CHECK_EQ(td_state_put(state, &write, NULL), 0);
	}
	CHECK_EQ(td_state_list(state, "/largest/", &list), 0);
	CHECK_EQ(list.count, 60);
	for (unsigned i = 0; i < list.count; i++) {
		CHECK_EQ(list.item[i].length, length);
		CHECK_STR(list.item[i].value, list.item[i].key);
	}
	td_state_list_deinit(&list);
	free(value);
	td_state_free(state);
}

TEST(a_watch_goes_on_where_it_was_when_etcd_is_killed_and_comes_back)
{
	struct td_state *state = open_state(), *other = open_patient_state();
	uint64_t from = put(state, "/killed/a", "0") + 1, lease, ttl_ns;
	const struct td_state_write write = text_write("/killed/a", "x", 0);
	struct td_state_watch *watch;
	struct td_state_event event;
	struct td_state_item item;
	int r;

	CHECK_EQ(td_state_grant(state, 60, &lease, &ttl_ns), 0);
	CHECK_EQ(td_state_watch(state, "/killed/", from, &watch), 0);
	put(other, "/killed/a", "1");
	expect_event(watch, "/killed/a", "1");
	etcd_signal(&etcd, SIGKILL);
	CHECK_EQ(td_state_get(state, "/killed/a", &item), TD_STATE_AWAY);
	CHECK(*td_state_why(state));
	r = td_state_put(state, &write, NULL);
	CHECK(r == TD_STATE_AWAY || r == TD_STATE_UNSURE);
	CHECK_EQ(td_state_keep_alive(state, lease, &ttl_ns), TD_STATE_AWAY);
	CHECK_EQ(await_nothing(watch, &event), TD_STATE_NOTHING);
	etcd_start(&etcd, NULL);
	put(other, "/killed/a", "2");
	put(other, "/killed/b", "3");
	CHECK_EQ(await(watch, &event), 0);
	CHECK_STR(event.item.value, "2");
	expect_event(watch, "/killed/b", "3");
	CHECK_EQ(td_state_keep_alive(state, lease, &ttl_ns), 0);
	td_state_free(state);
	td_state_free(other);
}

TEST(a_watch_that_missed_a_compaction_while_etcd_was_away_says_so)
{
	struct td_state *state = open_state(), *other = open_patient_state();
	struct td_state_watch *watch;
	struct td_state_event event;
	uint64_t from = put(state, "/gone/a", "0") + 1;

	CHECK_EQ(td_state_watch(state, "/gone/", from, &watch), 0);
	CHECK_EQ(await_nothing(watch, &event), TD_STATE_NOTHING);
	etcd_signal(&etcd, SIGTERM);
	etcd_start(&etcd, NULL);
	put(other, "/gone/a", "1");
	put(other, "/gone/a", "2");
	compact(put(other, "/gone/a", "3"));
	CHECK_EQ(await(watch, &event), TD_STATE_COMPACTED);
	td_state_free(state);
	td_state_free(other);
}

TEST(an_etcd_that_hangs_costs_no_more_than_the_time_out)
{
	struct td_state *state;
	const struct td_state_write write = text_write("/hang/a", "1", 0);
	struct td_state_item item;
	uint64_t begun_ns;

	need_etcd();
	state = open_with(
		&(struct td_etcd_options){.endpoints = etcd.url, .timeout_ns = TD_NS_PER_S / 2});
	put(state, "/hang/a", "0");
	etcd_signal(&etcd, SIGSTOP);
	begun_ns = td_time_now_ns();
	CHECK_EQ(td_state_get(state, "/hang/a", &item), TD_STATE_AWAY);
	CHECK_EQ(td_state_put(state, &write, NULL), TD_STATE_UNSURE);
	/* Without a time-out both would wait for ever. */
	CHECK(td_time_now_ns() - begun_ns < 60 * TD_NS_PER_S);
	etcd_signal(&etcd, SIGCONT);
	td_state_free(state);
}

TEST(an_endpoint_that_is_dead_or_hangs_is_left_for_the_next)
{
	struct etcd_process stopped;
	struct td_state *state;
	char endpoints[256];
	struct td_state_watch *watch;
	struct td_state_event event;
	uint64_t from;

	need_etcd();
	CHECK(etcd_make(&stopped));
	etcd_start(&stopped, NULL);
	etcd_signal(&stopped, SIGSTOP);
	snprintf(endpoints, sizeof(endpoints), "http://127.0.0.1:9,%s,%s", stopped.url, etcd.url);
	state = open_with(
		&(struct td_etcd_options){.endpoints = endpoints, .timeout_ns = TD_NS_PER_S});
	expect(state, "/none", NULL); /* a read tries the next one */
	from = put(state, "/fail/a", "1");
	CHECK_EQ(td_state_watch(state, "/fail/", from, &watch), 0);
	CHECK_EQ(await(watch, &event), 0);
	td_state_free(state);
	/* A watch alone finds the way, too. */
	state = open_with(
		&(struct td_etcd_options){.endpoints = endpoints, .timeout_ns = TD_NS_PER_S / 2});
	CHECK_EQ(td_state_watch(state, "/fail/", from, &watch), 0);
	CHECK_EQ(await(watch, &event), 0);
	td_state_free(state);
	etcd_signal(&stopped, SIGCONT);
	etcd_remove(&stopped);
}

TEST(options_that_cannot_work_are_refused_with_the_reason)
{
	static const struct {
		struct td_etcd_options options;
		const char *says;
	} bad[] = {
		{{.endpoints = ""}, "endpoint \"\" is not valid"},
		{{.endpoints = NULL}, "endpoint \"\" is not valid"},
		{{.endpoints = "http://a:1,ftp://b"}, "endpoint \"ftp://b\" is not valid"},
		{{.endpoints = "http://a:1,"}, "endpoint \"\" is not valid"},
		{{.endpoints = "http://u@a:1"}, "endpoint \"http://u@a:1\" is not valid"},
		{{.endpoints = "https://a:1", .user = "u"}, "a user needs a password"},
		{{.endpoints = "http://a:1", .user = "u", .password = "p"}, "use https"},
		{{.endpoints = "https://a:1", .ca = "/none"}, "/none: No such file"},
		{{.endpoints = "https://a:1", .key = "/dev/null"}, "needs its key"},
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct td_state *state;
		struct td_err err;

		CHECK_EQ(td_etcd_open(&bad[i].options, &state, &err), -EINVAL);
		if (!strstr(err.msg, bad[i].says))
			test_fail(__FILE__, __LINE__, "\"%s\" for \"%s\"", err.msg, bad[i].says);
	}
}

/* The time from a death of the leader to the next leader. */
TEST(a_leader_that_dies_is_followed)
{
	struct td_state *first = open_state(), *second = open_state();
	struct td_leader *a = td_leader_new(first, "/elect/leader", "a", 10);
	struct td_leader *b = td_leader_new(second, "/elect/leader", "b", 10);
	struct td_state_write write = text_write("/elect/order", "x", 0);
	struct td_state_compare fence;
	uint64_t begun_ns;

	CHECK(a && b);
	(void)td_leader_turn(a, td_time_now_ns());
	CHECK(td_leader_leads(a, td_time_now_ns()));
	(void)td_leader_turn(b, td_time_now_ns());
	CHECK_STR(td_leader_name(b), "a");
	fence = td_leader_fence(a);
	CHECK_EQ(td_state_commit(first, &(struct td_state_commit){&fence, &write, 1, 1}, NULL), 0);
	begun_ns = td_time_now_ns(); /* a does nothing from here on */
	while (!td_leader_leads(b, td_time_now_ns()) && td_time_now_ns() < begun_ns + LONG_NS) {
		turn_until(second, td_time_now_ns() + TD_NS_PER_S);
		(void)td_leader_turn(b, td_time_now_ns());
	}
	printf("# the next leader after %.1f s\n",
		(double)(td_time_now_ns() - begun_ns) / (double)TD_NS_PER_S);
	CHECK(td_time_now_ns() - begun_ns < LONG_NS);
	CHECK_EQ(td_state_commit(first, &(struct td_state_commit){&fence, &write, 1, 1}, NULL),
		TD_STATE_CONFLICT);
	td_leader_free(a);
	td_leader_free(b);
	td_state_free(first);
	td_state_free(second);
}

TEST(the_last_case_ends_etcd)
{
	if (!etcd.program)
		SKIP("etcd is not here");
	etcd_remove(&etcd);
}
