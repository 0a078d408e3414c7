/*
 * The policy "dcuda": balancing, compaction and fair slices over the GPUs of a node (dcuda.h).
 *
 * An application is a client. Its core demand is what the interposer found by occupancy, over the
 * time that its gate was open: a program that is closed for slices demands no less. Its memory
 * demand is what it has allocated, as a share of the GPU's capacity. A client can move if its
 * program can, and if it is alone in its group: a group's GPUs are chosen together, so DCUDA does
 * not move it. One that is on its way counts where it goes. A group runs in a slice if any of its
 * clients would, so a wide group runs more often rather than never.
 *
 * Where contexts take turns, programs that share a GPU hide what each would use alone: see unhide()
 * and share_saturated().
 *
 * Hysteresis. A move stops the program for a while, and demands of one window vary. So a move is
 * planned once the algorithms have wanted it for BALANCE_HOLD_NS or COMPACT_HOLD_NS without a
 * break, and a program that has moved stays for REST_TIMES its last pause, at least REST_MIN_NS.
 * Plans name a move until the view shows the client on its way.
 *
 * A client that is closed for the slice keeps its memory as far as it fits. New processes are
 * placed by the daemon with td_balance_start(). A GPU to which no job may be moved is shown to the
 * algorithms as full.
 *
 * Invariants: on a GPU that is not overloaded all clients are open; a paused client is never open;
 * a group is open or closed alike on all of its GPUs; compaction never uses a GPU as target and
 * source in one plan.
 */
#include <string.h>

#include "policy/node/plans.h"
#include "policy/node/share.h"
#include "policy/system/dcuda.h"

/* So long the algorithms have to want a move before it is planned. */
#define BALANCE_HOLD_NS (2 * TD_SLICE_NS)
#define COMPACT_HOLD_NS (50 * TD_SLICE_NS)
/* A program that has moved stays at least so long: moves take at most a twentieth of its time. */
#define REST_TIMES  20
#define REST_MIN_NS (10 * TD_SLICE_NS)
/* Demands are means over about this long. */
#define SMOOTHING_NS (2 * TD_SLICE_NS)
/* A whole GPU, which is less than what overloads one. */
#define ALL 0.99
/* A GPU that is always busy: overloaded, and one group of a slice. */
#define SATURATED 1.09
/* The gate has to have been open for this part of the time for a demand to follow from it. */
#define OPEN_MIN 0.02

_Static_assert(TD_DCUDA_APPS_MAX >= TD_CLIENT_MAX + TD_GPU_MAX && TD_BALANCE_GPUS_MAX >= TD_GPU_MAX,
	"every view fits");

struct group {
	uint32_t clients;
	bool runs, paused;
};

/* The demand of a client, and the move that is wanted for it. In the view's order. */
struct known {
	uint32_t id;
	uint64_t at_ns, held_ns;
	double core, open; /* means of the time: the cores that it used, and its open gate */
	bool wanted;
	uint32_t to;
	uint64_t wanted_since_ns;
};

struct dcuda {
	uint32_t known_count;
	struct known known[TD_CLIENT_MAX];
	/* Scratch of a step. */
	struct td_balance_app apps[TD_DCUDA_APPS_MAX];
	struct td_dcuda_plan plan, slices;  /* the moves of one, the slices of the other */
	struct group groups[TD_CLIENT_MAX]; /* entries by a group's first client */
	uint16_t first[TD_CLIENT_MAX];
	struct known before[TD_CLIENT_MAX];
};

/* -- demands -- */

/* Where contexts take turns, work on a part of the SMs takes all of the GPU's time. */
static void measure(
	struct known *known, const struct td_client_view *client, bool is_spatial, uint64_t now_ns)
{
	uint32_t ppm = client->core_ppm;
	double core, open, part;
	uint64_t elapsed_ns = now_ns - known->at_ns, held_ns = client->held_ns - known->held_ns;

