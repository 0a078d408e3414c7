/*
 * Outside memory: device memory that the backend cannot move. It is unified memory, pools, the
 * program's own VMM memory, arrays, memory of graphs and of other APIs. It is counted, asked for
 * before the driver is called, and stays in place.
 *
 *   claim --the driver allocates--> settle(0, key): counted under its key
 *         --the driver refuses----> settle(error): the claim is dropped
 *   take  --the driver frees--> gone
 *         --the driver refuses--> back
 *
 * An object is counted once, however many keys lead to it: a handle, one key for each further
 * handle to the same memory, one for each mapping. It is counted for its device, whether or not the
 * process has a context there yet.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "preload/base/backend.h"
#include "preload/link/client.h"

enum td_outside_kind {
	TD_OUTSIDE_MANAGED,
	TD_OUTSIDE_LEGACY, /* allocated by the 32-bit calls of CUDA before 3.2 */
	TD_OUTSIDE_VMM,
	/* VMM memory that can be exported: another process may keep it when it is released here. */
	TD_OUTSIDE_EXPORTABLE,
	TD_OUTSIDE_ARRAY,
	TD_OUTSIDE_DATA, /* variables of modules and libraries */
	/* Variables of modules, so small that they count as code and are not charged here. */
	TD_OUTSIDE_LITTLE,
	TD_OUTSIDE_POOL,
	TD_OUTSIDE_GRAPH,
	/* Imported from another API such as Vulkan, which no other process counts. */
	TD_OUTSIDE_EXTERNAL,
	TD_OUTSIDE_SHARED, /* imported from a CUDA process that counts it; not charged here */
	/*
	 * Another process's memory, opened with a handle of the driver (cuIpcOpenMemHandle). If its
	 * owner frees it, this process alone has it.
	 */
	TD_OUTSIDE_OPENED,
	/*
	 * Memory of this process for which such a handle was given out. It is counted elsewhere, so
	 * it has no bytes here. When this process frees it, other processes may keep it.
	 */
	TD_OUTSIDE_HANDED,
	/*
	 * Like OPENED, by a handle that outlives contexts. It counts as large as its largest
	 * mapping.
	 */
	TD_OUTSIDE_IMPORTED,
	TD_OUTSIDE_BACKEND, /* the backend's memory, which counts itself and survives its context */
	TD_OUTSIDE_N,
};

enum td_outside_key {
	TD_KEY_ADDRESS, /* address for cuMemFree or cuMemFreeAsync */
	TD_KEY_HANDLE,  /* handle of cuMemCreate */
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
	TD_KEY_LIBRARY, /* a library's variables in one context */
	TD_KEY_LIBRARY_MANAGED,
};

#define TD_DEVICE_CURRENT (-1)

struct td_object;
struct td_key;

struct td_outside_claim {
	struct td_object *object; /* NULL: not counted; the driver is called all the same */
	struct td_key *key;
	/* bytes to be asked for; wanted: of a pool, which may have part of it free */
	uint64_t bytes, wanted_bytes;
	uint64_t granted_bytes; /* bytes granted so far; for pools only */
	int slot, need;
	enum td_mobility mobility;
	unsigned waits;
	bool growth;            /* the claim is for growth of an existing object */
	bool is_listed;         /* the claim is in its pool's list */
	bool relies;            /* the claim counts on memory that the graph already has */
	uint64_t trimmed_bytes; /* trimmed bytes of the graph pool when the claim was made */
};

/*
 * Claims `bytes` of this kind on the device. It may block like td_client_need, and while the gate
 * is closed. CUDA_SUCCESS: the caller must call td_outside_settle; otherwise
 * CUDA_ERROR_OUT_OF_MEMORY.
 */
int td_outside_claim(
	struct td_outside_claim *ret, int device, enum td_outside_kind kind, uint64_t bytes);

/*
 * The driver has answered r. Returns true, after a short wait, if the driver should be called
 * again, because another process is still giving back memory that was granted to this one.
 */
bool td_outside_again(struct td_outside_claim *claim, int r);

/*
 * The driver has grown a pool, possibly by more than was lacking, because its free memory was too
 * scattered. Returns true if the growth was granted, or is granted now. False: the memory must be
 * given back, and the program gets out of memory.
 */
bool td_outside_fits(struct td_outside_claim *claim);

/* Settles the claim after the driver's result r, and returns r. */
int td_outside_settle(
	struct td_outside_claim *claim, int r, enum td_outside_key what, uint64_t value);

/* Adds one more key (for `bytes`) to the object that `of` leads to, if that is known. */
void td_outside_alias(enum td_outside_key of, uint64_t known, enum td_outside_key what,
	uint64_t value, uint64_t bytes);
