/*
 * This file implements leader.h. Every time that is kept is that before the request was sent, so
 * the lease at the state ends later than it is believed to end here.
 *
 * etcd gives all leases their whole time again when it starts, also that of a dead leader. So the
 * leader writes its key anew whenever it keeps its lease alive, and only both together make it lead
 * on. Who sees the key unchanged for a whole lease deletes it: its leader has stopped to lead by
 * then.
 */
#include "cluster/state/leader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bounds.h"
#include "base/time.h"

#define NAME_MAX_BYTES 256u
#define RETRY_NS       TD_NS_PER_S

struct td_leader {
	struct td_state *state;
	struct td_state_watch *watch; /* watches the key while somebody holds it; else NULL */
	char key[TD_STATE_KEY_MAX];
	char name[NAME_MAX_BYTES], seen[NAME_MAX_BYTES];
	uint32_t ttl_s; /* the state may give the lease a longer time, which is not used */
	bool is_leader;
	bool has_looked;  /* it has seen who holds the key, since it began */
	uint64_t lease;   /* 0: none */
	uint64_t fence;   /* revision that made the key, while is_leader */
	uint64_t end_ns;  /* until then it leads, unless it keeps the lease alive */
	uint64_t next_ns; /* when to ask the state again */
	/* The key of another leader has these revisions, since a time (0: since the next turn). */
	uint64_t held_created, held_revision, held_ns;
};

struct td_leader *td_leader_new(
	struct td_state *state, const char *key, const char *name, uint32_t ttl_s)
{
	struct td_leader *leader;

	if (strlen(key) >= TD_STATE_KEY_MAX || !ttl_s)
		return NULL;
	leader = calloc(1, sizeof(*leader));
	if (!leader)
		return NULL;
	leader->state = state;
	leader->ttl_s = ttl_s;
	strcpy(leader->key, key);
	snprintf(leader->name, sizeof(leader->name), "%s", name);
	return leader;
}

void td_leader_free(struct td_leader *leader)
{
	if (leader)
		td_state_watch_close(leader->watch);
	free(leader);
}

static uint64_t ttl_of(const struct td_leader *leader)
{
	return leader->ttl_s * TD_NS_PER_S;
}

static void lose(struct td_leader *leader)
{
	leader->is_leader = false;
	leader->seen[0] = 0;
	leader->next_ns = 0;
}

static void see(struct td_leader *leader, const char *name)
{
	snprintf(leader->seen, sizeof(leader->seen), "%s", name);
}

/* The key was changed by this revision: the watch tells of the next change. */
static void watch_from(struct td_leader *leader, uint64_t revision)
{
	if (!leader->watch)
		(void)td_state_watch(leader->state, leader->key, revision + 1, &leader->watch);
}

static void lead(struct td_leader *leader, uint64_t fence)
{
	leader->is_leader = leader->has_looked = true;
	leader->fence = fence;
	see(leader, leader->name);
	watch_from(leader, fence);
}

/* The other leader has written its key. It may have done so after this turn began. */
static void note_life(struct td_leader *leader, const struct td_state_item *item)
{
	if (item->created == leader->held_created && item->revision <= leader->held_revision)
		return;
	leader->held_created = item->created;
	leader->held_revision = item->revision;
	leader->held_ns = 0;
}

/* Another holds the key: follows it from here on. */
static void follow(struct td_leader *leader, const struct td_state_item *item, uint64_t now_ns)
{
	leader->has_looked = true;
	note_life(leader, item);
	see(leader, item->value);
	if (leader->lease)
		(void)td_state_revoke(leader->state, leader->lease);
	leader->lease = 0;
	watch_from(leader, item->revision);
	/* The watch tells of the key's end; asking again heals a watch that broke. */
	leader->next_ns = now_ns + ttl_of(leader) / 2;
	if (leader->held_ns && td_state_renews_leases(leader->state))
		leader->next_ns = td_min_u64(leader->next_ns, leader->held_ns + ttl_of(leader));
}

/* Whether the leader that wrote this key is dead, although its lease is not over. */
static bool is_left(
	const struct td_leader *leader, const struct td_state_item *item, uint64_t now_ns)
{
	if (!td_state_renews_leases(leader->state))
		return false;
	/* Names differ, so this one has led before it was started anew. */
	if (!leader->has_looked && !strcmp(item->value, leader->name))
		return true;
	return item->created == leader->held_created && item->revision == leader->held_revision &&
	       leader->held_ns && now_ns >= leader->held_ns + ttl_of(leader);
}

/* Returns whether nobody holds the key. Leads if a commit whose answer was lost was done. */
static bool is_vacant(struct td_leader *leader, uint64_t now_ns)
{
	struct td_state_item item;
	int r = td_state_get(leader->state, leader->key, &item);
	bool is_deleted = false;

	if (r == TD_STATE_ABSENT)
		leader->has_looked = true;
	if (r)
		return r == TD_STATE_ABSENT;
	if (leader->lease && item.lease == leader->lease)
		lead(leader, item.created);
	else if (is_left(leader, &item, now_ns))
		is_deleted = !td_state_delete_if(leader->state, leader->key, item.revision);
	else
		follow(leader, &item, now_ns);
	td_state_item_deinit(&item);
	return is_deleted;
}

