/*
 * dcuda: twenty applications on the four GPUs of dcuda_machine.h, least-loaded placement against DCUDA's balancing.
 *
 * Profiles are not public. Demands for cores are drawn and scaled by one factor so that LEAST-LOADED ALONE is imbalanced as often as the paper's Fig. 2 says; power is fitted to Least-Loaded's three totals. None of
 * these sees DCUDA. Contention is shown twice: proportional (demands beyond 1 share the time), and
 * the fitted model, where an application has the numbers of the P100 job at the same place in the order of demands. Nothing is capped here, so that doubled and halved pressure under caps are the same run.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "sim/dcuda_machine.h"
#include "sim/experiment.h"
#include "sim/random.h"

#define ORDERS 50u
#define IDLE_W 15.

static const struct td_dcuda_how dcuda_whole = {
	.dcuda = true, .memory = true, .compact = true, .slices = true};
static const struct td_dcuda_how tandem = {.tandem = true}, by_truth = {.truth = true};
static const struct td_dcuda_how by_truth_sliced = {.truth = true, .slices = true};

/* DCUDA's parts. */
enum { BALANCE, SLICES, COMPACTION, PARTS };
static const struct td_dcuda_how parts[PARTS] = {{.dcuda = true, .memory = true},
	{.dcuda = true, .memory = true, .slices = true},
	{.dcuda = true, .memory = true, .compact = true}};

/* The fitted numbers of the P100 job that is as far up in the order of demands as this application. */
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
	double scale, power; /* core = scale x (0.1 + 0.9 u^power), at most 1 */
};

/* The same twenty applications for every order. */
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
 * By Least-Loaded alone: the demands, and which of the two readings of "least loaded", under which it is imbalanced in 41.7 % of the time at the medium load, or as near to
 * it as there is.
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

struct study {
	double overloaded[2], slowdown[2], jain[2], utilisation[2], active[2], busy[2], idle[2];
	double least_overloaded, most_overloaded, imbalance, migrations;
	double best;     /* largest reduction of the execution time over the orders */
	uint32_t better; /* orders in which DCUDA is */
};

static double mean4(const double *values)
{
	return (values[0] + values[1] + values[2] + values[3]) / 4;
}

static void run_orders(const struct td_profiles *profiles, const struct td_contention *contention,
	const struct td_dcuda_how *hows, const struct demands *demands, double gap_s,
	uint32_t orders, struct study *s)
{
	*s = (struct study){.least_overloaded = 1};
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
		}
		for (uint32_t g = 0; g < TD_DCUDA_MACHINE_GPUS; g++) {
			s->least_overloaded = fmin(s->least_overloaded, out[0].overloaded[g]);
			s->most_overloaded = fmax(s->most_overloaded, out[0].overloaded[g]);
		}
		s->imbalance += out[0].imbalance / orders;
		s->migrations += (double)out[1].migrations / orders;
		change = out[1].slowdown / out[0].slowdown - 1;
		s->better += change < 0;
		s->best = fmin(s->best, change);
	}
}

static double change(const double values[2])
{
	return (values[1] / values[0] - 1) * 100;
}

/* s: DCUDA; the bounds: placed by the truth, and the same with DCUDA's slices; all against Least-Loaded. Bounded: with its slices the truth does not do it either. */
static void put_medium(struct td_experiment_run *run, const char *how, const struct study *s,
	const struct study *truth, const struct study *sliced, uint32_t orders)
{
	char metric[96], note[256];

	snprintf(note, sizeof(note),
		"%.0f migrations for 20 applications; placed by the truth %+.1f %%, with slices "
		"%+.1f %%",
		s->migrations, change(truth->overloaded), change(sliced->overloaded));
	snprintf(metric, sizeof(metric), "overloaded time (Fig. 14b), %s", how);
	td_row_put(run, change(s->overloaded) <= -50 ? TD_REPRODUCED : TD_NOT_REPRODUCED, metric,
		"-78.3 %", "", note, "%+.1f %%", change(s->overloaded));
	snprintf(metric, sizeof(metric), "execution time (Fig. 15), %s", how);
	snprintf(note, sizeof(note),
		"shorter in %u of %u orders; best %.1f %%; bounds: placed by the truth mean %+.1f "
		"%%, best %.1f %%, shorter in %u; with DCUDA's slices %+.1f, %.1f %%, %u; if "
		"nobody "
		"were slowed mean %.1f %%",
		s->better, orders, 100 * s->best, change(truth->slowdown), 100 * truth->best,
		truth->better, change(sliced->slowdown), 100 * sliced->best, sliced->better,
		100 / s->slowdown[0] - 100);
	td_row_put(run,
		s->better * 50 >= 45 * orders       ? TD_REPRODUCED
		: sliced->better * 50 < 45 * orders ? TD_BOUNDED
						    : TD_NOT_REPRODUCED,
		metric, "to -42.1 %", "", note, "mean %+.1f %%", change(s->slowdown));
	snprintf(metric, sizeof(metric), "Jain's index (Fig. 16b), %s", how);
	snprintf(note, sizeof(note), "placed by the truth %+.1f %%, with slices %+.1f %%",
		change(truth->jain), change(sliced->jain));
	td_row_put(run,
		change(s->jain) > 0         ? TD_REPRODUCED
		: change(sliced->jain) <= 0 ? TD_BOUNDED
					    : TD_NOT_REPRODUCED,
		metric, "+12.1 %", "", note, "%+.1f %%", change(s->jain));
	snprintf(metric, sizeof(metric), "utilisation (Fig. 14a), %s", how);
	td_row_put(run, change(s->utilisation) > 0 ? TD_REPRODUCED : TD_NOT_REPRODUCED, metric,
		"+14.6 %", "", "", "%+.1f %%", change(s->utilisation));
}

