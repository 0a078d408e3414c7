/* A key that lives as long as its program, and the copy that others have of it. */
#include "test.h"

#include <stdio.h>
#include <string.h>

#include "base/time.h"
#include "cluster/state/memory.h"
#include "cluster/state/mirror.h"
#include "cluster/state/presence.h"

#define S TD_NS_PER_S

static struct td_memory_store *store;
static struct td_state *state, *other;
static struct td_presence presence, rival;
static struct td_mirror mirror;
static uint64_t now_ns;
static char told[256]; /* "+KEY=VALUE" and "-KEY" for each change */

static void changed(void *arg, const struct td_state_item *item, bool is_gone)
{
	size_t length = strlen(told);

	(void)arg;
	snprintf(told + length, sizeof(told) - length, is_gone ? "-%s " : "+%s=%s ", item->key + 3,
		item->value);
}

static void begin(void)
{
	store = td_memory_store_new();
	CHECK(store);
	state = td_memory_open(store);
	other = td_memory_open(store);
	CHECK(state && other);
	now_ns = 1000 * S;
	(void)td_state_turn(state, now_ns);
	CHECK_EQ(td_presence_init(&presence, state, "/n/a", 10), 0);
	CHECK_EQ(td_presence_init(&rival, other, "/n/a", 10), 0);
	CHECK_EQ(td_mirror_init(&mirror, other, "/n/", changed, NULL), 0);
	told[0] = 0;
}

static void end(void)
{
	td_mirror_deinit(&mirror);
	td_state_free(state);
	td_state_free(other);
	td_memory_store_free(store);
}

static int put(struct td_presence *by, const char *value)
{
	return td_presence_put(by, value, strlen(value), now_ns);
}

/* Returns the changes of which the mirror was told since the last look. */
static const char *look(void)
{
	static char seen[sizeof(told)];
	uint64_t wakeup_ns;

	told[0] = 0;
	(void)td_mirror_turn(&mirror, now_ns, &wakeup_ns);
	strcpy(seen, told);
	return seen;
}

static void let_pass(uint64_t time_ns)
{
	now_ns += time_ns;
	(void)td_state_turn(state, now_ns);
}

TEST(a_key_that_is_kept_alive_stays)
{
	begin();
	CHECK_EQ(put(&presence, "1"), 0);
	CHECK_STR(look(), "+a=1 ");
	for (int i = 0; i < 60; i++) {
		let_pass(S);
		CHECK_EQ(td_presence_turn(&presence, now_ns), 0);
	}
	CHECK_EQ(put(&presence, "2"), 0);
	CHECK_STR(look(), "+a=2 ");
	CHECK(td_presence_is_there(&presence, now_ns));
	end();
}

TEST(a_key_whose_program_died_goes_and_comes_back_with_it)
{
	begin();
	CHECK_EQ(put(&presence, "1"), 0);
	CHECK_STR(look(), "+a=1 ");
	let_pass(11 * S);
	CHECK_STR(look(), "-a ");
	CHECK(!td_presence_is_there(&presence, now_ns));
	CHECK_EQ(td_presence_turn(&presence, now_ns), TD_STATE_NO_LEASE);
	CHECK_EQ(put(&presence, "2"), 0);
	CHECK_STR(look(), "+a=2 ");
	end();
}

TEST(a_second_program_of_the_name_waits)
{
	begin();
	CHECK_EQ(put(&presence, "1"), 0);
	CHECK_EQ(put(&rival, "2"), TD_STATE_CONFLICT);
	CHECK_EQ(put(&presence, "3"), 0);
	td_presence_end(&presence);
	CHECK_EQ(put(&rival, "4"), 0);
	CHECK_EQ(put(&presence, "5"), TD_STATE_CONFLICT);
	CHECK_STR(look(), "+a=4 ");
	end();
}

TEST(a_put_whose_answer_was_lost_is_found)
{
	begin();
	CHECK_EQ(put(&presence, "1"), 0);
	td_memory_lose_answers(state, true);
	CHECK_EQ(put(&presence, "2"), TD_STATE_UNSURE);
	td_memory_lose_answers(state, false);
	CHECK_EQ(put(&presence, "3"), 0);
	CHECK_STR(look(), "+a=3 ");
	end();
}

TEST(a_state_that_is_away_for_less_than_the_lease_takes_nothing)
{
	begin();
	CHECK_EQ(put(&presence, "1"), 0);
	td_memory_cut(state, true);
	let_pass(4 * S);
	CHECK_EQ(td_presence_turn(&presence, now_ns), TD_STATE_AWAY);
	CHECK_EQ(put(&presence, "2"), TD_STATE_AWAY);
	td_memory_cut(state, false);
	let_pass(S);
	CHECK_EQ(td_presence_turn(&presence, now_ns), 0);
	let_pass(9 * S);
	CHECK_STR(look(), "+a=1 ");
	CHECK_EQ(put(&presence, "2"), 0);
	CHECK_STR(look(), "+a=2 ");
	end();
}

TEST(a_mirror_that_missed_changes_tells_the_differences)
{
	const struct td_state_write b = {.key = "/n/b", .value = "b", .length = 1};
	const struct td_state_write c = {.key = "/n/c", .value = "c", .length = 1};
	struct td_state_item item;

	begin();
	CHECK_EQ(td_state_put(state, &b, NULL), 0);
	CHECK_EQ(put(&presence, "1"), 0);
	CHECK_STR(look(), "+a=1 +b=b ");
	td_memory_cut(other, true);
	CHECK_EQ(td_state_put(state, &c, NULL), 0);
	td_presence_end(&presence);
	CHECK_EQ(td_state_put(state, &c, NULL), 0);
	CHECK_EQ(td_state_get(state, "/n/c", &item), 0);
	td_memory_compact(store, item.revision);
	td_state_item_deinit(&item);
	CHECK_STR(look(), "");
	td_memory_cut(other, false);
	let_pass(S);
	CHECK_STR(look(), "-a +c=c ");
	CHECK(td_mirror_follows(&mirror));
	end();
}

TEST(a_mirror_of_a_state_that_is_away_says_so_and_comes_back)
{
	uint64_t wakeup_ns;

	begin();
	td_memory_cut(other, true);
	CHECK_EQ(td_mirror_turn(&mirror, now_ns, &wakeup_ns), TD_STATE_AWAY);
	CHECK_EQ(wakeup_ns, now_ns + S);
	CHECK_EQ(put(&presence, "1"), 0);
	td_memory_cut(other, false);
	let_pass(S);
	CHECK_STR(look(), "+a=1 ");
	end();
}
