/*
 * The experiment muxflow-predictor varies depth and width of the multi-layer perceptron. It tests
 * on runs alone in the simulated cluster and on Gavel's measured pairs, split by pair and by family
 * of jobs.
 */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "sim/base/sim.h"
#include "sim/report/experiment.h"

#ifdef TD_HAVE_LEARN
#include "sim/base/random.h"
#include "sim/base/workers.h"
#include "sim/data/pairs.h"
#include "sim/worlds/muxflow_world.h"

#define TESTS 500u

/* Returns the mean relative error on new samples without noise. */
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

#define DEPTHS 3u

static const uint32_t depths[DEPTHS] = {1, 2, 6};

/* --- dry runs --- */

#define WIDTHS 5u
/* Wide networks have one seed: the largest takes longer than all others together. */
#define WIDE  512u
#define SEEDS 3u

static const uint32_t widths[WIDTHS] = {64, 128, 256, 512, 1024};

struct dry_runs {
	struct td_mux_world *w;
	uint32_t widths, seeds, epochs;
};

/* Finds the size and seed of a task; the largest size comes first. */
static void size_of(const struct dry_runs *d, uint32_t index, uint32_t *ret_depth,
	uint32_t *ret_width, uint32_t *ret_seed)
{
	*ret_width = d->widths - 1 - index / (DEPTHS * d->seeds);
	*ret_depth = DEPTHS - 1 - index / d->seeds % DEPTHS;
	*ret_seed = index % d->seeds;
}

static bool is_run(uint32_t width, uint32_t seed)
{
	return !seed || widths[width] < WIDE;
}

/* Trains one size. The result is NAN if the training diverged. */
static int run_size(void *arg, uint32_t index, void *ret, struct td_err *err)
{
	const struct dry_runs *d = arg;
	struct td_learn_options options = td_learn_default;
	uint32_t depth, width, seed;
	int r;

	size_of(d, index, &depth, &width, &seed);
	if (!is_run(width, seed))
		return 0;
	options.stop = &td_sim_stop;
	options.epochs = d->epochs;
	options.hidden_layers = depths[depth];
	options.width = widths[width];
	options.seed = seed + 1;
	r = td_mux_train(d->w, &options, 4242 + seed, err);
	*(double *)ret = r ? NAN : test_model(d->w);
	return r == -ERANGE ? 0 : r;
}

/* Computes means over the sizes whose training did not diverge. */
static void find_means(double errors[DEPTHS][WIDTHS], uint32_t width_count,
	double ret_by_depth[DEPTHS], double ret_by_width[WIDTHS])
{
	uint32_t by_depth[DEPTHS] = {0}, by_width[WIDTHS] = {0};

	memset(ret_by_depth, 0, DEPTHS * sizeof(*ret_by_depth));
	memset(ret_by_width, 0, WIDTHS * sizeof(*ret_by_width));
	for (uint32_t l = 0; l < DEPTHS; l++) {
		for (uint32_t w = 0; w < width_count; w++) {
			if (isnan(errors[l][w]))
				continue;
			ret_by_depth[l] += errors[l][w];
			ret_by_width[w] += errors[l][w];
			by_depth[l]++;
			by_width[w]++;
		}
	}
	for (uint32_t l = 0; l < DEPTHS; l++)
		ret_by_depth[l] /= by_depth[l];
	for (uint32_t w = 0; w < width_count; w++)
		ret_by_width[w] /= by_width[w];
}

static void put_predictor(struct td_experiment_run *run, const struct dry_runs *d,
	double errors[DEPTHS][WIDTHS], double spread)
{
	double by_depth[DEPTHS], by_width[WIDTHS], least = INFINITY, most = 0;
	char text[64] = "", metric[96] = "error with hidden layers of";

	find_means(errors, d->widths, by_depth, by_width);
	for (uint32_t w = 0; w < d->widths; w++) {
		least = fmin(least, by_width[w]);
		most = fmax(most, by_width[w]);
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%.2f", w ? ", " : "",
			by_width[w]);
		snprintf(metric + strlen(metric), sizeof(metric) - strlen(metric), "%s %u",
			w ? "," : "", widths[w]);
	}
	td_row_put(run,
		by_depth[1] <= by_depth[0] + spread && by_depth[1] <= by_depth[2] + spread
			? TD_REPRODUCED
			: TD_NOT_REPRODUCED,
		"error with 1, 2, 6 hidden layers (Fig. 12)", "4 layers (2 hidden) best", "",
		"mean over the widths whose training did not diverge; no other depth may be better "
		"by more than the spread of the seeds",
		"%.2f, %.2f, %.2f %%", by_depth[0], by_depth[1], by_depth[2]);
	td_row_claim(run, TD_CLAIM_MUXFLOW_PREDICTOR, TD_FITTED, NULL);
	snprintf(metric + strlen(metric), sizeof(metric) - strlen(metric), " (Fig. 12)");
	td_row_put(run, most - least <= spread ? TD_REPRODUCED : TD_NOT_REPRODUCED, metric,
		"width immaterial", "",
		"mean over the depths that did not diverge; one seed for 512 and 1024", "%s %%",
		text);
	td_row_claim(run, TD_CLAIM_MUXFLOW_PREDICTOR, TD_FITTED, NULL);
	td_row_put(run, TD_SHOWN, "spread of the seeds, largest", "", "", "", "%.2f %%", spread);
	for (uint32_t l = 0; l < DEPTHS; l++) {
		text[0] = 0;
		for (uint32_t w = 0; w < d->widths; w++)
			snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%.2f",
				w ? ", " : "", errors[l][w]);
		snprintf(metric, sizeof(metric), "the same widths, %u hidden layer%s", depths[l],
			depths[l] > 1 ? "s" : "");
		td_row_put(
			run, TD_SHOWN, metric, "", "", "nan: the training diverged", "%s %%", text);
	}
}

