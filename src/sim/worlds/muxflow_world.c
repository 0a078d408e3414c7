/* Simulates the world of MuxFlow's experiments; see muxflow_world.h. */
#include "sim/worlds/muxflow_world.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "policy/cluster/baselines.h"
#include "sim/base/random.h"

#define BINS         TD_MUX_BINS
#define STEP_S       300.
#define MATCH_STEPS  3 /* matching "every 15 minutes", in steps */
#define END_S        (10 * 86400.)
#define MOVE_S       30. /* cost of a checkpoint and of starting elsewhere */
#define NONE         UINT32_MAX
#define NOISE        0.05
#define PRICE_ROUNDS 6 /* rounds that improve the last interval's prices */

/* Returns the part of the time in which service g is busy alone. */
static double activity(const struct td_mux_world *w, uint32_t g, double now_s)
{
	double rate = 20 + 170 * (0.5 - 0.5 * cos(2 * M_PI * (now_s / 86400 + w->phases[g])));

	return fmin(0.85, rate * w->service_s[g % TD_MUX_SERVICES]);
}

/* Returns the SM activity per used GPU time that a monitor shows. */
static double activity_of_use(enum td_mux_how how)
{
	return how == TD_MUX_ALL_ACTIVE ? 1 : TD_MUXFLOW_ACTIVITY;
}

/*
 * Returns the share of a job's SMs: "assign the SM percentage according to the SM activity of
 * online workloads" (MuxFlow 4.3).
 */
static uint32_t share_ppm(enum td_mux_how how, double busy)
{
	if (how == TD_MUX_NO_SHARE || how == TD_MUX_NO_BOTH)
		return 400000;
	return td_dynamic_sm_ppm(
		&td_dynamic_sm_default, (uint32_t)(activity_of_use(how) * busy * 1e6));
}

/* Computes the speeds of a service, while it is busy, and of the job beside it. */
static void speeds_of(const struct td_mux_world *w, uint32_t service, uint32_t kind, double busy,
	double own_share, double share, double duty, double ret[2])
{
	struct td_contender pair[2] = {w->services[service], w->offline[kind]};

	pair[0].share = own_share;
	pair[0].duty = fmax(0.01, busy);
	pair[1].share = share;
	pair[1].duty = fmax(1e-6, duty);
	td_contention_speeds(&w->contention, pair, 2, ret);
	ret[0] /= pair[0].duty;
}

/*
 * Returns the mean latency of an M/D/1 queue under a slowdown, relative to that without slowdown.
 */
static double latency_factor(double busy, double slowdown)
{
	double alone = 1 + busy / (2 * (1 - busy)), load = fmin(0.99, busy * slowdown);

	return slowdown * (1 + load / (2 * (1 - load))) / alone;
}

/* Fits the curve of a service's run alone: the time of a request over the share. */
static void profile_alone(
	const struct td_mux_world *w, uint32_t service, double alone_s, struct td_curve *ret)
{
	static const double shares[] = {0.1, 0.2, 0.35, 0.5, 0.75, 1};
	double times_s[sizeof(shares) / sizeof(shares[0])];

	for (size_t k = 0; k < sizeof(shares) / sizeof(shares[0]); k++) {
		struct td_contender alone = w->services[service];
		double speed;

		alone.share = shares[k];
		alone.duty = 1;
		td_contention_speeds(&w->contention, &alone, 1, &speed);
		times_s[k] = alone_s / speed;
	}
	if (td_curve_fit_hyperbola(shares, times_s, sizeof(shares) / sizeof(shares[0]), ret))
		*ret = (struct td_curve){.form = TD_CURVE_HYPERBOLA, .a = alone_s};
}

/*
 * Divides a GPU by tandem's split, with the guard as the objective and a batch of one request.
 * Remembers the factor found for this service and kind of job.
 */
