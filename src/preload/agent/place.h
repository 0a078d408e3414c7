/*
 * The GPUs that the process's job may see (`tandem run --gpu`; docs/decisions/0013).
 *
 *   TANDEM_GPUS       their UUIDs with commas between, in the order in which the program sees them
 *   TANDEM_GPU_COUNT  how many of them; where it is fewer the daemon chooses, when the first
 *                     process of the job wants to know
 *   TANDEM_GPU_REST   set: the program sees the others, too, behind those
 *
 *   UNDECIDED --a thread wants to know--> ASKED --PLACED--> DECIDED
 *
 * Without a daemon for the grace time, or without its answer, ASKED ends in all of them. Once
 * decided it stays so for the process's life. Each daemon is told.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/uuid.h"
#include "proto/words.h"

struct td_msg;
struct td_msg_placed;

struct td_placed {
	unsigned count;
	char text[TD_GPU_MAX][TD_UUID_TEXT];
	uint8_t uuid[TD_GPU_MAX][16];
};

/* Once, at load. */
void td_place_read(void);

/*
 * Was the process told which GPUs its job may see at all? If not, it sees every one, and nothing
 * else here is to be called but by the agent.
 */
bool td_place_is_wanted(void);

/* Returns them. May wait, boundedly, for the daemon's choice. */
void td_place_get(struct td_placed *ret);

/* -- the agent's side -- */

/* While there is a daemon: tells it once for each connection what there is to tell. */
void td_place_step(void (*send)(const struct td_msg *msg));
void td_place_message(const struct td_msg_placed *msg);
/* There is no daemon: nobody waits for one longer than the grace time. */
void td_place_alone(void);
/* The connection is gone. */
void td_place_disconnected(void);
void td_place_forked(void);
