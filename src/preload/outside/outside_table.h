/*
 * The account of outside memory, which outside.c and outside_pools.c share. A hash table finds each
 * object (a piece of memory, or a pool) by its keys: addresses and handles. Each key holds a
 * reference on its object. Totals are kept by device, so that memory taken before a context exists
 * on a device is counted as soon as there is one.
 *
 * One lock covers all of it. While it is held, the driver is only asked for attributes of pools, or
 * to trim them, and never for anything that can wait for the GPU. Bytes that the daemon granted
 * become counted bytes in one step under the lock (td_client_settled), so that nobody sees them
 * twice or not at all.
 */
#pragma once

#include "preload/base/lock.h"
#include "preload/outside/outside.h"

#define TD_OUTSIDE_DEVICES 64
#define TD_OUTSIDE_BUCKETS 4096

/* One wait for the driver to have granted memory; half a second in all. */
#define TD_OUTSIDE_WAIT_NS 2000000
#define TD_OUTSIDE_WAITS   250

struct td_object {
	struct td_object *next_pool; /* the list td_table.pools */
	uint64_t bytes;
	/*
	 * The growth granted so far. If is_over: the size to which the pool has to shrink before
	 * its free memory counts.
	 */
	uint64_t most;
	uint64_t beyond_bytes; /* held beyond `most`: not granted, so it has to be given back */
	uint64_t pool;         /* the pool's handle; 0: destroyed by the program, or no pool */
	/*
	 * Sums over the claims in progress on this pool, which share its free memory: bytes wanted,
	 * asked for and granted; number of claims, and of claims that have ended.
	 */
	uint64_t wanted_bytes, asked_bytes, granted_bytes;
	uint32_t claims, ended;
	/*
	 * the number of claims that rely on memory which a graph has already, so that the pool must
	 * not be trimmed
	 */
	uint32_t relying;
	uint64_t trimmed_bytes; /* graph memory trimmed so far */
	uint32_t references;
	int device;
	uint8_t kind;
	bool is_guessed; /* memory was imported but not mapped yet, so its size is not known */
	bool on_host, is_pool, is_over; /* is_over: the pool grew by more than was granted */
	void *context; /* the context with which the object ends; NULL: it ends with the process */
};

struct td_key {
	struct td_key *next;
	uint64_t value, bytes;
	uint8_t what;
	struct td_object *object;
};

struct td_table {
	struct td_lock lock;
	/* Guarded by lock. */
	struct td_key *buckets[TD_OUTSIDE_BUCKETS];
	struct td_object *pools;
	uint64_t mappings; /* number of keys of kind TD_KEY_MAPPING */
	uint64_t device_bytes[TD_OUTSIDE_DEVICES], host_bytes[TD_OUTSIDE_DEVICES],
		kind_bytes[TD_OUTSIDE_DEVICES][TD_OUTSIDE_N];
	/*
	 * The part of device_bytes that pools took without a grant. It is kept apart, because it
	 * must not raise what the process may have.
	 */
	uint64_t beyond_bytes[TD_OUTSIDE_DEVICES];
	/* Sums so far, by device. crossed: imported, or exportable and freed here. */
	uint64_t crossed_bytes[TD_OUTSIDE_DEVICES],
		/* part of crossed_bytes that was exportable and freed here */
		given_up_bytes[TD_OUTSIDE_DEVICES];
	uint64_t peak_bytes[TD_SLOT_MAX];
	uint64_t in_use_bytes
		/* of device_bytes: for pools only what the program has allocated */
		[TD_OUTSIDE_DEVICES];
	unsigned slots[TD_OUTSIDE_DEVICES]; /* slot of the device plus 1; 0: not known yet */

	_Atomic uint32_t pool_count;
};

extern struct td_table td_table;

/* -- functions that need the lock -- */

/* From now on the device's memory counts in the step figures of this slot. */
void td_table_note_slot(int device, int slot);
/* Sets the object's size and updates all sums. */
void td_table_count(struct td_object *object, uint64_t bytes);
/* Called when `most` or is_over has changed: updates beyond_bytes. */
void td_table_note_beyond(struct td_object *object);
struct td_key **td_table_bucket(enum td_outside_key what, uint64_t value);
struct td_key *td_table_find(enum td_outside_key what, uint64_t value);
void td_table_link(struct td_key *key);
struct td_key *td_table_unlink(struct td_key **at);
/* Drops one reference. With the last one the object is no longer counted, and is freed. */
void td_table_put_object(struct td_object *object);
/* Frees a key that is not linked, and drops its reference. */
void td_table_put_key(struct td_key *key);
/*
 * Asks the driver how much a pool holds and how much of it is in use. False: the driver does not
 * tell.
 */
bool td_table_ask(const struct td_object *object, uint64_t *ret_reserved, uint64_t *ret_used);
/* Gives the pool's free memory back to the driver, except what claims in progress count on. */
void td_table_trim_pool(struct td_object *object);
/*
 * Trims all unused graph memory, also if a claim relies on it: the caller has made sure that none
 * does, or cannot avoid it. Returns the driver's result.
 */
int td_table_trim_graphs(struct td_object *object);
/*
 * Counts the pool's size as the driver tells it. While claims are in progress, they count its
 * growth.
 */
void td_table_ask_pool(struct td_object *object);
/* Like td_table_ask_pool, but counts at most most_bytes. */
void td_table_ask_pool_within(struct td_object *object, uint64_t most_bytes);

/* -- functions to be called without the lock -- */

/* Returns the device of a slot; negative: not known, or no context there yet. */
int td_table_device(unsigned slot);
int td_table_slot(int device);
/* Has the daemon told of the device's new totals. */
void td_table_tell(int device);
/* Like td_table_tell, but at once, before other processes act on the old totals. */
void td_table_tell_at_once(int device);
/* Returns a new key that is not linked and has no object, or NULL if malloc failed. */
struct td_key *td_table_key(enum td_outside_key what, uint64_t value, uint64_t bytes);

/* -- functions of outside.c for pools -- */

/* Like td_client_need, but waits at the closed gate instead of leaving the bytes off the device. */
int td_outside_ask(unsigned slot, uint64_t bytes, enum td_mobility mobility);
int td_outside_grant(struct td_outside_claim *claim, uint64_t bytes);
void td_outside_drop(struct td_outside_claim *claim);
/* Removes a claim from its pool's list. The caller holds the lock. */
void td_outside_delist(struct td_outside_claim *claim);
