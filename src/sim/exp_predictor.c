/*
 * muxflow-predictor: the multi-layer perceptron's depth and width, on dry runs of the simulated cluster and on Gavel's measured pairs, split by pair and by family of jobs.
 */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "sim/experiment.h"
#include "sim/sim.h"

#ifdef TD_HAVE_LEARN
#include "sim/muxflow_world.h"
#include "sim/pairs.h"
#include "sim/random.h"

#define TESTS 500u

/* Mean relative error on dry runs that it has not seen, without noise. */
static double test_model(const struct td_mux_world *w)
{
	double x[TD_MUXFLOW_INPUTS], sum = 0;
	uint64_t state = 987654321;

	for (uint32_t i = 0; i < TESTS; i++) {
		double truth = td_mux_draw_sample(w, &state, x);

		sum += fabs(td_predict(&w->model.predictor, x) / truth - 1) / TESTS;
	}
	return 100 * sum;
}

static void put_predictor(struct td_experiment_run *run, double errors[3][2], double spread)
{
	double by_layers[3], by_width[2] = {0};
	bool best;

	for (int l = 0; l < 3; l++) {
		by_layers[l] = (errors[l][0] + errors[l][1]) / 2;
		by_width[0] += errors[l][0] / 3;
		by_width[1] += errors[l][1] / 3;
	}
	best = by_layers[1] <= by_layers[0] + spread && by_layers[1] <= by_layers[2] + spread;
	td_row_put(run, best ? TD_REPRODUCED : TD_NOT_REPRODUCED,
		"error with 1, 2, 6 hidden layers (Fig. 12)", "4 layers (2 hidden) best", "",
		"mean over widths 64 and 128; best within the spread of the seeds",
		"%.2f, %.2f, %.2f %%", by_layers[0], by_layers[1], by_layers[2]);
	td_row_put(run,
		fabs(by_width[0] - by_width[1]) <= spread ? TD_REPRODUCED : TD_NOT_REPRODUCED,
		"error with width 64, 128 (Fig. 12)", "width immaterial", "",
		"256 to 1024 not run: too slow without an optimised BLAS", "%.2f, %.2f %%",
		by_width[0], by_width[1]);
	td_row_put(run, TD_SHOWN, "spread of the seeds, largest", "", "", "", "%.2f %%", spread);
}

/* --- Gavel's pairs --- */

#define PAIR_INPUTS 4u
#define WIDTHS      2

/* What is known of a job that was never seen beside another: its batch and its steps a second alone. */
static void tell(const struct td_pairs *pairs, uint32_t victim, uint32_t other, double *ret_x)
{
	const uint32_t jobs[2] = {victim, other};

	for (int i = 0; i < 2; i++) {
		const char *batch = strstr(pairs->jobs[jobs[i]], "batch size ");

		ret_x[2 * i] = batch ? log2(atof(batch + 11)) : 0;
		ret_x[2 * i + 1] = log(pairs->alone[jobs[i]]);
	}
}

/* Which sides are tested: of half of the pairs, or with a job of one family. */
static bool is_tested(const struct td_pairs *pairs, const struct td_observation *o, uint32_t family,
	uint64_t seed)
{
	uint32_t a = o->victim < o->other ? o->victim : o->other;
	uint64_t state = seed * 977 + a * 64ull + (o->victim + o->other - a);

	if (family != UINT32_MAX)
		return pairs->family[o->victim] == family || pairs->family[o->other] == family;
	return td_random_below(&state, 2);
}

static int judge(const struct td_pairs *pairs, const struct td_observation *all, uint32_t count,
	uint32_t family, const struct td_learn_options *options, double *errors, uint32_t *ret_n)
{
	td_auto_free double *x = calloc((size_t)count * PAIR_INPUTS, sizeof(double));
	td_auto_free double *y = calloc(count, sizeof(double));
	struct td_dataset data = {x, y, 0, PAIR_INPUTS};
	struct td_model model = {.memory = NULL};
	double told[PAIR_INPUTS];
	int r;

	if (!x || !y)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		if (is_tested(pairs, &all[i], family, options->seed))
			continue;
		tell(pairs, all[i].victim, all[i].other, x + (size_t)data.count * PAIR_INPUTS);
		y[data.count++] = all[i].speed;
	}
	r = td_learn_mlp(&data, options, &model);
	for (uint32_t i = 0; !r && i < count; i++) {
		if (!is_tested(pairs, &all[i], family, options->seed))
			continue;
		tell(pairs, all[i].victim, all[i].other, told);
		errors[(*ret_n)++] =
			100 * fabs(td_predict(&model.predictor, told) / all[i].speed - 1);
	}
	td_model_deinit(&model);
	return r;
}