/* Adds a key to the object that has a mapping around this address. */
void td_outside_alias_mapping(uint64_t address, enum td_outside_key what, uint64_t value);

/* Records memory that is only reported, or that is charged elsewhere. */
void td_outside_note(
	enum td_outside_kind kind, enum td_outside_key what, uint64_t value, uint64_t bytes);

/*
 * Records a handle to memory of another process on that device (negative: the current context's).
 * Its size becomes known when it is mapped.
 */
void td_outside_note_import(int device, uint64_t handle);
/*
 * Records memory of another process's pool, or the pool itself, by its address. A process that has
 * opened the pool keeps its memory even if the process that made it ends.
 */
void td_outside_note_import_at(uint64_t address);
void td_outside_note_import_pool(uint64_t pool);

/*
 * td_outside_note_opened records memory opened by a driver handle (TD_KEY_SHARED).
 * td_outside_note_handed records that such a handle to this process's memory was given out
 * (TD_KEY_HANDED), until the memory is freed.
 */
void td_outside_note_opened(uint64_t address, uint64_t bytes);
void td_outside_note_handed(uint64_t address, uint64_t bytes);

/*
 * Takes the key out before the driver is called to free it. Returns NULL if it is not known.
 * Otherwise exactly one call of td_outside_gone or td_outside_back must follow.
 */
struct td_key *td_outside_take(enum td_outside_key what, uint64_t value);
/* Takes all mappings within the range. */
struct td_key *td_outside_take_mappings(uint64_t address, uint64_t bytes);
void td_outside_gone(struct td_key *keys);
void td_outside_back(struct td_key *keys);
/*
 * Ends the removal of an object by its result r: calls td_outside_gone() if r is 0, otherwise
 * td_outside_back(). Returns r.
 */
int td_outside_end(struct td_key *keys, int r);

/*
 * td_outside_context_of: the context that the key's object belongs to, or NULL.
 * td_outside_context_at: the same by the key's value.
 */
void *td_outside_context_of(const struct td_key *key);
void *td_outside_context_at(enum td_outside_key what, uint64_t value);
/*
 * Called when a context has ended, before a new context can get the same handle. The driver has
 * freed the memory of the context. The backend frees the memory that it made itself.
 */
void td_outside_context_ended(void *context);

/* -- pools; the driver tells their sizes (pools.c) -- */

/*
 * Returns the object of that pool, and makes it if needed. device: for a new object; negative: the
 * pool is on the host and not counted. NULL: malloc failed.
 */
struct td_object *td_outside_pool(uint64_t pool, int device, enum td_outside_kind kind);
/*
 * Like td_outside_claim, for the growth that a pool needs to allocate `bytes`. Claims in progress
 * share the pool's free memory; each part of it serves only one of them.
 */
int td_outside_claim_growth(struct td_outside_claim *ret, struct td_object *pool, uint64_t bytes);
/*
 * Claims the memory of a graph that is about to be launched and needs `bytes`. Free memory that the
 * driver keeps for other graphs does not count, because the driver does not tell whether it can
 * serve this one. The graph still has the memory of its launch at the mark `since`
 * (TD_NEVER_LAUNCHED: there was none), less what was trimmed since.
 */
#define TD_NEVER_LAUNCHED UINT64_MAX
int td_outside_claim_graph(
	struct td_outside_claim *ret, struct td_object *pool, uint64_t bytes, uint64_t since);
/*
 * Returns whether the graph still has the memory that the claim relies on. It may have been trimmed
 * while the launch waited at the gate.
 */
bool td_outside_graph_holds(struct td_outside_claim *claim);
/* The program's own trim. Waits, for a limited time, for launches that rely on the memory. */
int td_outside_trim_graphs(int device);
/*
 * The pool is about to be destroyed: the driver is no longer asked about it, and only its memory in
 * use counts. td_outside_gone or td_outside_pool_stays must follow.
 */
struct td_key *td_outside_pool_ends(uint64_t pool);
void td_outside_pool_stays(struct td_key *key, uint64_t pool);
/* Gives the free memory of pools on the slot's device back to the driver. True: there was some. */
bool td_outside_trim(unsigned slot);
/* Asks the driver for the sizes of all pools again. Costs one load if there are no pools. */
void td_outside_refresh(void);

/* -- the wrapped backend, and totals -- */

/*
 * Wraps a backend: its totals then include outside memory, and its limits leave room for it. Called
 * at load or, where the backend is chosen later, before the first GPU is known.
 */
const struct td_backend *td_outside_over(const struct td_backend *backend);

/*
 * Returns the bytes of that kind on a device (negative: the current context's), including shared
 * memory.
 */
uint64_t td_outside_bytes(int device, enum td_outside_kind kind);
