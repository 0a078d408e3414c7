/*
 * Memory that is not the backend's to move; see outside.h. Keys are in a hash table and hold references on objects; totals are kept by device, so
 * that what is taken before a context exists there is counted as soon as one does.
 *
 * One lock for all of it. Under it the driver is only asked for attributes of pools, never for anything that can wait; and
 * td_client_settled is called, so that no byte is in both, or neither, of what was granted and what is counted.
 */
#include "preload/outside.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cuda/objects.h"
#include "preload/agent.h"
#include "preload/client.h"
#include "preload/context.h"
#include "preload/gate.h"
#include "preload/lock.h"
#include "preload/real.h"

#define DEVICE_MAX  64
#define BUCKETS     4096
#define ROUND_BYTES (2ull << 20) /* a pool grows by no less */
/* Waits for the driver to have what was granted: half a second. */
#define WAIT_NS     2000000
#define WAIT_TIMES  250
#define SHORT_EVERY 16

struct td_object {
	struct td_object *next_pool; /* in pools */
	uint64_t bytes;
	uint64_t
		most; /* a pool that grew by what was not granted: it is to shrink to this. 0: none */
	uint64_t pool; /* handle, while the program has it; 0: it has not, or there is none */
	uint32_t references;
	int device;
	uint8_t kind;
	bool on_host, is_pool;
	void *context; /* it ends with it; NULL: with the process */
};

struct td_key {
	struct td_key *next;
	uint64_t value, bytes;
	uint8_t what;
	struct td_object *object;
};

static struct td_lock lock = TD_LOCK_INIT(TD_RANK_BACKEND);
/* guarded by lock */
static struct td_key *buckets[BUCKETS];
static uint64_t mappings;
static struct td_object *pools;
static uint64_t device_bytes[DEVICE_MAX], host_bytes[DEVICE_MAX],
	kind_bytes[DEVICE_MAX][TD_OUTSIDE_N];
static uint64_t peak_bytes[TD_SLOT_MAX];

static _Atomic uint32_t pool_count;

static const struct td_backend *inner;
static struct td_backend over;

/* -- under the lock -- */

static bool is_charged(const struct td_object *object)
{
	return object->kind != TD_OUTSIDE_SHARED && object->kind != TD_OUTSIDE_BACKEND;
}

static void count(struct td_object *object, uint64_t bytes)
{
	uint64_t change = bytes - object->bytes; /* modulo 2^64 */

	object->bytes = bytes;
	if (object->device < 0)
		return;
	kind_bytes[object->device][object->kind] += change;
	if (!is_charged(object))
		return;
	if (object->on_host)
		host_bytes[object->device] += change;
	else
		device_bytes[object->device] += change;
}

static struct td_key **bucket_of(enum td_outside_key what, uint64_t value)
{
	return &buckets[(value * 0x9e3779b97f4a7c15ull >> 40 ^ what) % BUCKETS];
}

static struct td_key *find(enum td_outside_key what, uint64_t value)
{
	struct td_key *key = *bucket_of(what, value);

	while (key && (key->what != what || key->value != value))
		key = key->next;
	return key;
}

static void link_key(struct td_key *key)
{
	struct td_key **bucket = bucket_of(key->what, key->value);

	key->next = *bucket;
	*bucket = key;
	mappings += key->what == TD_KEY_MAPPING;
}

static struct td_key *unlink_at(struct td_key **at)
{
	struct td_key *key = *at;

	*at = key->next;
	key->next = NULL;
	mappings -= key->what == TD_KEY_MAPPING;
	return key;
}

static void forget_pool(struct td_object *object)
{
	struct td_object **p = &pools;

	while (*p && *p != object)
		p = &(*p)->next_pool;
	if (!*p)
		return;
	*p = object->next_pool;
	atomic_fetch_sub(&pool_count, 1);
}

static void put_object(struct td_object *object)
{
	if (--object->references)
		return;
	count(object, 0);
	if (object->is_pool)
		forget_pool(object);
	free(object);
}