static void split_gpu(struct td_mux_world *w, uint32_t g, uint32_t kind, double busy,
	double *ret_speed, double *ret_slowdown)
{
	uint32_t service = g % TD_MUX_SERVICES, one = 1;
	double alone_s = w->service_s[service], rate = busy / alone_s, speeds[2];
	double objective_s = TD_MUX_GUARD * alone_s * (1 + busy / (2 * (1 - busy)));
	double *factor = &w->factors[service][kind];
	struct td_slo_split split;
	struct td_curve curve;

	profile_alone(w, service, alone_s, &curve);
	td_slo_split_begin(
		&split, &curve, &one, 1, objective_s, rate, *factor > 0 ? *factor : TD_MUX_GUARD);
	do {
		speeds_of(
			w, service, kind, busy, split.share, split.guest_share, split.duty, speeds);
	} while (td_slo_split_observe(&split,
		objective_s / TD_MUX_GUARD * latency_factor(busy, 1 / speeds[0]),
		fmin(1, busy / speeds[0])));
	if (!split.paused)
		*factor = fmax(*factor, split.factor);
	*ret_speed = split.paused ? 0 : speeds[1];
	*ret_slowdown = split.paused ? 1 : 1 / speeds[0];
}

/*
 * Finds the longest duty within the guard for each of some shares, by bisection, and takes the
 * share and duty with which the job is fastest.
 */
static void find_guarded(const struct td_mux_world *w, uint32_t service, uint32_t kind, double busy,
	double *ret_speed, double *ret_slowdown)
{
	static const double shares[] = {1, 0.75, 0.5, 0.35, 0.25, 0.15, 0.1, 0.05};
	double speeds[2];

	*ret_speed = 0;
	*ret_slowdown = 1;
	for (size_t k = 0; k < sizeof(shares) / sizeof(shares[0]); k++) {
		double held = 0, missed = 2;

		for (int round = 0; round < 10; round++) {
			double duty = (held + missed) / 2;

			speeds_of(w, service, kind, busy, 1, shares[k], duty, speeds);
			if (latency_factor(busy, 1 / speeds[0]) <= TD_MUX_GUARD)
				held = duty;
			else
				missed = duty;
			if (held >= 1)
				break;
		}
		speeds_of(w, service, kind, busy, 1, shares[k], held, speeds);
		if (!(speeds[1] > *ret_speed))
			continue;
		*ret_speed = speeds[1];
		*ret_slowdown = 1 / speeds[0];
	}
}

static void guard_gpu(struct td_mux_world *w, uint32_t g, uint32_t kind, double busy,
	double *ret_speed, double *ret_slowdown)
{
	uint32_t service = g % TD_MUX_SERVICES, step = (uint32_t)(busy * TD_MUX_FINE);

	if (!(w->guarded[service][kind][step].slowdown > 0))
		find_guarded(w, service, kind, (double)step / TD_MUX_FINE,
			&w->guarded[service][kind][step].speed,
			&w->guarded[service][kind][step].slowdown);
	*ret_speed = w->guarded[service][kind][step].speed;
	*ret_slowdown = w->guarded[service][kind][step].slowdown;
}

/* Steps MuxFlow's controller until it has settled. Returns the speeds of service and job. */
static void control_gpu(const struct td_mux_world *w, struct td_muxflow_gpu *gpu, uint32_t service,
	uint32_t kind, double busy, double now_s, double ret_speeds[2])
{
	double share = share_ppm(w->how, busy) / 1e6;
	const struct td_muxflow_load load = {
		busy, share * w->offline[kind].demand, activity_of_use(w->how)};
	struct td_muxflow_output out = td_muxflow_settle(gpu, &load, (uint64_t)(now_s * 1e9));

	speeds_of(w, service, kind, busy, 1, share, out.duty_ppm / 1e6, ret_speeds);
	ret_speeds[1] = out.evict ? 0 : ret_speeds[1];
}

