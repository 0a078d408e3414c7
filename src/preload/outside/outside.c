/*
 * Memory that the backend cannot move; see outside.h. This file makes and settles claims, keeps the
 * keys, handles the ends of contexts, and wraps the backend so that its totals include this memory.
 */
#include <stdlib.h>
#include <string.h>

#include "base/time.h"
#include "preload/base/page.h"
#include "preload/context/context.h"
#include "preload/driver/real.h"
#include "preload/gate/gate.h"
#include "preload/measure/steps.h"
#include "preload/ipc/ipc.h"
#include "preload/link/client.h"
#include "preload/link/client_internal.h"
#include "preload/memory/late.h"
#include "preload/outside/libraries.h"
#include "preload/outside/outside_table.h"
#include "preload/swap/peers.h"

#define SHORT_EVERY 16
/* True once the driver has given out a handle to memory of this process; never reset. */
static _Atomic bool has_handed;

/*
 * The size of an import that is not mapped yet is not known. It may be as large as any GPU; NVML
 * tells what is really there.
 */
#define GUESSED_BYTES (1ull << 38)

static const struct td_backend *inner;
static struct td_backend overs[2]; /* used alternately, as another thread may still read the last */

int td_outside_ask(unsigned slot, uint64_t bytes, enum td_mobility mobility)
{
	int need;

	/*
	 * The memory must be on the device, where others run while the gate is closed, so the
	 * thread waits.
	 */
	while ((need = td_client_need(slot, bytes, mobility)) == TD_NEED_LATER) {
		td_client_settled(slot, bytes, need, mobility);
		td_gate_await();
	}
	return need;
}

int td_outside_grant(struct td_outside_claim *claim, uint64_t bytes)
{
	unsigned slot = (unsigned)claim->slot;

	claim->bytes = bytes;
	claim->need = td_outside_ask(slot, bytes, claim->mobility);
	if (claim->need == TD_NEED_REFUSED && td_outside_trim(slot))
		claim->need = td_outside_ask(slot, bytes, claim->mobility);
	return claim->need == TD_NEED_REFUSED ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
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
	case TD_OUTSIDE_DATA:
	case TD_OUTSIDE_LITTLE:
	case TD_OUTSIDE_SHARED:
	case TD_OUTSIDE_OPENED:
	case TD_OUTSIDE_HANDED:
	case TD_OUTSIDE_BACKEND: return true;
	case TD_OUTSIDE_VMM:
	case TD_OUTSIDE_EXPORTABLE:
	case TD_OUTSIDE_POOL:
	case TD_OUTSIDE_GRAPH:
	case TD_OUTSIDE_EXTERNAL:
	case TD_OUTSIDE_IMPORTED:
	case TD_OUTSIDE_N: break;
	}
	return false;
}

static bool make(struct td_outside_claim *claim, int device, enum td_outside_kind kind)
{
	claim->object = malloc(sizeof(*claim->object));
	claim->key = malloc(sizeof(*claim->key));
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
	*claim->key = (struct td_key){0};
	return true;
}

void td_outside_drop(struct td_outside_claim *claim)
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
	ret->slot = device < 0 ? here : td_table_slot(device);
	if (device < 0 && here >= 0)
		device = td_table_device((unsigned)here);
	/* There is no context or no such device: the driver will return the error. */
	if (device < 0 || device >= TD_OUTSIDE_DEVICES)
		return CUDA_SUCCESS;
	/* malloc failed: the memory is not counted, as refusing it would be worse. */
	if (!make(ret, device, kind))
		return CUDA_SUCCESS;
	ret->bytes = bytes;
	if (ret->slot < 0 || !bytes)
		return CUDA_SUCCESS;
	td_outside_refresh();
	ret->mobility = kind == TD_OUTSIDE_MANAGED ? TD_PAGED : TD_FIXED;
	r = td_outside_grant(ret, bytes);
	if (r)
		td_outside_drop(ret);
	else
		ret->object->on_host = ret->need == TD_NEED_HOST;
	return r;
}

