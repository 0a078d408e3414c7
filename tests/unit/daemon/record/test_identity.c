/* A user is a uid in a space: root of a container is not root, and no other container's root. */
#include "test.h"

#include "daemon/record/identity.h"

static const struct td_identity root = {0, TD_SPACE_OWN}, user = {1000, TD_SPACE_OWN},
				pods_root = {0, 1}, others_root = {0, 2}, pods_user = {1000, 1},
				unseen = {0, TD_SPACE_UNKNOWN};

TEST(root_of_a_container_is_not_root)
{
	CHECK(td_identity_is_root(root));
	CHECK(!td_identity_is_root(pods_root));
	CHECK(!td_identity_is_root(user));
	CHECK(td_identity_may(root, pods_user));
	CHECK(!td_identity_may(pods_root, pods_user));
	CHECK(!td_identity_may(pods_root, root));
	CHECK(!td_identity_may(pods_root, user));
}

TEST(the_same_uid_in_two_containers_is_two_users)
{
	CHECK(td_identity_may(pods_root, pods_root));
	CHECK(!td_identity_may(pods_root, others_root));
	CHECK(!td_identity_may(user, pods_user));
	CHECK(!td_identity_may(pods_user, user));
	CHECK(!td_identity_is_counted_as(pods_root, others_root));
	CHECK(td_identity_key(pods_root) != td_identity_key(others_root));
	CHECK(td_identity_key(pods_root) != td_identity_key(pods_user));
}

TEST(who_cannot_be_seen_is_nobody_and_is_still_bounded)
{
	CHECK(!td_identity_is_root(unseen));
	CHECK(!td_identity_is_same(unseen, unseen));
	CHECK(!td_identity_may(unseen, unseen));
	CHECK(td_identity_may(root, unseen));
	CHECK(td_identity_is_counted_as(unseen, unseen));
}