double td_mux_most_fixed(struct td_mux_world *w)
{
	double fastest[TD_MUX_OFFLINE] = {0}, work_s = 0, least_s = 0, speeds[2];

	w->how = TD_MUX_NO_SHARE;
	for (uint32_t i = 0; i < TD_MUX_SERVICES * TD_MUX_FINE; i++) {
		for (uint32_t k = 0; k < TD_MUX_OFFLINE; k++) {
			struct td_muxflow_gpu gpu = {0};

			control_gpu(w, &gpu, i / TD_MUX_FINE, k,
				(double)(i % TD_MUX_FINE) / TD_MUX_FINE, 0, speeds);
			fastest[k] = fmax(fastest[k], speeds[1]);
		}
	}
	for (uint32_t i = 0; i < w->count; i++) {
		work_s += w->jobs[i].work_s;
		least_s += w->jobs[i].work_s / fastest[w->jobs[i].kind];
	}
	return least_s > 0 ? work_s / least_s : 0;
}

/* Returns the factor of a service's latency beside a kind of job under MuxFlow's share. */
static double hurt(struct td_mux_world *w, uint32_t service, uint32_t kind, double busy)
{
	uint32_t step = (uint32_t)(busy * TD_MUX_FINE);
	double *factor = &w->hurt[service][kind][step], at = (double)step / TD_MUX_FINE, speeds[2];
	struct td_muxflow_gpu gpu = {0};

	if (!(*factor > 0)) {
		control_gpu(w, &gpu, service, kind, at, 0, speeds);
		*factor = latency_factor(at, 1 / speeds[0]);
	}
	return *factor;
}

static int by_cost(const void *a, const void *b)
{
	const struct td_mux_choice *x = a, *y = b;

	return (x->cost > y->cost) - (x->cost < y->cost);
}

double td_mux_least_cost(const double (*costs)[TD_MUX_OFFLINE], uint32_t gpus,
	const uint32_t *counts, double *prices, uint32_t rounds, struct td_mux_choice *ret_choices)
{
	double most = -INFINITY, best[TD_MUX_OFFLINE];
	uint32_t jobs = 0;

	for (uint32_t k = 0; k < TD_MUX_OFFLINE; k++)
		jobs += counts[k];
	for (uint32_t round = 0; round < rounds; round++) {
		uint32_t chosen[TD_MUX_OFFLINE] = {0};
		double bound = 0;

		for (uint32_t g = 0; g < gpus; g++) {
			ret_choices[g] = (struct td_mux_choice){INFINITY, g, 0};
			for (uint32_t k = 0; k < TD_MUX_OFFLINE; k++)
				if (counts[k] && costs[g][k] - prices[k] < ret_choices[g].cost)
					ret_choices[g] = (struct td_mux_choice){
						costs[g][k] - prices[k], g, k};
		}
		qsort(ret_choices, gpus, sizeof(*ret_choices), by_cost);
		for (uint32_t i = 0; i < jobs; i++) {
			bound += ret_choices[i].cost;
			chosen[ret_choices[i].kind]++;
		}
		for (uint32_t k = 0; k < TD_MUX_OFFLINE; k++)
			bound += counts[k] * prices[k];
		if (bound > most) {
			most = bound;
			memcpy(best, prices, sizeof(best));
		}
		for (uint32_t k = 0; k < TD_MUX_OFFLINE; k++)
			prices[k] += 0.5 / (round + 1.) * ((double)counts[k] - (double)chosen[k]) /
				     fmax(1, jobs);
	}
	memcpy(prices, best, sizeof(best));
	return most;
}

/* Returns the requests per second of the busiest GPUs, as many GPUs as there are jobs. */
static double most_requests(const struct td_mux_world *w, double now_s, const uint32_t *counts)
{
	struct td_mux_choice busiest[TD_MUX_GPUS];
	uint32_t jobs = 0;
	double sum = 0;

	for (uint32_t g = 0; g < TD_MUX_GPUS; g++)
		busiest[g].cost = -activity(w, g, now_s);
	for (uint32_t k = 0; k < TD_MUX_OFFLINE; k++)
		jobs += counts[k];
	qsort(busiest, TD_MUX_GPUS, sizeof(busiest[0]), by_cost);
	for (uint32_t i = 0; i < jobs; i++)
		sum -= busiest[i].cost;
	return sum;
}

