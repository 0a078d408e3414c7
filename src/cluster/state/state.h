/*
 * The state of a cluster: keys with values, which all parts of tandem see in the same order.
 *
 * There are two kinds: in memory (memory.h) and etcd (etcd/etcd.h); a test holds both to the same
 * cases (cases.h). The terms are etcd's: each commit raises the revision of the whole state by one,
 * and a key remembers the revision that changed it last and the one that made it. A lease ends
 * unless it is kept alive, and its keys are deleted with it.
 *
 * Requests wait for their answer, for at most the time-out of the kind. A watch does not wait:
 * poll td_state_fd(), call td_state_turn(), then td_state_next() until it returns TD_STATE_NOTHING.
 *
 * All functions return 0, one of enum td_state_result, or -errno (-ENOMEM; -EINVAL: a key or value
 * that is too long). One handle serves one thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TD_STATE_KEY_MAX   512u       /* bytes of a key, with its NUL */
#define TD_STATE_VALUE_MAX (1u << 20) /* bytes of a value */
#define TD_STATE_WRITES    100u       /* compares, and writes, of one commit */

/*
 *                result     what happened
 */
#define TD_STATE_RESULTS(R)                                                                        \
	R(ABSENT, "there is no such key")                                                          \
	R(CONFLICT, "a key is not as was expected; nothing was written")                           \
	R(COMPACTED, "that revision is no longer kept; list again")                                \
	R(NO_LEASE, "the lease has ended")                                                         \
	R(NOTHING, "there is no event yet")                                                        \
	R(AWAY, "the state cannot be reached; nothing was written")                                \
	R(UNSURE, "no answer came; it is not known whether the write was done")                    \
	R(DENIED, "the user or the certificate has no right to this")                              \
	R(BROKEN, "the answer is not understood")

enum td_state_result {
	TD_STATE_OK,
#define R(name, text) TD_STATE_##name,
	TD_STATE_RESULTS(R)
#undef R
		TD_STATE_RESULT_N
};

struct td_state;

struct td_state_item {
	char *key;
	char *value; /* ends with a NUL behind its length bytes */
	size_t length;
	uint64_t revision; /* of the last change */
	uint64_t created;  /* revision of the commit that made the key */
	uint64_t lease;    /* 0: none */
};

struct td_state_list {
	struct td_state_item *item; /* sorted by key */
	size_t count;
	uint64_t revision; /* at which the list was true: watch from the next one */
};

/* A condition of a commit. A key that is absent has the revisions 0. */
struct td_state_compare {
	const char *key;
	bool is_created;   /* compares item.created instead of item.revision */
	uint64_t expected; /* 0: the key must be absent */
};

/* A change of a commit; each key may appear in one of them only. */
struct td_state_write {
	const char *key;
	const char *value; /* NULL: delete the key, if it is there */
	size_t length;
	uint64_t lease; /* 0: none */
};

/* All writes, or none if one of the compares is not so. */
struct td_state_commit {
	const struct td_state_compare *compare;
	const struct td_state_write *write;
	uint32_t compares, writes;
};

struct td_state_event {
	bool is_delete;
	struct td_state_item item; /* a deletion has the key and its revision alone */
};

/* Frees the handle and its watches. NULL is allowed. */
void td_state_free(struct td_state *state);
/* Frees what a get or a list wrote. A zeroed struct is empty. */
void td_state_item_deinit(struct td_state_item *item);
void td_state_list_deinit(struct td_state_list *list);

/* The words for a result or -errno; and details of the last failure ("" if there are none). */
const char *td_state_text(int result);
const char *td_state_why(const struct td_state *state);

/* ABSENT, AWAY, DENIED, BROKEN. */
int td_state_get(struct td_state *state, const char *key, struct td_state_item *ret);
/* All keys that begin with prefix, at one revision. AWAY, DENIED, BROKEN. */
int td_state_list(struct td_state *state, const char *prefix, struct td_state_list *ret);

/*
 * CONFLICT, NO_LEASE, AWAY, UNSURE, DENIED, BROKEN. *ret_revision (may be NULL) is the commit's
 * revision. After UNSURE the caller reads what is there before it tries again.
 */
int td_state_commit(
	struct td_state *state, const struct td_state_commit *commit, uint64_t *ret_revision);
/* Commits of one write. Expected is the key's revision, 0 if it must be absent. */
int td_state_put_if(struct td_state *state, const struct td_state_write *write, uint64_t expected,
	uint64_t *ret_revision);
int td_state_put(
	struct td_state *state, const struct td_state_write *write, uint64_t *ret_revision);
int td_state_delete_if(struct td_state *state, const char *key, uint64_t expected);

/*
 * A lease of ttl_s seconds from now. etcd may make it longer. Keeping it alive gives it the whole
 * time again. Both write the time that it has. NO_LEASE, AWAY, UNSURE (grant and revoke), DENIED.
 */
int td_state_grant(
	struct td_state *state, uint32_t ttl_s, uint64_t *ret_lease, uint64_t *ret_ttl_ns);
int td_state_keep_alive(struct td_state *state, uint64_t lease, uint64_t *ret_ttl_ns);
int td_state_revoke(struct td_state *state, uint64_t lease);
/*
 * Whether leases that nobody keeps alive have their whole time again when the state starts anew, as
 * with etcd.
 */
bool td_state_renews_leases(const struct td_state *state);

/*
 * Follows the changes of all keys that begin with prefix, from the given revision on, which is 1
 * or more. The state owns the watch until it is closed. After COMPACTED a watch is at its end.
 */
struct td_state_watch;
int td_state_watch(
	struct td_state *state, const char *prefix, uint64_t from, struct td_state_watch **ret);
void td_state_watch_close(struct td_state_watch *watch);
/*
 * The next event, in the order of revisions; it is valid until the next call for this watch or
 * until the watch is closed. NOTHING, COMPACTED, DENIED. While the state is away there is nothing;
 * the events follow when it is back.
 */
int td_state_next(struct td_state_watch *watch, struct td_state_event *ret);

/* Readable when td_state_turn() has work. It stays the same for the life of the handle. */
int td_state_fd(const struct td_state *state);
/*
 * Does what can be done now without waiting. Returns when to call it again at the latest, also if
 * the descriptor stays silent (UINT64_MAX: never). In memory this is the only clock.
 */
uint64_t td_state_turn(struct td_state *state, uint64_t now_ns);
