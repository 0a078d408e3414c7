/* The table of outside memory; see outside_table.h. */
#include "preload/outside/outside_table.h"

#include <stdlib.h>

#include "cuda/objects.h"
#include "preload/context/context.h"
#include "preload/driver/real.h"
#include "preload/measure/steps.h"
#include "preload/link/client.h"

struct td_table td_table = {.lock = TD_LOCK_INIT(TD_RANK_BACKEND)};

static bool is_charged(const struct td_object *object)
{
	switch (object->kind) {
	case TD_OUTSIDE_LITTLE:
	case TD_OUTSIDE_SHARED:
	case TD_OUTSIDE_OPENED:
	case TD_OUTSIDE_HANDED:
	case TD_OUTSIDE_IMPORTED:
	case TD_OUTSIDE_BACKEND: return false;
	default: return true;
	}
}

/*
 * Returns whether the object's memory is counted by its pieces in use. A pool's is. The driver does
 * not tell which part of a graph's memory is in use.
 */
static bool is_counted_by_piece(const struct td_object *object)
{
	return object->is_pool && object->kind != TD_OUTSIDE_GRAPH;
}

static void tell_steps(int device)
{
	if (td_table.slots[device])
		td_steps_outside(td_table.slots[device] - 1, td_table.in_use_bytes[device]);
}

void td_table_note_slot(int device, int slot)
{
	if (device < 0 || slot < 0 || td_table.slots[device] == (unsigned)slot + 1)
		return;
	td_table.slots[device] = (unsigned)slot + 1;
	tell_steps(device);
}

static void count_in_use(const struct td_object *object, uint64_t change)
{
	if (object->device < 0 || !is_charged(object))
		return;
	td_table.in_use_bytes[object->device] += change;
	tell_steps(object->device);
}

/*
 * Notes memory whose owner changes between processes. Either this process imports more, or it frees
 * memory that others may keep open.
 */
static bool has_crossed(const struct td_object *object, uint64_t bytes)
{
	switch (object->kind) {
	case TD_OUTSIDE_IMPORTED:
	case TD_OUTSIDE_OPENED: return bytes > object->bytes && !object->is_guessed;
	case TD_OUTSIDE_EXPORTABLE:
	case TD_OUTSIDE_HANDED: return !bytes;
	default: return false;
	}
}

void td_table_note_beyond(struct td_object *object)
{
	uint64_t beyond =
		object->is_over && object->bytes > object->most ? object->bytes - object->most : 0;

	if (object->device >= 0)
		td_table.beyond_bytes[object->device] += beyond - object->beyond_bytes;
	object->beyond_bytes = beyond;
}

void td_table_count(struct td_object *object, uint64_t bytes)
{
	uint64_t change = bytes - object->bytes; /* wraps around for a decrease */

	if (object->device >= 0 && has_crossed(object, bytes)) {
		td_table.crossed_bytes[object->device] += bytes ? change : object->bytes;
		td_table.given_up_bytes[object->device] += bytes ? 0 : object->bytes;
	}
	object->bytes = bytes;
	if (object->device < 0)
		return;
	td_table.kind_bytes[object->device][object->kind] += change;
	if (!is_charged(object))
		return;
	if (!is_counted_by_piece(object))
		count_in_use(object, change);
	if (object->on_host)
		td_table.host_bytes[object->device] += change;
	else
		td_table.device_bytes[object->device] += change;
	td_table_note_beyond(object);
}

struct td_key **td_table_bucket(enum td_outside_key what, uint64_t value)
{
	return &td_table.buckets[(value * 0x9e3779b97f4a7c15ull >> 40 ^ what) % TD_OUTSIDE_BUCKETS];
}

struct td_key *td_table_find(enum td_outside_key what, uint64_t value)
{
	struct td_key *key = *td_table_bucket(what, value);

	while (key && (key->what != what || key->value != value))
		key = key->next;
	return key;
}

void td_table_link(struct td_key *key)
{
	struct td_key **bucket = td_table_bucket(key->what, key->value);

	key->next = *bucket;
	*bucket = key;
	td_table.mappings += key->what == TD_KEY_MAPPING;
	if (key->what == TD_KEY_ADDRESS && is_counted_by_piece(key->object))
		count_in_use(key->object, key->bytes);
}

struct td_key *td_table_unlink(struct td_key **at)
{
	struct td_key *key = *at;

	*at = key->next;
	key->next = NULL;
	td_table.mappings -= key->what == TD_KEY_MAPPING;
	if (key->what == TD_KEY_ADDRESS && is_counted_by_piece(key->object))
		count_in_use(key->object, -key->bytes);
	return key;
}

static void forget_pool(struct td_object *object)
{
	struct td_object **p = &td_table.pools;

	while (*p && *p != object)
		p = &(*p)->next_pool;
	if (!*p)
		return;
	*p = object->next_pool;
	atomic_fetch_sub(&td_table.pool_count, 1);
}