static void seek(struct td_leader *leader, uint64_t now_ns)
{
	struct td_state_write write = {
		.key = leader->key, .value = leader->name, .length = strlen(leader->name)};
	uint64_t revision, granted_ns;

	leader->next_ns = now_ns + RETRY_NS;
	if (leader->lease && now_ns >= leader->end_ns) {
		/* The lease may live on at the state, where nobody would keep it alive. */
		int r = td_state_revoke(leader->state, leader->lease);

		if (r && r != TD_STATE_NO_LEASE)
			return;
		leader->lease = 0;
	}
	if (!is_vacant(leader, now_ns))
		return;
	leader->seen[0] = 0;
	if (!leader->lease) {
		if (td_state_grant(leader->state, leader->ttl_s, &leader->lease, &granted_ns))
			return;
		leader->end_ns = now_ns + ttl_of(leader) - ttl_of(leader) / 10;
	}
	write.lease = leader->lease;
	switch (td_state_put_if(leader->state, &write, 0, &revision)) {
	case TD_STATE_OK:
		lead(leader, revision);
		leader->next_ns = now_ns + ttl_of(leader) / 3;
		return;
	case TD_STATE_CONFLICT: (void)is_vacant(leader, now_ns); return;
	case TD_STATE_NO_LEASE: leader->lease = 0; return;
	default: return; /* it looks at the key again after RETRY_NS */
	}
}

/* Whether the key was only written anew by who holds it. */
static bool is_life(struct td_leader *leader, const struct td_state_event *event)
{
	uint64_t created = leader->is_leader ? leader->fence : leader->held_created;

	if (event->is_delete || event->item.created != created)
		return false;
	if (!leader->is_leader)
		note_life(leader, &event->item);
	return true;
}

/* Whether another holds the key now, or nobody, or the watch of it has ended. */
static bool has_changed(struct td_leader *leader)
{
	struct td_state_event event;
	int r = TD_STATE_NOTHING;

	while (leader->watch && !(r = td_state_next(leader->watch, &event)))
		if (!is_life(leader, &event))
			break;
	if (r == TD_STATE_NOTHING)
		return false;
	td_state_watch_close(leader->watch);
	leader->watch = NULL;
	return true;
}

/* The key has changed: somebody else deleted it, or took it. */
static void check_key(struct td_leader *leader)
{
	struct td_state_item item;
	int r = td_state_get(leader->state, leader->key, &item);

	if (r && r != TD_STATE_ABSENT) {
		leader->next_ns = 0; /* keeping the lease alive tells whether the state is there */
		return;
	}
	if (r || item.created != leader->fence)
		lose(leader);
	else
		watch_from(leader, item.revision);
	if (!r)
		td_state_item_deinit(&item);
}

/* Keeps the lease alive, and shows the others that it does. */
static int live_on(struct td_leader *leader)
{
	const struct td_state_compare fence = td_leader_fence(leader);
	const struct td_state_write write = {.key = leader->key,
		.value = leader->name,
		.length = strlen(leader->name),
		.lease = leader->lease};
	const struct td_state_commit all = {
		.compare = &fence, .write = &write, .compares = 1, .writes = 1};
	uint64_t ttl_ns;
	int r = td_state_keep_alive(leader->state, leader->lease, &ttl_ns);

	if (r || !td_state_renews_leases(leader->state))
		return r;
	return td_state_commit(leader->state, &all, NULL);
}

static void keep(struct td_leader *leader, uint64_t now_ns)
{
	int r;

	if (now_ns >= leader->end_ns) {
		lose(leader);
		return;
	}
	if (now_ns < leader->next_ns)
		return;
	r = live_on(leader);
	if (r == TD_STATE_NO_LEASE)
		leader->lease = 0;
	if (r == TD_STATE_NO_LEASE || r == TD_STATE_CONFLICT) {
		lose(leader);
		return;
	}
	if (!r)
		leader->end_ns = now_ns + ttl_of(leader) - ttl_of(leader) / 10;
	leader->next_ns = now_ns + (r ? RETRY_NS : ttl_of(leader) / 3);
}

uint64_t td_leader_turn(struct td_leader *leader, uint64_t now_ns)
{
	bool is_changed;

	if (!leader->held_ns)
		leader->held_ns = now_ns;
	is_changed = has_changed(leader);
	if (leader->is_leader && is_changed)
		check_key(leader);
	if (leader->is_leader)
		keep(leader, now_ns);
	if (!leader->is_leader && (is_changed || now_ns >= leader->next_ns))
		seek(leader, now_ns);
	return leader->is_leader ? td_min_u64(leader->next_ns, leader->end_ns) : leader->next_ns;
}

bool td_leader_leads(const struct td_leader *leader, uint64_t now_ns)
{
	return leader->is_leader && now_ns < leader->end_ns;
}

struct td_state_compare td_leader_fence(const struct td_leader *leader)
{
	return (struct td_state_compare){
		.key = leader->key, .is_created = true, .expected = leader->fence};
}

const char *td_leader_name(const struct td_leader *leader)
{
	return leader->seen;
}

void td_leader_resign(struct td_leader *leader, uint64_t now_ns)
{
	if (leader->lease)
		(void)td_state_revoke(leader->state, leader->lease);
	leader->lease = 0;
	lose(leader);
	td_state_watch_close(leader->watch);
	leader->watch = NULL;
	leader->next_ns = now_ns + leader->ttl_s * TD_NS_PER_S;
}