static void put_key(struct td_key *key)
{
	struct td_object *object = key->object;

	/* A pool that the program has given up holds what is still in use. */
	if (object->is_pool && !object->pool && key->what == TD_KEY_ADDRESS)
		count(object, object->bytes > key->bytes ? object->bytes - key->bytes : 0);
	put_object(object);
	free(key);
}

/* False: the driver does not say. */
static bool ask_reserved(const struct td_object *object, uint64_t *ret_bytes)
{
	if (object->kind == TD_OUTSIDE_GRAPH)
		return td_real.cuDeviceGetGraphMemAttribute &&
		       !td_real.cuDeviceGetGraphMemAttribute(
			       object->device, TD_GRAPH_ATTR_RESERVED, ret_bytes);
	return object->pool && td_real.cuMemPoolGetAttribute &&
	       !td_real.cuMemPoolGetAttribute(
		       (void *)object->pool, TD_POOL_ATTR_RESERVED, ret_bytes);
}

static void ask_pool(struct td_object *object)
{
	uint64_t reserved = 0;

	if (object->most && object->pool && td_real.cuMemPoolTrimTo && !td_context_any_capture())
		(void)td_real.cuMemPoolTrimTo((void *)object->pool, object->most);
	if (ask_reserved(object, &reserved))
		count(object, reserved);
	if (object->bytes <= object->most)
		object->most = 0;
}

/* -- slots and devices -- */

static int device_of(unsigned slot)
{
	struct td_gpu_info gpu;

	return td_context_gpu(slot, &gpu) && gpu.device < DEVICE_MAX ? gpu.device : -1;
}

static int slot_of(int device)
{
	unsigned n = td_context_gpu_count();

	for (unsigned i = 0; i < n; i++)
		if (device_of(i) == device)
			return (int)i;
	return -1;
}

static void tell_changed(int device)
{
	int slot = device < 0 ? -1 : slot_of(device);

	if (slot >= 0)
		td_client_memory_changed((unsigned)slot);
}

/* -- asking -- */

static int ask(unsigned slot, uint64_t bytes)
{
	int need;

	/* It has to be on the device, where others run while our gate is closed. */
	while ((need = td_client_need(slot, bytes)) == 2) {
		td_client_settled(slot, bytes, need);
		td_gate_await();
	}
	return need;
}

/* What pools keep for later goes back to the driver before the program is told that there is no memory, as the driver does it. */
bool td_outside_trim(unsigned slot)
{
	int device = device_of(slot);
	uint64_t before, after;

	if (!atomic_load(&pool_count) || device < 0 || !td_real.cuMemPoolTrimTo ||
		td_context_any_capture())
		return false;
	td_lock_take(&lock);
	before = device_bytes[device];
	for (struct td_object *pool = pools; pool; pool = pool->next_pool) {
		if (pool->device != device)
			continue;
		if (pool->kind == TD_OUTSIDE_GRAPH && td_real.cuDeviceGraphMemTrim)
			(void)td_real.cuDeviceGraphMemTrim(device);
		else if (pool->pool)
			(void)td_real.cuMemPoolTrimTo((void *)pool->pool, 0);
		ask_pool(pool);
	}
	after = device_bytes[device];
	td_lock_drop(&lock);
	return after < before;
}

/*
 * Unified memory larger than what is free is no error: it lives on the host. It is one where the program was given less than the
 * GPU, and this would exceed it.
 */
static bool may_live_on_host(unsigned slot, uint64_t bytes)
{
	uint64_t capacity = td_client_visible(slot);
	struct td_memory_stats stats;
	struct td_gpu_info gpu;

	if (!td_context_gpu(slot, &gpu) || capacity >= gpu.total_bytes)
		return true;
	td_agent_stats(slot, &stats);
	return stats.demanded_bytes <= capacity && bytes <= capacity - stats.demanded_bytes;
}

