/*
 * Tests an MPS server by a canary (gpu/canary.h), when the node suspects it (model/measure/hang.h).
 * There is one canary per GPU at a time. It is killed when its time is over.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/server/loop/loop.h"

struct td_hang;
struct td_hang_params;
struct td_mpsd;

struct td_canary {
	/* must be first: the loop hands it back. fd -1: no canary is under way */
	struct td_source source;
	struct td_loop *loop;
	pid_t pid;
	uint64_t sent_ns;
	pid_t server; /* the server that uid belongs to; 0: none */
	uid_t uid;    /* the user of that server */
};

void td_canary_init(struct td_canary *canary, struct td_loop *loop);
void td_canary_deinit(struct td_canary *canary);

/*
 * Sends a canary, takes its result, or gives it up, whichever is due. *ret_hung tells whether the
 * server was just found to hang. Returns when to call it again.
 */
uint64_t td_canary_turn(struct td_canary *canary, struct td_hang *hang,
	const struct td_hang_params *params, const struct td_mpsd *mps, uint64_t now_ns,
	bool *ret_hung);
