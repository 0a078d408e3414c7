/* The ring of events under many events of one user, of many users, and of a random mix of them. */
#include "test.h"

#include "daemon/record/events.h"

#define NOBODY UINT32_MAX

static struct td_events events;

/* The records to be kept, in order. */
static struct record {
	uint64_t number;
	uint32_t uid;
} kept[TD_EVENTS_KEPT + 1];
static uint32_t kept_count;

static void begin(void)
{
	td_events_init(&events);
	kept_count = 0;
}

static uint64_t add(uint32_t uid)
{
	const struct td_event event = {.of_process = uid != NOBODY, .who = td_identity_local(uid)};

	return td_events_add(&events, &event)->number;
}

static uint32_t count_of(uint32_t uid)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < kept_count; i++)
		count += kept[i].uid == uid;
	return count;
}

static uint32_t most(void)
{
	uint32_t best = 0;

	for (uint32_t i = 0; i < kept_count; i++) {
		uint32_t count = count_of(kept[i].uid);

		best = count > best ? count : best;
		if (best > kept_count - i)
			break;
	}
	return best;
}

/* The first that is not what was kept before. */
static uint32_t first_gone(void)
{
	const struct td_event *event = td_events_get(&events, 0);
	uint32_t i = 0;

	while (i < kept_count && event && event->number == kept[i].number) {
		event = td_events_next(&events, event);
		i++;
	}
	return i;
}

static void check_kept(void)
{
	const struct td_event *event = td_events_get(&events, 0);

	for (uint32_t i = 0; i < kept_count; i++) {
		CHECK(event);
		CHECK_EQ(event->number, kept[i].number);
		CHECK_EQ(event->of_process ? event->who.uid : NOBODY, kept[i].uid);
		event = td_events_next(&events, event);
	}
	CHECK(!event);
}

/* The oldest one of somebody who has the most goes, and nothing else. */
static void add_and_check(uint32_t uid, bool thoroughly)
{
	uint64_t number = add(uid);

	if (kept_count == TD_EVENTS_KEPT) {
		uint32_t gone = first_gone();

		CHECK(gone < kept_count);
		for (uint32_t i = 0; i < gone; i++)
			CHECK(kept[i].uid != kept[gone].uid);
		if (thoroughly)
			CHECK_EQ(count_of(kept[gone].uid), most());
		memmove(&kept[gone], &kept[gone + 1], (kept_count - gone - 1) * sizeof(kept[0]));
		kept_count--;
	}
	kept[kept_count++] = (struct record){number, uid};
	CHECK_EQ(events.count, kept_count);
	if (thoroughly)
		check_kept();
}

TEST(one_users_events_are_a_ring)
{
	begin();
	CHECK(!td_events_get(&events, 0));
	for (uint64_t i = 1; i <= 5 * TD_EVENTS_KEPT + 7; i++)
		CHECK_EQ(add(1000), i);
	CHECK_EQ(td_events_get(&events, 0)->number, 4 * TD_EVENTS_KEPT + 8);
	CHECK_EQ(td_events_get(&events, 5 * TD_EVENTS_KEPT)->number, 5 * TD_EVENTS_KEPT);
	CHECK(!td_events_get(&events, events.next));
	CHECK_EQ(events.count, TD_EVENTS_KEPT);
}

TEST(many_events_of_one_user_erase_nobody_elses)
{
	begin();
	for (unsigned i = 0; i < 100; i++)
		add(1001);
	add(NOBODY);
	for (unsigned i = 0; i < 10 * TD_EVENTS_KEPT; i++)
		add(1000);
	for (uint64_t number = 1; number <= 101; number++)
		CHECK_EQ(td_events_get(&events, number)->number, number);
	CHECK_EQ(events.count, TD_EVENTS_KEPT);
}

TEST(as_many_users_as_there_are_places_and_more)
{
	begin();
	for (uint32_t uid = 0; uid < 3 * TD_EVENTS_KEPT; uid++)
		add_and_check(uid, uid % 997 == 0);
	check_kept();
	/* One of them comes again, many times. */
	for (unsigned i = 0; i < 2 * TD_EVENTS_KEPT; i++)
		add_and_check(5, i % 997 == 0);
	check_kept();
}

TEST(what_goes_is_the_oldest_of_somebody_who_has_the_most)
{
	uint32_t seed = 1;

	for (unsigned users = 1; users <= 64; users *= 4) {
		begin();
		for (unsigned i = 0; i < 3 * TD_EVENTS_KEPT; i++) {
			uint32_t uid;

			seed = seed * 1664525 + 1013904223;
			uid = (seed >> 16) % users;
			/* Some of them come in bursts, and some are rare. */
			uid = seed >> 28 ? uid % (1 + i / 1000 % users) : uid;
			add_and_check(uid ? uid : NOBODY, i % 501 == 0);
		}
		check_kept();
	}
}

TEST(numbers_that_are_gone_lead_to_the_next_one)
{
	begin();
	add(1001);
	for (unsigned i = 0; i < 2 * TD_EVENTS_KEPT; i++)
		add(1000);
	CHECK_EQ(td_events_get(&events, 1)->who.uid, 1001);
	CHECK_EQ(td_events_get(&events, 2)->number, TD_EVENTS_KEPT + 3);
	CHECK_EQ(td_events_next(&events, td_events_get(&events, 1))->number, TD_EVENTS_KEPT + 3);
	CHECK(!td_events_next(&events, td_events_get(&events, 2 * TD_EVENTS_KEPT + 1)));
}
