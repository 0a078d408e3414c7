/*
 * Pools of stream-ordered memory, and the memory of graphs. The driver grows and shrinks them, so
 * it is asked for their sizes. A claim is for what a pool lacks beyond its free memory.
 */
#include <stdlib.h>
#include <string.h>

#include "base/time.h"
#include "preload/context/context.h"
#include "preload/driver/real.h"
#include "preload/link/client.h"
#include "preload/outside/outside_table.h"

/*
 * Number of waits, 2 ms each, for other threads' claims on the same pool before the program is
 * refused.
 */
#define SHARE_WAITS 5
#define ROUND_BYTES (2ull << 20) /* a pool grows by at least this much */

/* Frees unused memory of pools, as the driver itself does before it returns out of memory. */
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
		td_table_trim_pool(pool);
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
	object->references++; /* the caller's reference */
	td_lock_drop(&td_table.lock);
	if (known) {
		free(fresh);
		free(key);
	}
	return object;
}

/*
 * Returns what the pool lacks for all claims in progress together, beyond its free memory and what
 * was asked for already. The caller holds the lock.
 */
static uint64_t lacks(const struct td_object *pool)
{
	uint64_t reserved = 0, used = 0, has = pool->asked_bytes;

	/*
	 * Free memory does not count if the pool has to give it back, or if it belongs to other
	 * graphs.
	 */
	if (!pool->is_over && pool->kind != TD_OUTSIDE_GRAPH &&
		td_table_ask(pool, &reserved, &used) && reserved > used)
		has += reserved - used;
	return pool->wanted_bytes > has ? pool->wanted_bytes - has : 0;
}

static uint64_t rounded(uint64_t bytes)
{
	return (bytes + ROUND_BYTES - 1) / ROUND_BYTES * ROUND_BYTES;
}

/* Adds to the claim the bytes that a graph needs beyond the memory that it has already. */
static void want_for_graph(struct td_outside_claim *claim, uint64_t bytes, uint64_t since)
{
	const struct td_object *pool = claim->object;
	uint64_t lost = since == TD_NEVER_LAUNCHED ? bytes : pool->trimmed_bytes - since;

	claim->wanted_bytes = lost < bytes ? rounded(lost) : bytes;
	claim->relies = claim->wanted_bytes < bytes;
	claim->trimmed_bytes = pool->trimmed_bytes;
}

static void enlist(struct td_outside_claim *claim, uint64_t bytes, uint64_t since)
{
	struct td_object *pool = claim->object;

	td_lock_take(&td_table.lock);
	claim->wanted_bytes = bytes;
	claim->relies = false;
	if (pool->kind == TD_OUTSIDE_GRAPH)
		want_for_graph(claim, bytes, since);
	pool->relying += claim->relies;
	pool->claims++;
	pool->wanted_bytes += claim->wanted_bytes;
	claim->bytes = claim->slot < 0 ? 0 : lacks(pool);
	pool->asked_bytes += claim->bytes;
	claim->is_listed = true;
	td_lock_drop(&td_table.lock);
}

static void note_granted(struct td_outside_claim *claim, uint64_t bytes)
{
	td_lock_take(&td_table.lock);
	claim->granted_bytes += bytes;
	claim->object->granted_bytes += bytes;
	td_lock_drop(&td_table.lock);
}

/* Withdraws the claim. Returns how many claims on the pool have ended by now. */
static uint32_t give_up(struct td_outside_claim *claim)
{
	uint32_t ended;

	td_lock_take(&td_table.lock);
	td_outside_delist(claim);
	ended = claim->object->ended;
	td_lock_drop(&td_table.lock);
	return ended;
}

/*
 * Waits for other claims on the pool: when they end they may leave free memory. False: none has
 * ended.
 */
static bool await_others(const struct td_object *pool, uint32_t ended, unsigned *waits)
{
	bool none = false, changed = false;

	while (!none && !changed && *waits < SHARE_WAITS) {
		++*waits;
		td_lock_take(&td_table.lock);
		none = !pool->claims;
		changed = pool->ended != ended;
		td_lock_drop(&td_table.lock);
		if (!none && !changed)
			td_time_sleep_until_ns(td_time_now_ns() + TD_OUTSIDE_WAIT_NS);
	}
	return changed;
}

/* Claims the growth of a pool. CUDA_SUCCESS: the claim is in progress. Otherwise it was dropped. */
static int claim_growth(struct td_outside_claim *claim, uint64_t bytes, uint64_t since)
{
	unsigned waits = 0;
	uint32_t ended;
	int r;

	for (;;) {
		enlist(claim, bytes, since);
		if (!claim->bytes)
			return CUDA_SUCCESS;
		r = td_outside_grant(claim, claim->bytes);
		if (!r) {
			note_granted(claim, claim->bytes);
			return CUDA_SUCCESS;
		}
		ended = give_up(claim);
		if (!await_others(claim->object, ended, &waits))
			return r;
	}
}