/* Median error by pair and by family. */
static int judge_size(const struct td_pairs *pairs, const struct td_observation *all,
	uint32_t count, struct td_learn_options *options, uint32_t seeds, double ret[2])
{
	td_auto_free double *errors =
		calloc((size_t)count * (pairs->job_count + seeds), sizeof(double));
	uint32_t n = 0;
	int r = errors ? 0 : -ENOMEM;

	for (uint32_t s = 0; !r && s < seeds; s++) {
		options->seed = s + 1;
		r = judge(pairs, all, count, UINT32_MAX, options, errors, &n);
	}
	ret[0] = r ? 0 : td_median(errors, n);
	n = 0;
	for (uint32_t j = 0; !r && j < pairs->job_count; j++)
		if (pairs->family[j] == j)
			r = judge(pairs, all, count, j, options, errors, &n);
	ret[1] = r ? 0 : td_median(errors, n);
	return r;
}

static int learn_pairs(struct td_experiment_run *run, struct td_err *err)
{
	static const uint32_t layers[] = {1, 2, 6}, widths[WIDTHS] = {64, 256};
	td_auto_free struct td_observation *all = NULL;
	td_auto_free struct td_pairs *pairs = NULL;
	double errors[3][WIDTHS][2] = {{{0}}};
	char path[PATH_MAX];
	uint32_t count;
	int r;

	snprintf(path, sizeof(path), "%s/colocation_gavel.csv", run->data);
	r = td_pairs_read(path, "p100", &pairs, err);
	if (r)
		return r;
	all = calloc(2 * (size_t)pairs->pair_count, sizeof(*all));
	if (!all)
		return td_err_set(err, -ENOMEM, "out of memory");
	count = td_pairs_observe(pairs, NULL, all);
	for (int k = 0; k < 3 * WIDTHS && !td_sim_stop; k++) {
		struct td_learn_options options = td_learn_default;

		if (run->quick && k % WIDTHS)
			continue;
		options.epochs = run->quick ? 30 : 50;
		options.hidden_layers = layers[k / WIDTHS];
		options.width = widths[k % WIDTHS];
		r = judge_size(pairs, all, count, &options, run->quick ? 1 : 2,
			errors[k / WIDTHS][k % WIDTHS]);
		if (r == -ERANGE) /* the training diverged: a result, too */
			errors[k / WIDTHS][k % WIDTHS][0] = errors[k / WIDTHS][k % WIDTHS][1] = NAN;
		else if (r)
			return td_err_set(
				err, r, "the pairs could not be learnt: %s", strerror(-r));
	}
	for (int split = 0; split < 2; split++)
		for (int w = 0; w < (run->quick ? 1 : WIDTHS); w++) {
			char metric[96];

			snprintf(metric, sizeof(metric),
				"Gavel's pairs split by %s: median error, 1, 2, 6 hidden layers of "
				"%u",
				split ? "family" : "pair", widths[w]);
			td_row_put(run, TD_SHOWN, metric, "", "",
				split ? "no probe of the family; nan: the training diverged"
				      : "half of the pairs learnt; nan: the training diverged",
				"%.1f, %.1f, %.1f %%", errors[0][w][split], errors[1][w][split],
				errors[2][w][split]);
		}
	return 0;
}

int td_exp_muxflow_predictor(struct td_experiment_run *run, struct td_err *err)
{
	static const uint32_t layers[] = {1, 2, 6}, widths[] = {64, 128};
	uint32_t seeds = run->quick ? 2 : 3; /* a spread needs two */
	double errors[3][2] = {{0}}, widest = 0;
	struct td_mux_world *w = calloc(1, sizeof(*w));
	int r = w ? td_mux_read_services(w, run->data, err)
		  : td_err_set(err, -ENOMEM, "out of memory");

	r = r ? r : td_mux_read_kinds(w, run->data, err);
	if (!r)
		w->contention.capped_pressure = 1;
	for (int k = 0; !r && k < 6 && !td_sim_stop; k++) {
		struct td_learn_options options = td_learn_default;
		double least = INFINITY, most = 0;

		options.epochs = run->quick ? 15 : 30;
		options.hidden_layers = layers[k / 2];
		options.width = widths[k % 2];
		for (uint32_t s = 0; !r && s < seeds; s++) {
			double error;

			options.seed = s + 1;
			r = td_mux_train(w, &options, 4242 + s, err);
			error = r ? 0 : test_model(w);
			errors[k / 2][k % 2] += error / seeds;
			least = fmin(least, error);
			most = fmax(most, error);
		}
		widest = fmax(widest, most - least);
	}
	if (!r && !td_sim_stop)
		put_predictor(run, errors, widest);
	r = r ? r : learn_pairs(run, err);
	fputs("2,000 dry runs with 5 % noise from this cluster's contention model; then Gavel's "
	      "pairs on a P100, of which the perceptron is told batch and steps a second alone of "
	      "both jobs. "
	      "The fitted model of three numbers a job errs by 3 % on pairs and 4 % on families "
	      "with two probes (docs/results/contention.md).\n",
		run->report);
	if (w)
		td_model_deinit(&w->model);
	free(w);
	return r;
}
#else
int td_exp_muxflow_predictor(struct td_experiment_run *run, struct td_err *err)
{
	return td_err_set(
		err, -ENOSYS, "%s: built without BLAS, so nothing can be trained", run->name);
}
#endif