bool td_outside_again(struct td_outside_claim *claim, int r)
{
	if (r != CUDA_ERROR_OUT_OF_MEMORY || !claim->object || claim->slot < 0 || claim->need ||
		claim->waits++ == TD_OUTSIDE_WAITS || td_client_is_alone() ||
		td_gate_word() & TD_WORD_CLOSED)
		return false;
	if (claim->waits % SHORT_EVERY == 0)
		td_client_short((unsigned)claim->slot, claim->bytes);
	td_time_sleep_until_ns(td_time_now_ns() + TD_OUTSIDE_WAIT_NS);
	return true;
}

static bool was_granted(const struct td_outside_claim *claim)
{
	return claim->slot >= 0 && claim->bytes && claim->need != TD_NEED_REFUSED;
}

void td_outside_delist(struct td_outside_claim *claim)
{
	struct td_object *pool = claim->object;

	if (!claim->is_listed)
		return;
	claim->is_listed = false;
	pool->claims--;
	pool->relying -= claim->relies;
	pool->ended++;
	pool->wanted_bytes -= claim->wanted_bytes;
	pool->asked_bytes -= claim->bytes;
	pool->granted_bytes -= claim->granted_bytes;
}

/*
 * Counts the growth of a pool up to this claim's grant, whichever claim caused it. The other claims
 * keep their grants. If there are none, all of the growth is counted. The caller holds the lock.
 */
static void settle_growth(struct td_outside_claim *claim)
{
	struct td_object *pool = claim->object;

	td_outside_delist(claim);
	if (pool->is_over)
		pool->most += claim->granted_bytes;
	td_table_note_beyond(pool);
	td_table_ask_pool_within(
		pool, pool->claims ? pool->bytes + claim->granted_bytes : UINT64_MAX);
}

int td_outside_settle(
	struct td_outside_claim *claim, int r, enum td_outside_key what, uint64_t value)
{
	if (!claim->object)
		return r;
	td_lock_take(&td_table.lock);
	td_table_note_slot(claim->object->device, claim->slot);
	if (claim->growth) {
		settle_growth(claim);
	} else if (!r) {
		*claim->key =
			(struct td_key){NULL, value, claim->bytes, (uint8_t)what, claim->object};
		td_table_link(claim->key);
		td_table_count(claim->object, claim->bytes);
	}
	if (was_granted(claim))
		td_client_settled(
			(unsigned)claim->slot, claim->bytes, claim->need, claim->mobility);
	if (claim->growth && !r && claim->key && value) {
		*claim->key = (struct td_key){
			NULL, value, claim->key->bytes, (uint8_t)what, claim->object};
		claim->object->references++;
		td_table_link(claim->key);
		claim->key = NULL;
	}
	if (claim->growth)
		td_table_put_object(claim->object);
	td_lock_drop(&td_table.lock);
	if (claim->slot >= 0 && !was_granted(claim))
		td_client_memory_changed((unsigned)claim->slot);
	if (claim->growth || r)
		td_outside_drop(claim);
	return r;
}

/* -- keys -- */

/*
 * Adds a key to a known object. Returns the device of which the daemon must be told at once;
 * negative: none.
 */
static int alias(const struct td_key *known, struct td_key *key)
{
	struct td_object *object = known ? known->object : NULL;

	if (!object) {
		free(key);
		return -1;
	}
	key->object = object;
	object->references++;
	td_table_link(key);
	if (object->kind != TD_OUTSIDE_IMPORTED ||
		(key->bytes <= object->bytes && !object->is_guessed))
		return -1;
	if (object->is_guessed)
		td_table_count(object, 0);
	object->is_guessed = false;
	td_table_count(object, key->bytes);
	return object->device;
}

void td_outside_alias(enum td_outside_key of, uint64_t known, enum td_outside_key what,
	uint64_t value, uint64_t bytes)
{
	struct td_key *key = td_table_key(what, value, bytes);
	int device;

	if (!key)
		return;
	td_lock_take(&td_table.lock);
	device = alias(td_table_find(of, known), key);
	td_lock_drop(&td_table.lock);
	td_table_tell_at_once(device);
}

