/*
 * The recovery of an MPS server that has failed (MuxFlow 4.2): the jobs that somebody can start
 * again are restarted, online ones first, and the server is ended with all its clients' contexts
 * and started anew. A policy that judges GPUs decides when. Under any other one the same detector
 * (policy/algo/control/health.h) does. Where failures repeat, MPS is turned off for a while, and
 * programs take turns on the GPU as without it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "policy/algo/control/health.h"

struct td_mpsd;
struct td_node;

struct td_recovery {
	struct td_health health; /* where the policy does not judge */
	bool resets;             /* as of the last step: a reset is one change of it */
	bool is_broken;          /* likewise: MPS is to be off */
	uint64_t count;
};

/*
 * The GPU by its index in the node. True: the server is being started anew, and the text says why.
 * Call it in each turn.
 */
bool td_recovery_turn(struct td_recovery *recovery, struct td_node *node, uint32_t gpu,
	struct td_mpsd *mps, uint64_t now_ns, const char **ret_why);