static int learn_dry_runs(struct td_experiment_run *run, struct dry_runs *d, struct td_err *err)
{
	double results[WIDTHS * DEPTHS * SEEDS], errors[DEPTHS][WIDTHS] = {{0}}, spread = 0;
	uint32_t count = d->widths * DEPTHS * d->seeds;
	int r = td_workers_run(run->jobs, count, run_size, d, results, sizeof(results[0]), err);

	if (r)
		return r;
	for (uint32_t i = 0; i < count; i += d->seeds) {
		double least = INFINITY, most = 0, sum = 0;
		uint32_t depth = 0, width = 0, seed, n = 0;

		for (uint32_t k = 0; k < d->seeds; k++) {
			size_of(d, i + k, &depth, &width, &seed);
			if (!is_run(width, seed))
				continue;
			sum += results[i + k];
			least = fmin(least, results[i + k]);
			most = fmax(most, results[i + k]);
			n++;
		}
		errors[depth][width] = sum / n; /* NAN if a training diverged */
		if (!isnan(sum))
			spread = fmax(spread, most - least);
	}
	put_predictor(run, d, errors, spread);
	return 0;
}

/* --- Gavel's pairs --- */

#define PAIR_INPUTS 4u
#define PAIR_WIDTHS 2u

/*
 * Writes the inputs for a job that was never seen beside another: batch and steps per second alone
 * of both.
 */
static void write_inputs(
	const struct td_pairs *pairs, uint32_t victim, uint32_t other, double *ret_x)
{
	const uint32_t jobs[2] = {victim, other};

	for (int i = 0; i < 2; i++) {
		const char *batch = strstr(pairs->jobs[jobs[i]], "batch size ");

		ret_x[2 * i] = batch ? log2(atof(batch + 11)) : 0;
		ret_x[2 * i + 1] = log(pairs->alone[jobs[i]]);
	}
}

/*
 * Returns whether an observation is kept from the training and used for testing. With a family of
 * jobs these are all pairs that have one of its jobs; with UINT32_MAX, about half of all pairs,
 * chosen by the seed.
 */
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
		write_inputs(
			pairs, all[i].victim, all[i].other, x + (size_t)data.count * PAIR_INPUTS);
		y[data.count++] = all[i].speed;
	}
	r = td_learn_mlp(&data, options, &model);
	for (uint32_t i = 0; !r && i < count; i++) {
		if (!is_tested(pairs, &all[i], family, options->seed))
			continue;
		write_inputs(pairs, all[i].victim, all[i].other, told);
		errors[(*ret_n)++] =
			100 * fabs(td_predict(&model.predictor, told) / all[i].speed - 1);
	}
	td_model_deinit(&model);
	return r;
}

static const uint32_t pair_widths[PAIR_WIDTHS] = {64, 256};

/* The batch has a task for each size and each tested half or family. */
struct learning {
	const struct td_pairs *pairs;
	const struct td_observation *all;
	uint32_t count, widths, halves, splits, epochs;
	uint32_t families[TD_PAIR_JOBS_MAX];
};

struct judgement {
	bool diverged;
	uint32_t count;
	double errors[TD_PAIR_JOBS_MAX * TD_PAIR_JOBS_MAX];
};

static int run_split(void *arg, uint32_t index, void *ret, struct td_err *err)
{
	const struct learning *l = arg;
	uint32_t split = index % l->splits, size = index / l->splits;
	struct td_learn_options options = td_learn_default;
	struct judgement *judgement = ret;
	bool half = split < l->halves;
	int r;

	options.stop = &td_sim_stop;
	options.epochs = l->epochs;
	options.hidden_layers = depths[DEPTHS - 1 - size % DEPTHS];
	options.width = pair_widths[l->widths - 1 - size / DEPTHS];
	options.seed = half ? split + 1 : l->halves;
	r = judge(l->pairs, l->all, l->count, half ? UINT32_MAX : l->families[split - l->halves],
		&options, judgement->errors, &judgement->count);
	judgement->diverged = r == -ERANGE;
	return !r || r == -ERANGE
		       ? 0
		       : td_err_set(err, r, "the pairs could not be learnt: %s", strerror(-r));
}