static int grant(struct td_outside_claim *claim, uint64_t bytes)
{
	unsigned slot = (unsigned)claim->slot;

	claim->bytes = bytes;
	claim->need = ask(slot, bytes);
	if (claim->need == 1 && td_outside_trim(slot))
		claim->need = ask(slot, bytes);
	return claim->need == 1 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

static void *current_context(void)
{
	CUcontext context = NULL;

	return td_real.cuCtxGetCurrent && !td_real.cuCtxGetCurrent(&context) ? context : NULL;
}

static bool ends_with_context(enum td_outside_kind kind)
{
	switch (kind) {
	case TD_OUTSIDE_MANAGED:
	case TD_OUTSIDE_LEGACY:
	case TD_OUTSIDE_ARRAY:
	case TD_OUTSIDE_SHARED:
	case TD_OUTSIDE_BACKEND: return true;
	case TD_OUTSIDE_VMM:
	case TD_OUTSIDE_POOL:
	case TD_OUTSIDE_GRAPH:
	case TD_OUTSIDE_EXTERNAL:
	case TD_OUTSIDE_N: break;
	}
	return false;
}

static bool make(struct td_outside_claim *claim, int device, enum td_outside_kind kind)
{
	claim->object = calloc(1, sizeof(*claim->object));
	claim->key = calloc(1, sizeof(*claim->key));
	if (!claim->object || !claim->key) {
		free(claim->object);
		free(claim->key);
		claim->object = NULL;
		claim->key = NULL;
		return false;
	}
	*claim->object = (struct td_object){.device = device,
		.kind = (uint8_t)kind,
		.references = 1,
		.context = ends_with_context(kind) ? current_context() : NULL};
	return true;
}

static void drop_claim(struct td_outside_claim *claim)
{
	if (!claim->growth)
		free(claim->object);
	free(claim->key);
	claim->object = NULL;
	claim->key = NULL;
}

int td_outside_claim(
	struct td_outside_claim *ret, int device, enum td_outside_kind kind, uint64_t bytes)
{
	int here = td_context_use(), r;

	memset(ret, 0, sizeof(*ret));
	ret->slot = device < 0 ? here : slot_of(device);
	if (device < 0 && here >= 0)
		device = device_of((unsigned)here);
	/* No context, no such device: the driver says so. */
	if (device < 0 || device >= DEVICE_MAX)
		return CUDA_SUCCESS;
	if (!make(ret, device, kind))
		return CUDA_ERROR_OUT_OF_MEMORY;
	ret->bytes = bytes;
	if (ret->slot < 0 || !bytes)
		return CUDA_SUCCESS;
	td_outside_refresh();
	r = grant(ret, bytes);
	if (r && kind == TD_OUTSIDE_MANAGED && may_live_on_host((unsigned)ret->slot, bytes)) {
		ret->object->on_host = true;
		return CUDA_SUCCESS;
	}
	if (r)
		drop_claim(ret);
	return r;
}

bool td_outside_again(struct td_outside_claim *claim, int r)
{
	const struct timespec pause = {0, WAIT_NS};

	if (r != CUDA_ERROR_OUT_OF_MEMORY || !claim->object || claim->slot < 0 || claim->need ||
		claim->waits++ == WAIT_TIMES || td_client_is_alone() ||
		td_gate_word() & TD_WORD_CLOSED)
		return false;
	if (claim->waits % SHORT_EVERY == 0)
		td_client_short((unsigned)claim->slot, claim->bytes);
	nanosleep(&pause, NULL);
	return true;
}

static bool was_granted(const struct td_outside_claim *claim)
{
	return claim->slot >= 0 && claim->bytes && claim->need == 0;
}

int td_outside_settle(
	struct td_outside_claim *claim, int r, enum td_outside_key what, uint64_t value)
{
	if (!claim->object)
		return r;
	td_lock_take(&lock);
	if (claim->growth) {
		ask_pool(claim->object);
	} else if (!r) {
		*claim->key =
			(struct td_key){NULL, value, claim->bytes, (uint8_t)what, claim->object};
		link_key(claim->key);
		count(claim->object, claim->bytes);
	}
	if (was_granted(claim))
		td_client_settled((unsigned)claim->slot, claim->bytes, claim->need);
	if (claim->growth && !r && claim->key && value) {
		*claim->key = (struct td_key){
			NULL, value, claim->key->bytes, (uint8_t)what, claim->object};
		claim->object->references++;
		link_key(claim->key);
		claim->key = NULL;
	}
	if (claim->growth)
		put_object(claim->object);
	td_lock_drop(&lock);
	if (claim->slot >= 0)
		td_client_memory_changed((unsigned)claim->slot);
	if (claim->growth || r)
		drop_claim(claim);
	return r;
}

/* -- keys -- */

static void alias(const struct td_key *known, struct td_key *key)
{
	if (known) {
		key->object = known->object;
		key->object->references++;
		link_key(key);
	} else {
		free(key);
	}
}

static struct td_key *new_key(enum td_outside_key what, uint64_t value, uint64_t bytes)
{
	struct td_key *key = calloc(1, sizeof(*key));

	if (key)
		*key = (struct td_key){NULL, value, bytes, (uint8_t)what, NULL};
	return key;
}

void td_outside_alias(enum td_outside_key of, uint64_t known, enum td_outside_key what,
	uint64_t value, uint64_t bytes)
{
	struct td_key *key = new_key(what, value, bytes);

	if (!key)
		return;
	td_lock_take(&lock);
	alias(find(of, known), key);
	td_lock_drop(&lock);
}

static struct td_key *mapping_around(uint64_t address)
{
	for (unsigned i = 0; mappings && i < BUCKETS; i++)
		for (struct td_key *key = buckets[i]; key; key = key->next)
			if (key->what == TD_KEY_MAPPING && address - key->value < key->bytes)
				return key;
	return NULL;
}

void td_outside_alias_mapping(uint64_t address, enum td_outside_key what, uint64_t value)
{
	struct td_key *key = new_key(what, value, 0);

	if (!key)
		return;
	td_lock_take(&lock);
	alias(mapping_around(address), key);
	td_lock_drop(&lock);
}

void td_outside_note(
	enum td_outside_kind kind, enum td_outside_key what, uint64_t value, uint64_t bytes)
{
	int slot = td_context_slot(), device = slot < 0 ? -1 : device_of((unsigned)slot);
	struct td_outside_claim claim = {.slot = -1, .bytes = bytes};

	if (device >= 0 && make(&claim, device, kind))
		(void)td_outside_settle(&claim, CUDA_SUCCESS, what, value);
}

struct td_key *td_outside_take(enum td_outside_key what, uint64_t value)
{
	struct td_key **at = bucket_of(what, value), *key = NULL;

	td_lock_take(&lock);
	while (*at && ((*at)->what != what || (*at)->value != value))
		at = &(*at)->next;
	if (*at)
		key = unlink_at(at);
	td_lock_drop(&lock);
	return key;
}

typedef bool (*match_fn)(const struct td_key *key, uint64_t a, uint64_t b);

/* Unlinks all that match, as a list. */
static struct td_key *take_all(match_fn matches, uint64_t a, uint64_t b)
{
	struct td_key *list = NULL;

	for (unsigned i = 0; i < BUCKETS; i++) {
		struct td_key **at = &buckets[i];

		while (*at) {
			struct td_key *key;

			if (!matches(*at, a, b)) {
				at = &(*at)->next;
				continue;
			}
			key = unlink_at(at);
			key->next = list;
			list = key;
		}
	}
	return list;
}

static bool is_mapping_in(const struct td_key *key, uint64_t address, uint64_t bytes)
{
	return key->what == TD_KEY_MAPPING && key->value - address < bytes;
}

struct td_key *td_outside_take_mappings(uint64_t address, uint64_t bytes)
{
	struct td_key *list = NULL;

	td_lock_take(&lock);
	if (mappings)
		list = take_all(is_mapping_in, address, bytes);
	td_lock_drop(&lock);
	return list;
}

void td_outside_gone(struct td_key *keys)
{
	while (keys) {
		struct td_key *next = keys->next;
		int device = keys->object->device;

		td_lock_take(&lock);
		put_key(keys);
		td_lock_drop(&lock);
		tell_changed(device);
		keys = next;
	}
}

void td_outside_back(struct td_key *keys)
{
	td_lock_take(&lock);
	while (keys) {
		struct td_key *next = keys->next;

		link_key(keys);
		keys = next;
	}
	td_lock_drop(&lock);
}

int td_outside_end(struct td_key *keys, int r)
{
	if (r)
		td_outside_back(keys);
	else
		td_outside_gone(keys);
	return r;
}

/* -- contexts -- */

void *td_outside_context_of(const struct td_key *key)
{
	return key ? key->object->context : NULL;
}

static bool is_in_context(const struct td_key *key, uint64_t context, uint64_t unused)
{
	(void)unused;
	return context && (uint64_t)key->object->context == context;
}

void td_outside_context_ends(void *context)
{
	struct td_key *list;
	CUcontext popped;
	bool pushed;

	td_lock_take(&lock);
	list = take_all(is_in_context, (uint64_t)context, 0);
	td_lock_drop(&lock);
	if (!list)
		return;
	/* The driver frees its own with the context; memory that the backend made of chunks is nobody's. */
	pushed = td_real.cuCtxPushCurrent_v2 && !td_real.cuCtxPushCurrent_v2(context);
	for (const struct td_key *key = list; key; key = key->next)
		if (key->what == TD_KEY_BACKEND)
			(void)inner->free(key->value);
	if (pushed)
		(void)td_real.cuCtxPopCurrent_v2(&popped);
	td_outside_gone(list);
}

/* -- pools -- */

struct td_object *td_outside_pool(uint64_t pool, int device, enum td_outside_kind kind)
{
	struct td_object *fresh = calloc(1, sizeof(*fresh)), *object;
	struct td_key *key = new_key(TD_KEY_POOL, pool, 0), *known;

	if (!fresh || !key || device >= DEVICE_MAX) {
		free(fresh);
		free(key);
		return NULL;
	}
	*fresh = (struct td_object){
		.device = device, .kind = (uint8_t)kind, .pool = pool, .is_pool = true};
	td_lock_take(&lock);
	known = find(TD_KEY_POOL, pool);
	object = known ? known->object : fresh;
	if (!known) {
		fresh->references = 1;
		key->object = fresh;
		link_key(key);
		fresh->next_pool = pools;
		pools = fresh;
		atomic_fetch_add(&pool_count, 1);
	}
	object->references++; /* the caller's */
	td_lock_drop(&lock);
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
	ret->key = new_key(TD_KEY_ADDRESS, 0, bytes);
	ret->slot = pool->device < 0 ? -1 : slot_of(pool->device);
	store = in_store(pool);
	td_outside_refresh();
	td_lock_take(&lock);
	ret->before = pool->bytes;
	td_lock_drop(&lock);
	if (ret->slot >= 0 && rounded > store)
		r = grant(ret, rounded - store);
	if (r) {
		td_lock_take(&lock);
		put_object(pool);
		td_lock_drop(&lock);
		drop_claim(ret);
	}
	return r;
}

static uint64_t growth_of(const struct td_outside_claim *claim)
{
	uint64_t now = claim->before;

	td_lock_take(&lock);
	(void)ask_reserved(claim->object, &now);
	td_lock_drop(&lock);
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
	if (ask((unsigned)claim->slot, grown - claim->bytes) == 0) {
		claim->bytes = grown;
		return true;
	}
	if (td_outside_trim((unsigned)claim->slot) && growth_of(claim) <= claim->bytes)
		return true;
	td_lock_take(&lock);
	claim->object->most = claim->before ? claim->before : 1;
	td_lock_drop(&lock);
	return false;
}

static uint64_t in_use(const struct td_object *pool)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < BUCKETS; i++)
		for (const struct td_key *key = buckets[i]; key; key = key->next)
			if (key->object == pool && key->what == TD_KEY_ADDRESS)
				bytes += key->bytes;
	return bytes;
}

