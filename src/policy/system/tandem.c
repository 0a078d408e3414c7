/*
 * tandem, the default: jobs run side by side as long as their demand fits the GPU. Beyond that they
 * take turns, and a turn is long enough that moving memory costs at most a set share of the time.
 *
 * Classes. Online goes before guaranteed, guaranteed before besteffort (lock.h). Side by side,
 * besteffort work is held to what guard.h finds that the others can bear, and the others' kernels
 * go first, where the node can do that. Turns between classes are strict: docs/decisions/0010.
 *
 * Turns (turns.h). With hand-over cost h and share s, h / (q + h) <= s gives q >= h (1 - s) / s. A
 * short turn is by swap.share, between quantum.min and quantum, or quantum.long if that is less. A
 * long turn, among jobs that are always busy, is by swap.share.long, up to quantum.long. Turns are
 * in proportion to the weights: the least weight on the GPUs has q, others as many times more.
 *
 * Idle holders. Handing over costs h and so does coming back; waiting costs the idle time. Without
 * knowledge, waiting h before giving up costs at most twice the optimum (the ski-rental rule). A
 * group whose last pause outlasted h is not waited for. A guaranteed job of slack s is left for
 * besteffort work only where h is at most s of the mean time between the ends of two of its pauses
 * (cycle.h), or once it has been idle for h / s: so all hand-overs together cost it at most s of
 * its time.
 *
 * Work in flight is bounded only while a job with a latency objective waits. Among others a turn
 * had better last until the holder's step is submitted and done, so that its host part falls into
 * the next one's turn; bounding it makes all host parts coincide (measured: docs/results/demo.md).
 *
 * Moves. A job moves to another GPU if the jobs of its own demand more than it has, of cores or
 * memory, and it fits there (DCUDA's Algorithm 2). Less protected jobs do not count, since they
 * give way. It has to pay: where the demand is d GPUs, jobs lose 1 - 1/d of the time by waiting for
 * each other. The move is planned once they have lost as much as it costs (the ski-rental rule
 * again): its last pause, or else a guess by its bytes. After that it rests (moves.h). The option
 * `moves` switches this off.
 *
 * Where a service's latency curves are known, besteffort work beside it begins with what they allow
 * at the present rate (forecast.h), of the time and of the SMs; its P99 corrects that.
 *
 * It takes nvshare's turns and its use of all of the memory, AntMan's duty by step time, MuxFlow's
 * PID, and Mudi's latency objective as the figure to control, and DCUDA's balancing. DCUDA's
 * placement is in the daemon and in the cluster.
 */
#include "policy/node/beside/forecast.h"
#include "policy/node/beside/guard.h"
#include "policy/node/lock.h"
#include "policy/node/moves.h"
#include "policy/node/plans.h"
#include "policy/node/beside/sms.h"
#include "policy/node/beside/trials.h"

/*
 * Before a hand-over has been measured, its cost is estimated: the demand is copied each way at
 * this rate (PCIe Gen3 x16, pinned, rounded down).
 */
#define GUESSED_BYTES_PER_US 10000u

static uint64_t handover_ns(const struct td_lock_group *group, const struct td_view *view)
{
	uint64_t worst = 0;

	for (uint32_t gpu = 0; gpu < view->gpu_count; gpu++) {
		uint64_t ns = view->gpus[gpu].handover_ns;

		if (!(group->gpus >> gpu & 1))
			continue;
		if (!ns)
			ns = group->on[gpu].demand_bytes / GUESSED_BYTES_PER_US * 1000u;
		worst = ns > worst ? ns : worst;
	}
	return worst;
}

/* Returns the turn for which hand-overs take this share of the time. */
static uint64_t turn_for_share_ns(
	const struct td_lock_group *group, const struct td_view *view, uint32_t share_ppm)
{
	uint64_t share = share_ppm ? share_ppm : 1;

	return handover_ns(group, view) / share * (TD_PPM - share);
}

