/*
 * The GPUs that the process's job may see (`tandem run --gpu`; docs/decisions/0013).
 *
 *   TANDEM_GPUS       UUIDs separated by commas, in the order in which the program sees them
 *   TANDEM_GPU_COUNT  how many of them the job gets. If it is fewer than TANDEM_GPUS lists, the
 *                     daemon chooses when a process of the job first asks
 *   TANDEM_GPU_REST   if set, the program also sees all other GPUs, after those
 *
 *   UNDECIDED --a thread asks--> ASKED --PLACED--> DECIDED
 *
 * If there is no daemon for the grace time, or it does not answer, all of TANDEM_GPUS are taken.
 * The decision holds until the process ends. Each new daemon is told of it.
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
	/*
	 * If the job has one GPU: the directory of that GPU's MPS, empty if there is none; and the
	 * job's share of the SMs, 0 if it has none.
	 */
	char mps[256];
	uint32_t sm_share_ppm;
};

/* Reads the environment. Called once, at load. */
void td_place_read(void);

/*
 * Returns whether the environment says which GPUs the job may see. If it does not, the program sees
 * every GPU, and only the agent may call the other functions here.
 */
bool td_place_is_wanted(void);

/* Gets the chosen GPUs. May wait, for a limited time, for the daemon's choice. */
void td_place_get(struct td_placed *ret);

/* -- called by the agent only -- */

/* Called while there is a daemon. Sends it, once per connection, the candidates or the choice. */
void td_place_step(void (*send)(const struct td_msg *msg));
void td_place_message(const struct td_msg_placed *msg);
/* Called while there is no daemon. Threads then wait no longer than the grace time. */
void td_place_alone(void);
/* The connection to the daemon is lost. */
void td_place_disconnected(void);
void td_place_forked(void);
