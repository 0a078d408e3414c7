/*
 * Chooses the GPUs of a job: DCUDA's start (III-C4, policy/algo/control/balance.h) for a process
 * that may use any of several (`tandem run --gpu any`).
 *
 * The load of a GPU is what jobs may ask for, since their future demand is unknown. Each job counts
 * on its GPUs for its processes there, at least one, times its duty if it has one. A GPU that only
 * programs without tandem use counts its utilisation. Memory is what jobs have or, with a limit,
 * may have; at least what NVML reports as used. A newcomer with a limit is assumed to need that
 * much. GPUs that are lost, divided by MIG, or another daemon's are chosen only when the others are
 * too few.
 *
 * A placement belongs to the job: its processes all see the same GPUs in the same order. It lasts
 * as long as this daemon knows a process of the job, and the processes report it to the next
 * daemon. It counts from the moment of the answer, so that programs that start together spread.
 */
#pragma once

#include <stdint.h>

struct td_msg_place;
struct td_node;
struct td_process;

/*
 * Handles one candidate of a process. After the last one, sends PLACED for each chosen GPU. Returns
 * 0 or -EPROTO.
 */
int td_node_place(struct td_node *node, struct td_process *process, const struct td_msg_place *msg,
	uint64_t now_ns);