struct td_key *td_outside_pool_ends(uint64_t pool)
{
	struct td_key *key = td_outside_take(TD_KEY_POOL, pool);

	if (!key)
		return NULL;
	td_lock_take(&lock);
	key->object->pool = 0;
	count(key->object, in_use(key->object));
	td_lock_drop(&lock);
	return key;
}

void td_outside_pool_stays(struct td_key *key, uint64_t pool)
{
	if (!key)
		return;
	td_lock_take(&lock);
	key->object->pool = pool;
	ask_pool(key->object);
	link_key(key);
	td_lock_drop(&lock);
}

void td_outside_refresh(void)
{
	uint64_t changed = 0;

	if (!atomic_load_explicit(&pool_count, memory_order_relaxed))
		return;
	td_lock_take(&lock);
	for (struct td_object *pool = pools; pool; pool = pool->next_pool) {
		uint64_t before = pool->bytes;

		ask_pool(pool);
		if (pool->device >= 0 && pool->bytes != before)
			changed |= 1ull << pool->device;
	}
	td_lock_drop(&lock);
	for (int i = 0; changed >> i; i++)
		if (changed >> i & 1)
			tell_changed(i);
}

/* -- the backend, with all of this -- */

uint64_t td_outside_bytes(int device, enum td_outside_kind kind)
{
	uint64_t bytes = 0;

	td_lock_take(&lock);
	if (device >= 0 && device < DEVICE_MAX && kind < TD_OUTSIDE_N)
		bytes = kind_bytes[device][kind];
	td_lock_drop(&lock);
	return bytes;
}

