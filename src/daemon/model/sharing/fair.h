/*
 * Start-time fair queueing among users (Goyal, Vin, Cheng: Start-Time Fair Queuing, SIGCOMM 1996,
 * equations 4 and 5, all weights 1). A request waits in the line of its user. The line whose next
 * request begins earliest in virtual time is served first. A request begins when its user's last
 * one ended, or now if that is past, and ends later by its cost. So a user with many requests waits
 * behind his own, and a user with few is served first.
 *
 * The functions are pure: there is no clock, and time is in the unit of the costs. Up to
 * TD_FAIR_USERS_MAX users that are active at once have lines of their own; any more share lines.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/list.h"
#include "daemon/record/identity.h"

#define TD_FAIR_USERS_MAX 256

struct td_fair_user {
	struct td_identity who;
	uint64_t end; /* the virtual time at which the user's last request ends */
	struct td_list line;
};

struct td_fair {
	uint64_t now;           /* the virtual time at which the request served last began */
	uint32_t count, served; /* count: users in use; served: the index of the user served last */
	struct td_fair_user users[TD_FAIR_USERS_MAX];
};

void td_fair_init(struct td_fair *fair);

/*
 * Appends the item to its user's line unless it is in a line already. td_list_remove() takes it out
 * again.
 */
void td_fair_add(struct td_fair *fair, struct td_identity who, struct td_list *item);

/* Takes out the item that is to be served next. Returns NULL if none waits. */
struct td_list *td_fair_next(struct td_fair *fair);

/* Charges the cost of serving the user that td_fair_next() returned last. */
void td_fair_charge(struct td_fair *fair, uint64_t cost);