static struct td_key *mapping_around(uint64_t address)
{
	for (unsigned i = 0; td_table.mappings && i < TD_OUTSIDE_BUCKETS; i++)
		for (struct td_key *key = td_table.buckets[i]; key; key = key->next)
			if (key->what == TD_KEY_MAPPING && address - key->value < key->bytes)
				return key;
	return NULL;
}

void td_outside_alias_mapping(uint64_t address, enum td_outside_key what, uint64_t value)
{
	struct td_key *key = td_table_key(what, value, 0);

	if (!key)
		return;
	td_lock_take(&td_table.lock);
	(void)alias(mapping_around(address), key);
	td_lock_drop(&td_table.lock);
}

static void note_object(int device, enum td_outside_kind kind, enum td_outside_key what,
	uint64_t value, uint64_t bytes)
{
	struct td_outside_claim claim = {.slot = -1, .bytes = bytes};

	if (device < 0 || device >= TD_OUTSIDE_DEVICES || !make(&claim, device, kind))
		return;
	claim.object->is_guessed = kind == TD_OUTSIDE_IMPORTED;
	(void)td_outside_settle(&claim, CUDA_SUCCESS, what, value);
}

static int current_device(void)
{
	int slot = td_context_slot();

	return slot < 0 ? -1 : td_table_device((unsigned)slot);
}

void td_outside_note(
	enum td_outside_kind kind, enum td_outside_key what, uint64_t value, uint64_t bytes)
{
	note_object(current_device(), kind, what, value, bytes);
}

static void note_import(int device, enum td_outside_key what, uint64_t value)
{
	note_object(device, TD_OUTSIDE_IMPORTED, what, value, GUESSED_BYTES);
	td_table_tell(device);
}

void td_outside_note_import(int device, uint64_t handle)
{
	note_import(device < 0 ? current_device() : device, TD_KEY_HANDLE, handle);
}

void td_outside_note_import_at(uint64_t address)
{
	note_import(current_device(), TD_KEY_ADDRESS, address);
}

void td_outside_note_import_pool(uint64_t pool)
{
	note_import(current_device(), TD_KEY_IMPORTED_POOL, pool);
}

/* Opens imported memory once more. Returns false if it is not open yet. */
static bool open_again(uint64_t address, uint64_t bytes)
{
	struct td_key *key = td_table_key(TD_KEY_SHARED, address, bytes);
	bool known;

	if (!key)
		return false;
	td_lock_take(&td_table.lock);
	known = td_table_find(TD_KEY_SHARED, address);
	(void)alias(td_table_find(TD_KEY_SHARED, address), key);
	td_lock_drop(&td_table.lock);
	return known;
}

void td_outside_note_opened(uint64_t address, uint64_t bytes)
{
	int device = current_device();

	if (open_again(address, bytes))
		return;
	note_object(device, TD_OUTSIDE_OPENED, TD_KEY_SHARED, address, bytes);
	td_table_tell_at_once(device);
}

void td_outside_note_handed(uint64_t address, uint64_t bytes)
{
	bool known;

	td_lock_take(&td_table.lock);
	known = td_table_find(TD_KEY_HANDED, address);
	td_lock_drop(&td_table.lock);
	if (known)
		return;
	atomic_store(&has_handed, true);
	note_object(current_device(), TD_OUTSIDE_HANDED, TD_KEY_HANDED, address, bytes);
}

struct td_key *td_outside_take(enum td_outside_key what, uint64_t value)
{
	struct td_key **at = td_table_bucket(what, value), *key = NULL;

	td_lock_take(&td_table.lock);
	while (*at && ((*at)->what != what || (*at)->value != value))
		at = &(*at)->next;
	if (*at)
		key = td_table_unlink(at);
	td_lock_drop(&td_table.lock);
	return key;
}