/* The main measure, execution time, while its guard, Jain's index, is no worse than DCUDA's. */
static void put_tandem(
	struct td_experiment_run *run, const char *how, const struct study *s, uint32_t orders)
{
	char metric[96], note[128];

	snprintf(metric, sizeof(metric), "tandem: execution time, DCUDA / tandem, %s", how);
	snprintf(note, sizeof(note), "Jain %+.1f %%%s; shorter in %u of %u orders, %.0f migrations",
		change(s->jain), s->jain[1] >= s->jain[0] ? "" : ": the guard does not hold",
		s->better, orders, s->migrations);
	td_row_put(run,
		s->slowdown[1] <= s->slowdown[0] && s->jain[1] >= s->jain[0] ? TD_AT_LEAST
									     : TD_LOSS,
		metric, "", "", note, "%.2fx", s->slowdown[0] / s->slowdown[1]);
}

/* P = base while an application is there, plus slope times utilisation, 15 W without: least squares on Least-Loaded's totals. */
static void fit_power(const struct study *s, double *ret_base, double *ret_slope)
{
	static const double totals[] = {81201, 74935, 70611};
	double aa = 0, ab = 0, bb = 0, ay = 0, by = 0, determinant;

	for (int l = 0; l < 3; l++) {
		double a = s[l].active[0], b = s[l].busy[0], y = totals[l] - IDLE_W * s[l].idle[0];

		aa += a * a;
		ab += a * b;
		bb += b * b;
		ay += a * y;
		by += b * y;
	}
	determinant = aa * bb - ab * ab;
	*ret_base = fmax(0, (ay * bb - by * ab) / determinant);
	*ret_slope = fmax(0, (by * aa - ay * ab) / determinant);
}

/* Which part loses: DCUDA's balancing alone at each load, and with one of the others. */
static void put_parts(struct td_experiment_run *run, const char *how, struct study s[PARTS][3])
{
	static const char *const names[PARTS] = {
		"balancing alone", "balancing and slices", "balancing and compaction"};
	char metric[96];

	for (int p = 0; p < PARTS; p++) {
		snprintf(metric, sizeof(metric), "%s, %s", names[p], how);
		td_row_put(run, TD_SHOWN, metric, "", "",
			"execution at gaps of 7, 5, 3 s; overloaded and Jain at 5 s",
			"%+.1f / %+.1f / %+.1f %%; %+.1f, %+.1f %%", change(s[p][0].slowdown),
			change(s[p][1].slowdown), change(s[p][2].slowdown),
			change(s[p][1].overloaded), change(s[p][1].jain));
	}
}

static bool is_best_at_medium(const double gains[3])
{
	return gains[1] < gains[0] && gains[1] < gains[2];
}

