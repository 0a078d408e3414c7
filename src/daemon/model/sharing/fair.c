/* This file implements fair.h. */
#include "daemon/model/sharing/fair.h"

#include <stddef.h>

void td_fair_init(struct td_fair *fair)
{
	fair->now = 0;
	fair->count = fair->served = 0;
}

static uint64_t start_of(const struct td_fair *fair, const struct td_fair_user *user)
{
	return user->end > fair->now ? user->end : fair->now;
}

/*
 * Returns the entry of a user without a waiting request and without a debt, or a new entry. NULL:
 * all are taken.
 */
static struct td_fair_user *find_unused(struct td_fair *fair)
{
	for (uint32_t i = 0; i < fair->count; i++)
		if (td_list_empty(&fair->users[i].line) && fair->users[i].end <= fair->now)
			return &fair->users[i];
	if (fair->count == TD_FAIR_USERS_MAX)
		return NULL;
	td_list_init(&fair->users[fair->count].line);
	return &fair->users[fair->count++];
}

static struct td_fair_user *user_of(struct td_fair *fair, struct td_identity who)
{
	struct td_fair_user *user;

	for (uint32_t i = 0; i < fair->count; i++)
		if (td_identity_is_counted_as(fair->users[i].who, who))
			return &fair->users[i];
	user = find_unused(fair);
	if (!user)
		return &fair->users[td_identity_key(who) % TD_FAIR_USERS_MAX];
	user->who = who;
	user->end = 0;
	return user;
}

void td_fair_add(struct td_fair *fair, struct td_identity who, struct td_list *item)
{
	if (td_list_empty(item))
		td_list_append(&user_of(fair, who)->line, item);
}

struct td_list *td_fair_next(struct td_fair *fair)
{
	const struct td_fair_user *first = NULL;
	struct td_list *item;

	for (uint32_t i = 0; i < fair->count; i++) {
		const struct td_fair_user *user = &fair->users[i];

		if (!td_list_empty(&user->line) &&
			(!first || start_of(fair, user) < start_of(fair, first)))
			first = user;
	}
	if (!first)
		return NULL;
	fair->now = start_of(fair, first);
	fair->served = (uint32_t)(first - fair->users);
	item = first->line.next;
	td_list_remove(item);
	return item;
}

void td_fair_charge(struct td_fair *fair, uint64_t cost)
{
	fair->users[fair->served].end = fair->now + cost;
}
