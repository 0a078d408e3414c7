/* This file implements moves.h. */
#include "policy/node/moves.h"

#include <string.h>

#include "policy/node/plans.h"

/* Demands are means over about this long. */
#define SMOOTHING_NS 200000000ull
/* A whole GPU, which is less than what overloads one. */
#define ALL 0.99
/* A demand on a GPU with room is a mean over about this long, and is known after it. */
#define LEARN_NS 500000000ull
/* So long it holds on a full GPU. */
#define RECALL_NS 10000000000ull
/* The gate has to have been open for this part of the time for a demand to follow from it. */
#define OPEN_MIN 0.02

_Static_assert(TD_BALANCE_GPUS_MAX >= TD_GPU_MAX, "every view fits");

/* -- demands -- */

/* Where contexts take turns, work on a part of the SMs takes all of the GPU's time. */
static void measure(struct td_moves_known *known, const struct td_client_view *client,
	bool is_spatial, uint64_t now_ns)
{
	uint32_t ppm = client->core_ppm;
	double core, open, part;
	uint64_t elapsed_ns = now_ns - known->at_ns, held_ns = client->held_ns - known->held_ns;

	if (!is_spatial && client->busy_ppm > ppm)
		ppm = client->busy_ppm;
	core = ppm / (double)TD_PPM;
	/* A mean with the time before its first work would show a newcomer too late. */
	if (!known->at_ns || known->core <= 0 || client->held_ns < known->held_ns) {
		known->core = core;
		known->open = 1;
	} else if (elapsed_ns) {
		open = held_ns < elapsed_ns ? (double)held_ns / (double)elapsed_ns : 1;
		part = (double)elapsed_ns / (double)(elapsed_ns + SMOOTHING_NS);
		known->core += (core - known->core) * part;
		known->open += (open - known->open) * part;
	}
	known->at_ns = now_ns;
	known->held_ns = client->held_ns;
}

/* Both lists are in the order of ids. */
static void measure_all(struct td_moves *moves, const struct td_view *view, uint64_t now_ns)
{
	uint32_t old = 0, count = moves->known_count;

	memcpy(moves->before, moves->known, count * sizeof(moves->before[0]));
	for (uint32_t c = 0; c < view->client_count; c++) {
		struct td_moves_known *known = &moves->known[c];

		while (old < count && moves->before[old].id < view->clients[c].id)
			old++;
		if (old < count && moves->before[old].id == view->clients[c].id)
			*known = moves->before[old];
		else
			*known = (struct td_moves_known){.id = view->clients[c].id};
		measure(known, &view->clients[c], view->gpus[view->clients[c].gpu].mps == TD_MPS_ON,
			now_ns);
	}
	moves->known_count = view->client_count;
}

/* No more than a whole GPU can be of use to a program, and it has to fit an idle one. */
static double demand_of(const struct td_moves_known *known)
{
	double demand = known->core / (known->open > OPEN_MIN ? known->open : OPEN_MIN);

	return demand < ALL ? demand : ALL;
}

/* Called in each step in which the program's GPU has room. */
static void learn(struct td_moves_known *known, double demand, uint64_t now_ns)
{
	uint64_t elapsed_ns = known->room_at_ns ? now_ns - known->room_at_ns : 0;

	known->room_at_ns = now_ns;
	if (!known->room_since_ns) {
		known->room_since_ns = now_ns;
		if (!known->is_learned)
			known->free = demand;
	} else {
		known->free += (demand - known->free) * (double)elapsed_ns /
			       (double)(elapsed_ns + LEARN_NS);
	}
	known->is_learned |= now_ns - known->room_since_ns >= LEARN_NS;
}

/* Called in each step in which the client's GPU has no room. Returns the client's demand. */
static double recall(struct td_moves_known *known, double demand, uint64_t now_ns)
{
	known->room_since_ns = 0;
	if (!known->is_learned || now_ns - known->room_at_ns > RECALL_NS || known->free > demand)
		return demand;
	return known->free > known->used ? known->free : known->used;
}

/*
 * On a GPU whose contexts take turns, each program's work is in flight the longer the more others
 * there are: p of the time, where it would alone be less. While a program's work is in flight, it
 * shares the GPU with those others whose work is, too, on average the sum of their p. So it uses
 *
 *   u = p / (1 + sum of the others' p)
 *
 * of the GPU. The rest of the time, 1 - p, it does something else, and would do so alone: it
 * demands u / (u + 1 - p). Under MPS kernels run at the same time, and demands stay.
 *
 * That is too much for a program whose host works while kernels are in flight: on a full GPU some
 * are in flight nearly always, though it would use half of the GPU alone. Its demand is then what
 * it was while its GPU had room, but at least u. A change of its work on a full GPU is seen when
 * that is out of date.
 */
