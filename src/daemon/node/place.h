/*
 * Which GPUs a job is to have: DCUDA's start (III-C4, policy/algo/control/balance.h) for a process that may use any of several (`tandem run --gpu any`).
 *
 * Load is what jobs may ask for, since what they will ask for is not known: each counts on its GPUs for its processes there, at least one, times its
 * duty if it has one; a GPU that only others use, for its utilisation. Memory is what jobs have or, with a limit, may have; at least what NVML calls used.
 * A newcomer with a limit is taken to need that much. GPUs that are lost, divided by MIG, or another daemon's are chosen when the others are too few.
 *
 * A placement is the job's: its processes all see the same GPUs in the same order. It lasts as long as the job has a process that this daemon knows, and
 * comes back with them after a daemon's end. It is counted from the moment of the answer, so that programs that start together spread.
 */
#pragma once

#include <stdint.h>

struct td_msg_place;
struct td_node;
struct td_process;

/* One of the candidates; after the last one PLACED is sent, once for each GPU. 0, or -EPROTO. */
int td_node_place(struct td_node *node, struct td_process *process, const struct td_msg_place *msg,
	uint64_t now_ns);
