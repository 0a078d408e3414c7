/*
 * A key that is there as long as this program lives: it is bound to a lease, which is kept alive.
 * Whoever made the key first has it; a second program of the same name waits until it is gone.
 */
#pragma once

#include "cluster/state/state.h"

struct td_presence {
	struct td_state *state;
	char key[TD_STATE_KEY_MAX];
	uint32_t ttl_s;
	uint64_t lease, ttl_ns; /* lease 0: none */
	uint64_t revision;      /* of the last put that is known to be done; 0: there is no key */
	uint64_t keep_ns;       /* when to keep the lease alive next */
	uint64_t end_ns;        /* when the lease ends unless it is kept alive */
};

/* Returns 0, or -EINVAL: the key is too long. The state must live longer. */
int td_presence_init(
	struct td_presence *presence, struct td_state *state, const char *key, uint32_t ttl_s);

/*
 * Keeps the lease alive if that is due, and the key with it. Returns 0, or why that failed: then
 * the caller tries again in a second. After NO_LEASE the value must be put again.
 */
int td_presence_turn(struct td_presence *presence, uint64_t now_ns);
/*
 * Writes the value. Returns 0; CONFLICT: another program has the key; or why it failed: then the
 * caller tries again.
 */
int td_presence_put(
	struct td_presence *presence, const char *value, size_t length, uint64_t now_ns);
/* Whether the key is there with the value that was put last, as far as can be known here. */
bool td_presence_is_there(const struct td_presence *presence, uint64_t now_ns);
/* Deletes the key by giving the lease back. */
void td_presence_end(struct td_presence *presence);
