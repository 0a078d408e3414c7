/*
 * Start-time fair queueing among users (Goyal, Vin, Cheng: Start-Time Fair Queuing, SIGCOMM 1996,
 * equations 4 and 5, all weights 1). A request waits in the line of its user. The line whose next
 * request begins earliest in virtual time is served first. A request begins when its user's last
 * one ended, or now if that is past, and ends later by its cost. So a user who asks for much waits
 * for himself, and one who asks for little is served first, however many requests the other one
 * has.
 *
 * The functions are pure: there is no clock, and time is in the unit of the costs. Up to
 * TD_FAIR_USERS_MAX users that are active at once are told apart; beyond that some share a line.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/list.h"

#define TD_FAIR_USERS_MAX 256

struct td_fair_user {
	uid_t uid;
	uint64_t end; /* virtual: of his last request */
	struct td_list line;
};

struct td_fair {
	uint64_t now;           /* virtual: the start of the request served last */
	uint32_t count, served; /* served: index of the user whose request that is */
	struct td_fair_user users[TD_FAIR_USERS_MAX];
};

void td_fair_init(struct td_fair *fair);

/* Joins the end of the user's line, if it stands in none. Taken out by td_list_remove(), too. */
void td_fair_add(struct td_fair *fair, uid_t uid, struct td_list *item);

/* Takes out who is to be served next; NULL: nobody waits. */
struct td_list *td_fair_next(struct td_fair *fair);

/* Charges the cost of serving the user that td_fair_next() returned last. */
void td_fair_charge(struct td_fair *fair, uint64_t cost);
