/*
 * Device memory that the backend cannot move: unified memory, pools, the program's own VMM, arrays,
 * memory of graphs and of other APIs. It is counted, asked for before the driver is called, and
 * stays in place.
 *
 *   claim --driver gave it--> settle(0, key): counted under its key
 *         --driver refused--> settle(error): nothing was promised
 *   take  --driver took it back--> gone
 *         --driver refused--> back
 *
 * An object is counted once, however many keys lead to it: a handle, one for each further handle to
 * the same memory, one for each mapping. It is counted for its device, whether or not the process
 * has a context there yet.
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
	/* The same, exportable: it may live on in another process when it is released here. */
	TD_OUTSIDE_EXPORTABLE,
	TD_OUTSIDE_ARRAY,
	TD_OUTSIDE_DATA, /* of modules and libraries */
	/* The same, of modules, so small that it counts as code does; not charged here. */
	TD_OUTSIDE_LITTLE,
	TD_OUTSIDE_POOL,
	TD_OUTSIDE_GRAPH,
	TD_OUTSIDE_EXTERNAL, /* another API's, which nobody else counts */
	TD_OUTSIDE_SHARED,   /* another CUDA process's, which counts it: not charged here */
	/*
	 * The same, by a handle of the driver's: its owner may free it, so that it is here alone.
	 */
	TD_OUTSIDE_OPENED,
	/* Own memory with such a handle: no bytes here, but others may keep it when it is freed. */
	TD_OUTSIDE_HANDED,
	/* As OPENED, by a handle that outlives contexts: as much as its largest mapping. */
	TD_OUTSIDE_IMPORTED,
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
 * Claims `bytes` of this kind on the device. It may block like td_client_need, and while the gate
 * is closed. CUDA_SUCCESS: td_outside_settle has to follow; or CUDA_ERROR_OUT_OF_MEMORY.
 */
int td_outside_claim(
	struct td_outside_claim *ret, int device, enum td_outside_kind kind, uint64_t bytes);

/*
 * The driver answered r. True: ask it again, because somebody is still giving back granted memory.
 * Waits a little, boundedly.
 */
bool td_outside_again(struct td_outside_claim *claim, int r);

/*
 * The driver has grown a pool. True: the growth was granted, or is granted now. A pool whose free
 * memory is too scattered grows by more than it lacked. False: the memory has to be given back, and
 * the program gets out of memory.
 */
bool td_outside_fits(struct td_outside_claim *claim);

/* Returns r. */
int td_outside_settle(
	struct td_outside_claim *claim, int r, enum td_outside_key what, uint64_t value);

/* Adds one more key (for `bytes`) to the object that `of` leads to, if that is known. */
void td_outside_alias(enum td_outside_key of, uint64_t known, enum td_outside_key what,
	uint64_t value, uint64_t bytes);
/* The same for the object that has a mapping around this address. */
void td_outside_alias_mapping(uint64_t address, enum td_outside_key what, uint64_t value);

/* Something that is told, not charged, or charged elsewhere. */
void td_outside_note(
	enum td_outside_kind kind, enum td_outside_key what, uint64_t value, uint64_t bytes);

/*
 * A handle to memory that another process made, on that device (below 0: the current context's). A
 * mapping will tell how much it is.
 */
void td_outside_note_import(int device, uint64_t handle);
/*
 * The same for a pool's memory by its address, and for a pool. A process that has a pool keeps its
 * memory, whatever happens to its maker.
 */
void td_outside_note_import_at(uint64_t address);
void td_outside_note_import_pool(uint64_t pool);

/*
 * Notes memory opened by a handle of the driver's (TD_KEY_SHARED); and that such a handle to memory
 * of this process has been given out (TD_KEY_HANDED), until the backend's free of that memory.
 */
void td_outside_note_opened(uint64_t address, uint64_t bytes);
void td_outside_note_handed(uint64_t address, uint64_t bytes);

/* NULL: not known. Exactly one of gone and back follows. */
struct td_key *td_outside_take(enum td_outside_key what, uint64_t value);
/* Takes all mappings within the range. */
struct td_key *td_outside_take_mappings(uint64_t address, uint64_t bytes);
void td_outside_gone(struct td_key *keys);
void td_outside_back(struct td_key *keys);
/* gone if r is 0, else back; returns r. */
int td_outside_end(struct td_key *keys, int r);

/* The context that the key's object lives in; NULL: none. And by key. */
void *td_outside_context_of(const struct td_key *key);
void *td_outside_context_at(enum td_outside_key what, uint64_t value);
/*
 * The context has ended, and no new one has its handle yet. The driver has freed its own memory
 * with it; the backend gives back what it made itself.
 */
void td_outside_context_ended(void *context);

/* -- pools: the driver says how much they hold (pools.c) -- */

/*
 * Returns the object of that pool, making it if it is not known. device is for a new object; below
 * 0: on the host, not counted. NULL: memory is short.
 */
struct td_object *td_outside_pool(uint64_t pool, int device, enum td_outside_kind kind);
/*
 * Like td_outside_claim, for the growth that a pool needs to hand out `bytes`. A pool's free memory
 * serves one claim, not each of those in progress.
 */
int td_outside_claim_growth(struct td_outside_claim *ret, struct td_object *pool, uint64_t bytes);
/*
 * The same for a graph's memory, of which `bytes` are for the graph to be launched. Free memory
 * that the driver keeps of other graphs does not count, because the driver does not say whether it
 * can serve this graph. The graph keeps its own memory since it was launched at the mark `since`
 * (TD_NEVER_LAUNCHED: it was not), except what was trimmed after that.
 */
#define TD_NEVER_LAUNCHED UINT64_MAX
int td_outside_claim_graph(
	struct td_outside_claim *ret, struct td_object *pool, uint64_t bytes, uint64_t since);
/*
 * Does the graph still have the memory that the claim relies on? It may have been trimmed while the
 * launch waited at the gate.
 */
bool td_outside_graph_holds(struct td_outside_claim *claim);
/* The program's own trim. Waits, boundedly, for launches that rely on what it would give back. */
int td_outside_trim_graphs(int device);
/*
 * From now on the pool is not asked, and holds only its memory in use. td_outside_gone or
 * td_outside_pool_stays follows.
 */
struct td_key *td_outside_pool_ends(uint64_t pool);
void td_outside_pool_stays(struct td_key *key, uint64_t pool);
/* Gives the free memory of pools on the slot's device back to the driver. True: there was some. */
bool td_outside_trim(unsigned slot);
/* Asks the driver anew. Costs one load where there are no pools. */
void td_outside_refresh(void);

/* -- */

/*
 * Returns a backend whose totals include all of this memory, and whose limits leave room for it.
 * Called at load or, where the backend is chosen later, before a GPU is known.
 */
const struct td_backend *td_outside_over(const struct td_backend *backend);

/* The bytes of a device (below 0: the current context's) and kind, shared memory included. */
uint64_t td_outside_bytes(int device, enum td_outside_kind kind);
