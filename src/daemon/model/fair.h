/*
 * Start-time fair queueing among users (Goyal, Vin, Cheng: Start-Time Fair Queuing, SIGCOMM 1996, equations 4 and 5, all weights 1). Who waits to be served waits in his user's line;
 * the line that goes first is the one whose next request begins earliest in virtual time. A request begins when its user's last one has ended, or now if that is past, and ends so much later
 * as it cost. So a user who asks for much waits for himself, and one who asks for little goes first, however many requests the other one has.
 *
 * Pure: no clock. Time is counted in whatever unit costs are. Users are told apart up to TD_FAIR_USERS_MAX that are active at once; beyond that some share a line.
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
	uint64_t now; /* virtual: the start of the request served last */
	uint32_t count, served; /* served: index of the user whose request that is */
	struct td_fair_user users[TD_FAIR_USERS_MAX];
};

void td_fair_init(struct td_fair *fair);

/* Joins the end of the user's line, if it stands in none. Taken out by td_list_remove(), too. */
void td_fair_add(struct td_fair *fair, uid_t uid, struct td_list *item);

/* Takes out who is to be served next; NULL: nobody waits. */
struct td_list *td_fair_next(struct td_fair *fair);

/* What serving the one that td_fair_next() gave last has cost. */
void td_fair_charge(struct td_fair *fair, uint64_t cost);
