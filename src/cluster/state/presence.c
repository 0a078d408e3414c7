/* This file implements presence.h. */
#include "cluster/state/presence.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/time.h"

int td_presence_init(
	struct td_presence *presence, struct td_state *state, const char *key, uint32_t ttl_s)
{
	*presence = (struct td_presence){.state = state, .ttl_s = ttl_s};
	if (strlen(key) >= TD_STATE_KEY_MAX || !ttl_s)
		return -EINVAL;
	strcpy(presence->key, key);
	return 0;
}

static void forget(struct td_presence *presence)
{
	presence->lease = 0;
	presence->revision = 0;
}

static void note_life(struct td_presence *presence, uint64_t now_ns)
{
	presence->keep_ns = now_ns + presence->ttl_ns / 3;
	presence->end_ns = now_ns + presence->ttl_ns;
}

int td_presence_turn(struct td_presence *presence, uint64_t now_ns)
{
	int r;

	if (!presence->lease || now_ns < presence->keep_ns)
		return 0;
	r = td_state_keep_alive(presence->state, presence->lease, &presence->ttl_ns);
	if (!r)
		note_life(presence, now_ns);
	else if (r == TD_STATE_NO_LEASE)
		forget(presence);
	else
		presence->keep_ns = now_ns + TD_NS_PER_S;
	return r;
}

/* After a put whose answer was lost, or that found another revision: whose key is it? */
static int look(struct td_presence *presence)
{
	struct td_state_item item;
	int r = td_state_get(presence->state, presence->key, &item);

	if (r == TD_STATE_ABSENT) {
		presence->revision = 0;
		return 0;
	}
	if (r)
		return r;
	if (item.lease == presence->lease)
		presence->revision = item.revision;
	else
		r = TD_STATE_CONFLICT;
	td_state_item_deinit(&item);
	return r;
}

int td_presence_put(struct td_presence *presence, const char *value, size_t length, uint64_t now_ns)
{
	struct td_state_write write = {.key = presence->key, .value = value, .length = length};
	int r;

	if (!presence->lease) {
		r = td_state_grant(
			presence->state, presence->ttl_s, &presence->lease, &presence->ttl_ns);
		if (r) {
			presence->lease = 0;
			return r;
		}
		note_life(presence, now_ns);
	}
	write.lease = presence->lease;
	r = td_state_put_if(presence->state, &write, presence->revision, &presence->revision);
	if (r == TD_STATE_CONFLICT || r == TD_STATE_UNSURE) {
		r = look(presence);
		if (!r)
			r = td_state_put_if(
				presence->state, &write, presence->revision, &presence->revision);
	}
	if (r == TD_STATE_NO_LEASE)
		forget(presence);
	return r;
}

bool td_presence_is_there(const struct td_presence *presence, uint64_t now_ns)
{
	return presence->lease && presence->revision && now_ns < presence->end_ns;
}

void td_presence_end(struct td_presence *presence)
{
	if (presence->lease)
		(void)td_state_revoke(presence->state, presence->lease);
	forget(presence);
}
