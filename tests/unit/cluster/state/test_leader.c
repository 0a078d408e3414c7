/* Elections on a fake clock: candidates with a handle each on one store in memory. */
#include "test.h"

#include <string.h>

#include "base/time.h"
#include "cluster/state/kind.h"
#include "cluster/state/leader.h"
#include "cluster/state/memory.h"

#define S   TD_NS_PER_S
#define KEY "/tandem/v1/leader"
#define TTL 10u

enum { CANDIDATES = 3 };

static struct td_memory_store *store;
static struct td_state *state[CANDIDATES];
static struct td_leader *leader[CANDIDATES];
static bool is_stopped[CANDIDATES];
static uint64_t now_ns, next_ns[CANDIDATES];

static void join(unsigned i)
{
	static const char *const name[CANDIDATES] = {"first", "second", "third"};

	state[i] = td_memory_open(store);
	CHECK(state[i]);
	leader[i] = td_leader_new(state[i], KEY, name[i], TTL);
	CHECK(leader[i]);
	is_stopped[i] = false;
	next_ns[i] = 0;
}

static void leave(unsigned i)
{
	td_leader_free(leader[i]);
	td_state_free(state[i]);
	leader[i] = NULL;
	state[i] = NULL;
}

static void begin(void)
{
	store = td_memory_store_new();
	CHECK(store);
	now_ns = 100 * S;
	join(0);
	join(1);
}

static void end(void)
{
	for (unsigned i = 0; i < CANDIDATES; i++)
		if (leader[i])
			leave(i);
	td_memory_store_free(store);
}

static unsigned leaders(void)
{
	unsigned count = 0;

	for (unsigned i = 0; i < CANDIDATES; i++)
		count += leader[i] && td_leader_leads(leader[i], now_ns);
	return count;
}

/* Lets time go by in steps of 100 ms; a candidate that is stopped does nothing. */
static void let_pass(uint64_t time_ns)
{
	for (uint64_t end_ns = now_ns + time_ns; now_ns < end_ns;) {
		now_ns += S / 10;
		for (unsigned i = 0; i < CANDIDATES; i++) {
			if (!leader[i] || is_stopped[i])
				continue;
			(void)td_state_turn(state[i], now_ns);
			next_ns[i] = td_leader_turn(leader[i], now_ns);
		}
		CHECK(leaders() <= 1);
	}
}

/* The time until there is a leader again, in ns. */
static uint64_t wait_for_leader(unsigned i)
{
	uint64_t from_ns = now_ns;

	while (!td_leader_leads(leader[i], now_ns) && now_ns < from_ns + 60 * S)
		let_pass(S / 10);
	return now_ns - from_ns;
}

/* A state that starts anew gives the key's lease its whole time again. */
static void renew_lease(unsigned by)
{
	struct td_state_item item;
	uint64_t ttl_ns;

	if (td_state_get(state[by], KEY, &item))
		return;
	CHECK_EQ(td_state_keep_alive(state[by], item.lease, &ttl_ns), 0);
	td_state_item_deinit(&item);
}

static int write_as(unsigned i)
{
	const struct td_state_compare fence = td_leader_fence(leader[i]);
	const struct td_state_write write = {.key = "/order", .value = "x", .length = 1};

	return td_state_commit(state[i], &(struct td_state_commit){&fence, &write, 1, 1}, NULL);
}

TEST(the_first_candidate_leads_and_the_others_know_it)
{
	begin();
	let_pass(60 * S);
	CHECK(td_leader_leads(leader[0], now_ns));
	CHECK(!td_leader_leads(leader[1], now_ns));
	CHECK_STR(td_leader_name(leader[1]), "first");
	CHECK_EQ(write_as(0), 0);
	CHECK_EQ(write_as(1), TD_STATE_CONFLICT);
	end();
}

TEST(a_leader_that_dies_is_followed_within_15_s)
{
	begin();
	let_pass(31 * S);
	is_stopped[0] = true;
	CHECK(wait_for_leader(1) < 15 * S);
	CHECK_EQ(write_as(0), TD_STATE_CONFLICT);
	CHECK_EQ(write_as(1), 0);
	end();
}

TEST(a_dead_leader_whose_lease_lives_on_is_followed_within_15_s)
{
	uint64_t from_ns;

	begin();
	let_pass(31 * S);
	is_stopped[0] = true;
	for (from_ns = now_ns; now_ns < from_ns + 40 * S && !td_leader_leads(leader[1], now_ns);) {
		renew_lease(1);
		let_pass(S / 10);
	}
	CHECK(now_ns - from_ns > TTL * S * 6 / 10); /* it keeps its lease alive every third of it */
	CHECK(now_ns - from_ns < 15 * S);
	CHECK_EQ(write_as(0), TD_STATE_CONFLICT);
	CHECK_EQ(write_as(1), 0);
	end();
}

TEST(one_that_hears_late_of_a_leader_follows_it)
{
	begin();
	let_pass(31 * S);
	for (int i = 0; i < 10; i++) {
		td_memory_cut(state[1], true);
		let_pass((uint64_t)(i + 10) * S);
		td_memory_cut(state[1], false);
		let_pass(S / 2);
		CHECK(td_leader_leads(leader[0], now_ns));
	}
	end();
}

/* Kubernetes is such a state: its Lease has a time of its own, and its revision stays the same. */
TEST(where_keys_are_not_renewed_a_follower_looks_no_more_often_and_deletes_nothing)
{
	struct td_state_kind kind;

	begin();
	kind = *state[0]->kind;
	kind.renews_leases = false;
	for (unsigned i = 0; i < 2; i++)
		state[i]->kind = &kind;
	for (unsigned i = 0; i < 50; i++) {
		let_pass(S);
		CHECK(next_ns[1] > now_ns);
		CHECK(td_leader_leads(leader[0], now_ns));
	}
	end();
}

