/*
 * Device memory that is not the backend's to move: unified memory, pools, the program's own VMM, arrays, what graphs allocate, other APIs'
 * memory. It is counted, asked for before the driver is, and stays where it is.
 *
 *	claim --driver gave it--> settle(0, key): counted under its key      take --driver took it back--> gone
 *	      --driver refused--> settle(error): nothing was promised             --driver refused--> back
 *
 * An object is counted once, however many keys lead to it: a handle, one for each further handle to the same memory, one for each mapping. It is
 * counted for its device, whether or not the process has a context there yet.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "preload/base/backend.h"
#include "preload/link/client.h"

enum td_outside_kind {
	TD_OUTSIDE_MANAGED,
	TD_OUTSIDE_LEGACY, /* by the 32-bit calls */
	TD_OUTSIDE_VMM,
	TD_OUTSIDE_EXPORTABLE, /* the same, that others may have, too: it may live on when it is given up here */
	TD_OUTSIDE_ARRAY,
	TD_OUTSIDE_DATA,   /* of modules and libraries */
	TD_OUTSIDE_LITTLE, /* the same, of modules, where there is so little of it that it counts as code does: not charged here */
	TD_OUTSIDE_POOL,
	TD_OUTSIDE_GRAPH,
	TD_OUTSIDE_EXTERNAL, /* another API's, which nobody else counts */
	TD_OUTSIDE_SHARED,   /* another CUDA process's, which counts it: not charged here */
	TD_OUTSIDE_OPENED, /* the same, by a handle of the driver's: its owner may free it, and it be here alone */
	TD_OUTSIDE_HANDED, /* ours by such a handle: no bytes of its own, but others may keep them when it is freed */
	TD_OUTSIDE_IMPORTED, /* as OPENED, by a handle that lasts beyond any context: as much as the largest mapping of it */
	TD_OUTSIDE_BACKEND, /* the backend's, which counts it: its context's end is its own */
	TD_OUTSIDE_N,
};

enum td_outside_key {
	TD_KEY_ADDRESS, /* what cuMemFree and cuMemFreeAsync take */
	TD_KEY_HANDLE,  /* of cuMemCreate */
	TD_KEY_MAPPING,
	TD_KEY_ARRAY,
	TD_KEY_EXTERNAL,
	TD_KEY_SHARED,
	TD_KEY_HANDED,
	TD_KEY_POOL,
	TD_KEY_IMPORTED_POOL,
	TD_KEY_BACKEND,
	TD_KEY_MODULE,
	TD_KEY_MODULE_MANAGED,
	TD_KEY_LIBRARY, /* in one context */
	TD_KEY_LIBRARY_MANAGED,
};

#define TD_DEVICE_CURRENT (-1)

struct td_object;
struct td_key;

struct td_outside_claim {
	struct td_object *object; /* NULL: nothing is counted; the driver is asked all the same */
	struct td_key *key;
	uint64_t bytes, wanted_bytes; /* asked for; of a pool, which may have some in store */
	uint64_t granted_bytes;       /* of a pool */
	int slot, need;
	enum td_mobility mobility;
	unsigned waits;
	bool growth;            /* of an object that is there already */
	bool is_listed;         /* among the pool's claims */
	bool relies;            /* of a graph's memory: on some that it has already */
	uint64_t trimmed_bytes; /* of a graph's: the mark that it was made at */
};

/*
 * May `bytes` of this kind be taken on the device? May block, as td_client_need does, and while the gate is closed. CUDA_SUCCESS, then
 * td_outside_settle has to follow; or CUDA_ERROR_OUT_OF_MEMORY.
 */
int td_outside_claim(
	struct td_outside_claim *ret, int device, enum td_outside_kind kind, uint64_t bytes);

/* The driver answered r: is it worth asking again, since somebody is still giving back what was granted? Waits a little, boundedly. */
bool td_outside_again(struct td_outside_claim *claim, int r);

/*
 * The driver has grown a pool: is that no more than was granted, or could it be granted now? Where its store was too scattered to serve, a pool grows by
 * more than it lacked. False: the memory has to be given back, and the program told that there is none.
 */
bool td_outside_fits(struct td_outside_claim *claim);

/* Returns r. */
int td_outside_settle(
	struct td_outside_claim *claim, int r, enum td_outside_key what, uint64_t value);

