/*
 * A state in memory, for tests and for a cluster of one machine. Several handles see one store, as
 * several programs see one etcd. Time is what td_state_turn() of any handle was told last.
 */
#pragma once

#include "cluster/state/state.h"

struct td_memory_store;

struct td_memory_store *td_memory_store_new(void);
/* All handles must have been freed. NULL is allowed. */
void td_memory_store_free(struct td_memory_store *store);

/* Returns a handle, which td_state_free() frees; NULL: no memory. */
struct td_state *td_memory_open(struct td_memory_store *store);

/* Until it is called with false, requests of this handle return AWAY; its watches are silent. */
void td_memory_cut(struct td_state *state, bool is_cut);
/*
 * Until it is called with false, commits and grants of this handle are carried out but return
 * UNSURE, as if the answer had been lost.
 */
void td_memory_lose_answers(struct td_state *state, bool is_lost);
/* Forgets the changes before this revision, as etcd does when it is compacted. */
void td_memory_compact(struct td_memory_store *store, uint64_t revision);
