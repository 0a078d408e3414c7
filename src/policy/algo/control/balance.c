/* Finds migrations within a node; see balance.h. */
#include "policy/algo/control/balance.h"

#include <string.h>

const struct td_balance_params td_balance_default = TD_BALANCE_DEFAULT;

struct loads {
	double core[TD_BALANCE_GPUS_MAX], memory[TD_BALANCE_GPUS_MAX];
	uint32_t apps[TD_BALANCE_GPUS_MAX];
};

static void add_up(struct loads *loads, const struct td_balance_app *apps, uint32_t count)
{
	memset(loads, 0, sizeof(*loads));
	for (uint32_t i = 0; i < count; i++) {
		loads->core[apps[i].gpu] += apps[i].core;
		loads->memory[apps[i].gpu] += apps[i].memory;
		loads->apps[apps[i].gpu]++;
	}
}

/* Returns the GPU's priority by DCUDA's Table I, from 1 (the highest) to 4. */
static uint32_t priority(
	const struct td_balance_params *params, const struct loads *loads, uint32_t gpu)
{
	bool core = loads->core[gpu] > params->core_over;
	bool memory = params->memory_aware && loads->memory[gpu] > params->memory;

	if (core)
		return memory ? 1 : 2;
	return memory ? 3 : 4;
}

static bool comes_before(
	const struct td_balance_params *params, const struct loads *loads, uint32_t a, uint32_t b)
{
	uint32_t pa = priority(params, loads, a), pb = priority(params, loads, b);

	return pa != pb ? pa < pb : loads->core[a] > loads->core[b];
}

static void sort_gpus(const struct td_balance_params *params, const struct loads *loads,
	uint32_t gpus, uint32_t *order)
{
	for (uint32_t g = 0; g < gpus; g++) {
		uint32_t at = g;

		for (; at && comes_before(params, loads, g, order[at - 1]); at--)
			order[at] = order[at - 1];
		order[at] = g;
	}
}

/* Lists the movable applications of a GPU, heaviest first. Returns their number. */
static uint32_t list_apps(
	const struct td_balance_app *apps, uint32_t count, uint32_t gpu, uint32_t *order)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t at = n;

		if (apps[i].gpu != gpu || !apps[i].movable)
			continue;
		for (; at && apps[i].core > apps[order[at - 1]].core; at--)
			order[at] = order[at - 1];
		order[at] = i;
		n++;
	}
	return n;
}

static void move(struct loads *loads, struct td_balance_app *app, uint32_t id, uint32_t to,
	struct td_balance_move *ret_move)
{
	*ret_move = (struct td_balance_move){id, app->gpu, to};
	loads->core[app->gpu] -= app->core;
	loads->memory[app->gpu] -= app->memory;
	loads->apps[app->gpu]--;
	app->gpu = to;
	loads->core[to] += app->core;
	loads->memory[to] += app->memory;
	loads->apps[to]++;
}

static bool is_pair(const struct td_balance_params *params, const struct loads *loads,
	uint32_t over, uint32_t under)
{
	return (loads->core[under] < params->core_under && loads->core[over] > params->core_over) ||
	       (params->memory_aware && loads->memory[under] < params->memory &&
		       loads->memory[over] > params->memory);
}

static bool fits(const struct td_balance_params *params, const struct loads *loads,
	const struct td_balance_app *app, uint32_t under)
{
	if (!(loads->core[under] + app->core < params->core_over))
		return false;
	return !params->memory_aware || loads->memory[under] + app->memory < params->memory ||
	       loads->memory[under] > params->memory;
}

