/*
 * Tries an MPS server by a canary (gpu/canary.h), when the node suspects it (model/hang.h). One per
 * GPU at a time; it is killed when its time is over.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/server/loop.h"

struct td_hang;
struct td_hang_params;
struct td_mpsd;

struct td_canary {
	struct td_source source; /* first: the loop hands it back. fd -1: none is under way */
	struct td_loop *loop;
	pid_t pid;
	uint64_t sent_ns;
	pid_t server; /* whose user is known; 0: none */
	uid_t uid;    /* its user */
};

void td_canary_init(struct td_canary *canary, struct td_loop *loop);
void td_canary_deinit(struct td_canary *canary);

/*
 * Sends, hears and gives up, as far as that is due. *ret_hung: the server was found to hang just
 * now. Returns when to be called again.
 */
uint64_t td_canary_turn(struct td_canary *canary, struct td_hang *hang,
	const struct td_hang_params *params, const struct td_mpsd *mps, uint64_t now_ns,
	bool *ret_hung);
