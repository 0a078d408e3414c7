/*
 * Pools of stream-ordered memory, and the memory of graphs, as objects that the driver grows and shrinks: what they hold is asked of it. A claim is for
 * what a pool lacks beyond its store.
 */
#include <stdlib.h>
#include <string.h>

#include "cuda/objects.h"
#include "preload/client.h"
#include "preload/context.h"
#include "preload/outside_table.h"
#include "preload/real.h"

#define ROUND_BYTES (2ull << 20) /* a pool grows by no less */

/* What td_table.pools keep for later goes back to the driver before the program is told that there is no memory, as the driver does it. */
bool td_outside_trim(unsigned slot)
{
	int device = td_table_device(slot);
	uint64_t before, after;

	if (!atomic_load(&td_table.pool_count) || device < 0)
		return false;
	td_lock_take(&td_table.lock);
	before = td_table.device_bytes[device];
	for (struct td_object *pool = td_table.pools; pool; pool = pool->next_pool) {
		if (pool->device != device)
			continue;
		td_table_trim_pool(pool, 0);
		td_table_ask_pool(pool);
	}
	after = td_table.device_bytes[device];
	td_lock_drop(&td_table.lock);
	return after < before;
}

struct td_object *td_outside_pool(uint64_t pool, int device, enum td_outside_kind kind)
{
	struct td_object *fresh = calloc(1, sizeof(*fresh)), *object;
	struct td_key *key = td_table_key(TD_KEY_POOL, pool, 0), *known;

	if (!fresh || !key || device >= TD_OUTSIDE_DEVICES) {
		free(fresh);
		free(key);
		return NULL;
	}
	*fresh = (struct td_object){
		.device = device, .kind = (uint8_t)kind, .pool = pool, .is_pool = true};
	td_lock_take(&td_table.lock);
	known = td_table_find(TD_KEY_POOL, pool);
	object = known ? known->object : fresh;
	if (!known) {
		fresh->references = 1;
		key->object = fresh;
		td_table_link(key);
		fresh->next_pool = td_table.pools;
		td_table.pools = fresh;
		atomic_fetch_add(&td_table.pool_count, 1);
	}
	object->references++; /* the caller's */
	td_lock_drop(&td_table.lock);
	if (known) {
		free(fresh);
		free(key);
	}
	return object;
}

/* What the pool has in store, if it is not too scattered to serve. */
static uint64_t in_store(const struct td_object *pool)
{
	uint64_t reserved = 0, used = 0;
	bool known;

	if (pool->kind == TD_OUTSIDE_GRAPH)
		known = td_real.cuDeviceGetGraphMemAttribute &&
			!td_real.cuDeviceGetGraphMemAttribute(
				pool->device, TD_GRAPH_ATTR_RESERVED, &reserved) &&
			!td_real.cuDeviceGetGraphMemAttribute(
				pool->device, TD_GRAPH_ATTR_USED, &used);
	else
		known = td_real.cuMemPoolGetAttribute &&
			!td_real.cuMemPoolGetAttribute(
				(void *)pool->pool, TD_POOL_ATTR_RESERVED, &reserved) &&
			!td_real.cuMemPoolGetAttribute(
				(void *)pool->pool, TD_POOL_ATTR_USED, &used);
	return known && reserved > used ? reserved - used : 0;
}

int td_outside_claim_growth(struct td_outside_claim *ret, struct td_object *pool, uint64_t bytes)
{
	uint64_t rounded = (bytes + ROUND_BYTES - 1) / ROUND_BYTES * ROUND_BYTES, store;
	int r = CUDA_SUCCESS;

	memset(ret, 0, sizeof(*ret));
	ret->growth = true;
	ret->object = pool; /* with the caller's reference */
	ret->key = td_table_key(TD_KEY_ADDRESS, 0, bytes);
	ret->slot = pool->device < 0 ? -1 : td_table_slot(pool->device);
	store = in_store(pool);
	td_outside_refresh();
	td_lock_take(&td_table.lock);
	ret->before = pool->bytes;
	td_lock_drop(&td_table.lock);
	if (ret->slot >= 0 && rounded > store)
		r = td_outside_grant(ret, rounded - store);
	if (r) {
		td_lock_take(&td_table.lock);
		td_table_put_object(pool);
		td_lock_drop(&td_table.lock);
		td_outside_drop(ret);
	}
	return r;
}

static uint64_t growth_of(const struct td_outside_claim *claim)
{
	uint64_t now = claim->before;

	td_lock_take(&td_table.lock);
	(void)td_table_ask_reserved(claim->object, &now);
	td_lock_drop(&td_table.lock);
	return now > claim->before ? now - claim->before : 0;
}

bool td_outside_fits(struct td_outside_claim *claim)
{
	uint64_t grown;

	if (!claim->growth || !claim->object || claim->slot < 0)
		return true;
	grown = growth_of(claim);
	if (grown <= claim->bytes)
		return true;
	if (td_outside_ask((unsigned)claim->slot, grown - claim->bytes) == 0) {
		claim->bytes = grown;
		return true;
	}
	if (td_outside_trim((unsigned)claim->slot) && growth_of(claim) <= claim->bytes)
		return true;
	td_lock_take(&td_table.lock);
	claim->object->most = claim->before ? claim->before : 1;
	td_lock_drop(&td_table.lock);
	return false;
}

static uint64_t in_use(const struct td_object *pool)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < TD_OUTSIDE_BUCKETS; i++)
		for (const struct td_key *key = td_table.buckets[i]; key; key = key->next)
			if (key->object == pool && key->what == TD_KEY_ADDRESS)
				bytes += key->bytes;
	return bytes;
}

struct td_key *td_outside_pool_ends(uint64_t pool)
{
	struct td_key *key = td_outside_take(TD_KEY_POOL, pool);

	if (!key)
		return NULL;
	td_lock_take(&td_table.lock);
	key->object->pool = 0;
	td_table_count(key->object, in_use(key->object));
	td_lock_drop(&td_table.lock);
	return key;
}

void td_outside_pool_stays(struct td_key *key, uint64_t pool)
{
	if (!key)
		return;
	td_lock_take(&td_table.lock);
	key->object->pool = pool;
	td_table_ask_pool(key->object);
	td_table_link(key);
	td_lock_drop(&td_table.lock);
}

void td_outside_refresh(void)
{
	uint64_t changed = 0;

	if (!atomic_load_explicit(&td_table.pool_count, memory_order_relaxed))
		return;
	td_lock_take(&td_table.lock);
	for (struct td_object *pool = td_table.pools; pool; pool = pool->next_pool) {
		uint64_t before = pool->bytes;

		td_table_ask_pool(pool);
		if (pool->device >= 0 && pool->bytes != before)
			changed |= 1ull << pool->device;
	}
	td_lock_drop(&td_table.lock);
	for (; changed; changed &= changed - 1)
		td_table_tell(__builtin_ctzll(changed));
}