/*
 * Adds a bound that no matching beats. It puts as many jobs of each kind as now on those GPUs where
 * MuxFlow's shares leave the services' latency least above the guard. If the sum over a run is
 * positive, no choice of GPUs would have kept the mean within the guard.
 */
static void add_least(struct td_mux_world *w, double now_s, struct td_mux_outcome *out)
{
	static double costs[TD_MUX_GPUS][TD_MUX_OFFLINE];
	struct td_mux_choice choices[TD_MUX_GPUS];
	uint32_t counts[TD_MUX_OFFLINE] = {0};

	for (uint32_t g = 0; g < TD_MUX_GPUS; g++) {
		double busy = activity(w, g, now_s);

		for (uint32_t k = 0; k < TD_MUX_OFFLINE; k++)
			costs[g][k] = busy * (hurt(w, g % TD_MUX_SERVICES, k, busy) - TD_MUX_GUARD);
		if (w->on[g] != NONE)
			counts[w->jobs[w->on[g]].kind]++;
	}
	out->least_excess +=
		td_mux_least_cost(costs, TD_MUX_GPUS, counts, w->prices, PRICE_ROUNDS, choices);
	out->most_requests += most_requests(w, now_s, counts);
}

/* Computes one interval of a GPU with a job: the job's speed and the service's slowdown. */
static void share_gpu(struct td_mux_world *w, uint32_t g, uint32_t kind, double now_s,
	double *ret_speed, double *ret_slowdown)
{
	double busy = activity(w, g, now_s), demand = w->offline[kind].demand, speeds[2];

	if (w->how == TD_MUX_TIME_SHARING || w->how == TD_MUX_PRIORITY) {
		double slower = 1 + demand * (w->how == TD_MUX_PRIORITY ? 1. / 3 : 1);

		*ret_slowdown = slower;
		*ret_speed = fmin(demand, fmax(w->how == TD_MUX_PRIORITY ? 0.25 : 0.5, 1 - busy)) /
			     demand;
		return;
	}
	if (w->how == TD_MUX_TANDEM) {
		split_gpu(w, g, kind, busy, ret_speed, ret_slowdown);
		return;
	}
	if (w->how == TD_MUX_WHOLE) {
		speeds_of(w, g % TD_MUX_SERVICES, kind, busy, 1, 1, 1, speeds);
		*ret_slowdown = 1 / speeds[0];
		*ret_speed = speeds[1];
		return;
	}
	if (w->how == TD_MUX_GUARDED) {
		guard_gpu(w, g, kind, busy, ret_speed, ret_slowdown);
		return;
	}
	control_gpu(w, &w->monitors[g], g % TD_MUX_SERVICES, kind, busy, now_s, speeds);
	*ret_slowdown = 1 / speeds[0];
	*ret_speed = speeds[1];
}

/* --- the predictor: it gets what a run alone shows, never the numbers of the truth --- */

static struct td_muxflow_profile profile_of(double demand, double busy, double alone_s)
{
	double used = demand * busy;

	return (struct td_muxflow_profile){used, TD_MUXFLOW_ACTIVITY * used, 0.5 * used, alone_s};
}

/* Draws one sample: a service at some load, and a kind of job. Returns the job's true speed. */
double td_mux_draw_sample(const struct td_mux_world *w, uint64_t *state, double *ret_x)
{
	uint32_t service = td_random_below(state, TD_MUX_SERVICES);
	uint32_t kind = td_random_below(state, TD_MUX_OFFLINE);
	double busy = 0.02 + 0.83 * td_random_unit(state), speeds[2];
	uint32_t ppm = share_ppm(TD_MUX_MUXFLOW, busy);
	struct td_muxflow_profile online =
		profile_of(w->told_services[service], busy, w->service_s[service]);
	struct td_muxflow_profile offline = profile_of(w->told_offline[kind], 1, 0.1 * (kind + 1));

	speeds_of(w, service, kind, busy, 1, ppm / 1e6, 1, speeds);
	td_muxflow_inputs(&online, &offline, ppm, ret_x);
	return speeds[1];
}

