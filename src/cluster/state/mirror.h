/*
 * A copy of all keys of a prefix that follows the state: a list, then a watch, and a list again
 * where the watch has missed something. The user is told each change once.
 */
#pragma once

#include "cluster/state/state.h"

/* A key has this value from now on; or, with is_gone, it is not there any more. */
typedef void td_mirror_changed_fn(void *arg, const struct td_state_item *item, bool is_gone);

struct td_mirror {
	struct td_state *state;
	char prefix[TD_STATE_KEY_MAX];
	td_mirror_changed_fn *changed;
	void *arg;
	struct td_state_list list;    /* what is so, sorted by key */
	size_t room;                  /* of list.item */
	struct td_state_watch *watch; /* NULL: the list must be read */
	uint64_t next_ns;             /* when to read the list */
};

/* Returns 0, or -EINVAL: the prefix is too long. The state must live longer. */
int td_mirror_init(struct td_mirror *mirror, struct td_state *state, const char *prefix,
	td_mirror_changed_fn *changed, void *arg);
void td_mirror_deinit(struct td_mirror *mirror);

/*
 * Takes what has changed. td_state_turn() comes first. Returns 0, or why it does not follow at
 * present. *ret_wakeup_ns is when to call it again at the latest.
 */
int td_mirror_turn(struct td_mirror *mirror, uint64_t now_ns, uint64_t *ret_wakeup_ns);
/* Whether the copy is that of the state, but for what is on its way. */
bool td_mirror_follows(const struct td_mirror *mirror);
