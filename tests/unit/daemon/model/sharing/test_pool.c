/* However many users take what they get, the next one gets some, and the owner does in any case. */
#include "test.h"

#include "daemon/model/sharing/pool.h"

#define USERS_MAX 16

static const struct td_pool pool = {.total = 1088, .reserve = 64};
static uint64_t has[USERS_MAX];

static uint64_t used(void)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < USERS_MAX; i++)
		sum += has[i];
	return sum;
}

/* As much as the user gets. */
static uint64_t take(unsigned user)
{
	while (td_pool_allows(&pool, used(), has[user], false))
		has[user]++;
	return has[user];
}

static void begin(void)
{
	memset(has, 0, sizeof(has));
}

TEST(one_user_alone_gets_half_of_what_is_not_reserved)
{
	begin();
	CHECK_EQ(take(0), 512);
}

TEST(the_next_ones_get_half_of_what_is_left)
{
	begin();
	for (unsigned i = 0; i < 8; i++)
		CHECK_EQ(take(i), 512 >> i);
}

TEST(users_who_come_and_go_end_up_with_equal_parts)
{
	begin();
	(void)take(0);
	for (unsigned round = 0; round < 200; round++)
		for (unsigned i = 0; i < 3; i++) {
			has[i] -= has[i] / 8;
			(void)take(i);
		}
	for (unsigned i = 0; i < 3; i++)
		CHECK(has[i] >= 1024 / 4 - 40 && has[i] <= 1024 / 4 + 40);
}

TEST(the_owner_gets_all_that_is_left)
{
	uint64_t owner = 0;

	begin();
	for (unsigned i = 0; i < USERS_MAX; i++)
		(void)take(i);
	while (td_pool_allows(&pool, used() + owner, owner, true))
		owner++;
	CHECK_EQ(used() + owner, 1088);
	CHECK(owner >= 64);
	CHECK(!td_pool_allows(&pool, 1088, 0, true));
	CHECK(!td_pool_allows(&pool, 1088, 0, false));
}

TEST(what_is_over_the_bound_already_gets_nothing)
{
	CHECK(!td_pool_allows(&pool, 5000, 5000, false));
	CHECK(!td_pool_allows(&pool, 5000, 0, true));
	CHECK(!td_pool_allows(&(const struct td_pool){10, 10}, 0, 0, false));
}