int td_mux_train(struct td_mux_world *w, const struct td_learn_options *options, uint64_t seed,
	struct td_err *err)
{
	td_auto_free double *x = calloc(TD_MUX_SAMPLES * TD_MUXFLOW_INPUTS, sizeof(double));
	td_auto_free double *y = calloc(TD_MUX_SAMPLES, sizeof(double));
	struct td_dataset data = {x, y, TD_MUX_SAMPLES, TD_MUXFLOW_INPUTS};
	int r;

	if (!x || !y)
		return td_err_set(err, -ENOMEM, "out of memory");
	for (uint32_t i = 0; i < TD_MUX_SAMPLES; i++) {
		y[i] = td_mux_draw_sample(w, &seed, x + (size_t)i * TD_MUXFLOW_INPUTS);
		y[i] *= 1 + NOISE * td_random_normal(&seed);
	}
	td_model_deinit(&w->model);
	r = td_learn_mlp(&data, options, &w->model);
	return r ? td_err_set(err, r, "the predictor could not be trained: %s", strerror(-r)) : 0;
}

/* --- scheduling --- */

static void assign(struct td_mux_world *w, uint32_t job, uint32_t gpu, double now_s,
	struct td_mux_outcome *out)
{
	if (w->jobs[job].left_s < w->jobs[job].work_s) {
		w->pause_s[gpu] = now_s + MOVE_S;
		out->moved_h += MOVE_S / 3600;
		out->moves++;
	}
	w->on[gpu] = job;
	w->jobs[job].gpu = gpu;
}

/* Places waiting jobs in order of arrival, each on a random GPU that has no job. */
static void place_fifo(
	struct td_mux_world *w, uint32_t arrived, double now_s, struct td_mux_outcome *out)
{
	uint32_t free_gpus[TD_MUX_GPUS], n = 0;

	for (uint32_t g = 0; g < TD_MUX_GPUS; g++)
		if (w->on[g] == NONE)
			free_gpus[n++] = g;
	for (uint32_t i = 0; i < arrived && n; i++) {
		struct td_mux_job *job = &w->jobs[i];
		uint32_t k;

		if (job->gpu != NONE || job->left_s <= 0)
			continue;
		k = td_random_gpu(&w->random, n);
		assign(w, i, free_gpus[k], now_s, out);
		free_gpus[k] = free_gpus[--n];
	}
}

/*
 * Runs Algorithm 1 with the true effects of pairs instead of the predictor. rows has the row of
 * each service and bin of activity, or NONE.
 */
static int match_by_truth(const struct td_mux_world *w, struct td_mux_matching *m,
	const struct td_muxflow_cluster *cluster, const uint32_t *rows, const uint32_t *columns,
	float *weights)
{
	const struct td_match_problem problem = {.weights = weights,
		.stride = cluster->offline_count,
		.rows = cluster->online_count,
		.columns = cluster->offline_count,
		.row_counts = cluster->online_counts,
		.column_counts = cluster->offline_counts};
	struct td_match_result result;
	struct td_match *match;

	for (uint32_t i = 0; i < TD_MUX_SERVICES * BINS; i++) {
		double busy = (i % BINS + 0.5) / BINS, share = share_ppm(w->how, busy) / 1e6;

		for (uint32_t v = 0; v < cluster->offline_count && rows[i] != NONE; v++) {
			double speeds[2];

			speeds_of(w, i / BINS, columns[v], busy, 1, share, 1, speeds);
			weights[(size_t)rows[i] * cluster->offline_count + v] = (float)speeds[1];
		}
	}
	return td_match_solve(
		&problem, &td_match_default, m->memory, m->bytes, m->kinds, &result, &match);
}

/*
 * Runs Algorithm 1 on kinds: services by activity, and jobs by kind. A job that the matching leaves
 * beside the same kind of service keeps its GPU.
 */