/* Returns the median of all errors of these splits; NAN if a training diverged. */
static double median_error(const struct judgement *judgements, uint32_t count, double *memory)
{
	uint32_t n = 0;

	for (uint32_t k = 0; k < count; k++) {
		if (judgements[k].diverged)
			return NAN;
		memcpy(memory + n, judgements[k].errors, judgements[k].count * sizeof(*memory));
		n += judgements[k].count;
	}
	return n ? td_median(memory, n) : NAN;
}

static int put_splits(struct td_experiment_run *run, const struct learning *l,
	const struct judgement *judgements, struct td_err *err)
{
	td_auto_free double *memory =
		calloc((size_t)l->splits * TD_PAIR_JOBS_MAX * TD_PAIR_JOBS_MAX, sizeof(*memory));

	if (!memory)
		return td_err_set(err, -ENOMEM, "out of memory");
	for (int family = 0; family < 2; family++) {
		for (uint32_t w = 0; w < l->widths; w++) {
			double errors[DEPTHS];
			char metric[96];

			for (uint32_t d = 0; d < DEPTHS; d++) {
				uint32_t size = (l->widths - 1 - w) * DEPTHS + DEPTHS - 1 - d;
				const struct judgement *of = judgements + size * l->splits;

				errors[d] = family ? median_error(of + l->halves,
							     l->splits - l->halves, memory)
						   : median_error(of, l->halves, memory);
			}
			snprintf(metric, sizeof(metric),
				"Gavel's pairs split by %s: median error, 1, 2, 6 hidden layers of "
				"%u",
				family ? "family" : "pair", pair_widths[w]);
			td_row_put(run, TD_SHOWN, metric, "", "",
				family ? "no probe of the family; nan: the training diverged"
				       : "half of the pairs learnt; nan: the training diverged",
				"%.1f, %.1f, %.1f %%", errors[0], errors[1], errors[2]);
		}
	}
	return 0;
}

static int learn_pairs(struct td_experiment_run *run, struct td_err *err)
{
	td_auto_free struct td_observation *all = NULL;
	td_auto_free struct judgement *judgements = NULL;
	td_auto_free struct td_pairs *pairs = NULL;
	struct learning l = {.widths = run->quick ? 1 : PAIR_WIDTHS,
		.halves = run->quick ? 1 : 2,
		.epochs = run->quick ? 30 : 50};
	char path[PATH_MAX];
	uint32_t tasks;
	int r;

	snprintf(path, sizeof(path), "%s/colocation_gavel.csv", run->data);
	r = td_pairs_read(path, "p100", &pairs, err);
	if (r)
		return r;
	l.splits = l.halves;
	for (uint32_t j = 0; j < pairs->job_count; j++)
		if (pairs->family[j] == j)
			l.families[l.splits++ - l.halves] = j;
	tasks = DEPTHS * l.widths * l.splits;
	all = calloc(2 * (size_t)pairs->pair_count, sizeof(*all));
	judgements = calloc(tasks, sizeof(*judgements));
	if (!all || !judgements)
		return td_err_set(err, -ENOMEM, "out of memory");
	l.pairs = pairs;
	l.all = all;
	l.count = td_pairs_observe(pairs, NULL, all);
	r = td_workers_run(run->jobs, tasks, run_split, &l, judgements, sizeof(*judgements), err);
	return r ? r : put_splits(run, &l, judgements, err);
}

int td_exp_muxflow_predictor(struct td_experiment_run *run, struct td_err *err)
{
	struct td_mux_world *w = calloc(1, sizeof(*w));
	struct dry_runs d = {.w = w,
		.widths = run->quick ? 2 : WIDTHS,
		.seeds = run->quick ? 2 : SEEDS, /* a spread needs two seeds */
		.epochs = run->quick ? 15 : 30};
	int r = w ? td_mux_read_services(w, run->data, err)
		  : td_err_set(err, -ENOMEM, "out of memory");

	r = r ? r : td_mux_read_kinds(w, run->data, err);
	if (!r)
		w->contention.capped_pressure = 1;
	r = r ? r : learn_dry_runs(run, &d, err);
	r = r ? r : learn_pairs(run, err);
	fputs("The first rows have 2,000 samples with 5 % noise from this cluster's "
	      "contention model. The next ones have Gavel's pairs on a P100; for these the "
	      "perceptron is told the batch, and the steps per second alone, of both jobs. "
	      "The fitted model of three numbers a job has an error of 3 % on pairs, and of 4 "
	      "% on families with two probes (docs/results/contention.md).\n",
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
