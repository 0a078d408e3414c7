/*
 * This file implements memory.h. Keys are a sorted array. Every change is also appended to a log,
 * which the watches read; compaction drops the beginning of the log.
 */
#include "cluster/state/memory.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/bounds.h"
#include "base/list.h"
#include "base/time.h"
#include "cluster/state/kind.h"

#define LOG_MOST 100000u /* changes that are kept; beyond it the older half is compacted */

struct lease {
	uint64_t id, ttl_ns, end_ns;
};

struct array {
	void *at;
	size_t count, room;
};

struct td_memory_store {
	struct array items;  /* struct td_state_item, sorted by key */
	struct array log;    /* struct td_state_event, by revision */
	struct array leases; /* struct lease */
	uint64_t revision, compacted, last_lease, now_ns;
	struct td_list handles; /* struct handle.link */
};

struct handle {
	struct td_state base;
	struct td_memory_store *store;
	struct td_list link, watches; /* struct watch.link */
	bool is_cut, loses_answers;
};

struct watch {
	struct td_state_watch base;
	struct td_list link;
	char *prefix;
	uint64_t next;             /* the first revision that was not delivered yet */
	uint64_t skip;             /* events of that revision that were delivered */
	struct td_state_item item; /* of the event that was delivered last */
};

static struct handle *handle_of(struct td_state *state)
{
	return td_container_of(state, struct handle, base);
}

static struct td_state_item *items_of(const struct td_memory_store *store)
{
	return store->items.at;
}

static struct td_state_event *log_of(const struct td_memory_store *store)
{
	return store->log.at;
}

static struct lease *leases_of(const struct td_memory_store *store)
{
	return store->leases.at;
}

/* Makes room for more elements behind those that are there. Returns whether there was memory. */
static bool reserve(struct array *array, size_t size, size_t more)
{
	size_t room = array->room ? array->room : 16;
	void *at;

	while (room < array->count + more)
		room *= 2;
	if (room == array->room)
		return true;
	at = realloc(array->at, room * size);
	if (!at)
		return false;
	array->at = at;
	array->room = room;
	return true;
}

static bool copy_item(struct td_state_item *to, const struct td_state_item *from)
{
	struct td_state_item copy = *from;

	copy.key = strdup(from->key);
	copy.value = malloc(from->length + 1);
	if (!copy.key || !copy.value) {
		free(copy.key);
		free(copy.value);
		return false;
	}
	if (from->length)
		memcpy(copy.value, from->value, from->length);
	copy.value[from->length] = 0;
	*to = copy;
	return true;
}

/* -- the store -- */

