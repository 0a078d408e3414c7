/*
 * MuxFlow's exchange of guests that run (3: "global rescheduling"), at each matching; see
 * guest_cluster.h. Weights are those of exchange.h: the predicted speed on a GPU, less on another
 * one than the guest's own by what a restart costs of the time until the next matching.
 *
 * A round looks at TD_GUEST_EXCHANGED guests and as many GPUs without one, and the next round at
 * those behind them.
 */
#include <string.h>

#include "policy/cluster/exchange.h"
#include "policy/cluster/guests/guest_cluster.h"

#define NONE      UINT32_MAX
#define LEAST     1e-6f /* the weight of a guest where it is, however slow */
#define TOLERANCE 1e-5  /* finer than TD_EXCHANGE_GAIN */

/* Returns the guest of a GPU that may be sent to another one; NONE: there is no such guest. */
static uint32_t movable_on(const struct td_guest_cluster *c, uint32_t gpu)
{
	const struct td_inventory *v = &c->gpus;
	uint32_t job = v->guest_count[gpu] == 1 ? v->guest[(size_t)gpu * TD_GUESTS] : NONE;

	if (job == NONE || c->jobs[job].is.stays || c->jobs[job].is.gpus != 1 ||
		v->holder[gpu] == TD_CLUSTER_ABSENT || v->barred[gpu] != TD_BAR_NOTHING)
		return NONE;
	return td_guest_weight(c, td_guest_pair(c, gpu), c->jobs[job].is.kind) > 0 ? job : NONE;
}

/* Lists guests with their GPUs, and GPUs without guests. */
static void list(struct td_guest_cluster *c)
{
	struct td_guest_exchange *x = c->exchange;
	uint32_t gpus = c->gpus.gpu_count, open = 0, k = 0;

	x->rows = x->columns = 0;
	for (; k < gpus && x->columns < TD_GUEST_EXCHANGED; k++) {
		uint32_t gpu = (x->cursor + k) % gpus, job = movable_on(c, gpu);

		if (job == NONE && (!c->is_open[gpu] || open == TD_GUEST_EXCHANGED))
			continue;
		if (job == NONE) {
			open++;
		} else {
			x->own[x->columns] = x->rows;
			x->job[x->columns++] = job;
		}
		x->gpu[x->rows++] = gpu;
	}
	x->cursor = (x->cursor + k) % gpus;
}

static bool may_go(const struct td_guest_cluster *c, const struct td_guest_job *job, uint32_t gpu)
{
	uint32_t holder = c->gpus.holder[gpu];
	uint64_t held = holder < c->jobs_max ? c->jobs[holder].is.bytes : 0;

	return td_inventory_is_in(&c->gpus, gpu, job->is.pool) &&
	       (!c->gpu_bytes || held + job->is.bytes <= c->gpu_bytes);
}

static void weigh(struct td_guest_cluster *c)
{
	struct td_guest_exchange *x = c->exchange;
	float kept = 1 - (float)((double)c->params.move_ns / (double)c->params.match_ns);

	for (uint32_t r = 0; r < x->rows; r++)
		for (uint32_t j = 0; j < x->columns; j++) {
			const struct td_guest_job *job = &c->jobs[x->job[j]];
			float weight =
				td_guest_weight(c, td_guest_pair(c, x->gpu[r]), job->is.kind);
			float *to = &x->weights[(size_t)r * x->columns + j];

			if (r == x->own[j])
				*to = weight > LEAST ? weight : LEAST;
			else
				*to = may_go(c, job, x->gpu[r]) ? weight * kept : 0;
		}
}

/* Finds a GPU for each guest. Returns false if that is not worth it. */
static bool solve(struct td_guest_cluster *c)
{
	struct td_guest_exchange *x = c->exchange;
	const struct td_match_problem problem = {.weights = x->weights,
		.stride = x->columns,
		.rows = x->rows,
		.columns = x->columns};
	struct td_match_options options = td_match_default;
	struct td_match_result result;
	struct td_match *solved;
	double gain = 0;

	options.tolerance = TOLERANCE;
	if (td_match_solve(&problem, &options, x->memory, sizeof(x->memory), x->matched, &result,
		    &solved) < 0)
		return false;
	for (uint32_t j = 0; j < x->columns; j++)
		x->to[j] = NONE;
	for (uint32_t r = 0; r < x->rows; r++)
		if (x->matched[r] != TD_MATCH_NONE)
			x->to[x->matched[r]] = r;
	for (uint32_t j = 0; j < x->columns; j++) {
		if (x->to[j] == NONE) /* it stays, unless its GPU is given to another guest */
			x->to[j] = x->own[j];
		else if (x->to[j] != x->own[j])
			gain += (double)x->weights[(size_t)x->to[j] * x->columns + j] -
				(double)x->weights[(size_t)x->own[j] * x->columns + j];
		if (x->to[j] == x->own[j] && x->matched[x->own[j]] != TD_MATCH_NONE &&
			x->matched[x->own[j]] != j)
			return false;
	}
	return gain >= TD_EXCHANGE_GAIN;
}

void td_guest_exchange_guests(struct td_guest_cluster *c)
{
	struct td_guest_exchange *x = c->exchange;

	if (c->params.move_ns >= c->params.match_ns)
		return;
	list(c);
	if (!x->columns || x->rows < 2)
		return;
	weigh(c);
	if (!solve(c))
		return;
	for (uint32_t j = 0; j < x->columns; j++)
		if (x->to[j] != x->own[j])
			td_inventory_remove_guest(&c->gpus, x->gpu[x->own[j]], x->job[j]);
	for (uint32_t j = 0; j < x->columns; j++) {
		if (x->to[j] == x->own[j])
			continue;
		td_inventory_add_guest(&c->gpus, x->gpu[x->to[j]], x->job[j]);
		c->places[c->jobs[x->job[j]].place].gpu = x->gpu[x->to[j]];
		td_guest_touch(c, x->gpu[x->own[j]]);
		td_guest_touch(c, x->gpu[x->to[j]]);
		c->started[c->started_count++] =
			(struct td_guest_started){.job = x->job[j], .moves = true};
	}
}