uint32_t td_balance(const struct td_balance_params *params, struct td_balance_app *apps,
	uint32_t count, uint32_t gpus, uint32_t *order, struct td_balance_move *ret_moves)
{
	uint32_t by_priority[TD_BALANCE_GPUS_MAX], moves = 0;
	struct loads loads;

	add_up(&loads, apps, count);
	sort_gpus(params, &loads, gpus, by_priority);
	for (uint32_t i = 0; i < gpus / 2; i++) {
		uint32_t over = by_priority[i], under = by_priority[gpus - 1 - i];
		uint32_t tasks;

		if (!is_pair(params, &loads, over, under))
			continue;
		tasks = list_apps(apps, count, over, order);
		for (uint32_t k = 0; k < tasks && priority(params, &loads, over) < 4; k++)
			if (fits(params, &loads, &apps[order[k]], under))
				move(&loads, &apps[order[k]], order[k], under, &ret_moves[moves++]);
	}
	return moves;
}

/* Tells whether all of a GPU's applications can leave it. */
static bool can_empty(const struct td_balance_app *apps, uint32_t count, uint32_t gpu)
{
	for (uint32_t i = 0; i < count; i++)
		if (apps[i].gpu == gpu && !apps[i].movable)
			return false;
	return true;
}

/* Finds the two least loaded GPUs that are not idle. Returns false if there are fewer than two. */
static bool lightest_pair(
	const struct loads *loads, uint32_t gpus, uint32_t *ret_first, uint32_t *ret_second)
{
	uint32_t first = gpus, second = gpus;

	for (uint32_t g = 0; g < gpus; g++) {
		if (!loads->apps[g])
			continue;
		if (first == gpus || loads->core[g] < loads->core[first]) {
			second = first;
			first = g;
		} else if (second == gpus || loads->core[g] < loads->core[second]) {
			second = g;
		}
	}
	*ret_first = first;
	*ret_second = second;
	return second < gpus;
}

/* Moves all applications of GPU `from` to `to`. A move that this step already has is redirected. */
static uint32_t empty_into(struct loads *loads, struct td_balance_app *apps, uint32_t count,
	uint32_t from, uint32_t to, struct td_balance_move *moves, uint32_t moved)
{
	for (uint32_t i = 0; i < count; i++) {
		struct td_balance_move onwards;
		uint32_t k = 0;

		if (apps[i].gpu != from)
			continue;
		move(loads, &apps[i], i, to, &onwards);
		while (k < moved && moves[k].app != i)
			k++;
		if (k == moved)
			moves[moved++] = onwards;
		else
			moves[k].to = to;
	}
	return moved;
}

uint32_t td_balance_compact(const struct td_balance_params *params, struct td_balance_app *apps,
	uint32_t count, uint32_t gpus, struct td_balance_move *ret_moves)
{
	uint32_t from, to, moves = 0;
	struct loads loads;

	add_up(&loads, apps, count);
	while (lightest_pair(&loads, gpus, &from, &to)) {
		if (!(loads.core[from] + loads.core[to] < params->core_under) ||
			!(loads.memory[from] + loads.memory[to] <
				(params->memory_aware ? params->memory : 1)))
			break;
		if (can_empty(apps, count, from))
			moves = empty_into(&loads, apps, count, from, to, ret_moves, moves);
		else if (can_empty(apps, count, to))
			moves = empty_into(&loads, apps, count, to, from, ret_moves, moves);
		else
			break;
	}
	return moves;
}

uint32_t td_balance_choose(const struct td_balance_params *params, const double *core,
	const double *memory, uint32_t gpus, double newcomer)
{
	uint32_t best = gpus, best_any = 0;

	for (uint32_t g = 0; g < gpus; g++) {
		if (core[g] < core[best_any])
			best_any = g;
		if ((best == gpus || core[g] < core[best]) &&
			!(memory[g] + newcomer > params->memory))
			best = g;
	}
	return best < gpus && params->memory_aware ? best : best_any;
}

uint32_t td_balance_start(const struct td_balance_params *params, const struct td_balance_app *apps,
	uint32_t count, uint32_t gpus, double memory)
{
	struct loads loads;

	add_up(&loads, apps, count);
	return td_balance_choose(params, loads.core, loads.memory, gpus, memory);
}