static struct td_turn_bounds turns(const struct td_lock_group *group, const struct td_view *view,
	const struct td_policy_options *options)
{
	uint64_t short_most_ns =
		options->quantum_long_ns && options->quantum_long_ns < options->quantum_ns
			? options->quantum_long_ns
			: options->quantum_ns;
	struct td_turn_bounds bounds = {
		.short_ns = turn_for_share_ns(group, view, options->swap_share_ppm),
		.most_ns = short_most_ns};
	/* Divided by weights, so that the heaviest group's turn is within the longest one. */
	uint64_t long_most_ns = options->quantum_long_ns / group->heaviest * group->lightest;

	if (bounds.short_ns < options->quantum_min_ns)
		bounds.short_ns = options->quantum_min_ns;
	if (bounds.short_ns > short_most_ns)
		bounds.short_ns = short_most_ns;
	if (options->swap_share_long_ppm)
		bounds.long_ns = turn_for_share_ns(group, view, options->swap_share_long_ppm);
	if (bounds.long_ns > long_most_ns)
		bounds.long_ns = long_most_ns;
	return bounds;
}

/* Returns the least slack of the group's clients. A client that states none has the default. */
static uint32_t slack_ppm(const struct td_lock_group *group, const struct td_view *view)
{
	uint32_t least = TD_PPM;

	for (uint32_t c = group->first_client; c < view->client_count; c++) {
		uint32_t slack = view->clients[c].slack_ppm;

		slack = slack ? slack : td_duty_default.slack_ppm;
		if (view->clients[c].group == group->id && slack < least)
			least = slack;
	}
	return least;
}

/*
 * Returns how long an idle holder is waited for. A guaranteed job pays with its slack for
 * besteffort work in its pauses: in each pause if pauses are rare enough, otherwise only in long
 * ones.
 */
static uint64_t patience_ns(const struct td_lock_group *group, const struct td_lock_group *head,
	const struct td_view *view, const struct td_policy_options *options)
{
	uint64_t cost = handover_ns(group, view);

	(void)options;
	if (group->class == TD_CLASS_GUARANTEED && head->class == TD_CLASS_BESTEFFORT) {
		uint32_t slack = slack_ppm(group, view);

		if (cost > group->cycle.mean_ns / TD_PPM * slack)
			return cost / slack * TD_PPM;
	}
	return group->last_idle_ns > cost ? 0 : cost;
}

/*
 * The cost of a move that was not measured yet: what does not depend on the memory, and the copy,
 * at GUESSED_BYTES_PER_US.
 */
#define GUESSED_PAUSE_NS 50000000ull
/* A demand of one window is no reason to move. */
#define HOLD_MIN_NS 500000000ull
#define LOOK_NS     100000000ull

/* The memory of a GPU may be used up: only beyond that do jobs take turns. */
static const struct td_balance_params balance = {
	.core_over = 1.0, .core_under = 0.9, .memory = 1.0, .memory_aware = true};

struct tandem {
	struct td_moves moves;
	struct td_balance_move wanted[TD_MOVES_APPS_MAX];
	uint32_t order[TD_MOVES_APPS_MAX];
	uint64_t hold_ns[TD_MOVES_APPS_MAX];
	double demand[TD_GPU_MAX]; /* of the GPU's jobs, before any move */
	struct td_lock_plan lock;
	struct td_guard guards[TD_GPU_MAX];
	struct td_forecast forecasts[TD_GPU_MAX];
	struct td_trials trials[TD_GPU_MAX];
};

static void set_priorities(const struct td_view *view, struct td_plan *plan)
{
	for (uint32_t c = 0; c < view->client_count; c++)
		if (view->clients[c].class != TD_CLASS_BESTEFFORT)
			plan->grants[c].priority =
				view->clients[c].class == TD_CLASS_ONLINE ? 1 : 2;
}

static bool is_open(const struct td_view *view, const struct td_plan *plan, uint32_t gpu,
	uint32_t c, enum td_class class)
{
	return view->clients[c].gpu == gpu && view->clients[c].class == class &&
	       plan->grants[c].gate != TD_GATE_CLOSED;
}

/*
 * Asks the clients of guaranteed jobs to report their steps, and the pauses within a step at once,
 * because besteffort work has all of the GPU then. Bounds all besteffort work in flight together by
 * the window, so that the job's next launch finds the GPU soon.
 */
static void watch_steps(const struct td_view *view, uint32_t gpu, const struct td_guard_room *room,
	struct td_plan *plan)
{
	bool besteffort = false, guaranteed = false;
	uint32_t sharers = 0;

