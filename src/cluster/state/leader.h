/*
 * Leader election by a lease. The leader holds a key that is bound to its lease; the key's value is
 * its name. The revision that made the key is the fence: each commit of the leader compares it, so
 * what a leader of the past still sends is refused, also where it believes that it leads.
 *
 *            the key is ours                         the lease has ended, is taken,
 *  SEEKING ------------------> LEADING ------------> or could not be kept alive in time
 *     ^                                                       |
 *     +-------------------------------------------------------+
 *
 * A leader that dies is followed as soon as its lease ends, or when it has not written its key for
 * a whole lease; one that resigns, and one that begins anew under its old name, at once.
 */
#pragma once

#include "cluster/state/state.h"

struct td_leader;

/*
 * A candidate of this name for the key. The state must live longer than it. Returns NULL without
 * memory, or for a key that is too long.
 */
struct td_leader *td_leader_new(
	struct td_state *state, const char *key, const char *name, uint32_t ttl_s);
/* Does not resign: the lease ends by itself. NULL is allowed. */
void td_leader_free(struct td_leader *leader);

/*
 * Tries to become the leader, or to stay it. Returns when to call it again at the latest; an event
 * at the state's descriptor is a reason to call it before. td_state_turn() comes first.
 */
uint64_t td_leader_turn(struct td_leader *leader, uint64_t now_ns);

/*
 * Whether it leads at this time. It stops to lead a tenth of the lease before another can begin,
 * also if the state is away.
 */
bool td_leader_leads(const struct td_leader *leader, uint64_t now_ns);
/* A condition for every commit of the leader, valid until td_leader_turn() is called again. */
struct td_state_compare td_leader_fence(const struct td_leader *leader);
/* The name of the leader that was seen last, as far as this candidate knows; "": none. */
const char *td_leader_name(const struct td_leader *leader);
/* Gives the lease back, so that another leads at once; it does not seek again for a whole lease. */
void td_leader_resign(struct td_leader *leader, uint64_t now_ns);
