/* Profiles and trains before a run; see knowledge.h. */
#include "policy/cluster/muxflow_cluster.h"
#include "sim/scheduler/knowledge.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "sim/base/random.h"
#include "sim/scheduler/muxflow_settle.h"

#define SHARES   6u
#define SAMPLES  2000u
#define NOISE    0.05
#define REPEATS  3u  /* samples per point of a profile: 90 curves, the most in Fig. 12 */
#define PER_LOOK 100 /* batches that are timed for one sample */
#define ALONE    UINT32_MAX

static const double shares[SHARES] = {0.1, 0.25, 0.4, 0.55, 0.75, 0.9};

/* Returns the time of one batch of a service beside a task that has the rest of the GPU. */
static double batch_s(const struct td_zoo *zoo, const struct td_contention *contention,
	uint32_t kind, uint32_t task, uint32_t batch, double share)
{
	struct td_contender pair[2] = {zoo->services[kind].contender};
	double speeds[2];

	pair[0].share = share;
	pair[0].duty = 1;
	if (task != ALONE) {
		pair[1] = zoo->tasks.profiles[task].contender;
		pair[1].share = 1 - share;
	}
	td_contention_speeds(contention, pair, task == ALONE ? 1 : 2, speeds);
	return td_service_batch_s(&zoo->services[kind], batch) / speeds[0];
}

/* Fits a curve to six samples. With noise 0 they are exact. */
static struct td_curve sample_curve(const struct td_zoo *zoo,
	const struct td_contention *contention, uint32_t kind, uint32_t task, uint32_t batch,
	enum td_curve_form form, double noise, uint64_t *random, double *cost_s)
{
	struct td_curve curve = {.form = TD_CURVE_HYPERBOLA, .a = 1};
	double y[SHARES];

	for (uint32_t s = 0; s < SHARES; s++) {
		y[s] = batch_s(zoo, contention, kind, task, batch, shares[s]);
		*cost_s += PER_LOOK * y[s];
		y[s] *= fmax(0.5, 1 + noise * td_random_normal(random));
	}
	if (form == TD_CURVE_HYPERBOLA)
		(void)td_curve_fit_hyperbola(shares, y, SHARES, &curve);
	else
		(void)td_curve_fit_piecewise(shares, y, SHARES, &curve);
	return curve;
}

static void numbers_of(const struct td_curve *curve, double ret[4])
{
	ret[0] = curve->left_slope;
	ret[1] = curve->right_slope;
	ret[2] = curve->knee_x;
	ret[3] = curve->knee_y;
}

static void profile_alone(const struct td_zoo *zoo, const struct td_contention *contention,
	uint64_t *random, struct td_knowledge *k)
{
	for (uint32_t s = 0; s < TD_ZOO_SERVICES; s++) {
		for (uint32_t b = 0; b < TD_SELECTOR_BATCHES; b++) {
			k->hyperbolas[s][b] =
				sample_curve(zoo, contention, s, ALONE, td_selector_batches[b],
					TD_CURVE_HYPERBOLA, NOISE, random, &k->profiling_gpu_s);
			k->pieces[s][b] =
				sample_curve(zoo, contention, s, ALONE, td_selector_batches[b],
					TD_CURVE_PIECEWISE, NOISE, random, &k->profiling_gpu_s);
		}
	}
}

/*
 * Sets the layers that schedulers are told for each kind. TD_LAYERS_SHUFFLED: those of another
 * task.
 */
static void tell_layers(const struct td_zoo *zoo, enum td_layers_use use, struct td_knowledge *k)
{
	for (uint32_t t = 0; t < TD_ZOO_KINDS; t++) {
		uint32_t from = use == TD_LAYERS_SHUFFLED ? (t * 7 + 3) % TD_ZOO_KINDS : t;

		for (uint32_t l = 0; l < TD_MUDI_LAYERS; l++)
			k->layers[t][l] = use == TD_LAYERS_BLIND ? 0 : zoo->layers[from][l];
	}
}

static int learn_service(const struct td_zoo *zoo, const struct td_contention *contention,
	uint32_t kind, uint64_t *random, const struct td_learn_options *options,
	struct td_knowledge *k)
{
	enum { ROWS = REPEATS * TD_ZOO_PROFILED * TD_SELECTOR_BATCHES };
	double x[ROWS][TD_MUDI_INPUTS], y[4][ROWS], numbers[4];
	uint32_t row = 0, tasks[ROWS]; /* the task of each row, for leaving out its rows together */
	int r = 0;

	for (uint32_t look_at = 0; look_at < REPEATS * TD_ZOO_PROFILED; look_at++) {
		for (uint32_t b = 0; b < TD_SELECTOR_BATCHES; b++, row++) {
			uint32_t t = look_at % TD_ZOO_PROFILED;
			struct td_curve curve =
				sample_curve(zoo, contention, kind, t, td_selector_batches[b],
					TD_CURVE_PIECEWISE, NOISE, random, &k->profiling_gpu_s);

			tasks[row] = t;
			memcpy(x[row], k->layers[t], sizeof(k->layers[t]));
			x[row][TD_MUDI_LAYERS] = log2(td_selector_batches[b]);
			numbers_of(&curve, numbers);
			for (int n = 0; n < 4; n++)
				y[n][row] = numbers[n];
		}
	}
	for (int n = 0; !r && n < 4; n++) {
		const struct td_dataset data = {x[0], y[n], ROWS, TD_MUDI_INPUTS};
		struct td_learn_report report;

		r = td_learn_best(&data, tasks, options, &k->models[kind][n], &report);
	}
	k->mudi[kind] = (struct td_mudi_service){.left_slope = &k->models[kind][0].predictor,
		.right_slope = &k->models[kind][1].predictor,
		.knee_share = &k->models[kind][2].predictor,
		.knee_latency = &k->models[kind][3].predictor};
	return r;
}

