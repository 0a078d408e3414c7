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

/* Waits for the driver to have what was granted: half a second. */
#define TD_OUTSIDE_WAIT_NS 2000000
#define TD_OUTSIDE_WAITS   250

struct td_object {
	struct td_object *next_pool; /* in pools */
	uint64_t bytes;
	/*
	 * is_over: the size granted, to which the pool has to shrink before its free memory counts.
	 */
	uint64_t most;
	uint64_t beyond_bytes; /* what it holds beyond that: nobody granted it, and it is to go */
	uint64_t pool; /* handle, while the program has it; 0: it has not, or there is none */
	/*
	 * For the claims in progress on a pool, which share its free memory: how many there are,
	 * what they want together, what of that is asked for, what was granted, and how many have
	 * ended.
	 */
	uint64_t wanted_bytes, asked_bytes, granted_bytes;
	uint32_t claims, ended;
	uint32_t relying; /* of them: on what their graphs have, so that it is not trimmed now */
	uint64_t trimmed_bytes; /* of graphs' memory, so far */
	uint32_t references;
	int device;
	uint8_t kind;
	bool is_guessed; /* an import that was not mapped yet: how much it is is not known */
	bool on_host, is_pool, is_over; /* is_over: a pool grew by what was not granted */
	void *context;                  /* it ends with it; NULL: with the process */
};

struct td_key {
	struct td_key *next;
	uint64_t value, bytes;
	uint8_t what;
	struct td_object *object;
};

struct td_table {
	struct td_lock lock;
	/* guarded by lock */
	struct td_key *buckets[TD_OUTSIDE_BUCKETS];
	struct td_object *pools;
	uint64_t mappings; /* keys of that kind */
	uint64_t device_bytes[TD_OUTSIDE_DEVICES], host_bytes[TD_OUTSIDE_DEVICES],
		kind_bytes[TD_OUTSIDE_DEVICES][TD_OUTSIDE_N];
	/*
	 * The part of device_bytes that pools took without a grant. It is separate, because counted
	 * with the rest it would raise what the process may have.
	 */
	uint64_t beyond_bytes[TD_OUTSIDE_DEVICES];
	/* so far, by device: imported, or exportable and given up here */
	uint64_t crossed_bytes[TD_OUTSIDE_DEVICES],
		given_up_bytes[TD_OUTSIDE_DEVICES]; /* given up: the latter */
	uint64_t peak_bytes[TD_SLOT_MAX];
	uint64_t in_use_bytes
		[TD_OUTSIDE_DEVICES];       /* of it, of pools only what the program has of them */
	unsigned slots[TD_OUTSIDE_DEVICES]; /* one more than the device's; 0: not known yet */

	_Atomic uint32_t pool_count;
};

extern struct td_table td_table;

/* -- with the lock -- */

/* The device's memory is counted for this slot's steps. */
void td_table_note_slot(int device, int slot);
/* Sets the object's size. */
void td_table_count(struct td_object *object, uint64_t bytes);
/* `most` or is_over has changed. */
void td_table_note_beyond(struct td_object *object);
struct td_key **td_table_bucket(enum td_outside_key what, uint64_t value);
struct td_key *td_table_find(enum td_outside_key what, uint64_t value);
void td_table_link(struct td_key *key);
struct td_key *td_table_unlink(struct td_key **at);
/* Takes one reference; the last one's object is no longer counted, and freed. */
void td_table_put_object(struct td_object *object);
/* An unlinked key, with its reference. */
void td_table_put_key(struct td_key *key);
/* The driver's figures for a pool: what it holds, and what is in use. False: it does not say. */
bool td_table_ask(const struct td_object *object, uint64_t *ret_reserved, uint64_t *ret_used);
/* Gives the pool's free memory back to the driver, except what claims in progress count on. */
void td_table_trim_pool(struct td_object *object);
/*
 * Trims all memory that graphs keep, for any caller: no claim relies on it, or that cannot be
 * helped. Returns the driver's result.
 */
int td_table_trim_graphs(struct td_object *object);
/*
 * Counts what the driver says. While claims are in progress, they count the growth of their pool.
 */
void td_table_ask_pool(struct td_object *object);
/* The same, counting at most most_bytes. */
void td_table_ask_pool_within(struct td_object *object, uint64_t most_bytes);

/* -- without -- */

/* Below 0: not known, or no context there yet. */
int td_table_device(unsigned slot);
int td_table_slot(int device);
/* The daemon is to hear of the device's totals. */
void td_table_tell(int device);
/* Reports the totals at once, before others act on the old ones. */
void td_table_tell_at_once(int device);
/* Returns a key that is not linked and has no object, or NULL. */
struct td_key *td_table_key(enum td_outside_key what, uint64_t value, uint64_t bytes);

/* -- outside.c's, for pools -- */

/* need of client.h; waits at the closed gate instead of leaving the bytes off the device. */
int td_outside_ask(unsigned slot, uint64_t bytes, enum td_mobility mobility);
int td_outside_grant(struct td_outside_claim *claim, uint64_t bytes);
void td_outside_drop(struct td_outside_claim *claim);
/* For a pool's claim, with the lock: it is no longer in progress. */
void td_outside_delist(struct td_outside_claim *claim);