/* One more key (of so many bytes) to the object that `of` leads to, if that is known. */
void td_outside_alias(enum td_outside_key of, uint64_t known, enum td_outside_key what,
	uint64_t value, uint64_t bytes);
/* The same to the object that has a mapping around this address. */
void td_outside_alias_mapping(uint64_t address, enum td_outside_key what, uint64_t value);

/* Something that is told, not charged, or charged elsewhere. */
void td_outside_note(
	enum td_outside_kind kind, enum td_outside_key what, uint64_t value, uint64_t bytes);

/* A handle to what another process made, on that device; below 0: on the current context's. How much it is, a mapping tells. */
void td_outside_note_import(int device, uint64_t handle);
/* The same, of a pool's memory by its address, and of a pool: who has it keeps its memory, whatever becomes of its maker. */
void td_outside_note_import_at(uint64_t address);
void td_outside_note_import_pool(uint64_t pool);

/* What was opened by a handle of the driver's (TD_KEY_SHARED); and that such a handle to memory of this process has been given out (TD_KEY_HANDED), until that is freed: the backend's free takes it. */
void td_outside_note_opened(uint64_t address, uint64_t bytes);
void td_outside_note_handed(uint64_t address, uint64_t bytes);

/* NULL: not known. Exactly one of gone and back follows. */
struct td_key *td_outside_take(enum td_outside_key what, uint64_t value);
/* All mappings within. */
struct td_key *td_outside_take_mappings(uint64_t address, uint64_t bytes);
void td_outside_gone(struct td_key *keys);
void td_outside_back(struct td_key *keys);
/* gone if r is 0, else back; returns r. */
int td_outside_end(struct td_key *keys, int r);

/* The context that the key's object lives in; NULL: none. And by key. */
void *td_outside_context_of(const struct td_key *key);
void *td_outside_context_at(enum td_outside_key what, uint64_t value);
/* The context has ended, and nothing has its handle yet: the driver has freed its own with it, the backend gives back what it made itself. */
void td_outside_context_ended(void *context);

/* -- pools: the driver says how much they hold (pools.c) -- */

/* The object of that pool, made if it is not known. device: if it has to be made; below 0: on the host, not counted. NULL: memory is short. */
struct td_object *td_outside_pool(uint64_t pool, int device, enum td_outside_kind kind);
/* As td_outside_claim, for what the pool may grow by to hand out `bytes`: what it has in store serves one claim, not each of those under way. */
int td_outside_claim_growth(struct td_outside_claim *ret, struct td_object *pool, uint64_t bytes);
/*
 * The same for a graph's memory, of which `bytes` are for the graph that is to be launched. What the driver keeps for later of other graphs' memory is no store: whether it can serve
 * this one it does not say. What the graph has itself, since it was launched at the mark `since` (TD_NEVER_LAUNCHED: it was not), it has still, but for what was trimmed after that.
 */
#define TD_NEVER_LAUNCHED UINT64_MAX
int td_outside_claim_graph(
	struct td_outside_claim *ret, struct td_object *pool, uint64_t bytes, uint64_t since);
/* Has the graph still what the claim relies on? Somebody may have trimmed, while it waited at the gate. */
bool td_outside_graph_holds(struct td_outside_claim *claim);
/* The program's own trim. Waits, boundedly, for launches that rely on what it would give back. */
int td_outside_trim_graphs(int device);
/* From now on it is asked nothing, and holds what is in use of it. One of td_outside_gone and td_outside_pool_stays follows. */
struct td_key *td_outside_pool_ends(uint64_t pool);
void td_outside_pool_stays(struct td_key *key, uint64_t pool);
/* What pools on the slot's device keep for later goes back to the driver. True: there was some. */
bool td_outside_trim(unsigned slot);
/* Asks the driver anew. Costs one load where there are no pools. */
void td_outside_refresh(void);

/* -- */

/* A backend whose totals hold all of this, too, and whose limits leave room for it. At load, and, where it is chosen later, before a GPU is known. */
const struct td_backend *td_outside_over(const struct td_backend *backend);

/* Of a device (below 0: the current context's) and kind, shared memory included. */
uint64_t td_outside_bytes(int device, enum td_outside_kind kind);