static struct td_muxflow_profile profile_of(double demand, double activity, double alone_s)
{
	double used = demand * activity;

	return (struct td_muxflow_profile){used, TD_MUXFLOW_ACTIVITY * used, 0.5 * used, alone_s};
}

static int learn_muxflow(const struct td_zoo *zoo, const struct td_contention *contention,
	uint64_t *random, const struct td_learn_options *options, struct td_knowledge *k)
{
	td_auto_free double *x = calloc(SAMPLES * TD_MUXFLOW_INPUTS, sizeof(double));
	td_auto_free double *y = calloc(SAMPLES, sizeof(double));
	const struct td_dataset data = {x, y, SAMPLES, TD_MUXFLOW_INPUTS};

	if (!x || !y)
		return -ENOMEM;
	for (uint32_t i = 0; i < SAMPLES; i++) {
		uint32_t kind = td_random_below(random, TD_ZOO_SERVICES);
		uint32_t task = td_random_below(random, TD_ZOO_PROFILED);
		struct td_contender pair[2] = {
			zoo->services[kind].contender, zoo->tasks.profiles[task].contender};
		double busy = 0.02 + 0.93 * td_random_unit(random), speeds[2];
		uint32_t ppm = td_dynamic_sm_ppm(
			&td_dynamic_sm_default, (uint32_t)(TD_MUXFLOW_ACTIVITY * busy * 1e6));
		struct td_muxflow_profile online = profile_of(
			zoo->services[kind].told_demand, busy, zoo->services[kind].each_s);
		struct td_muxflow_profile offline =
			profile_of(zoo->tasks.profiles[task].told_demand, 1, 0.1);

		pair[0].share = 1;
		pair[0].duty = busy;
		pair[1].share = ppm / 1e6;
		td_contention_speeds(contention, pair, 2, speeds);
		td_muxflow_inputs(&online, &offline, ppm, x + (size_t)i * TD_MUXFLOW_INPUTS);
		y[i] = speeds[1] * (1 + NOISE * td_random_normal(random));
	}
	return td_learn_mlp(&data, options, &k->muxflow);
}

int td_knowledge_learn(const struct td_zoo *zoo, const struct td_contention *contention,
	enum td_layers_use use, uint64_t seed, bool quick, struct td_knowledge *ret,
	struct td_err *err)
{
	struct td_learn_options options = td_learn_default;
	int r = 0;

	*ret = (struct td_knowledge){.profiling_gpu_s = 0};
	options.epochs = quick ? 20 : 60;
	options.seed = seed;
	tell_layers(zoo, use, ret);
	profile_alone(zoo, contention, &seed, ret);
	for (uint32_t s = 0; !r && s < TD_ZOO_SERVICES; s++)
		r = learn_service(zoo, contention, s, &seed, &options, ret);
	if (!r && use == TD_LAYERS_TRUE)
		r = learn_muxflow(zoo, contention, &seed, &options, ret);
	ret->view = (struct td_sim_knowledge){.mudi = ret->mudi,
		.profiled = TD_ZOO_PROFILED,
		.layers = (const double(*)[TD_MUDI_LAYERS])ret->layers,
		.muxflow = use == TD_LAYERS_TRUE ? &ret->muxflow.predictor : NULL,
		.hyperbolas = (const struct td_curve(*)[TD_SELECTOR_BATCHES])ret->hyperbolas,
		.pieces = (const struct td_curve(*)[TD_SELECTOR_BATCHES])ret->pieces};
	if (!r)
		return 0;
	td_knowledge_deinit(ret);
	return td_err_set(err, r, "the predictors could not be trained: %s", strerror(-r));
}

void td_knowledge_deinit(struct td_knowledge *knowledge)
{
	for (uint32_t s = 0; s < TD_ZOO_SERVICES; s++)
		for (int n = 0; n < 4; n++)
			td_model_deinit(&knowledge->models[s][n]);
	td_model_deinit(&knowledge->muxflow);
}

void td_knowledge_errors(const struct td_knowledge *knowledge, const struct td_zoo *zoo,
	const struct td_contention *contention, bool profiled, double ret[4])
{
	uint32_t count = 0, from = profiled ? 0 : TD_ZOO_PROFILED;
	uint32_t to = profiled ? TD_ZOO_PROFILED : TD_ZOO_TASKS;
	uint64_t random = 1;
	double cost = 0;

	memset(ret, 0, 4 * sizeof(*ret));
	for (uint32_t s = 0; s < TD_ZOO_SERVICES; s++) {
		for (uint32_t t = from; t < to; t++) {
			for (uint32_t b = 0; b < TD_SELECTOR_BATCHES; b++, count++) {
				struct td_curve is =
					sample_curve(zoo, contention, s, t, td_selector_batches[b],
						TD_CURVE_PIECEWISE, 0, &random, &cost);
				struct td_curve said = td_mudi_curve(&knowledge->mudi[s],
					knowledge->layers[t], td_selector_batches[b]);
				double x[4], y[4];

				numbers_of(&is, x);
				numbers_of(&said, y);
				for (int n = 0; n < 4; n++)
					ret[n] += fabs(y[n] - x[n]) / fmax(1e-9, fabs(x[n]));
			}
		}
	}
	for (int n = 0; n < 4; n++)
		ret[n] /= count;
}
