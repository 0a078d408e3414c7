/*
 * DCUDA on one node, every 100 ms (III-C): balance; when nothing is overloaded, compact; on GPUs
 * that stay overloaded, slices by group.
 *
 *   moves  <- Algorithm 2                       (balance.h)
 *   if there are none and no GPU is overloaded: moves <- compaction
 *   for each GPU that is still overloaded: groups, and the group whose slice it is (fair_groups.h)
 *
 * Purpose. DCUDA places an application on the least loaded GPU when it starts and corrects that as
 * it runs: the Profiler knows each application's core demand (by occupancy, once per kernel and
 * configuration) and memory demand, the Scheduler looks at their sums every 100 ms, the Migrator
 * moves applications. The order matters: balancing comes first, since an overloaded GPU hurts all
 * jobs on it; compaction only when nobody suffers ("the energy awareness works only when" all GPUs
 * are underloaded enough); fairness only where balancing could not help, since slices cost
 * throughput.
 *
 * Only the GPUs of the applications are remembered between steps, so a move that has not taken
 * place yet is decided again, the same.
 *
 * Invariants
 * - those of the parts;
 * - an application on a GPU that is not overloaded always runs;
 * - left alone, its moves come to an end (the paper's compaction up to 100 % of the memory would
 *   not: balance.h);
 * - same applications, same time slice: same plan.
 */
#pragma once

#include "policy/algo/control/balance.h"
#include "policy/algo/control/fair_groups.h"

/* The clients of a node, and one more on each GPU. */
#define TD_DCUDA_APPS_MAX 1088u

struct td_dcuda_params {
	struct td_balance_params balance;
	double group_slack;
	bool compact; /* also move applications onto fewer GPUs, to save energy */
};

extern const struct td_dcuda_params td_dcuda_default;

struct td_dcuda_plan {
	uint32_t moves;
	bool compacts; /* they let a GPU idle; else they balance */
	struct td_balance_move move[TD_DCUDA_APPS_MAX];
	bool runs[TD_DCUDA_APPS_MAX]; /* whether each application runs in this slice */
	uint32_t
		priority[TD_DCUDA_APPS_MAX]; /* among those that run on its GPU; 0 is the highest */
};

/*
 * Decides one step; the gpu fields of apps follow the moves. Returns 0, or -EINVAL for more
 * applications or GPUs than the maxima, or an index out of range.
 */
int td_dcuda_step(const struct td_dcuda_params *params, struct td_balance_app *apps, uint32_t count,
	uint32_t gpus, uint64_t now_ns, struct td_dcuda_plan *plan);