static int place_matched(struct td_mux_world *w, struct td_mux_matching *m, uint32_t arrived,
	double now_s, struct td_mux_outcome *out)
{
	struct td_muxflow_profile online[TD_MUX_SERVICES * BINS], offline[TD_MUX_OFFLINE];
	uint32_t online_counts[TD_MUX_SERVICES * BINS] = {0}, offline_counts[TD_MUX_OFFLINE] = {0};
	uint32_t row_of[TD_MUX_GPUS], rows = 0, bin_row[TD_MUX_SERVICES * BINS],
				      columns[TD_MUX_OFFLINE], cols = 0;
	float weights[TD_MUX_SERVICES * BINS * TD_MUX_OFFLINE];
	uint32_t next[TD_MUX_SERVICES * BINS], want[TD_MUX_GPUS], at = 0;
	struct td_match_result result;
	struct td_muxflow_cluster cluster;
	int r;

	for (uint32_t i = 0; i < TD_MUX_SERVICES * BINS; i++)
		bin_row[i] = NONE;
	for (uint32_t g = 0; g < TD_MUX_GPUS; g++) {
		uint32_t bin = (uint32_t)(activity(w, g, now_s) * BINS), s = g % TD_MUX_SERVICES;
		uint32_t *row = &bin_row[s * BINS + bin];

		if (*row == NONE) {
			*row = rows;
			online[rows++] = profile_of(
				w->told_services[s], (bin + 0.5) / BINS, w->service_s[s]);
		}
		row_of[g] = *row;
		online_counts[*row]++;
	}
	{
		uint32_t counts[TD_MUX_OFFLINE] = {0};

		for (uint32_t i = 0; i < arrived; i++)
			counts[w->jobs[i].kind] += w->jobs[i].left_s > 0;
		for (uint32_t k = 0; k < TD_MUX_OFFLINE; k++) {
			if (!counts[k])
				continue;
			offline[cols] = profile_of(w->told_offline[k], 1, 0.1 * (k + 1));
			offline_counts[cols] = counts[k] < TD_MUX_GPUS ? counts[k] : TD_MUX_GPUS;
			columns[cols++] = k;
		}
	}
	if (!cols)
		return 0;
	cluster = (struct td_muxflow_cluster){.online = online,
		.online_counts = online_counts,
		.online_count = rows,
		.offline = offline,
		.offline_counts = offline_counts,
		.offline_count = cols,
		.predictor = &w->model.predictor,
		.sm = &td_dynamic_sm_default};
	if (w->how == TD_MUX_TRUTH)
		r = match_by_truth(w, m, &cluster, bin_row, columns, weights);
	else
		r = td_muxflow_schedule(&cluster, weights, m->memory, m->bytes, m->kinds, &result);
	if (r < 0)
		return r;
	for (uint32_t row = 0; row < rows; row++) {
		next[row] = at;
		at += online_counts[row];
	}
	/* Sets the wanted kind of each GPU. Jobs whose kind is wanted where they are come first. */
	for (uint32_t g = 0; g < TD_MUX_GPUS; g++)
		want[g] = NONE;
	for (int stay = 1; stay >= 0; stay--) {
		for (uint32_t g = 0; g < TD_MUX_GPUS; g++) {
			uint32_t row = row_of[g], end = next[row] + online_counts[row];
			uint32_t kind = w->on[g] == NONE ? NONE : w->jobs[w->on[g]].kind;

			for (uint32_t u = next[row]; u < end && want[g] == NONE; u++) {
				if (m->kinds[u] == TD_MATCH_NONE ||
					(stay && columns[m->kinds[u]] != kind))
					continue;
				want[g] = columns[m->kinds[u]];
				m->kinds[u] = TD_MATCH_NONE;
			}
		}
	}
	for (uint32_t g = 0; g < TD_MUX_GPUS; g++) {
		uint32_t job = w->on[g];

		if (job != NONE && w->jobs[job].kind != want[g]) {
			w->jobs[job].gpu = NONE;
			w->on[g] = NONE;
		}
	}
	{
		uint32_t cursor[TD_MUX_OFFLINE] = {0};

		for (uint32_t g = 0; g < TD_MUX_GPUS; g++) {
			if (want[g] == NONE || w->on[g] != NONE)
				continue;
			for (uint32_t *i = &cursor[want[g]]; *i < arrived; (*i)++) {
				const struct td_mux_job *job = &w->jobs[*i];

				if (job->kind != want[g] || job->gpu != NONE || job->left_s <= 0)
					continue;
				assign(w, *i, g, now_s, out);
				break;
			}
		}
	}
	return 0;
}

