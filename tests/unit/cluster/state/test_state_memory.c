/* The state in memory: the cases of every kind, on a fake clock, and its own. */
#include <errno.h>

#include "cases.h"
#include "cluster/state/memory.h"

static struct td_memory_store *store;
static uint64_t now_ns;

static struct td_state *open_state(void)
{
	struct td_state *state;

	if (!store)
		store = td_memory_store_new();
	CHECK(store);
	state = td_memory_open(store);
	CHECK(state);
	return state;
}

static void let_pass(struct td_state *state, unsigned seconds)
{
	now_ns += seconds * TD_NS_PER_S;
	(void)td_state_turn(state, now_ns);
}

static void compact(uint64_t revision)
{
	td_memory_compact(store, revision);
}

static int await(struct td_state_watch *watch, struct td_state_event *ret)
{
	return td_state_next(watch, ret);
}

static int await_nothing(struct td_state_watch *watch, struct td_state_event *ret)
{
	return td_state_next(watch, ret);
}

TEST(a_lease_ends_at_its_nanosecond)
{
	struct td_state *state = open_state();
	uint64_t lease, ttl_ns;

	let_pass(state, 100);
	CHECK_EQ(td_state_grant(state, 10, &lease, &ttl_ns), 0);
	CHECK_EQ(td_state_turn(state, now_ns), now_ns + 10 * TD_NS_PER_S);
	CHECK_EQ(td_state_turn(state, now_ns + ttl_ns - 1), now_ns + ttl_ns);
	CHECK_EQ(td_state_turn(state, now_ns + ttl_ns), UINT64_MAX);
	CHECK_EQ(td_state_keep_alive(state, lease, &ttl_ns), TD_STATE_NO_LEASE);
	let_pass(state, 10);
	td_state_free(state);
}

TEST(a_handle_that_is_cut_off_reaches_nothing_until_it_is_back)
{
	struct td_state *state = open_state(), *other = open_state();
	uint64_t from = put(state, "/cut/a", "1");
	struct td_state_watch *watch;
	struct td_state_event event;
	struct td_state_item item;

	CHECK_EQ(td_state_watch(state, "/cut/", from + 1, &watch), 0);
	td_memory_cut(state, true);
	put(other, "/cut/a", "2");
	CHECK_EQ(td_state_get(state, "/cut/a", &item), TD_STATE_AWAY);
	CHECK_EQ(td_state_next(watch, &event), TD_STATE_NOTHING);
	td_memory_cut(state, false);
	expect(state, "/cut/a", "2");
	expect_event(watch, "/cut/a", "2");
	td_state_free(state);
	td_state_free(other);
}

TEST(a_long_history_is_compacted_by_itself)
{
	struct td_state *state = open_state();
	uint64_t from = put(state, "/long/a", "1");
	struct td_state_watch *watch;
	struct td_state_event event;

	CHECK_EQ(td_state_watch(state, "/long/", from, &watch), 0);
	for (unsigned i = 0; i < 100001; i++)
		put(state, "/long/a", "2");
	CHECK_EQ(td_state_next(watch, &event), TD_STATE_COMPACTED);
	td_state_free(state);
}

TEST(a_store_whose_handles_are_gone_can_be_freed)
{
	td_memory_store_free(store);
	store = NULL;
}