	for (uint32_t c = 0; c < view->client_count; c++) {
		if (!is_open(view, plan, gpu, c, TD_CLASS_BESTEFFORT))
			continue;
		besteffort = true;
		sharers += view->clients[c].wants;
	}
	for (uint32_t c = 0; c < view->client_count; c++) {
		if (!is_open(view, plan, gpu, c, TD_CLASS_GUARANTEED))
			continue;
		guaranteed = true;
		plan->grants[c].steps = true;
		plan->grants[c].others_wait |= besteffort;
	}
	for (uint32_t c = 0; guaranteed && c < view->client_count; c++) {
		struct td_grant *grant = &plan->grants[c];
		uint32_t all = sharers + !view->clients[c].wants;

		if (!is_open(view, plan, gpu, c, TD_CLASS_BESTEFFORT))
			continue;
		/* A window below 1 ns per program stays undivided: 0 would mean no bound. */
		grant->window_ns = room->window_ns > all ? room->window_ns / all : room->window_ns;
		grant->pause_until_ns = room->pause_until_ns;
		grant->sharers = room->pause_until_ns ? all : 0;
		grant->long_ns = room->long_ns;
		grant->long_every_ns = room->long_every_ns < UINT64_MAX / all
					       ? room->long_every_ns * all
					       : UINT64_MAX;
	}
}

/*
 * Sets the SMs for a besteffort program that starts under MPS beside online ones: those that they
 * leave, so that the kernels run at the same time and slow nobody down; by the latency curves, so
 * that the objective holds. Beside a guaranteed job there is no such bound, because besteffort work
 * has all of the GPU in its pauses.
 */
static void offer_sms(
	const struct td_forecast *forecasts, const struct td_view *view, struct td_plan *plan)
{
	for (uint32_t gpu = 0; plan->verdicts && gpu < view->gpu_count; gpu++) {
		struct td_gpu_verdict *verdict = &plan->verdicts[gpu];
		const struct td_forecast *forecast = &forecasts[gpu];

		if (view->gpus[gpu].mps != TD_MPS_ON)
			continue;
		verdict->sm_share_ppm = forecast->left_ppm
						? forecast->left_ppm
						: td_sms_left_ppm(view, gpu, TD_CLASS_ONLINE);
		verdict->forecast_ppm = forecast->duty_ppm;
		verdict->forecast_error_ns = forecast->error_ns;
	}
}

/* Sets the demand for each GPU, of cores or of memory, whichever is more. */
static void add_up(struct tandem *tandem, uint32_t apps, uint32_t gpus)
{
	for (uint32_t g = 0; g < gpus; g++) {
		double core = 0, memory = 0;

		for (uint32_t i = 0; i < apps; i++) {
			core += tandem->moves.apps[i].gpu == g ? tandem->moves.apps[i].core : 0;
			memory += tandem->moves.apps[i].gpu == g ? tandem->moves.apps[i].memory : 0;
		}
		tandem->demand[g] = core > memory ? core : memory;
	}
}

/*
 * Less protected jobs give way, so a job can be moved only where it and those that are at least as
 * protected demand more than the GPU has. Otherwise anybody's besteffort work could push a service
 * off its GPU.
 */
static void keep_protected(struct tandem *tandem, const struct td_view *view)
{
	double core[TD_GPU_MAX][TD_CLASS_N] = {{0}}, memory[TD_GPU_MAX][TD_CLASS_N] = {{0}};

	for (uint32_t c = 0; c < view->client_count; c++) {
		const struct td_balance_app *app = &tandem->moves.apps[c];

		for (uint32_t k = view->clients[c].class; k < TD_CLASS_N; k++) {
			core[app->gpu][k] += app->core;
			memory[app->gpu][k] += app->memory;
		}
	}
	for (uint32_t c = 0; c < view->client_count; c++) {
		struct td_balance_app *app = &tandem->moves.apps[c];
		enum td_class k = view->clients[c].class;

		app->movable &= core[app->gpu][k] > balance.core_over ||
				memory[app->gpu][k] > balance.memory;
	}
}

/* Returns how long it takes until the jobs of a GPU have lost the cost of the client's move. */
static uint64_t hold_ns(const struct td_client_view *client, double demand)
{
	double cost_ns = (double)client->move_pause_ns, lost = demand > 1 ? 1 - 1 / demand : 0;

	if (!client->move_pause_ns)
		cost_ns = GUESSED_PAUSE_NS +
			  (double)(client->demanded_bytes / GUESSED_BYTES_PER_US) * 1000;
	/* A demand just above a GPU does not pay within any time that jobs last. */
	if (cost_ns > lost * 3600e9)
		return TD_NEVER;
	return cost_ns / lost > HOLD_MIN_NS ? (uint64_t)(cost_ns / lost) : HOLD_MIN_NS;
}