static void begin_claim(struct td_outside_claim *ret, struct td_object *pool, uint64_t key_bytes)
{
	memset(ret, 0, sizeof(*ret));
	ret->growth = true;
	ret->object = pool; /* with a reference for the caller */
	ret->key = key_bytes ? td_table_key(TD_KEY_ADDRESS, 0, key_bytes) : NULL;
	ret->slot = pool->device < 0 ? -1 : td_table_slot(pool->device);
	td_outside_refresh();
}

static int begun(struct td_outside_claim *claim, int r)
{
	if (!r)
		return r;
	td_lock_take(&td_table.lock);
	td_table_put_object(claim->object);
	td_lock_drop(&td_table.lock);
	td_outside_drop(claim);
	return r;
}

int td_outside_claim_growth(struct td_outside_claim *ret, struct td_object *pool, uint64_t bytes)
{
	begin_claim(ret, pool, bytes);
	return begun(ret, claim_growth(ret, rounded(bytes), TD_NEVER_LAUNCHED));
}

int td_outside_claim_graph(
	struct td_outside_claim *ret, struct td_object *pool, uint64_t bytes, uint64_t since)
{
	int r;

	begin_claim(ret, pool, 0);
	r = claim_growth(ret, bytes, since);
	/*
	 * The graph's own memory is trimmed too if it is not in use. If it is in use, at least the
	 * memory that other graphs kept has been trimmed by now.
	 */
	if (r && since != TD_NEVER_LAUNCHED)
		r = claim_growth(ret, bytes, TD_NEVER_LAUNCHED);
	if (r && since != TD_NEVER_LAUNCHED)
		r = claim_growth(ret, bytes, since);
	return begun(ret, r);
}

bool td_outside_graph_holds(struct td_outside_claim *claim)
{
	bool holds = true;

	if (!claim->object)
		return true;
	td_lock_take(&td_table.lock);
	/* A claim for all of the graph's memory cannot have lost anything by a trim. */
	if (claim->relies)
		holds = claim->object->trimmed_bytes == claim->trimmed_bytes;
	else
		claim->trimmed_bytes = claim->object->trimmed_bytes;
	td_lock_drop(&td_table.lock);
	return holds;
}

int td_outside_trim_graphs(int device)
{
	unsigned waits = 0;
	struct td_key *key;
	bool relied = true;
	int r;

	while (relied && waits++ < SHARE_WAITS) {
		td_lock_take(&td_table.lock);
		key = td_table_find(TD_KEY_POOL, (uint64_t)device + 1);
		relied = key && key->object->relying;
		td_lock_drop(&td_table.lock);
		if (relied)
			td_time_sleep_until_ns(td_time_now_ns() + TD_OUTSIDE_WAIT_NS);
	}
	td_lock_take(&td_table.lock);
	key = td_table_find(TD_KEY_POOL, (uint64_t)device + 1);
	r = key ? td_table_trim_graphs(key->object) : td_real.cuDeviceGraphMemTrim(device);
	td_lock_drop(&td_table.lock);
	td_outside_refresh();
	return r;
}

/*
 * Returns how much the pool holds beyond what is counted and what claims in progress were granted.
 */
static uint64_t excess(const struct td_object *pool)
{
	uint64_t reserved = 0, used, granted;

	td_lock_take(&td_table.lock);
	(void)td_table_ask(pool, &reserved, &used);
	granted = pool->bytes + pool->granted_bytes;
	td_lock_drop(&td_table.lock);
	return reserved > granted ? reserved - granted : 0;
}

bool td_outside_fits(struct td_outside_claim *claim)
{
	struct td_object *pool = claim->object;
	uint64_t more;

	if (!claim->growth || !pool || claim->slot < 0)
		return true;
	more = excess(pool);
	if (!more)
		return true;
	if (td_outside_ask((unsigned)claim->slot, more, TD_FIXED) == TD_NEED_DEVICE) {
		td_lock_take(&td_table.lock);
		claim->bytes += more;
		pool->asked_bytes += more;
		td_lock_drop(&td_table.lock);
		note_granted(claim, more);
		return true;
	}
	if (td_outside_trim((unsigned)claim->slot) && !excess(pool))
		return true;
	td_lock_take(&td_table.lock);
	if (!pool->is_over || pool->bytes < pool->most)
		pool->most = pool->bytes;
	pool->is_over = true;
	td_table_note_beyond(pool);
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
