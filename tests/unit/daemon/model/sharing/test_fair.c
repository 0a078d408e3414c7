/* Who is served next among users that ask for much and for little. */
#include "test.h"

#include "daemon/model/sharing/fair.h"

#define ITEMS 8

static struct td_fair fair;
static struct item {
	struct td_list link;
	uid_t uid;
} items[ITEMS];

static void begin(void)
{
	td_fair_init(&fair);
	for (int i = 0; i < ITEMS; i++)
		td_list_init(&items[i].link);
}

static struct item *add(int i, uid_t uid)
{
	items[i].uid = uid;
	td_fair_add(&fair, td_identity_local(uid), &items[i].link);
	return &items[i];
}

static struct item *next(uint64_t cost)
{
	struct td_list *it = td_fair_next(&fair);

	if (!it)
		return NULL;
	td_fair_charge(&fair, cost);
	return td_container_of(it, struct item, link);
}

TEST(one_users_requests_are_served_as_they_came)
{
	begin();
	CHECK(!next(1));
	struct item *a = add(0, 7), *b = add(1, 7);

	add(0, 7); /* it waits already */
	CHECK(next(1) == a);
	CHECK(next(1) == b);
	CHECK(!next(1));
}

TEST(who_asks_for_little_waits_for_one_request_of_who_asks_for_much)
{
	begin();
	for (int i = 0; i < 6; i++)
		add(i, 666);
	CHECK_EQ(next(1000)->uid, 666);
	add(6, 1);
	CHECK_EQ(next(1)->uid, 1);
	for (int i = 0; i < 5; i++) {
		CHECK_EQ(next(1000)->uid, 666);
		add(6, 1);
		CHECK_EQ(next(1)->uid, 1);
	}
}

TEST(costs_are_shared_equally_and_not_the_number_of_requests)
{
	uint64_t had[2] = {0};

	begin();
	for (int i = 0; i < 3000; i++) {
		add(0, 1);
		add(1, 2);
		add(2, 2);
		struct td_list *it = td_fair_next(&fair);
		uid_t uid = td_container_of(it, struct item, link)->uid;
		uint64_t cost = uid == 1 ? 100 : 7;

		td_fair_charge(&fair, cost);
		had[uid - 1] += cost;
	}
	CHECK(had[0] > 0 && had[0] <= had[1] + 200 && had[1] <= had[0] + 200);
}

TEST(who_was_away_has_saved_nothing)
{
	begin();
	for (int i = 0; i < 1000; i++) {
		add(0, 1);
		CHECK_EQ(next(10)->uid, 1);
	}
	/* The other one has not asked for anything so far: from now on they take turns. */
	unsigned served = 0;

	for (int i = 0; i < 100; i++) {
		add(0, 1);
		add(1, 2);
		served += next(10)->uid == 2;
	}
	CHECK_EQ(served, 50);
}

TEST(one_that_is_taken_out_is_not_served)
{
	begin();
	add(0, 1);
	struct item *b = add(1, 1);

	td_list_remove(&items[0].link);
	CHECK(next(1) == b);
	CHECK(!next(1));
}

TEST(more_users_than_are_told_apart_are_all_served)
{
	static struct item many[3 * TD_FAIR_USERS_MAX];
	unsigned served = 0;

	begin();
	for (unsigned i = 0; i < 3 * TD_FAIR_USERS_MAX; i++) {
		td_list_init(&many[i].link);
		td_fair_add(&fair, td_identity_local(1000 + i), &many[i].link);
	}
	while (next(5))
		served++;
	CHECK_EQ(served, 3 * TD_FAIR_USERS_MAX);
	for (unsigned i = 0; i < 3 * TD_FAIR_USERS_MAX; i++) {
		td_fair_add(&fair, td_identity_local(5000 + i), &many[i].link);
		CHECK(next(5) == &many[i]);
	}
}
