/* A user has one row, which outlives his connections only while it says something. */
#include "test.h"

#include "daemon/model/sharing/users.h"

#define NOW (1000 * TD_NS_PER_S)

static struct td_users users;

static unsigned count(void)
{
	unsigned n = 0;
	struct td_list *it;

	td_list_for_each (it, &users.list)
		n++;
	return n;
}

TEST(a_user_has_one_row)
{
	td_users_init(&users);
	td_users_get(&users, td_identity_local(1000), NOW)->peers = 1;
	td_users_get(&users, td_identity_local(1001), NOW)->peers = 1;
	CHECK_EQ(td_users_get(&users, td_identity_local(1000), NOW)->peers, 1);
	CHECK_EQ(count(), 2);
	td_users_deinit(&users);
	CHECK_EQ(count(), 0);
}

TEST(rows_of_those_who_have_gone_do_not_pile_up)
{
	td_users_init(&users);
	for (uid_t uid = 0; uid < 1000; uid++)
		CHECK(td_users_get(&users, td_identity_local(uid), NOW));
	CHECK_EQ(count(), 1);
	td_users_deinit(&users);
}

TEST(who_comes_again_has_no_new_bucket_of_complaints)
{
	uint32_t suppressed;
	struct td_user *user;

	td_users_init(&users);
	user = td_users_get(&users, td_identity_local(1000), NOW);
	while (td_complaints_allow(&user->complaints, NOW, &suppressed))
		;
	CHECK(td_users_get(&users, td_identity_local(1001), NOW));
	user = td_users_get(&users, td_identity_local(1000), NOW);
	CHECK(!td_complaints_allow(&user->complaints, NOW, &suppressed));
	CHECK(td_users_get(&users, td_identity_local(1002), NOW + 1000 * TD_NS_PER_S));
	CHECK_EQ(count(), 1);
	td_users_deinit(&users);
}