/* The index of the key, or of the first key that is greater. */
static size_t find(const struct td_memory_store *store, const char *key)
{
	size_t low = 0, high = store->items.count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (strcmp(items_of(store)[middle].key, key) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct td_state_item *item_of(const struct td_memory_store *store, const char *key)
{
	size_t i = find(store, key);

	return i < store->items.count && !strcmp(items_of(store)[i].key, key) ? items_of(store) + i
									      : NULL;
}

static struct lease *lease_of(const struct td_memory_store *store, uint64_t id)
{
	for (size_t i = 0; i < store->leases.count; i++)
		if (leases_of(store)[i].id == id)
			return leases_of(store) + i;
	return NULL;
}

static void wake_all(const struct td_memory_store *store)
{
	struct td_list *it;

	td_list_for_each (it, &store->handles)
		(void)eventfd_write(td_container_of(it, struct handle, link)->base.fd, 1);
}

/* The index in the log of the first event of this revision or a later one. */
static size_t find_event(const struct td_memory_store *store, uint64_t revision)
{
	size_t low = 0, high = store->log.count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (log_of(store)[middle].item.revision < revision)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void td_memory_compact(struct td_memory_store *store, uint64_t revision)
{
	size_t drop = find_event(store, revision);

	for (size_t i = 0; i < drop; i++)
		td_state_item_deinit(&log_of(store)[i].item);
	if (drop)
		memmove(log_of(store), log_of(store) + drop,
			(store->log.count - drop) * sizeof(struct td_state_event));
	store->log.count -= drop;
	store->compacted = td_max_u64(store->compacted, td_min_u64(revision, store->revision));
	wake_all(store);
}

/* One change of the commit that is being made. The caller has reserved room for it. */
static bool change(struct td_memory_store *store, const struct td_state_write *write)
{
	struct td_state_item *old = item_of(store, write->key), item = {0}, *at;
	struct td_state_event event = {.is_delete = !write->value};

	if (!write->value && !old)
		return true;
	item = (struct td_state_item){.key = (char *)(uintptr_t)write->key,
		.value = (char *)(uintptr_t)write->value,
		.length = write->value ? write->length : 0,
		.revision = store->revision + 1,
		.created = old ? old->created : store->revision + 1,
		.lease = write->lease};
	if (!write->value)
		item.created = item.lease = 0;
	if (!copy_item(&event.item, &item))
		return false;
	if (write->value && !copy_item(&item, &event.item)) {
		td_state_item_deinit(&event.item);
		return false;
	}
	log_of(store)[store->log.count++] = event;
	at = items_of(store) + find(store, write->key);
	if (old)
		td_state_item_deinit(old);
	if (!write->value)
		memmove(at, at + 1,
			(size_t)(items_of(store) + --store->items.count - at) * sizeof(*at));
	else if (!old)
		memmove(at + 1, at,
			(size_t)(items_of(store) + store->items.count++ - at) * sizeof(*at));
	if (write->value)
		*at = item;
	return true;
}

/* Deletes the keys of a lease, and the lease, in one revision. */
static void end_lease(struct td_memory_store *store, uint64_t id)
{
	struct lease *lease = lease_of(store, id);
	size_t before = store->log.count;

	*lease = leases_of(store)[--store->leases.count];
	if (!reserve(&store->log, sizeof(struct td_state_event), store->items.count))
		return;
	for (size_t i = store->items.count; i-- > 0;)
		if (items_of(store)[i].lease == id)
			(void)change(
				store, &(struct td_state_write){.key = items_of(store)[i].key});
	if (store->log.count == before)
		return;
	store->revision++;
	wake_all(store);
}

static int memory_get(struct td_state *state, const char *key, struct td_state_item *ret)
{
	struct handle *handle = handle_of(state);
	const struct td_state_item *item = item_of(handle->store, key);

	if (handle->is_cut)
		return TD_STATE_AWAY;
	if (!item)
		return TD_STATE_ABSENT;
	return copy_item(ret, item) ? 0 : -ENOMEM;
}

static int memory_list(struct td_state *state, const char *prefix, struct td_state_list *ret)
{
	struct handle *handle = handle_of(state);
	struct td_memory_store *store = handle->store;
	struct td_state_list list = {.revision = store->revision};
	size_t first = find(store, prefix), end = first;

	if (handle->is_cut)
		return TD_STATE_AWAY;
	while (end < store->items.count &&
		!strncmp(items_of(store)[end].key, prefix, strlen(prefix)))
		end++;
	list.item = calloc(end - first + 1, sizeof(*list.item));
	if (!list.item)
		return -ENOMEM;
	for (size_t i = first; i < end; i++, list.count++)
		if (!copy_item(&list.item[list.count], items_of(store) + i)) {
			td_state_list_deinit(&list);
			return -ENOMEM;
		}
	*ret = list;
	return 0;
}

static bool is_so(const struct td_memory_store *store, const struct td_state_compare *compare)
{
	const struct td_state_item *item = item_of(store, compare->key);
	uint64_t found = !item ? 0 : compare->is_created ? item->created : item->revision;

	return found == compare->expected;
}

static int memory_commit(
	struct td_state *state, const struct td_state_commit *commit, uint64_t *ret_revision)
{
	struct handle *handle = handle_of(state);
	struct td_memory_store *store = handle->store;
	size_t before;
	int r = 0;

	if (handle->is_cut)
		return TD_STATE_AWAY;
	for (uint32_t i = 0; i < commit->compares; i++)
		if (!is_so(store, &commit->compare[i]))
			return TD_STATE_CONFLICT;
	for (uint32_t i = 0; i < commit->writes; i++)
		if (commit->write[i].lease && !lease_of(store, commit->write[i].lease))
			return TD_STATE_NO_LEASE;
	if (store->log.count >= LOG_MOST)
		td_memory_compact(store, log_of(store)[LOG_MOST / 2].item.revision);
	before = store->log.count;
	if (!reserve(&store->items, sizeof(struct td_state_item), commit->writes) ||
		!reserve(&store->log, sizeof(struct td_state_event), commit->writes))
		return -ENOMEM;
	for (uint32_t i = 0; !r && i < commit->writes; i++)
		r = change(store, &commit->write[i]) ? 0 : -ENOMEM;
	if (store->log.count > before) {
		store->revision++;
		wake_all(store);
	}
	*ret_revision = store->revision;
	return !r && handle->loses_answers ? TD_STATE_UNSURE : r;
}

static int memory_grant(
	struct td_state *state, uint32_t ttl_s, uint64_t *ret_lease, uint64_t *ret_ttl_ns)
{
	struct handle *handle = handle_of(state);
	struct td_memory_store *store = handle->store;
	struct lease lease = {.ttl_ns = ttl_s * TD_NS_PER_S};

	if (handle->is_cut)
		return TD_STATE_AWAY;
	if (!reserve(&store->leases, sizeof(lease), 1))
		return -ENOMEM;
	lease.id = ++store->last_lease;
	lease.end_ns = store->now_ns + lease.ttl_ns;
	leases_of(store)[store->leases.count++] = lease;
	if (handle->loses_answers)
		return TD_STATE_UNSURE;
	*ret_lease = lease.id;
	*ret_ttl_ns = lease.ttl_ns;
	return 0;
}

static int memory_keep_alive(struct td_state *state, uint64_t id, uint64_t *ret_ttl_ns)
{
	struct handle *handle = handle_of(state);
	struct lease *lease = lease_of(handle->store, id);

	if (handle->is_cut)
		return TD_STATE_AWAY;
	if (!lease)
		return TD_STATE_NO_LEASE;
	lease->end_ns = handle->store->now_ns + lease->ttl_ns;
	*ret_ttl_ns = lease->ttl_ns;
	return 0;
}

static int memory_revoke(struct td_state *state, uint64_t id)
{
	struct handle *handle = handle_of(state);

	if (handle->is_cut)
		return TD_STATE_AWAY;
	if (!lease_of(handle->store, id))
		return TD_STATE_NO_LEASE;
	end_lease(handle->store, id);
	return 0;
}

/* -- watches -- */

static int memory_watch(
	struct td_state *state, const char *prefix, uint64_t from, struct td_state_watch **ret)
{
	struct watch *watch = calloc(1, sizeof(*watch));

	if (watch)
		watch->prefix = strdup(prefix);
	if (!watch || !watch->prefix) {
		free(watch);
		return -ENOMEM;
	}
	watch->base.state = state;
	watch->next = from;
	td_list_append(&handle_of(state)->watches, &watch->link);
	*ret = &watch->base;
	return 0;
}

static void memory_watch_close(struct td_state_watch *base)
{
	struct watch *watch = td_container_of(base, struct watch, base);

	td_list_remove(&watch->link);
	td_state_item_deinit(&watch->item);
	free(watch->prefix);
	free(watch);
}

static int memory_next(struct td_state_watch *base, struct td_state_event *ret)
{
	struct watch *watch = td_container_of(base, struct watch, base);
	struct handle *handle = handle_of(base->state);
	const struct td_memory_store *store = handle->store;
	size_t i = find_event(store, watch->next) + watch->skip;

	if (handle->is_cut)
		return TD_STATE_NOTHING;
	if (watch->next < store->compacted)
		return TD_STATE_COMPACTED;
	for (; i < store->log.count; i++) {
		const struct td_state_event *event = log_of(store) + i;

		watch->skip = event->item.revision == watch->next ? watch->skip + 1 : 1;
		watch->next = event->item.revision;
		if (strncmp(event->item.key, watch->prefix, strlen(watch->prefix)))
			continue;
		td_state_item_deinit(&watch->item);
		if (!copy_item(&watch->item, &event->item))
			return -ENOMEM;
		*ret = (struct td_state_event){event->is_delete, watch->item};
		return 0;
	}
	if (i == store->log.count && watch->next <= store->revision) {
		watch->next = store->revision + 1;
		watch->skip = 0;
	}
	return TD_STATE_NOTHING;
}

static uint64_t memory_turn(struct td_state *state, uint64_t now_ns)
{
	struct td_memory_store *store = handle_of(state)->store;
	uint64_t next_ns = UINT64_MAX;
	eventfd_t ignored;

	(void)eventfd_read(state->fd, &ignored);
	store->now_ns = td_max_u64(store->now_ns, now_ns);
	for (size_t i = store->leases.count; i-- > 0;)
		if (leases_of(store)[i].end_ns <= store->now_ns)
			end_lease(store, leases_of(store)[i].id);
	for (size_t i = 0; i < store->leases.count; i++)
		next_ns = td_min_u64(next_ns, leases_of(store)[i].end_ns);
	return next_ns;
}

/* -- handles -- */

static void memory_free(struct td_state *state)
{
	struct handle *handle = handle_of(state);

	while (!td_list_empty(&handle->watches))
		memory_watch_close(
			&td_container_of(handle->watches.next, struct watch, link)->base);
	td_list_remove(&handle->link);
	close(state->fd);
	free(handle);
}

static const struct td_state_kind kind = {
	.free = memory_free,
	.get = memory_get,
	.list = memory_list,
	.commit = memory_commit,
	.grant = memory_grant,
	.keep_alive = memory_keep_alive,
	.revoke = memory_revoke,
	.watch = memory_watch,
	.watch_close = memory_watch_close,
	.next = memory_next,
	.turn = memory_turn,
	.renews_leases = true, /* so that tests can play etcd */
};

struct td_state *td_memory_open(struct td_memory_store *store)
{
	struct handle *handle = calloc(1, sizeof(*handle));

	if (!handle)
		return NULL;
	handle->base.kind = &kind;
	handle->base.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (handle->base.fd < 0) {
		free(handle);
		return NULL;
	}
	handle->store = store;
	td_list_init(&handle->watches);
	td_list_append(&store->handles, &handle->link);
	return &handle->base;
}

void td_memory_cut(struct td_state *state, bool is_cut)
{
	handle_of(state)->is_cut = is_cut;
	(void)eventfd_write(state->fd, 1);
}

void td_memory_lose_answers(struct td_state *state, bool is_lost)
{
	handle_of(state)->loses_answers = is_lost;
}

struct td_memory_store *td_memory_store_new(void)
{
	struct td_memory_store *store = calloc(1, sizeof(*store));

	if (!store)
		return NULL;
	store->revision = 1; /* as that of a new etcd */
	td_list_init(&store->handles);
	return store;
}

void td_memory_store_free(struct td_memory_store *store)
{
	if (!store)
		return;
	assert(td_list_empty(&store->handles));
	for (size_t i = 0; i < store->items.count; i++)
		td_state_item_deinit(items_of(store) + i);
	for (size_t i = 0; i < store->log.count; i++)
		td_state_item_deinit(&log_of(store)[i].item);
	free(store->items.at);
	free(store->log.at);
	free(store->leases.at);
	free(store);
}