/* Shares of memory are those of the GPU where the client is; the other may have less. */
static bool fits_there(const struct td_view *view, const struct td_balance_move *move)
{
	uint64_t bytes = view->clients[move->app].demanded_bytes;

	for (uint32_t c = 0; c < view->client_count; c++)
		if (view->clients[c].gpu == move->to)
			bytes += view->clients[c].demanded_bytes;
	return bytes <= view->gpus[move->to].capacity_bytes;
}

/* Moves are decided before turns: who takes turns today may not have to tomorrow. */
static void balance_gpus(
	struct tandem *tandem, const struct td_view *view, uint64_t now_ns, struct td_plan *plan)
{
	uint32_t apps, count;

	if (!(view->has & TD_HAS(MIGRATION)) || view->gpu_count < 2)
		return;
	apps = td_moves_look(&tandem->moves, view, now_ns);
	add_up(tandem, apps, view->gpu_count);
	keep_protected(tandem, view);
	count = td_balance(
		&balance, tandem->moves.apps, apps, view->gpu_count, tandem->order, tandem->wanted);
	for (uint32_t m = 0; m < count; m++) {
		const struct td_balance_move *move = &tandem->wanted[m];

		tandem->hold_ns[m] = TD_NEVER;
		if (move->app < view->client_count && fits_there(view, move))
			tandem->hold_ns[m] =
				hold_ns(&view->clients[move->app], tandem->demand[move->from]);
	}
	td_moves_plan(&tandem->moves, view, tandem->wanted, count, tandem->hold_ns,
		TD_MOVE_OVERLOAD, now_ns, plan);
	if (count && plan->next_wakeup_ns > now_ns + LOOK_NS)
		plan->next_wakeup_ns = now_ns + LOOK_NS;
}

static void tandem_policy_step(void *state, const struct td_policy_options *options,
	const struct td_view *view, uint64_t now_ns, struct td_plan *plan)
{
	const struct td_lock_rules rules = {
		.exclusive = false,
		.enforce = options->enabled,
		.by_class = true,
		.window_ns = options->window_ns,
		.turns = turns,
		.patience_ns = patience_ns,
	};

	struct tandem *tandem = state;
	uint32_t besteffort_jobs[TD_GPU_MAX];

	td_plan_from_lock(&tandem->lock, &rules, options, view, now_ns, plan);
	for (uint32_t gpu = 0; gpu < view->gpu_count; gpu++)
		td_forecast_step(&tandem->forecasts[gpu], view, plan, gpu, now_ns);
	offer_sms(tandem->forecasts, view, plan);
	if (view->has & TD_HAS(PRIORITY))
		set_priorities(view, plan);
	if (options->enabled && !options->stays)
		balance_gpus(tandem, view, now_ns, plan);
	else
		tandem->moves.known_count = 0; /* what was wanted is too old by the next look */
	if (!(view->has & TD_HAS(DUTY)) || !options->enabled)
		return;
	td_view_count_besteffort(view, besteffort_jobs);
	for (uint32_t gpu = 0; gpu < view->gpu_count; gpu++) {
		struct td_guard_room room;

		tandem->guards[gpu].forecast_ppm = tandem->forecasts[gpu].duty_ppm;
		room = td_guard_step(&tandem->guards[gpu], view, gpu, besteffort_jobs[gpu],
			options->window_ns, now_ns, plan);
		watch_steps(view, gpu, &room, plan);
		td_plan_divide_duty(view, gpu, room.duty_ppm, plan);
		td_trials_step(&tandem->trials[gpu], view, gpu, now_ns, plan);
	}
}

static void forget_gpu(void *state, uint32_t gpu)
{
	struct tandem *tandem = state;

	td_plan_forget_gpu(&tandem->lock, gpu);
	td_moves_forget_gpu(&tandem->moves, gpu);
	tandem->guards[gpu] = (struct td_guard){0};
	tandem->trials[gpu] = (struct td_trials){0};
	tandem->forecasts[gpu] = (struct td_forecast){0};
}

const struct td_policy td_policy_tandem = {
	.name = "tandem",
	.summary = "side by side while memory fits; turns as long as swapping costs little; the "
		   "default",
	.by_class = true,
	.uses = TD_HAS(MIGRATION) | TD_HAS(PROFILES),
	.state_bytes = sizeof(struct tandem),
	.step = tandem_policy_step,
	.forget_gpu = forget_gpu,
};