static void unhide(struct td_moves *moves, const struct td_view *view, uint64_t now_ns)
{
	double sums[TD_GPU_MAX] = {0}, demands[TD_GPU_MAX] = {0};

	for (uint32_t c = 0; c < view->client_count; c++)
		sums[view->clients[c].gpu] += moves->known[c].core;
	for (uint32_t c = 0; c < view->client_count; c++) {
		struct td_moves_known *known = &moves->known[c];
		uint32_t g = view->clients[c].gpu;
		double p = demand_of(known);

		if (view->gpus[g].mps == TD_MPS_ON)
			continue;
		known->used = p / (1 + sums[g] - known->core);
		moves->apps[c].core = known->used / (known->used + 1 - p);
		demands[g] += moves->apps[c].core;
	}
	for (uint32_t c = 0; c < view->client_count; c++) {
		uint32_t g = view->clients[c].gpu;

		if (view->gpus[g].mps == TD_MPS_ON)
			continue;
		if (demands[g] <= 1)
			learn(&moves->known[c], moves->apps[c].core, now_ns);
		else
			moves->apps[c].core = recall(&moves->known[c], moves->apps[c].core, now_ns);
	}
}

static bool has_rested(const struct td_client_view *client, uint64_t now_ns)
{
	uint64_t rest_ns = TD_MOVES_REST_MIN_NS;

	if (!client->moved_ns)
		return true;
	if (client->move_pause_ns > TD_MOVES_REST_MIN_NS / TD_MOVES_REST_TIMES)
		rest_ns = client->move_pause_ns < TD_NEVER / TD_MOVES_REST_TIMES
				  ? client->move_pause_ns * TD_MOVES_REST_TIMES
				  : TD_NEVER;
	return now_ns >= client->moved_ns && now_ns - client->moved_ns >= rest_ns;
}

static void list_apps(struct td_moves *moves, const struct td_view *view, uint64_t now_ns)
{
	uint16_t members[TD_CLIENT_MAX];

	td_group_firsts(view, moves->first);
	memset(members, 0, view->client_count * sizeof(members[0]));
	for (uint32_t c = 0; c < view->client_count; c++)
		members[moves->first[c]]++;
	for (uint32_t c = 0; c < view->client_count; c++) {
		const struct td_client_view *client = &view->clients[c];
		bool goes = client->moves && client->moves_to < view->gpu_count;
		uint64_t capacity = view->gpus[client->gpu].capacity_bytes;

		moves->apps[c] = (struct td_balance_app){
			.gpu = goes ? client->moves_to : client->gpu,
			.core = demand_of(&moves->known[c]),
			.memory = capacity ? (double)client->demanded_bytes / (double)capacity : 0,
			.movable = client->migrates && !goes && !client->paused &&
				   members[moves->first[c]] == 1 && has_rested(client, now_ns),
		};
	}
}

/*
 * Fills each GPU to which no job may be moved with a stand-in, so that it is full: a move to it
 * would be wanted for ever, and take the place of one that can be. Returns the number of all apps.
 */
static uint32_t fill_shut_gpus(struct td_moves *moves, const struct td_view *view)
{
	uint32_t count = view->client_count;

	for (uint32_t g = 0; g < view->gpu_count; g++) {
		double core = 0;

		for (uint32_t c = 0; c < view->client_count; c++)
			core += moves->apps[c].gpu == g ? moves->apps[c].core : 0;
		if (view->gpus[g].shut && core < 1)
			moves->apps[count++] = (struct td_balance_app){.gpu = g, .core = 1 - core};
	}
	return count;
}

uint32_t td_moves_look(struct td_moves *moves, const struct td_view *view, uint64_t now_ns)
{
	measure_all(moves, view, now_ns);
	list_apps(moves, view, now_ns);
	unhide(moves, view, now_ns);
	return fill_shut_gpus(moves, view);
}

/* -- moves -- */

static bool is_wanted(const struct td_balance_move *wanted, uint32_t count, uint32_t app)
{
	for (uint32_t m = 0; m < count; m++)
		if (wanted[m].app == app)
			return true;
	return false;
}

void td_moves_plan(struct td_moves *moves, const struct td_view *view,
	const struct td_balance_move *wanted, uint32_t count, const uint64_t *hold_ns,
	enum td_move_reason why, uint64_t now_ns, struct td_plan *plan)
{
	for (uint32_t c = 0; c < view->client_count; c++)
		if (!is_wanted(wanted, count, c))
			moves->known[c].wanted = false;
	for (uint32_t m = 0; m < count; m++) {
		const struct td_balance_move *move = &wanted[m];
		struct td_moves_known *known;

		if (move->app >= view->client_count || view->gpus[move->to].shut)
			continue;
		known = &moves->known[move->app];
		if (!known->wanted || known->why != why) {
			known->wanted = true;
			known->why = why;
			known->wanted_since_ns = now_ns;
		}
		/* Where two targets are much alike, now one is the better, now the other. */
		known->to = move->to;
		if (now_ns - known->wanted_since_ns < hold_ns[m])
			continue;
		td_plan_act(plan, &(struct td_action){.kind = TD_ACTION_MIGRATE,
					  .client = known->id,
					  .gpu = move->to,
					  .why = why});
	}
}

void td_moves_forget_gpu(struct td_moves *moves, uint32_t gpu)
{
	for (uint32_t c = 0; c < moves->known_count; c++)
		if (moves->known[c].to == gpu)
			moves->known[c].wanted = false;
}