/* Bounded: the best load is another one for the truth with DCUDA's slices, too. */
static void put_loads(struct td_experiment_run *run, const char *how, const struct study *s,
	const struct study *sliced)
{
	double gains[3], truth[3], energy[3], base, slope;
	char metric[96], note[128];

	fit_power(s, &base, &slope);
	for (int l = 0; l < 3; l++) {
		double joules[2];

		for (int k = 0; k < 2; k++)
			joules[k] = base * s[l].active[k] + slope * s[l].busy[k] +
				    IDLE_W * s[l].idle[k];
		energy[l] = change(joules);
		gains[l] = change(s[l].slowdown);
		truth[l] = change(sliced[l].slowdown);
	}
	snprintf(note, sizeof(note),
		"execution time at gaps of 7, 5, 3 s; placed by the truth, with slices: "
		"%+.1f / %+.1f / %+.1f %%",
		truth[0], truth[1], truth[2]);
	snprintf(metric, sizeof(metric), "best load (Fig. 17), %s", how);
	td_row_put(run,
		is_best_at_medium(gains)    ? TD_REPRODUCED
		: !is_best_at_medium(truth) ? TD_BOUNDED
					    : TD_NOT_REPRODUCED,
		metric, "medium", "", note, "%+.1f / %+.1f / %+.1f %%", gains[0], gains[1],
		gains[2]);
	snprintf(metric, sizeof(metric), "energy, light / medium / heavy (Table III), %s", how);
	td_row_put(run,
		energy[0] < energy[1] && energy[1] < energy[2] && energy[2] < 0 ? TD_REPRODUCED
										: TD_NOT_REPRODUCED,
		metric, "-13.3 / -5.4 / -2.6 %", "", "power fitted to Least-Loaded's totals",
		"%+.1f / %+.1f / %+.1f %%", energy[0], energy[1], energy[2]);
}

int td_exp_dcuda(struct td_experiment_run *run, struct td_err *err)
{
	static const double gaps[] = {7, 5, 3};
	td_auto_free struct td_profiles *profiles = calloc(1, sizeof(*profiles));
	uint32_t orders = run->quick ? 10 : ORDERS;
	struct td_dcuda_how whole[2] = {{0}, dcuda_whole}, part[2];
	struct td_dcuda_how best[2] = {dcuda_whole, tandem}, bound[2] = {{0}, by_truth};
	struct demands demands;
	int r;

	if (!profiles)
		return td_err_set(err, -ENOMEM, "out of memory");
	r = td_profiles_fit(run->data, "p100", profiles, err);
	if (r)
		return r;
	demands = calibrate(profiles, &whole[0]);
	part[0] = bound[0] = whole[0];
	for (int fitted = 0; fitted < 2; fitted++) {
		struct td_contention contention = {.proportional = !fitted, .capped_pressure = 1};
		const char *how = fitted ? "fitted" : "proportional";
		struct study s[3], truth, sliced[3], of[PARTS][3];

		for (int l = 0; l < 3; l++) {
			run_orders(profiles, &contention, whole, &demands, gaps[l], orders, &s[l]);
			bound[1] = by_truth_sliced;
			run_orders(profiles, &contention, bound, &demands, gaps[l], orders,
				&sliced[l]);
			for (int p = 0; p < PARTS; p++) {
				part[1] = parts[p];
				run_orders(profiles, &contention, part, &demands, gaps[l], orders,
					&of[p][l]);
			}
		}
		if (!fitted) {
			td_row_put(run, TD_CALIBRATED, "Least-Loaded: imbalanced time (Fig. 2)",
				"41.7 %", "", "demands chosen by this alone", "%.1f %%",
				100 * s[1].imbalance);
			td_row_put(run, TD_CALIBRATED, "Least-Loaded: overloaded time (Fig. 13a)",
				"14-51 %", "", "any GPU, any order", "%.0f-%.0f %%",
				100 * s[1].least_overloaded, 100 * s[1].most_overloaded);
		}
		bound[1] = by_truth;
		run_orders(profiles, &contention, bound, &demands, gaps[1], orders, &truth);
		put_medium(run, how, &s[1], &truth, &sliced[1], orders);
		put_loads(run, how, s, sliced);
		put_parts(run, how, of);
		run_orders(profiles, &contention, best, &demands, gaps[1], orders, &s[1]);
		put_tandem(run, how, &s[1], orders);
	}
	fprintf(run->report,
		"Calibrated on Least-Loaded: cores = %.1f (0.1 + 0.9 u^%.1f), at most 1; least "
		"loaded by %s.\n",
		demands.scale, demands.power,
		whole[0].by_count ? "number of applications" : "demands");
	fputs("Where DCUDA loses: with the fitted model compaction costs most, since "
	      "applications whose demands fit on one GPU slow each other down there as any "
	      "others do, and the 100 ms slices by group, in which applications wait that "
	      "would have run side by side, cost a part; with proportional sharing the slices "
	      "cost at the heavy load. Each is in the rows beside balancing alone. Placed by "
	      "the truth: at every moment where all together are fastest, moved at no cost; "
	      "the best of all ways for up to twelve applications at once, for more such that "
	      "no move of one makes them faster. With slices: that placement under DCUDA's "
	      "rule that on an overloaded GPU one group runs at a time. tandem moves nothing "
	      "here: an application is over before the five minutes in which it may not move, "
	      "so only its first place counts.\n\n",
		run->report);
	fputs("An application's demand is all that the balancer sees. Under the fitted model "
	      "slowing down does not depend on demands beyond 1, so balancing by demand gains "
	      "less.\n",
		run->report);
	return 0;
}
