/*
 * The experiment dcuda runs twenty applications on the four GPUs of dcuda_machine.h. It compares
 * least-loaded placement with DCUDA's balancing.
 *
 * Profiles are not public. Demands for cores are drawn and scaled by one factor so that
 * LEAST-LOADED ALONE is imbalanced as often as the paper's Fig. 2 says; power is fitted to
 * Least-Loaded's three totals. Neither uses DCUDA's results. Contention is shown three times:
 * - proportional: demands beyond 1 share the time;
 * - the fitted model: an application has the numbers of the P100 job at the same rank of demands.
 *   Nothing is capped here, so doubled and halved pressure under caps are the same run;
 * - the fitted model where demands exceed a GPU, and no contention where they do not. This is
 *   DCUDA's premise, on which its compaction and its groups rest ("it does not affect the
 *   performance as the compaction is performed only when the computing resource demand of these
 *   applications can be satisfied by one GPU", III-D2).
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "sim/base/random.h"
#include "sim/research/exp_dcuda.h"
#include "sim/worlds/dcuda_machine.h"

#define ORDERS 50u /* orders in all; the calibration uses every fifth */

static const struct td_dcuda_how dcuda_whole = {
	.dcuda = true, .memory = true, .compact = true, .slices = true};
static const struct td_dcuda_how tandem = {.tandem = true}, by_truth = {.truth = true};
static const struct td_dcuda_how by_truth_sliced = {.truth = true, .slices = true};

/* The indices are TD_DCUDA_BALANCE etc. */
static const struct td_dcuda_how parts[TD_DCUDA_PARTS] = {{.dcuda = true, .memory = true},
	{.dcuda = true, .memory = true, .slices = true},
	{.dcuda = true, .memory = true, .compact = true},
	{.dcuda = true, .memory = true, .compact = true, .slices = true, .group_slack = 0.25},
	{.dcuda = true, .memory = true, .compact = true, .slices = true, .group_slack = 0.5}};

/*
 * Returns the fitted numbers of the P100 job that has the same rank in the order of demands as this
 * application.
 */
static struct td_contender kind_of(const struct td_profiles *profiles, double part, double core)
{
	uint32_t order[TD_PROFILES_MAX], n = profiles->count;
	struct td_contender kind;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t at = i;

		for (; at && profiles->profiles[order[at - 1]].contender.demand >
				     profiles->profiles[i].contender.demand;
			at--)
			order[at] = order[at - 1];
		order[at] = i;
	}
	kind = profiles->profiles[order[(uint32_t)(part * (n - 1) + 0.5)]].contender;
	kind.demand = core;
	return kind;
}

struct demands {
	/* The demand is scale x (0.1 + 0.9 u^power), at most 1, with u random. */
	double scale, power;
};

/* Makes the applications, which are the same twenty for every order of arrival. */
static void make_apps(const struct td_profiles *profiles, const struct demands *demands,
	double gap_s, uint32_t order, struct td_dcuda_machine_app *apps, uint32_t count)
{
	uint64_t state = 20, shuffle = 1000 + order;
	uint32_t at[TD_DCUDA_MACHINE_APPS];

	for (uint32_t i = 0; i < count; i++)
		at[i] = i;
	td_random_shuffle(&shuffle, at, count);
	for (uint32_t i = 0; i < count; i++) {
		double work = 20 + 20 * td_random_unit(&state), part = td_random_unit(&state);
		double core = fmin(1, demands->scale * (0.1 + 0.9 * pow(part, demands->power)));

		apps[at[i]] = (struct td_dcuda_machine_app){.arrive_s = gap_s * at[i],
			.work_s = work,
			.core = core,
			.contender = kind_of(profiles, part, core)};
	}
}

/*
 * Calibrates with Least-Loaded alone. Finds the demands, and the meaning of "least loaded" of two
 * possible ones, with which the GPUs are imbalanced closest to 41.7 % of the time at the medium
 * load.
 */
static struct demands calibrate(
	const struct td_profiles *profiles, struct td_dcuda_how *ret_least_loaded)
{
	struct td_contention fluid = {.proportional = true, .capped_pressure = 1};
	struct demands best = {1, 1};
	double least = INFINITY;

	for (int n = 0; n < 2 * 5 * 26; n++) {
		struct td_dcuda_how how = {.by_count = n % 2};
		struct demands demands = {0.4 + 0.1 * (n / 10), 0.5 * (1 << n / 2 % 5)};
		double imbalance = 0;

		for (uint32_t o = 0; o < ORDERS; o += 5) {
			struct td_dcuda_machine_app apps[TD_DCUDA_MACHINE_APPS];

			make_apps(profiles, &demands, 5, o, apps, 20);
			imbalance += td_dcuda_simulate(how, &fluid, 0, apps, 20).imbalance / 10;
		}
		if (fabs(imbalance - 0.417) < least) {
			least = fabs(imbalance - 0.417);
			best = demands;
			*ret_least_loaded = how;
		}
	}
	return best;
}

static double mean4(const double *values)
{
	return (values[0] + values[1] + values[2] + values[3]) / 4;
}

static void note_order(struct td_dcuda_part *order, const struct td_dcuda_outcome *out, int k)
{
	order->slowdown[k] = out->slowdown;
	order->overloaded[k] = mean4(out->overloaded);
	order->jain[k] = out->jain;
	order->utilisation[k] = out->utilisation;
	order->active[k] = out->active_s;
	order->busy[k] = out->busy_s;
	order->idle[k] = out->idle_s;
}