static void over_stats(unsigned slot, struct td_memory_stats *ret)
{
	int device = device_of(slot);

	inner->stats(slot, ret);
	td_lock_take(&lock);
	if (device >= 0) {
		ret->demanded_bytes += device_bytes[device] + host_bytes[device];
		ret->resident_bytes += device_bytes[device];
		ret->fixed_bytes += device_bytes[device];
		ret->host_bytes += host_bytes[device];
	}
	if (slot < TD_SLOT_MAX) {
		if (peak_bytes[slot] < ret->demanded_bytes)
			peak_bytes[slot] = ret->demanded_bytes;
		if (ret->peak_bytes < peak_bytes[slot])
			ret->peak_bytes = peak_bytes[slot];
	}
	td_lock_drop(&lock);
}

/* What of the limit is left for memory that can move. */
static uint64_t left(unsigned slot, uint64_t limit_bytes)
{
	int device = device_of(slot);
	uint64_t fixed;

	td_lock_take(&lock);
	fixed = device < 0 ? 0 : device_bytes[device];
	td_lock_drop(&lock);
	return limit_bytes > fixed ? limit_bytes - fixed : 0;
}

static int over_shrink(unsigned slot, uint64_t limit_bytes, void (*progress)(unsigned slot))
{
	return inner->shrink(slot, left(slot, limit_bytes), progress);
}

static int over_fill(unsigned slot, uint64_t limit_bytes, void (*progress)(unsigned slot))
{
	return inner->fill(slot, left(slot, limit_bytes), progress);
}

/* What the parent's records hold is left as it is: it may have been amid a change, and the child has nothing on the device. */
static void over_forked(void)
{
	td_lock_reset(&lock);
	memset(buckets, 0, sizeof(buckets));
	memset(device_bytes, 0, sizeof(device_bytes));
	memset(host_bytes, 0, sizeof(host_bytes));
	memset(kind_bytes, 0, sizeof(kind_bytes));
	memset(peak_bytes, 0, sizeof(peak_bytes));
	mappings = 0;
	pools = NULL;
	atomic_store(&pool_count, 0);
	inner->forked();
}

const struct td_backend *td_outside_over(const struct td_backend *backend)
{
	inner = backend;
	over = *backend;
	over.shrink = over_shrink;
	over.fill = over_fill;
	over.stats = over_stats;
	over.forked = over_forked;
	return &over;
}