	if (!is_spatial && client->busy_ppm > ppm)
		ppm = client->busy_ppm;
	core = ppm / (double)TD_PPM;
	if (!known->at_ns || client->held_ns < known->held_ns) {
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
static void measure_all(struct dcuda *dcuda, const struct td_view *view, uint64_t now_ns)
{
	uint32_t old = 0, count = dcuda->known_count;

	memcpy(dcuda->before, dcuda->known, count * sizeof(dcuda->before[0]));
	for (uint32_t c = 0; c < view->client_count; c++) {
		struct known *known = &dcuda->known[c];

		while (old < count && dcuda->before[old].id < view->clients[c].id)
			old++;
		if (old < count && dcuda->before[old].id == view->clients[c].id)
			*known = dcuda->before[old];
		else
			*known = (struct known){.id = view->clients[c].id};
		measure(known, &view->clients[c], view->gpus[view->clients[c].gpu].mps == TD_MPS_ON,
			now_ns);
	}
	dcuda->known_count = view->client_count;
}

/* No more than a whole GPU can be of use to a program, and it has to fit an idle one. */
static double demand_of(const struct known *known)
{
	double demand = known->core / (known->open > OPEN_MIN ? known->open : OPEN_MIN);

	return demand < ALL ? demand : ALL;
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
 */
static void unhide(struct dcuda *dcuda, const struct td_view *view)
{
	double sums[TD_GPU_MAX] = {0};

	for (uint32_t c = 0; c < view->client_count; c++)
		sums[view->clients[c].gpu] += dcuda->known[c].core;
	for (uint32_t c = 0; c < view->client_count; c++) {
		uint32_t g = view->clients[c].gpu;
		double p = demand_of(&dcuda->known[c]),
		       u = p / (1 + sums[g] - dcuda->known[c].core);

		if (view->gpus[g].mps != TD_MPS_ON)
			dcuda->apps[c].core = u / (u + 1 - p);
	}
}

/*
 * For slices, the demands of a GPU that is always busy are shown as SATURATED together: no slices
 * follow from them but for memory, as the driver takes turns already.
 */
static void share_saturated(struct dcuda *dcuda, const struct td_view *view)
{
	for (uint32_t g = 0; g < view->gpu_count; g++) {
		double sum = 0;

		for (uint32_t c = 0; c < view->client_count; c++)
			sum += dcuda->apps[c].gpu == g ? dcuda->apps[c].core : 0;
		if (view->gpus[g].mps == TD_MPS_ON || sum <= SATURATED)
			continue;
		for (uint32_t c = 0; c < view->client_count; c++)
			if (dcuda->apps[c].gpu == g)
				dcuda->apps[c].core *= SATURATED / sum;
	}
}

static bool has_rested(const struct td_client_view *client, uint64_t now_ns)
{
	uint64_t rest_ns = REST_MIN_NS;

	if (!client->moved_ns)
		return true;
	if (client->move_pause_ns > REST_MIN_NS / REST_TIMES)
		rest_ns = client->move_pause_ns < TD_NEVER / REST_TIMES
				  ? client->move_pause_ns * REST_TIMES
				  : TD_NEVER;
	return now_ns >= client->moved_ns && now_ns - client->moved_ns >= rest_ns;
}

static void list_apps(struct dcuda *dcuda, const struct td_view *view, uint64_t now_ns)
{
	td_group_firsts(view, dcuda->first);
	memset(dcuda->groups, 0, view->client_count * sizeof(dcuda->groups[0]));
	for (uint32_t c = 0; c < view->client_count; c++)
		dcuda->groups[dcuda->first[c]].clients++;
	for (uint32_t c = 0; c < view->client_count; c++) {
		const struct td_client_view *client = &view->clients[c];
		bool moves = client->moves && client->moves_to < view->gpu_count;
		uint64_t capacity = view->gpus[client->gpu].capacity_bytes;

		dcuda->apps[c] = (struct td_balance_app){
			.gpu = moves ? client->moves_to : client->gpu,
			.core = demand_of(&dcuda->known[c]),
			.memory = capacity ? (double)client->demanded_bytes / (double)capacity : 0,
			.movable = client->migrates && !moves && !client->paused &&
				   dcuda->groups[dcuda->first[c]].clients == 1 &&
				   has_rested(client, now_ns),
		};
	}
}

/*
 * Fills each GPU to which no job may be moved with a stand-in, so that it is full: a move to it
 * would be wanted for ever, and take the place of one that can be. Returns the number of all apps.
 */
static uint32_t fill_shut_gpus(struct dcuda *dcuda, const struct td_view *view)
{
	uint32_t count = view->client_count;

	for (uint32_t g = 0; g < view->gpu_count; g++) {
		double core = 0;

		for (uint32_t c = 0; c < view->client_count; c++)
			core += dcuda->apps[c].gpu == g ? dcuda->apps[c].core : 0;
		if (view->gpus[g].shut && core < 1)
			dcuda->apps[count++] = (struct td_balance_app){.gpu = g, .core = 1 - core};
	}
	return count;
}

/* -- moves -- */

static bool is_wanted(const struct dcuda *dcuda, uint32_t app, uint32_t to)
{
	for (uint32_t m = 0; m < dcuda->plan.moves; m++)
		if (dcuda->plan.move[m].app == app && dcuda->plan.move[m].to == to)
			return true;
	return false;
}

/* Plans those of the moves that have been wanted for long enough. */
static void plan_moves(
	struct dcuda *dcuda, const struct td_view *view, uint64_t now_ns, struct td_plan *plan)
{
	uint64_t hold_ns = dcuda->plan.compacts ? COMPACT_HOLD_NS : BALANCE_HOLD_NS;

	for (uint32_t c = 0; c < view->client_count; c++)
		if (dcuda->known[c].wanted && !is_wanted(dcuda, c, dcuda->known[c].to))
			dcuda->known[c].wanted = false;
	for (uint32_t m = 0; m < dcuda->plan.moves; m++) {
		const struct td_balance_move *move = &dcuda->plan.move[m];
		struct known *known;

		if (move->app >= view->client_count || view->gpus[move->to].shut)
			continue;
		known = &dcuda->known[move->app];
		if (!known->wanted) {
			known->wanted = true;
			known->to = move->to;
			known->wanted_since_ns = now_ns;
		}
		if (now_ns - known->wanted_since_ns < hold_ns)
			continue;
		td_plan_act(plan,
			&(struct td_action){.kind = TD_ACTION_MIGRATE,
				.client = known->id,
				.gpu = move->to,
				.why = dcuda->plan.compacts ? TD_MOVE_COMPACT : TD_MOVE_OVERLOAD});
	}
}

/*
 * Sets the gates: a group that runs on one GPU is open on all of its GPUs; one paused on one GPU is
 * closed on all. Returns whether a client waits for a slice.
 */
static bool set_gates(struct dcuda *dcuda, const struct td_view *view, struct td_plan *plan)
{
	uint64_t waited_for = 0; /* one bit per GPU */

	for (uint32_t c = 0; c < view->client_count; c++) {
		struct group *group = &dcuda->groups[dcuda->first[c]];

		group->runs |= dcuda->slices.runs[c];
		group->paused |= view->clients[c].paused;
	}
	for (uint32_t c = 0; c < view->client_count; c++) {
		const struct group *group = &dcuda->groups[dcuda->first[c]];

		plan->grants[c].gate = TD_GATE_CLOSED;
		if (group->runs && !group->paused)
			plan->grants[c].gate = TD_GATE_OPEN;
		else if (!group->paused)
			waited_for |= 1ull << view->clients[c].gpu;
	}
	for (uint32_t c = 0; c < view->client_count; c++)
		plan->grants[c].others_wait = plan->grants[c].gate == TD_GATE_OPEN &&
					      waited_for >> view->clients[c].gpu & 1;
	return waited_for;
}

static void dcuda_step(void *state, const struct td_policy_options *options,
	const struct td_view *view, uint64_t now_ns, struct td_plan *plan)
{
	struct dcuda *dcuda = state;
	uint32_t apps;
	bool sliced;

	(void)options;
	td_plan_begin(view, plan);
	if (!view->gpu_count)
		return;
	measure_all(dcuda, view, now_ns);
	list_apps(dcuda, view, now_ns);
	unhide(dcuda, view);
	apps = fill_shut_gpus(dcuda, view);
	(void)td_dcuda_step(
		&td_dcuda_default, dcuda->apps, apps, view->gpu_count, now_ns, &dcuda->plan);
	share_saturated(dcuda, view);
	(void)td_dcuda_step(
		&td_dcuda_default, dcuda->apps, apps, view->gpu_count, now_ns, &dcuda->slices);
	sliced = set_gates(dcuda, view, plan);
	for (uint32_t c = 0; c < view->client_count; c++) {
		plan->grants[c].limit_bytes = UINT64_MAX;
		if (view->has & TD_HAS(PRIORITY))
			plan->grants[c].priority = dcuda->slices.priority[c] + 1;
	}
	if (view->has & TD_HAS(MIGRATION))
		plan_moves(dcuda, view, now_ns, plan);
	if (sliced || dcuda->plan.moves || (view->gpu_count > 1 && view->client_count > 1))
		plan->next_wakeup_ns = (now_ns / TD_SLICE_NS + 1) * TD_SLICE_NS;
	td_share_memory_by_class(view, plan);
	td_plan_make_room(view, plan);
}

static void forget_gpu(void *state, uint32_t gpu)
{
	struct dcuda *dcuda = state;

	for (uint32_t c = 0; c < dcuda->known_count; c++)
		if (dcuda->known[c].to == gpu)
			dcuda->known[c].wanted = false;
}

const struct td_policy td_policy_dcuda = {
	.name = "dcuda",
	.summary =
		"jobs move from overloaded GPUs to others; what stays overloaded is sliced fairly",
	.needs = TD_HAS(CORES) | TD_HAS(MIGRATION) | TD_HAS(HOST_MEMORY),
	.state_bytes = sizeof(struct dcuda),
	.step = dcuda_step,
	.forget_gpu = forget_gpu,
};
