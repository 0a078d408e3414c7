/*
 * The agent's side of moves to another GPU. The daemon asks (MOVE); what it takes is done by a
 * mover, which libtandem.so has (preload/move).
 *
 *          MOVE PREPARE            it is there                  MOVE GO
 *   NONE ----------------> PREPARING ----------------> PREPARED ----------> NONE, on that GPU
 *    ^                        |                           |
 *    +--- FAILED, cancelled, the daemon is lost ----------+                 NONE, where it was
 *
 * PREPARING is done by a thread of its own while the program runs: contexts and code take long. GO
 * is done by the agent, behind the closed gate with the device drained. A cancelled preparation is
 * awaited: another one begins after it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/proto.h"

struct td_mover {
	/* Why the program cannot move now; 0: it can. */
	uint64_t (*reasons)(void);
	/*
	 * Makes all twins on that GPU. False: *ret_reasons. *ret_slot: the GPU's, to which the
	 * process has attached by then.
	 */
	bool (*prepare)(const uint8_t gpu[16], unsigned *ret_slot, uint64_t *ret_reasons);
	/*
	 * The process lives there from now on. False: it has stayed, as it was. limit_bytes: what
	 * it may have there.
	 */
	bool (*go)(uint64_t limit_bytes, unsigned *ret_from, uint64_t *ret_bytes,
		uint64_t *ret_reasons);
	/* It stays where it is: what was prepared is of no use at present. */
	void (*cancel)(void);
};

/* Called once, at load. */
void td_moves_set_mover(const struct td_mover *mover);

/* -- the agent's -- */

/*
 * Was the last move that was cancelled to go there? A daemon that has no place there for the
 * program cancels its move instead of answering ATTACH.
 */
bool td_moves_is_cancelled(const uint8_t gpu[16]);

void td_moves_asked(
	const struct td_msg_move *msg, void (*send)(const struct td_msg *msg), uint64_t now_ns);
/* Sends what has come of a preparation; with `look`, also why the program cannot move. */
void td_moves_step(void (*send)(const struct td_msg *msg), bool look);
/* The daemon is gone, or there is a new one, which knows nothing. */
void td_moves_lost(void);
void td_moves_again(void);
void td_moves_forked(void);
