/* How a kind of state is made: state.c checks the arguments and calls these. */
#pragma once

#include "cluster/state/state.h"

#define TD_STATE_WHY_MAX 256

struct td_state_kind {
	void (*free)(struct td_state *state);
	int (*get)(struct td_state *state, const char *key, struct td_state_item *ret);
	int (*list)(struct td_state *state, const char *prefix, struct td_state_list *ret);
	int (*commit)(struct td_state *state, const struct td_state_commit *commit,
		uint64_t *ret_revision);
	int (*grant)(
		struct td_state *state, uint32_t ttl_s, uint64_t *ret_lease, uint64_t *ret_ttl_ns);
	int (*keep_alive)(struct td_state *state, uint64_t lease, uint64_t *ret_ttl_ns);
	int (*revoke)(struct td_state *state, uint64_t lease);
	int (*watch)(struct td_state *state, const char *prefix, uint64_t from,
		struct td_state_watch **ret);
	void (*watch_close)(struct td_state_watch *watch);
	int (*next)(struct td_state_watch *watch, struct td_state_event *ret);
	uint64_t (*turn)(struct td_state *state, uint64_t now_ns);
	bool renews_leases; /* see td_state_renews_leases() */
};

/* Each kind's struct begins with these. */
struct td_state {
	const struct td_state_kind *kind;
	int fd;
	char why[TD_STATE_WHY_MAX];
};

struct td_state_watch {
	struct td_state *state;
};
