/*
 * The recovery of an MPS server that has failed (MuxFlow 4.2). The jobs that have a supervisor to
 * start them again are restarted, online ones first. The server is ended with all its clients'
 * contexts, and started anew. A policy that judges GPUs decides when. Under any other policy the
 * same detector (policy/algo/control/health.h) decides. If failures repeat, MPS is turned off for a
 * while, and programs take turns on the GPU as without it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "policy/algo/control/health.h"

struct td_mpsd;
struct td_node;

struct td_recovery {
	struct td_health health; /* used if the policy does not judge GPUs */
	/* the last step asked for a reset; a reset is done when this becomes true */
	bool resets;
	bool is_broken; /* the last step asked to turn MPS off for a while */
	uint64_t count;
};

/*
 * Judges the GPU with that index in the node. Returns true if the server is to be started anew;
 * *ret_why says why. Call it in each turn.
 */
bool td_recovery_turn(struct td_recovery *recovery, struct td_node *node, uint32_t gpu,
	struct td_mpsd *mps, uint64_t now_ns, const char **ret_why);
