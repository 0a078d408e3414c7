/*
 * The agent's side of moving the program to another GPU, or to another share of its GPU's SMs. The
 * daemon asks for it (MOVE). The mover, a set of functions that preload/move provides, does the
 * work.
 *
 *          MOVE PREPARE            it has ended                MOVE GO
 *   NONE ----------------> PREPARING ----------------> PREPARED ----------> NONE, on the new GPU
 *    ^                        |                           |
 *    +-- FAILED, cancelled, or the daemon is lost --------+                 NONE, on the old GPU
 *
 * A thread of its own does PREPARING while the program runs, because making contexts and loading
 * code take long. The agent does GO, with the gate closed and the device drained. A cancelled
 * preparation runs to its end before another one can begin.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/proto.h"

struct td_moved_to {
	unsigned from;
	uint64_t bytes;
	uint32_t sm_share_ppm; /* the share that it has now; 0: it was no change of the share */
	uint64_t reasons;
};

struct td_mover {
	/*
	 * Returns why the program cannot move now: bits of TD_UNMOVABLE; 0 if it can. *ret_share:
	 * why it cannot get another share of the SMs.
	 */
	uint64_t (*reasons)(uint64_t *ret_share);
	/*
	 * Makes the twins (copies of the program's contexts, streams and so on) on that GPU. On
	 * success the process has attached to the GPU, and *ret_slot is its slot. On failure
	 * returns false and sets *ret_reasons. share_ppm: the share of the SMs of its present GPU
	 * that it is to have; 0: it is to go to that GPU.
	 */
	bool (*prepare)(const uint8_t gpu[16], uint32_t share_ppm, unsigned *ret_slot,
		uint64_t *ret_reasons);
	/*
	 * Moves the program to the prepared GPU, where it may have limit_bytes. Returns false and
	 * sets ret->reasons if it could not; the program is then unchanged on the old GPU.
	 */
	bool (*go)(uint64_t limit_bytes, struct td_moved_to *ret);
	/* Drops a preparation that is not going to be used: the program stays on its GPU. */
	void (*cancel)(void);
	/* The driver has moved the program to that GPU. */
	void (*put)(const uint8_t gpu[16]);
};

/* Called once, at load, to provide the mover. */
void td_moves_set_mover(const struct td_mover *mover);

/* -- called by the agent only -- */

/*
 * Returns whether the last cancelled move was to go to this GPU. A daemon that has no room on that
 * GPU cancels the move and does not answer ATTACH.
 */
bool td_moves_is_cancelled(const uint8_t gpu[16]);

/*
 * Does the driver hold the process for a checkpoint? Its calls would block, so the agent makes
 * none. May be called by any thread.
 */
bool td_moves_is_held(void);

void td_moves_asked(
	const struct td_msg_move *msg, void (*send)(const struct td_msg *msg), uint64_t now_ns);
/*
 * Sends the result of a preparation. With `look` it also sends why the program cannot move, if that
 * changed.
 */
void td_moves_step(void (*send)(const struct td_msg *msg), bool look);
/*
 * td_moves_lost: the connection is lost. td_moves_again: a new daemon must be told everything anew.
 */
void td_moves_lost(void);
void td_moves_again(void);
/*
 * Returns the share of the SMs that the program has by a change; 0: its share has not changed.
 * td_moves_forget_share: its context has ended.
 */
uint32_t td_moves_share_ppm(void);
void td_moves_forget_share(void);
void td_moves_forked(void);
