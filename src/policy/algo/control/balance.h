/*
 * DCUDA's balancing of the GPUs of a node: Algorithms 1 and 2 with Table I, the memory watermark,
 * and energy compaction.
 *
 * Purpose. Demands of applications are shares of a GPU's cores and memory; their sum may exceed 1.
 * DCUDA (III-C) migrates running applications from overloaded GPUs (cores > Thresh_over, 100 %) to
 * underloaded ones (< Thresh_under, 90 %): the gap between the two is the hysteresis against
 * ping-pong. The heaviest feasible application moves first, so that few move.
 *
 *   GPUs in ascending priority of Table I (1: cores and memory over, 2: cores over,
 *   3: memory over, 4: neither; within one by the cores' load)
 *   for i in 1 .. len / 2: over = GPU[i], under = GPU[-i]
 *     core pair:   under.core < Thresh_under and over.core > Thresh_over
 *     memory pair: under.mem  < Thresh_mem   and over.mem  > Thresh_mem
 *     of either, for each task of over, heaviest first:
 *       c = under.core + task.core + moved core,  m likewise
 *       if c < Thresh_over and (m < Thresh_mem or under.mem > Thresh_mem): move it
 *
 * As printed, the candidates and sums are never cleared between pairs, and moving goes on when the
 * source is no longer overloaded. Both are repaired: sums are per pair, and a pair ends once the
 * source is below the thresholds that made it one. Algorithm 1 is the same with memory left out
 * (memory_aware false).
 *
 * Start (III-C4): "candidates from devices with enough free memory space as the first priority".
 * These are the GPUs that stay below the watermark, 90 %, with the newcomer; without any, all GPUs.
 * The least loaded candidate is chosen.
 *
 * Compaction (III-C2) looks at the two least loaded GPUs that are not idle. If the applications of
 * both fit one, the lighter GPU is emptied; this repeats until no pair fits. They fit where the
 * cores stay below Thresh_under and the memory below the watermark. The paper asks for 100 % of
 * both, but then balancing would find an overloaded GPU beside an idle one and undo the move.
 *
 * Invariants
 * - no move makes its target overloaded, nor brings memory over its threshold where it was not;
 * - an application moves at most once per step, only if it is movable;
 * - without an overloaded GPU nothing moves (balancing); balancing after balancing moves nothing
 *   that it has just moved back;
 * - same input, same moves.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define TD_BALANCE_GPUS_MAX 64u

struct td_balance_app {
	uint32_t gpu;
	double core, memory; /* demands as shares of the whole GPU */
	bool movable;
};

struct td_balance_params {
	double core_over, core_under; /* thresholds of the cores: 1.0 and 0.9 by default */
	double memory;                /* the watermark of the memory: 0.9 by default */
	bool memory_aware;
};

/* The paper's values. */
#define TD_BALANCE_DEFAULT                                                                         \
	{                                                                                          \
		.core_over = 1.0, .core_under = 0.9, .memory = 0.9, .memory_aware = true           \
	}
extern const struct td_balance_params td_balance_default;

struct td_balance_move {
	uint32_t app, from, to;
};

/*
 * Finds the moves that balance. The gpu fields of apps follow the moves; order is scratch of
 * `count` entries. Returns the number of moves, at most `count`.
 */
uint32_t td_balance(const struct td_balance_params *params, struct td_balance_app *apps,
	uint32_t count, uint32_t gpus, uint32_t *order, struct td_balance_move *ret_moves);

/* Finds the moves that leave GPUs idle (compaction). Returns their number. */
uint32_t td_balance_compact(const struct td_balance_params *params, struct td_balance_app *apps,
	uint32_t count, uint32_t gpus, struct td_balance_move *ret_moves);

/*
 * Returns the index of the GPU for a new application, by what all applications of each GPU demand.
 * `newcomer` is what it needs of one GPU's memory, from 0 to 1. There may be any number of GPUs,
 * but one at least.
 */
uint32_t td_balance_choose(const struct td_balance_params *params, const double *core,
	const double *memory, uint32_t gpus, double newcomer);
/* Does what td_balance_choose() does, for a list of applications. gpus <= TD_BALANCE_GPUS_MAX. */
uint32_t td_balance_start(const struct td_balance_params *params, const struct td_balance_app *apps,
	uint32_t count, uint32_t gpus, double memory);