static void run_orders(const struct td_profiles *profiles, const struct td_contention *contention,
	const struct td_dcuda_how *hows, const struct demands *demands, double gap_s,
	uint32_t orders, struct td_dcuda_study *s)
{
	*s = (struct td_dcuda_study){.least_overloaded = 1};
	for (uint32_t o = 0; o < orders; o++) {
		struct td_dcuda_outcome out[2];
		double change;

		for (int k = 0; k < 2; k++) {
			struct td_dcuda_machine_app apps[TD_DCUDA_MACHINE_APPS];

			make_apps(profiles, demands, gap_s, o, apps, 20);
			out[k] = td_dcuda_simulate(hows[k], contention, 0, apps, 20);
			s->overloaded[k] += mean4(out[k].overloaded) / orders;
			s->slowdown[k] += out[k].slowdown / orders;
			s->jain[k] += out[k].jain / orders;
			s->utilisation[k] += out[k].utilisation / orders;
			s->active[k] += out[k].active_s / orders;
			s->busy[k] += out[k].busy_s / orders;
			s->idle[k] += out[k].idle_s / orders;
			note_order(&s->orders[o], &out[k], k);
		}
		for (uint32_t g = 0; g < TD_DCUDA_MACHINE_GPUS; g++) {
			s->least_overloaded = fmin(s->least_overloaded, out[0].overloaded[g]);
			s->most_overloaded = fmax(s->most_overloaded, out[0].overloaded[g]);
		}
		s->imbalance += out[0].imbalance / orders;
		s->migrations += (double)out[1].migrations / orders;
		change = out[1].slowdown / out[0].slowdown - 1;
		s->better += change < 0;
		s->alone += out[0].slowdown <= 1;
		s->best = fmin(s->best, change);
	}
}

static struct td_dcuda_how in_premise(struct td_dcuda_how how, bool premise)
{
	how.fit_is_free = premise;
	return how;
}

/* Runs all systems of one world, and Least-Loaded with the meaning `least_loaded`. */
static void run_world(const struct td_profiles *profiles, const struct demands *demands,
	struct td_dcuda_how least_loaded, bool fitted, bool premise, uint32_t orders,
	struct td_dcuda_world *ret)
{
	static const double gaps[TD_DCUDA_LOADS] = {7, 5, 3};
	const struct td_contention contention = {.proportional = !fitted, .capped_pressure = 1};
	struct td_dcuda_how hows[2] = {in_premise(least_loaded, premise)};

	for (int l = 0; l < TD_DCUDA_LOADS; l++) {
		hows[1] = in_premise(dcuda_whole, premise);
		run_orders(profiles, &contention, hows, demands, gaps[l], orders, &ret->dcuda[l]);
		hows[1] = in_premise(tandem, premise);
		run_orders(profiles, &contention, hows, demands, gaps[l], orders, &ret->tandem[l]);
		if (premise)
			continue;
		hows[1] = by_truth_sliced;
		run_orders(profiles, &contention, hows, demands, gaps[l], orders, &ret->sliced[l]);
		for (int p = 0; p < TD_DCUDA_PARTS; p++) {
			hows[1] = parts[p];
			run_orders(profiles, &contention, hows, demands, gaps[l], orders,
				&ret->part[p][l]);
		}
	}
	if (!premise) {
		hows[1] = by_truth;
		run_orders(profiles, &contention, hows, demands, gaps[TD_DCUDA_MEDIUM], orders,
			&ret->truth);
	}
}

int td_exp_dcuda(struct td_experiment_run *run, struct td_err *err)
{
	td_auto_free struct td_profiles *profiles = calloc(1, sizeof(*profiles));
	static struct td_dcuda_world turns, fitted, premise;
	uint32_t orders = run->seeds * TD_DCUDA_SEED_ORDERS;
	struct td_dcuda_how least_loaded = {0};
	struct demands demands;
	int r;

	if (!profiles)
		return td_err_set(err, -ENOMEM, "out of memory");
	r = td_profiles_fit(run->data, "p100", profiles, err);
	if (r)
		return r;
	turns.name = "proportional";
	turns.variant = TD_PROPORTIONAL;
	fitted.name = "fitted";
	premise.name = "fitted where demands exceed a GPU";
	demands = calibrate(profiles, &least_loaded);
	run_world(profiles, &demands, least_loaded, false, false, orders, &turns);
	run_world(profiles, &demands, least_loaded, true, false, orders, &fitted);
	run_world(profiles, &demands, least_loaded, true, true, orders, &premise);
	td_row_put(run, TD_CALIBRATED, "Least-Loaded: imbalanced time (Fig. 2)", "41.7 %", "",
		"demands chosen by this alone", "%.1f %%",
		100 * turns.dcuda[TD_DCUDA_MEDIUM].imbalance);
	td_row_put(run, TD_CALIBRATED, "Least-Loaded: overloaded time (Fig. 13a)", "14-51 %", "",
		"any GPU, any order", "%.0f-%.0f %%",
		100 * turns.dcuda[TD_DCUDA_MEDIUM].least_overloaded,
		100 * turns.dcuda[TD_DCUDA_MEDIUM].most_overloaded);
	td_dcuda_put_world(run, &turns, NULL, orders);
	td_dcuda_put_world(run, &fitted, &premise, orders);
	td_dcuda_put_premise(run, &premise, orders);
	fprintf(run->report,
		"Calibrated on Least-Loaded: the demand for cores is %.1f (0.1 + 0.9 u^%.1f), "
		"at most 1, and the least loaded GPU is that with the smallest %s.\n",
		demands.scale, demands.power,
		least_loaded.by_count ? "number of applications" : "demands");
	td_dcuda_put_losses(run->report, &turns, orders);
	td_dcuda_put_losses(run->report, &fitted, orders);
	td_dcuda_put_reasons(run->report, &premise, orders);
	return 0;
}
