/* Work that was never seen before, one program at a time: policy/node/beside/trials.h. */
#include "unit/policy/nodes_world.h"

static struct td_client_view *a, *b, *d, *job;

static void begin(const char *policy)
{
	start(policy, 1);
	a = add(1, 0, TD_CLASS_BESTEFFORT, GIB);
	b = add(2, 0, TD_CLASS_BESTEFFORT, GIB);
	d = add(3, 0, TD_CLASS_BESTEFFORT, GIB);
	job = add(4, 0, TD_CLASS_GUARANTEED, GIB);
	a->fresh = b->fresh = d->fresh = TD_FRESH_TOLD;
	step();
}

static void later(uint64_t ms)
{
	node.now += ms * MS;
	step();
}

static bool is_held(const struct td_client_view *client)
{
	return grant_of(client)->hold_new;
}

static void say(struct td_client_view *client, uint32_t fresh)
{
	client->fresh = TD_FRESH_TOLD | fresh;
}

TEST(of_those_who_wait_one_at_a_time_tries_what_is_new_in_order_of_arrival)
{
	static const char *const policies[] = {"tandem", "antman"};

	for (unsigned p = 0; p < 2; p++) {
		begin(policies[p]);
		CHECK(is_held(a) && is_held(b) && is_held(d) && !is_held(job));
		CHECK(node.plan.next_wakeup_ns <= node.now + 20 * MS);
		say(a, TD_FRESH_WAITS);
		say(b, TD_FRESH_WAITS);
		say(d, TD_FRESH_WAITS);
		later(20);
		CHECK(!is_held(a) && is_held(b) && is_held(d));
		CHECK(node.plan.next_wakeup_ns <= node.now + 5 * MS);
		CHECK(!grant_of(a)->others_wait);
		say(a, TD_FRESH_IN_FLIGHT);
		later(5);
		CHECK(!is_held(a) && is_held(b) && is_held(d));
		CHECK(grant_of(a)
				/* it must report at once when none of its new work is in flight */
				->others_wait);
		later(5);
		say(a, 0);
		later(5);
		CHECK(is_held(a) && !is_held(b) && is_held(d));
		say(b, 0); /* what it had to try was known after all */
		later(5);
		CHECK(is_held(a) && is_held(b) && !is_held(d));
		say(d, 0);
		later(5);
		CHECK(!is_held(d)); /* nobody waits: whose turn it was goes on at once */
		CHECK(node.plan.next_wakeup_ns > node.now + 5 * MS);
	}
}

TEST(a_step_has_one_long_trial)
{
	begin("tandem");
	finish_step(job, 100 * MS);
	say(a, TD_FRESH_WAITS);
	say(b, TD_FRESH_WAITS);
	later(5);
	say(a, TD_FRESH_IN_FLIGHT);
	later(5);
	later(500);
	say(a, TD_FRESH_WAITS);
	later(5);
	CHECK(is_held(a) && is_held(b) && is_held(d));
	later(1000);
	CHECK(is_held(a) && is_held(b) && is_held(d));
	finish_step(job, 1600 * MS);
	step();
	CHECK(is_held(a) + is_held(b) + is_held(d) == 2);
}

TEST(what_lasts_is_not_waited_for_for_ever_nor_is_a_step)
{
	begin("tandem");
	say(a, TD_FRESH_WAITS);
	say(b, TD_FRESH_WAITS);
	later(5);
	say(a, TD_FRESH_IN_FLIGHT);
	later(5);
	for (unsigned i = 0; i < 10; i++) {
		later(995);
		CHECK(!is_held(a) && is_held(b));
	}
	later(995);
	CHECK(is_held(a) && !is_held(b));
	say(b, TD_FRESH_IN_FLIGHT);
	later(5);
	later(100);
	say(b, 0);
	say(a, TD_FRESH_WAITS);
	later(5);
	CHECK(is_held(a) && is_held(b));
	later(410); /* no step; but it took 105 ms */
	later(10);
	CHECK(!is_held(a) && is_held(b));
}

/* However long it was its turn already, as nobody else had anything. */
TEST(who_begins_to_try_has_its_turn_before_it)
{
	begin("tandem");
	say(a, TD_FRESH_WAITS);
	later(5);
	say(a, 0);
	for (unsigned i = 0; i < 100; i++)
		later(1000);
	CHECK(!is_held(a) && is_held(b));
	say(a, TD_FRESH_IN_FLIGHT);
	a->tries++;
	say(b, TD_FRESH_WAITS);
	for (unsigned i = 0; i < 1000; i++) {
		later(5);
		CHECK(!is_held(a) && is_held(b));
	}
}

/*
 * A program that starts has one new kernel after the other, which is no reason to wait for all of
 * them.
 */
TEST(many_short_trials_take_turns)
{
	uint32_t turns = 0;
	bool before = false;

	begin("tandem");
	for (unsigned i = 0; i < 400; i++) {
		say(a, TD_FRESH_WAITS | (is_held(a) ? 0 : TD_FRESH_IN_FLIGHT));
		say(b, TD_FRESH_WAITS | (is_held(b) ? 0 : TD_FRESH_IN_FLIGHT));
		a->tries += !is_held(a);
		b->tries += !is_held(b);
		later(5);
		CHECK(is_held(a) || is_held(b));
		turns += is_held(a) != before;
		before = is_held(a);
	}
	CHECK(turns >= 15 && turns <= 25); /* of 2 s in turns of 0.1 */
}

/* Work in flight then costs nobody anything. */
TEST(in_a_pause_nobody_rests)
{
	begin("tandem");
	job->wants = false;
	say(a, TD_FRESH_WAITS);
	say(b, TD_FRESH_WAITS);
	later(5);
	say(a, TD_FRESH_IN_FLIGHT);
	later(5);
	later(500);
	say(a, 0);
	later(5);
	CHECK(is_held(a) && !is_held(b));
}

TEST(who_has_nothing_under_way_ends_its_turn_whatever_its_page_says)
{
	begin("tandem");
	say(a, TD_FRESH_WAITS);
	say(b, TD_FRESH_WAITS);
	later(5);
	say(a, TD_FRESH_IN_FLIGHT);
	later(5);
	CHECK(!is_held(a));
	a->wants = false;
	later(5);
	CHECK(is_held(a) && !is_held(b));
}

TEST(who_is_alone_or_beside_nobody_protected_or_has_an_older_library_is_not_held)
{
	begin("tandem");
	job->paused = true;
	later(5);
	CHECK(!is_held(a) && !is_held(b) && !is_held(d));
	job->paused = false;
	later(5);
	CHECK(is_held(a) && is_held(b) && is_held(d));
	a->fresh = 0;
	later(5);
	CHECK(!is_held(a) && is_held(b) && is_held(d));
	b->fresh = 0;
	later(5);
	CHECK(!is_held(a) && !is_held(b) && !is_held(d));
	/* Processes of one job may wait for each other. */
	a->fresh = b->fresh = TD_FRESH_TOLD;
	d->fresh = 0;
	b->group = a->group;
	later(5);
	CHECK(!is_held(a) && !is_held(b) && !is_held(d));
}