TEST(one_that_begins_anew_leads_at_once)
{
	begin();
	let_pass(31 * S);
	leave(0);
	join(0);
	CHECK(wait_for_leader(0) <= S / 5);
	end();
}

/* A mistake: both have one name. The second one takes the lead once, and they do not take turns. */
TEST(a_second_one_of_a_name_leads_once_under_its_own_fence)
{
	begin();
	let_pass(31 * S);
	state[2] = td_memory_open(store);
	CHECK(state[2]);
	leader[2] = td_leader_new(state[2], KEY, "first", TTL);
	CHECK(leader[2]);
	(void)td_leader_turn(leader[2], now_ns);
	CHECK(td_leader_leads(leader[2], now_ns));
	CHECK_EQ(write_as(0), TD_STATE_CONFLICT);
	CHECK_EQ(write_as(2), 0);
	(void)td_leader_turn(leader[0], now_ns);
	let_pass(60 * S);
	CHECK(td_leader_leads(leader[2], now_ns));
	end();
}

TEST(a_leader_that_resigns_is_followed_at_once)
{
	begin();
	let_pass(5 * S);
	td_leader_resign(leader[0], now_ns);
	CHECK(!td_leader_leads(leader[0], now_ns));
	CHECK(wait_for_leader(1) <= S / 5);
	let_pass(60 * S);
	CHECK(td_leader_leads(leader[1], now_ns));
	end();
}

TEST(a_leader_that_is_cut_off_stops_before_another_begins)
{
	begin();
	let_pass(5 * S);
	td_memory_cut(state[0], true);
	let_pass(7 * S + S / 2);
	CHECK_EQ(leaders(), 0);
	CHECK(wait_for_leader(1) < 2 * S);
	td_memory_cut(state[0], false);
	let_pass(30 * S);
	CHECK(td_leader_leads(leader[1], now_ns));
	CHECK_STR(td_leader_name(leader[0]), "second");
	end();
}

TEST(a_leader_that_was_stopped_is_no_leader_when_it_goes_on)
{
	begin();
	let_pass(5 * S);
	is_stopped[0] = true;
	let_pass(30 * S);
	CHECK(!td_leader_leads(leader[0], now_ns));
	is_stopped[0] = false;
	let_pass(30 * S);
	CHECK(!td_leader_leads(leader[0], now_ns));
	CHECK(td_leader_leads(leader[1], now_ns));
	end();
}

TEST(a_short_absence_of_the_state_changes_nothing)
{
	struct td_state_compare before;

	begin();
	let_pass(5 * S);
	before = td_leader_fence(leader[0]);
	for (int i = 0; i < 10; i++) {
		td_memory_cut(state[0], true);
		let_pass(5 * S);
		td_memory_cut(state[0], false);
		let_pass(2 * S);
	}
	CHECK(td_leader_leads(leader[0], now_ns));
	CHECK_EQ(td_leader_fence(leader[0]).expected, before.expected);
	end();
}

TEST(one_that_leads_again_has_another_fence)
{
	struct td_state_compare before;

	begin();
	leave(1);
	let_pass(5 * S);
	before = td_leader_fence(leader[0]);
	CHECK_EQ(write_as(0), 0);
	is_stopped[0] = true;
	let_pass(5 * S);
	now_ns += 30 * S;
	is_stopped[0] = false;
	CHECK(wait_for_leader(0) < 2 * S);
	CHECK(td_leader_fence(leader[0]).expected > before.expected);
	end();
}

TEST(one_whose_lease_was_not_heard_of_in_time_leads_again_soon)
{
	begin();
	leave(1);
	let_pass(5 * S);
	td_memory_cut(state[0], true);
	let_pass(9 * S + S / 2);
	CHECK_EQ(leaders(), 0);
	td_memory_cut(state[0], false);
	CHECK(wait_for_leader(0) < 2 * S);
	end();
}

TEST(an_election_whose_answer_was_lost_is_won_all_the_same)
{
	begin();
	leave(1);
	td_memory_lose_answers(state[0], true);
	let_pass(S / 2);
	CHECK(!td_leader_leads(leader[0], now_ns));
	td_memory_lose_answers(state[0], false);
	CHECK(wait_for_leader(0) < 2 * S);
	end();
}

TEST(a_change_of_another_hand_to_the_key_is_noticed)
{
	struct td_state_item item;

	begin();
	let_pass(5 * S);
	CHECK_EQ(td_state_get(state[1], KEY, &item), 0);
	CHECK_EQ(td_state_revoke(state[1], item.lease), 0);
	td_state_item_deinit(&item);
	CHECK_EQ(write_as(0), TD_STATE_CONFLICT);
	let_pass(S / 5);
	CHECK_EQ(leaders(), 1);
	CHECK_EQ(write_as(td_leader_leads(leader[0], now_ns) ? 0 : 1), 0);
	end();
}

/* Candidates are cut off, stopped and started at random: never do two lead (let_pass() checks). */
TEST(never_do_two_lead_whatever_happens)
{
	uint32_t seed = 7, led = 0;

	begin();
	join(2);
	for (unsigned step = 0; step < 2000; step++) {
		unsigned i;

		seed = seed * 1664525u + 1013904223u;
		i = (seed >> 16) % CANDIDATES;
		if (seed >> 30 == 0)
			is_stopped[i] = !is_stopped[i];
		else if (seed >> 30 == 1)
			td_memory_cut(state[i], (seed >> 20) & 1);
		else if (seed >> 30 == 2)
			td_memory_lose_answers(state[i], (seed >> 20) & 1);
		let_pass((seed >> 24) % 8 * S / 2);
		led += leaders();
	}
	CHECK(led > 500);
	end();
}