void td_table_put_object(struct td_object *object)
{
	if (--object->references)
		return;
	td_table_count(object, 0);
	if (object->is_pool)
		forget_pool(object);
	free(object);
}

void td_table_put_key(struct td_key *key)
{
	struct td_object *object = key->object;

	/*
	 * The program has destroyed this pool, so the pool holds only memory that the program still
	 * uses.
	 */
	if (object->is_pool && !object->pool && key->what == TD_KEY_ADDRESS)
		td_table_count(object, object->bytes > key->bytes ? object->bytes - key->bytes : 0);
	td_table_put_object(object);
	free(key);
}

bool td_table_ask(const struct td_object *object, uint64_t *ret_reserved, uint64_t *ret_used)
{
	if (object->kind == TD_OUTSIDE_GRAPH)
		return td_real.cuDeviceGetGraphMemAttribute &&
		       !td_real.cuDeviceGetGraphMemAttribute(
			       object->device, TD_GRAPH_ATTR_RESERVED, ret_reserved) &&
		       !td_real.cuDeviceGetGraphMemAttribute(
			       object->device, TD_GRAPH_ATTR_USED, ret_used);
	return object->pool && td_real.cuMemPoolGetAttribute &&
	       !td_real.cuMemPoolGetAttribute(
		       (void *)object->pool, TD_POOL_ATTR_RESERVED, ret_reserved) &&
	       !td_real.cuMemPoolGetAttribute((void *)object->pool, TD_POOL_ATTR_USED, ret_used);
}

int td_table_trim_graphs(struct td_object *object)
{
	uint64_t before = 0, after = 0, used, freed;
	bool known = td_table_ask(object, &before, &used);
	int r = td_real.cuDeviceGraphMemTrim(object->device);

	if (!known || !td_table_ask(object, &after, &used))
		after = 0;
	/* Launches of other threads may meanwhile have taken memory that was granted for them. */
	freed = before + object->granted_bytes;
	freed -= after < freed ? after : freed;
	object->trimmed_bytes += freed < before ? freed : before;
	return r;
}

/*
 * Trims the pool to keep_bytes. It waits while a capture is known, since it could break one of
 * another thread.
 */
static void trim_pool(struct td_object *object, uint64_t keep_bytes)
{
	int before;

	if (td_context_any_capture())
		return;
	before = td_context_relax();
	if (object->kind == TD_OUTSIDE_GRAPH) {
		if (td_real.cuDeviceGraphMemTrim && !object->relying)
			(void)td_table_trim_graphs(object);
	} else if (object->pool && td_real.cuMemPoolTrimTo) {
		(void)td_real.cuMemPoolTrimTo((void *)object->pool, keep_bytes);
	}
	td_context_unrelax(before);
}

void td_table_trim_pool(struct td_object *object)
{
	uint64_t reserved, used = 0, counted_on = 0;

	if (object->wanted_bytes > object->asked_bytes)
		counted_on = object->wanted_bytes - object->asked_bytes;
	/* The driver trims a graph's memory as a whole or not at all. */
	if (!counted_on)
		trim_pool(object, 0);
	else if (object->kind != TD_OUTSIDE_GRAPH && td_table_ask(object, &reserved, &used))
		trim_pool(object, used + counted_on);
}

void td_table_ask_pool_within(struct td_object *object, uint64_t most_bytes)
{
	uint64_t reserved = 0, used;

	if (object->is_over && object->pool)
		trim_pool(object, object->most);
	if (td_table_ask(object, &reserved, &used))
		td_table_count(object, reserved < most_bytes ? reserved : most_bytes);
	if (reserved <= object->most)
		object->is_over = false;
	td_table_note_beyond(object);
}

void td_table_ask_pool(struct td_object *object)
{
	td_table_ask_pool_within(object, object->claims ? object->bytes : UINT64_MAX);
}

int td_table_device(unsigned slot)
{
	struct td_gpu_info gpu;

	return td_context_gpu(slot, &gpu) && gpu.device < TD_OUTSIDE_DEVICES ? gpu.device : -1;
}

int td_table_slot(int device)
{
	unsigned n = td_context_gpu_count();

	for (unsigned i = 0; i < n; i++)
		if (td_table_device(i) == device)
			return (int)i;
	return -1;
}

void td_table_tell(int device)
{
	int slot = device < 0 ? -1 : td_table_slot(device);

	if (slot >= 0)
		td_client_memory_changed((unsigned)slot);
}

void td_table_tell_at_once(int device)
{
	int slot = device < 0 ? -1 : td_table_slot(device);

	if (slot >= 0)
		td_client_memory_changed_now((unsigned)slot);
}

struct td_key *td_table_key(enum td_outside_key what, uint64_t value, uint64_t bytes)
{
	struct td_key *key = calloc(1, sizeof(*key));

	if (key)
		*key = (struct td_key){NULL, value, bytes, (uint8_t)what, NULL};
	return key;
}