typedef bool (*match_fn)(const struct td_key *key, uint64_t a, uint64_t b);

/* Unlinks all keys that match, and returns them as a list. */
static struct td_key *take_all(match_fn matches, uint64_t a, uint64_t b)
{
	struct td_key *list = NULL;

	for (unsigned i = 0; i < TD_OUTSIDE_BUCKETS; i++) {
		struct td_key **at = &td_table.buckets[i];

		while (*at) {
			struct td_key *key;

			if (!matches(*at, a, b)) {
				at = &(*at)->next;
				continue;
			}
			key = td_table_unlink(at);
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

	td_lock_take(&td_table.lock);
	if (td_table.mappings)
		list = take_all(is_mapping_in, address, bytes);
	td_lock_drop(&td_table.lock);
	return list;
}

void td_outside_gone(struct td_key *keys)
{
	while (keys) {
		struct td_key *next = keys->next;
		int device = keys->object->device;
		enum td_outside_kind kind = (enum td_outside_kind)keys->object->kind;
		bool may_live_on = kind == TD_OUTSIDE_HANDED || kind == TD_OUTSIDE_EXPORTABLE;

		td_lock_take(&td_table.lock);
		td_table_put_key(keys);
		td_lock_drop(&td_table.lock);
		if (may_live_on)
			td_table_tell_at_once(device);
		else if (kind != TD_OUTSIDE_BACKEND) /* the backend reports its own memory itself */
			td_table_tell(device);
		keys = next;
	}
}

void td_outside_back(struct td_key *keys)
{
	td_lock_take(&td_table.lock);
	while (keys) {
		struct td_key *next = keys->next;

		td_table_link(keys);
		keys = next;
	}
	td_lock_drop(&td_table.lock);
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

void *td_outside_context_at(enum td_outside_key what, uint64_t value)
{
	void *context;

	td_lock_take(&td_table.lock);
	context = td_outside_context_of(td_table_find(what, value));
	td_lock_drop(&td_table.lock);
	return context;
}

static bool is_in_context(const struct td_key *key, uint64_t context, uint64_t unused)
{
	(void)unused;
	return context && (uint64_t)key->object->context == context;
}

void td_outside_context_ended(void *context)
{
	struct td_key *list;

	td_ipc_context_ends(context);
	td_peers_context_ends(context);
	td_late_context_ended(context);
	td_lock_take(&td_table.lock);
	list = take_all(is_in_context, (uint64_t)context, 0);
	td_lock_drop(&td_table.lock);
	for (const struct td_key *key = list; key; key = key->next)
		if (key->what == TD_KEY_BACKEND)
			inner->lost(key->value, context);
		else if (key->what == TD_KEY_LIBRARY || key->what == TD_KEY_LIBRARY_MANAGED)
			td_library_gone(key->value);
	td_outside_gone(list);
	for (unsigned i = 0; inner->trim && i < TD_SLOT_MAX; i++)
		inner->trim(i, false);
}

/* -- the backend, with outside memory included -- */

uint64_t td_outside_bytes(int device, enum td_outside_kind kind)
{
	uint64_t bytes = 0;

	device = device < 0 ? current_device() : device;
	td_lock_take(&td_table.lock);
	if (device >= 0 && device < TD_OUTSIDE_DEVICES && kind < TD_OUTSIDE_N)
		bytes = td_table.kind_bytes[device][kind];
	td_lock_drop(&td_table.lock);
	return bytes;
}

static void over_stats(unsigned slot, struct td_memory_stats *ret)
{
	int device = td_table_device(slot);

	inner->stats(slot, ret);
	td_lock_take(&td_table.lock);
	if (device >= 0) {
		uint64_t counted = td_table.device_bytes[device] - td_table.beyond_bytes[device];

		ret->demanded_bytes += counted;
		ret->resident_bytes += counted;
		ret->fixed_bytes += counted;
		ret->managed_bytes += td_table.kind_bytes[device][TD_OUTSIDE_MANAGED] -
				      td_table.host_bytes[device];
		ret->crossed_bytes = td_table.crossed_bytes[device];
		ret->given_up_bytes = td_table.given_up_bytes[device];
		ret->imported_bytes = td_table.kind_bytes[device][TD_OUTSIDE_SHARED] +
				      td_table.kind_bytes[device][TD_OUTSIDE_OPENED] +
				      td_table.kind_bytes[device][TD_OUTSIDE_IMPORTED];
		ret->paged_bytes += td_table.host_bytes[device] + td_table.beyond_bytes[device];
	}
	if (slot < TD_SLOT_MAX) {
		if (td_table.peak_bytes[slot] < ret->demanded_bytes)
			td_table.peak_bytes[slot] = ret->demanded_bytes;
		/* Peaks between two calls of this function count too. */
		if (td_table.peak_bytes[slot] < td_steps_most(slot))
			td_table.peak_bytes[slot] = td_steps_most(slot);
		if (ret->peak_bytes < td_table.peak_bytes[slot])
			ret->peak_bytes = td_table.peak_bytes[slot];
	}
	td_lock_drop(&td_table.lock);
}

/* Returns how much of the limit is left for movable memory. */
static uint64_t left(unsigned slot, uint64_t limit_bytes)
{
	int device = td_table_device(slot);
	uint64_t fixed = td_client_staying(slot);

	td_lock_take(&td_table.lock);
	fixed += device < 0 ? 0 : td_table.device_bytes[device];
	td_lock_drop(&td_table.lock);
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

static int over_reach(unsigned slot, uint64_t limit_bytes, void (*progress)(unsigned slot))
{
	return inner->reach(slot, left(slot, limit_bytes), progress);
}

/* Frees memory of which the driver has given out a handle: other processes may keep it. */
static int end_handed(uint64_t address, int (*end)(uint64_t address))
{
	struct td_key *key = atomic_load_explicit(&has_handed, memory_order_relaxed)
				     ? td_outside_take(TD_KEY_HANDED, address)
				     : NULL;

	return td_outside_end(key, end(address));
}

static int over_free(uint64_t address)
{
	return end_handed(address, inner->free);
}

static int over_release(uint64_t address)
{
	return end_handed(address, inner->release);
}

/*
 * In a forked child. The parent's records are not read, as a change may have been in progress. The
 * child has nothing on the device.
 */
static void over_forked(void)
{
	td_lock_reset(&td_table.lock);
	memset(td_table.buckets, 0, sizeof(td_table.buckets));
	memset(td_table.device_bytes, 0, sizeof(td_table.device_bytes));
	memset(td_table.host_bytes, 0, sizeof(td_table.host_bytes));
	memset(td_table.beyond_bytes, 0, sizeof(td_table.beyond_bytes));
	memset(td_table.crossed_bytes, 0, sizeof(td_table.crossed_bytes));
	memset(td_table.given_up_bytes, 0, sizeof(td_table.given_up_bytes));
	memset(td_table.kind_bytes, 0, sizeof(td_table.kind_bytes));
	memset(td_table.peak_bytes, 0, sizeof(td_table.peak_bytes));
	memset(td_table.in_use_bytes, 0, sizeof(td_table.in_use_bytes));
	memset(td_table.slots, 0, sizeof(td_table.slots));
	td_table.mappings = 0;
	td_table.pools = NULL;
	atomic_store(&td_table.pool_count, 0);
	atomic_store(&has_handed, false);
	inner->forked();
}

const struct td_backend *td_outside_over(const struct td_backend *backend)
{
	static unsigned turn;
	struct td_backend *over = &overs[turn++ % 2];

	inner = backend;
	*over = *backend;
	over->free = over_free;
	over->release = over_release;
	over->shrink = over_shrink;
	over->fill = over_fill;
	over->reach = inner->reach ? over_reach : NULL;
	over->stats = over_stats;
	over->forked = over_forked;
	return over;
}
