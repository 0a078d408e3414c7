/* This file implements users.h. */
#include "daemon/model/sharing/users.h"

#include <stdlib.h>

void td_users_init(struct td_users *users)
{
	td_list_init(&users->list);
	users->out_bytes = 0;
}

static void free_user(struct td_user *user)
{
	td_list_remove(&user->of_users);
	free(user);
}

void td_users_deinit(struct td_users *users)
{
	struct td_list *it, *tmp;

	td_list_for_each_safe (it, tmp, &users->list)
		free_user(td_container_of(it, struct td_user, of_users));
}

static void free_unused(struct td_users *users, uint64_t now_ns)
{
	struct td_list *it, *tmp;

	td_list_for_each_safe (it, tmp, &users->list) {
		struct td_user *user = td_container_of(it, struct td_user, of_users);

		if (!user->peers && user->complaints.full_ns <= now_ns)
			free_user(user);
	}
}

struct td_user *td_users_get(struct td_users *users, struct td_identity who, uint64_t now_ns)
{
	struct td_user *user;
	struct td_list *it;

	td_list_for_each (it, &users->list) {
		user = td_container_of(it, struct td_user, of_users);
		if (td_identity_is_counted_as(user->who, who))
			return user;
	}
	free_unused(users, now_ns);
	user = calloc(1, sizeof(*user));
	if (!user)
		return NULL;
	user->who = who;
	td_list_append(&users->list, &user->of_users);
	return user;
}
