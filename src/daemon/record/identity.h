/*
 * Who a peer is. A user id alone does not tell: root of a container has uid 0 as well, and many
 * containers run their programs as the same uid. So a user is a uid in a space: the container, as
 * its PID namespace shows, or the daemon's own PID namespace (server/peers/spaces.h). Rights,
 * quotas and bounds go by this and by nothing else.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The daemon's own PID namespace. Other spaces are numbered from 1. */
#define TD_SPACE_OWN 0
/* The space could not be read: the peer has no rights beyond its own connection. */
#define TD_SPACE_UNKNOWN UINT32_MAX

struct td_identity {
	uid_t uid;
	uint32_t space;
};

/* Returns a user of the daemon's own PID namespace. */
static inline struct td_identity td_identity_local(uid_t uid)
{
	return (struct td_identity){.uid = uid, .space = TD_SPACE_OWN};
}

/*
 * Returns whether both are treated as one user where quantities are bounded or shared out. If the
 * user namespace of a peer is unknown, its uid alone decides, so that nobody gains by being
 * unknown.
 */
static inline bool td_identity_is_counted_as(struct td_identity a, struct td_identity b)
{
	return a.uid == b.uid && a.space == b.space;
}

/* Returns whether both are the same user. A peer of an unknown space is the same as nobody. */
static inline bool td_identity_is_same(struct td_identity a, struct td_identity b)
{
	return a.space != TD_SPACE_UNKNOWN && td_identity_is_counted_as(a, b);
}

/* Returns whether this is root of the daemon's own PID namespace. */
static inline bool td_identity_is_root(struct td_identity who)
{
	return !who.uid && who.space == TD_SPACE_OWN;
}

/* Returns whether `who` may see and change what belongs to `whose`. */
static inline bool td_identity_may(struct td_identity who, struct td_identity whose)
{
	return td_identity_is_root(who) || td_identity_is_same(who, whose);
}

/* Returns the identity as a number, for tables: no two identities have the same one. */
static inline uint64_t td_identity_key(struct td_identity who)
{
	return (uint64_t)who.space << 32 | who.uid;
}