static void reset(struct td_mux_world *w, enum td_mux_how how)
{
	w->how = how;
	w->random = 77;
	memset(w->monitors, 0, sizeof(w->monitors));
	memset(w->pause_s, 0, sizeof(w->pause_s));
	memset(w->factors, 0, sizeof(w->factors));
	memset(w->prices, 0, sizeof(w->prices));
	for (uint32_t g = 0; g < TD_MUX_GPUS; g++)
		w->on[g] = NONE;
	for (uint32_t i = 0; i < w->count; i++) {
		w->jobs[i].left_s = w->jobs[i].work_s;
		w->jobs[i].gpu = NONE;
		w->jobs[i].end_s = END_S;
	}
}

int td_mux_simulate(struct td_mux_world *w, struct td_mux_matching *m, enum td_mux_how how,
	struct td_mux_outcome *out)
{
	double shared_s = 0, latency = 0, service = 0, requests = 0, done_s = 0;
	uint32_t arrived = 0, ended = 0;
	double until_s = w->until_s > 0 ? w->until_s : END_S;
	bool matches = how == TD_MUX_MUXFLOW || how == TD_MUX_NO_SHARE || how >= TD_MUX_TANDEM;

	*out = (struct td_mux_outcome){0};
	reset(w, how);
	for (uint32_t step = 0; step * STEP_S < until_s && ended < w->count; step++) {
		double now_s = step * STEP_S;
		int r = 0;

		while (arrived < w->count && w->jobs[arrived].arrive_s <= now_s)
			arrived++;
		if (matches && step % MATCH_STEPS == 0)
			r = place_matched(w, m, arrived, now_s, out);
		else if (!matches)
			place_fifo(w, arrived, now_s, out);
		if (r)
			return r;
		if (how == TD_MUX_MUXFLOW)
			add_least(w, now_s, out);
		for (uint32_t g = 0; g < TD_MUX_GPUS; g++) {
			uint32_t j = w->on[g];
			double busy = activity(w, g, now_s), speed, slowdown, ran = STEP_S;

			if (j == NONE)
				continue;
			share_gpu(w, g, w->jobs[j].kind, now_s, &speed, &slowdown);
			if (w->pause_s[g] > now_s)
				ran -= w->pause_s[g] - now_s;
			latency += busy * latency_factor(busy, slowdown);
			service += busy * slowdown;
			requests += busy;
			done_s += fmin(w->jobs[j].left_s, speed * ran);
			shared_s += STEP_S;
			if (speed > 0 && w->jobs[j].left_s <= speed * ran) {
				w->jobs[j].end_s = now_s + STEP_S - ran + w->jobs[j].left_s / speed;
				shared_s -= now_s + STEP_S - w->jobs[j].end_s;
				w->jobs[j].left_s = 0;
				w->on[g] = NONE;
				ended++;
			} else {
				w->jobs[j].left_s -= speed * ran;
			}
		}
	}
	for (uint32_t i = 0; i < w->count; i++)
		out->jct_s += (w->jobs[i].end_s - w->jobs[i].arrive_s) / w->count;
	out->unfinished = w->count - ended;
	out->oversold = shared_s > 0 ? done_s / shared_s : 0;
	out->latency = requests > 0 ? latency / requests : 1;
	out->service = requests > 0 ? service / requests : 1;
	return 0;
}
