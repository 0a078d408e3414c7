/*
 * An etcd of three members, which are killed and come back in turn while one handle writes and
 * another one watches: every write is told, in order. Without etcd it is skipped.
 */
#include <poll.h>
#include <signal.h>
#include <string.h>

#include "base/err.h"
#include "base/time.h"
#include "cluster/state/etcd/etcd.h"
#include "cluster/state/kind.h"
#include "etcd_process.h"
#include "test.h"

enum { MEMBERS = 3, WRITES = 20, KEYS = 1024 };

static struct etcd_process member[MEMBERS];
static char name[MEMBERS][4], all[256], endpoints[256];
static bool was_told[KEYS];
static unsigned written;
static uint64_t last_revision;

static void start(unsigned i)
{
	const char *const arguments[] = {"--name", name[i], "--initial-cluster", all, NULL};

	etcd_start(&member[i], arguments);
}

static void begin(void)
{
	for (unsigned i = 0; i < MEMBERS; i++) {
		if (!etcd_make(&member[i]))
			SKIP("etcd is not here: scripts/test fetches Debian's");
		snprintf(name[i], sizeof(name[i]), "m%u", i);
		snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s%s=http://127.0.0.1:%d",
			i ? "," : "", name[i], member[i].peer_port);
		snprintf(endpoints + strlen(endpoints), sizeof(endpoints) - strlen(endpoints),
			"%s%s", i ? "," : "", member[i].url);
	}
	for (unsigned i = 0; i < MEMBERS; i++)
		start(i);
}

static struct td_state *open_state(void)
{
	struct td_state *state = NULL;
	struct td_err err;

	if (td_etcd_open(&(struct td_etcd_options){.endpoints = endpoints}, &state, &err))
		test_fail(__FILE__, __LINE__, "%s", err.msg);
	return state;
}

/* Writes the next key, again until the answer says that it was done. Returns the revision. */
static uint64_t write_next(struct td_state *state)
{
	uint64_t end_ns = td_time_now_ns() + 60 * TD_NS_PER_S, revision = 0;
	char key[32];
	const struct td_state_write write = {.key = key, .value = "x", .length = 1};
	int r;

	snprintf(key, sizeof(key), "/members/%u", written++);
	do {
		r = td_state_put(state, &write, &revision);
		CHECK(!r || r == TD_STATE_AWAY || r == TD_STATE_UNSURE);
		if (r)
			td_time_sleep_until_ns(td_time_now_ns() + 50 * TD_NS_PER_MS);
	} while (r && td_time_now_ns() < end_ns);
	CHECK_EQ(r, 0);
	return revision;
}

static void take_event(const struct td_state_event *event)
{
	CHECK(event->item.revision > last_revision);
	last_revision = event->item.revision;
	was_told[strtoul(event->item.key + strlen("/members/"), NULL, 10) % KEYS] = true;
}

/* Follows the watch until it has told this revision. */
static void follow(struct td_state_watch *watch, uint64_t revision)
{
	uint64_t now_ns = td_time_now_ns(), end_ns = now_ns + 60 * TD_NS_PER_S;
	struct pollfd fd = {.fd = td_state_fd(watch->state), .events = POLLIN};
	struct td_state_event event;

	while (last_revision < revision) {
		uint64_t next_ns = td_state_turn(watch->state, now_ns);
		int r;

		while (!(r = td_state_next(watch, &event)))
			take_event(&event);
		CHECK_EQ(r, TD_STATE_NOTHING);
		CHECK(now_ns < end_ns);
		if (last_revision < revision)
			(void)poll(&fd, 1, next_ns > now_ns + TD_NS_PER_S ? 1000 : 10);
		now_ns = td_time_now_ns();
	}
}

TEST(no_write_is_lost_when_members_die_in_turn)
{
	struct td_state *writer, *reader;
	struct td_state_watch *watch;

	begin();
	writer = open_state();
	reader = open_state();
	last_revision = write_next(writer);
	was_told[0] = true;
	CHECK_EQ(td_state_watch(reader, "/members/", last_revision + 1, &watch), 0);
	for (unsigned round = 0; round < 2 * MEMBERS; round++) {
		uint64_t revision = 0;

		etcd_signal(&member[round % MEMBERS], SIGKILL);
		for (unsigned i = 0; i < WRITES; i++)
			revision = write_next(writer);
		follow(watch, revision);
		start(round % MEMBERS);
	}
	for (unsigned i = 0; i < written; i++)
		CHECK(was_told[i]);
	td_state_free(writer);
	td_state_free(reader);
}

TEST(a_member_without_the_others_ends_its_watches_and_they_come_back)
{
	struct td_state *writer, *reader;
	struct td_state_watch *watch;
	struct td_state_event event;
	struct td_state_item item;
	const struct td_state_write write = {.key = "/members/0", .value = "y", .length = 1};
	int r;

	if (!*endpoints)
		SKIP("etcd is not here");
	writer = open_state();
	reader = open_state();
	last_revision = write_next(writer);
	CHECK_EQ(td_state_watch(reader, "/members/", last_revision + 1, &watch), 0);
	follow(watch, write_next(writer));
	etcd_signal(&member[0], SIGKILL);
	etcd_signal(&member[2], SIGKILL);
	r = td_state_put(writer, &write, NULL);
	CHECK(r == TD_STATE_UNSURE || r == TD_STATE_AWAY);
	CHECK_EQ(td_state_get(writer, "/members/0", &item), TD_STATE_AWAY);
	(void)td_state_turn(reader, td_time_now_ns());
	CHECK_EQ(td_state_next(watch, &event), TD_STATE_NOTHING);
	start(0);
	start(2);
	follow(watch, write_next(writer));
	td_state_free(writer);
	td_state_free(reader);
	for (unsigned i = 0; i < MEMBERS; i++)
		etcd_remove(&member[i]);
}
