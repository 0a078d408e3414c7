/* Writes the rows and sentences of the experiment dcuda; see exp_dcuda.h. */
#include "sim/research/exp_dcuda.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sim/base/bootstrap.h"

#define LIGHT      TD_DCUDA_LIGHT
#define MEDIUM     TD_DCUDA_MEDIUM
#define HEAVY      TD_DCUDA_HEAVY
#define LOADS      TD_DCUDA_LOADS
#define ORDERS_MAX TD_DCUDA_ORDERS_MAX
#define IDLE_W     15.

static double change(const double values[2])
{
	return (values[1] / values[0] - 1) * 100;
}

static double slowdown_in(const struct td_dcuda_part *order, int k)
{
	return order->slowdown[k];
}

static double overloaded_in(const struct td_dcuda_part *order, int k)
{
	return order->overloaded[k];
}

static double jain_in(const struct td_dcuda_part *order, int k)
{
	return order->jain[k];
}

static double utilisation_in(const struct td_dcuda_part *order, int k)
{
	return order->utilisation[k];
}

/* Computes by how many per cent the second system differs from the first in each order. */
static void find_changes(const struct td_dcuda_study *s, uint32_t orders,
	double (*get)(const struct td_dcuda_part *, int), double *ret)
{
	for (uint32_t o = 0; o < orders; o++) {
		double first = get(&s->orders[o], 0), second = get(&s->orders[o], 1);

		ret[o] = first > 0 ? (second / first - 1) * 100 : 0;
	}
}

static void put_changes(struct td_experiment_run *run, const struct td_dcuda_study *s,
	uint32_t orders, double (*get)(const struct td_dcuda_part *, int))
{
	double changes[ORDERS_MAX];

	find_changes(s, orders, get, changes);
	td_row_interval(run, changes, orders);
}

/* Tells whether the second system has more of a figure, beyond chance. */
static bool is_more(const struct td_dcuda_study *s, uint32_t orders,
	double (*get)(const struct td_dcuda_part *, int))
{
	double changes[ORDERS_MAX];

	find_changes(s, orders, get, changes);
	return td_interval_shows(td_bootstrap_median(changes, orders), 0) == TD_MORE;
}

/*
 * Notes which part loses in overloaded time or Jain's index at the medium load, and whether the
 * premise is the reason. premise: NULL if it holds in w.
 */
static void put_reason(char *note, size_t size, const struct td_dcuda_world *w,
	const struct td_dcuda_world *premise, double (*get)(const struct td_dcuda_study *))
{
	size_t at = strlen(note);

	at += snprintf(note + at, size - at,
		"; balancing alone %+.1f, with slices %+.1f, with compaction %+.1f %%",
		get(&w->part[TD_DCUDA_BALANCE][MEDIUM]), get(&w->part[TD_DCUDA_SLICES][MEDIUM]),
		get(&w->part[TD_DCUDA_COMPACTION][MEDIUM]));
	if (premise)
		snprintf(note + at, size - at,
			"; %+.1f %% if jobs that fit on a GPU together did not slow each other "
			"down",
			get(&premise->dcuda[MEDIUM]));
}

static double overloaded_of(const struct td_dcuda_study *s)
{
	return change(s->overloaded);
}

static double jain_of(const struct td_dcuda_study *s)
{
	return change(s->jain);
}

static void put_overloaded(struct td_experiment_run *run, const struct td_dcuda_world *w,
	const struct td_dcuda_world *premise, uint32_t orders)
{
	const struct td_dcuda_study *s = &w->dcuda[MEDIUM];
	char metric[96], note[400];

	snprintf(metric, sizeof(metric), "overloaded time (Fig. 14b), %s", w->name);
	snprintf(note, sizeof(note),
		"%.0f migrations for 20 applications; placed by the truth %+.1f %%, with slices "
		"%+.1f %%",
		s->migrations, overloaded_of(&w->truth), overloaded_of(&w->sliced[MEDIUM]));
	put_reason(note, sizeof(note), w, premise, overloaded_of);
	td_row_put(run, overloaded_of(s) <= -50 ? TD_REPRODUCED : TD_NOT_REPRODUCED, metric,
		"-78.3 %", "", note, "%+.1f %%", overloaded_of(s));
	put_changes(run, s, orders, overloaded_in);
	td_row_claim(run, TD_CLAIM_DCUDA_OVERLOADED, w->variant, NULL);
}

/*
 * Adds the row of execution time. It is bounded: no application is faster than alone, and in some
 * orders Least-Loaded slows none. The truth's best placement at each moment is no bound for a whole
 * order.
 */
static void put_execution(
	struct td_experiment_run *run, const struct td_dcuda_world *w, uint32_t orders)
{
	const struct td_dcuda_study *s = &w->dcuda[MEDIUM], *sliced = &w->sliced[MEDIUM];
	char metric[96], note[400];

	snprintf(metric, sizeof(metric), "execution time (Fig. 15), %s", w->name);
	snprintf(note, sizeof(note),
		"shorter in %u of %u orders; best %.1f %%; placed by the truth mean %+.1f "
		"%%, best %.1f %%, shorter in %u; with DCUDA's slices %+.1f, %.1f %%, %u; if "
		"nobody were slowed mean %.1f %%",
		s->better, orders, 100 * s->best, change(w->truth.slowdown), 100 * w->truth.best,
		w->truth.better, change(sliced->slowdown), 100 * sliced->best, sliced->better,
		100 / s->slowdown[0] - 100);
	td_row_put(run,
		s->better * 50 >= 45 * orders            ? TD_REPRODUCED
		: (orders - s->alone) * 50 < 45 * orders ? TD_BOUNDED
							 : TD_NOT_REPRODUCED,
		metric, "to -42.1 %", "", note, "mean %+.1f %%", change(s->slowdown));
	put_changes(run, s, orders, slowdown_in);
	td_row_claim(run, TD_CLAIM_DCUDA_EXECUTION, w->variant, NULL);
}

static void put_fairness(struct td_experiment_run *run, const struct td_dcuda_world *w,
	const struct td_dcuda_world *premise, uint32_t orders)
{
	const struct td_dcuda_study *s = &w->dcuda[MEDIUM], *sliced = &w->sliced[MEDIUM];
	char metric[96], note[400];

	snprintf(metric, sizeof(metric), "Jain's index (Fig. 16b), %s", w->name);
	snprintf(note, sizeof(note), "placed by the truth %+.1f %%, with slices %+.1f %%",
		jain_of(&w->truth), jain_of(sliced));
	put_reason(note, sizeof(note), w, premise, jain_of);
	td_row_put(run, is_more(s, orders, jain_in) ? TD_REPRODUCED : TD_NOT_REPRODUCED, metric,
		"+12.1 %", "", note, "%+.1f %%", jain_of(s));
	put_changes(run, s, orders, jain_in);
	td_row_claim(run, TD_CLAIM_DCUDA_JAIN, w->variant, NULL);
	snprintf(metric, sizeof(metric), "utilisation (Fig. 14a), %s", w->name);
	td_row_put(run, is_more(s, orders, utilisation_in) ? TD_REPRODUCED : TD_NOT_REPRODUCED,
		metric, "+14.6 %", "", "", "%+.1f %%", change(s->utilisation));
	put_changes(run, s, orders, utilisation_in);
	td_row_claim(run, TD_CLAIM_DCUDA_JAIN, w->variant, NULL);
}

struct power {
	double base_w, slope_w;
};

/*
 * Fits the power: 15 W without applications; else a base plus a slope times utilisation, by least
 * squares on the totals of Least-Loaded.
 */
static struct power fit_power(const struct td_dcuda_study s[LOADS])
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
	return (struct power){fmax(0, (ay * bb - by * ab) / determinant),
		fmax(0, (by * aa - ay * ab) / determinant)};
}

/*
 * Adds tandem's row: the main measure, execution time, and its guard, that Jain's index is not
 * below DCUDA's.
 */
static void put_tandem(
	struct td_experiment_run *run, const struct td_dcuda_world *w, uint32_t orders)
{
	const struct td_dcuda_study *own = &w->tandem[MEDIUM], *dcuda = &w->dcuda[MEDIUM];
	bool guard = own->jain[1] >= dcuda->jain[1];
	double ratios[ORDERS_MAX];
	char metric[96], note[128];
	uint32_t shorter = 0;

	for (uint32_t o = 0; o < orders; o++) {
		ratios[o] = dcuda->orders[o].slowdown[1] / own->orders[o].slowdown[1];
		shorter += ratios[o] > 1;
	}
	snprintf(metric, sizeof(metric), "tandem: execution time, DCUDA / tandem, %s", w->name);
	snprintf(note, sizeof(note), "Jain %+.1f %%%s; shorter in %u of %u orders, %.0f migrations",
		(own->jain[1] / dcuda->jain[1] - 1) * 100, guard ? "" : ": the guard does not hold",
		shorter, orders, own->migrations);
	td_row_put(run, TD_SHOWN, metric, "", "", note, "%.2fx",
		dcuda->slowdown[1] / own->slowdown[1]);
	td_row_beside(run, ratios, orders, 1, guard);
}

/* Shows tandem's overloaded time. It is DCUDA's main measure, not tandem's. */
static void put_tandem_overloaded(
	struct td_experiment_run *run, const struct td_dcuda_world *w, uint32_t orders)
{
	const struct td_dcuda_study *own = &w->tandem[MEDIUM], *dcuda = &w->dcuda[MEDIUM];
	double points[ORDERS_MAX];
	char metric[96];

	for (uint32_t o = 0; o < orders; o++)
		points[o] = 100 * (dcuda->orders[o].overloaded[1] - own->orders[o].overloaded[1]);
	snprintf(metric, sizeof(metric), "tandem: overloaded time against Least-Loaded, %s",
		w->name);
	td_row_put(run, TD_SHOWN, metric, "", "",
		"interval: DCUDA's overloaded time less tandem's, in points of the time",
		"%+.1f %% (DCUDA %+.1f %%)", overloaded_of(own), overloaded_of(dcuda));
	td_row_beside(run, points, orders, 0, true);
}

static double joules(const struct power *power, double active_s, double busy_s, double idle_s)
{
	return power->base_w * active_s + power->slope_w * busy_s + IDLE_W * idle_s;
}

static double energy_of_all(const struct power *power, const double active[2], const double busy[2],
	const double idle[2])
{
	double of[2];

	for (int k = 0; k < 2; k++)
		of[k] = joules(power, active[k], busy[k], idle[k]);
	return change(of);
}

static double energy_of(const struct power *power, const struct td_dcuda_study *s)
{
	return energy_of_all(power, s->active, s->busy, s->idle);
}

/* Returns the sums over the ten orders of a seed. */
static struct td_dcuda_part add_orders(const struct td_dcuda_part *orders)
{
	struct td_dcuda_part sum = {.slowdown = {0}};

	for (uint32_t o = 0; o < TD_DCUDA_SEED_ORDERS; o++) {
		for (int k = 0; k < 2; k++) {
			sum.slowdown[k] += orders[o].slowdown[k];
			sum.active[k] += orders[o].active[k];
			sum.busy[k] += orders[o].busy[k];
			sum.idle[k] += orders[o].idle[k];
		}
	}
	return sum;
}

/* Writes the figures of all loads for each seed. Returns the number of seeds. */
static uint32_t by_seed(const struct td_dcuda_study s[LOADS], const struct power *power,
	uint32_t orders, struct td_dcuda_seed ret[TD_DCUDA_SEEDS_MAX])
{
	uint32_t count = orders / TD_DCUDA_SEED_ORDERS;

	for (uint32_t n = 0; n < count; n++) {
		for (int l = 0; l < LOADS; l++) {
			const struct td_dcuda_part part =
				add_orders(&s[l].orders[n * TD_DCUDA_SEED_ORDERS]);

			for (int k = 0; k < 2; k++)
				ret[n].slowdown[l][k] = part.slowdown[k] / TD_DCUDA_SEED_ORDERS;
			ret[n].energy[l] = energy_of_all(power, part.active, part.busy, part.idle);
		}
	}
	return count;
}

static void put_tandem_energy(struct td_experiment_run *run, const struct td_dcuda_world *w,
	const struct power *power, uint32_t orders)
{
	static const char *const loads[LOADS] = {"light", "medium", "heavy"};
	double ratios[ORDERS_MAX];
	char metric[96];

	for (int l = 0; l < LOADS; l++) {
		for (uint32_t o = 0; o < orders; o++) {
			const struct td_dcuda_part *dcuda = &w->dcuda[l].orders[o],
						   *own = &w->tandem[l].orders[o];

			ratios[o] =
				joules(power, dcuda->active[1], dcuda->busy[1], dcuda->idle[1]) /
				joules(power, own->active[1], own->busy[1], own->idle[1]);
		}
		snprintf(metric, sizeof(metric), "tandem: energy against Least-Loaded, %s load, %s",
			loads[l], w->name);
		td_row_put(run, TD_SHOWN, metric, "", "", "interval: DCUDA's energy over tandem's",
			"%+.1f %% (DCUDA %+.1f %%)", energy_of(power, &w->tandem[l]),
			energy_of(power, &w->dcuda[l]));
		td_row_beside(run, ratios, orders, 1, true);
	}
}

/* Prints the energy at the light, the medium and the heavy load: "-6.1 / -3.3 / +0.9 %". */
static void print_energy(
	const struct power *power, const struct td_dcuda_study s[LOADS], char *ret, size_t size)
{
	snprintf(ret, size, "%+.1f / %+.1f / %+.1f %%", energy_of(power, &s[LIGHT]),
		energy_of(power, &s[MEDIUM]), energy_of(power, &s[HEAVY]));
}

/*
 * Shows DCUDA at each load with only some of its parts: balancing alone; balancing with one other
 * part; and all parts, with larger groups.
 */
static void put_parts(
	struct td_experiment_run *run, const struct td_dcuda_world *w, const struct power *power)
{
	static const char *const names[TD_DCUDA_PARTS] = {"balancing alone", "balancing and slices",
		"balancing and compaction", "DCUDA, groups up to 1.25 of a GPU",
		"DCUDA, groups up to 1.5 of a GPU"};
	char metric[96], energy[64], note[160];

	for (int p = 0; p < TD_DCUDA_PARTS; p++) {
		const struct td_dcuda_study *s = w->part[p];

		print_energy(power, s, energy, sizeof(energy));
		snprintf(metric, sizeof(metric), "%s, %s", names[p], w->name);
		snprintf(note, sizeof(note),
			"execution at gaps of 7, 5, 3 s; overloaded and Jain at 5 s; energy %s",
			energy);
		td_row_put(run, TD_SHOWN, metric, "", "", note,
			"%+.1f / %+.1f / %+.1f %%; %+.1f, %+.1f %%", change(s[LIGHT].slowdown),
			change(s[MEDIUM].slowdown), change(s[HEAVY].slowdown),
			overloaded_of(&s[MEDIUM]), jain_of(&s[MEDIUM]));
	}
}

/*
 * Judges in every seed at which load DCUDA is best. The best load of the truth with slices is only
 * noted and forbids nothing.
 */
static void put_best_load(struct td_experiment_run *run, const struct td_dcuda_world *w,
	const struct power *power, uint32_t orders)
{
	struct td_dcuda_seed by[TD_DCUDA_SEEDS_MAX];
	struct td_seeds seeds = td_dcuda_best_at_medium(by, by_seed(w->dcuda, power, orders, by));
	char metric[96], note[300];

	snprintf(note, sizeof(note),
		"execution time at gaps of 7, 5, 3 s; every ten orders are a seed; placed by the "
		"truth, with slices: %+.1f / %+.1f / %+.1f %%; if nobody were slowed at 5 s %.1f "
		"%%",
		change(w->sliced[LIGHT].slowdown), change(w->sliced[MEDIUM].slowdown),
		change(w->sliced[HEAVY].slowdown), 100 / w->dcuda[MEDIUM].slowdown[0] - 100);
	td_seeds_put(&seeds, note, sizeof(note));
	snprintf(metric, sizeof(metric), "best load (Fig. 17), %s", w->name);
	td_row_put(run, TD_SHOWN, metric, "medium", "", note, "%+.1f / %+.1f / %+.1f %%",
		change(w->dcuda[LIGHT].slowdown), change(w->dcuda[MEDIUM].slowdown),
		change(w->dcuda[HEAVY].slowdown));
	td_row_claim(run, TD_CLAIM_DCUDA_BEST, w->variant, &seeds);
}

static void put_energy(struct td_experiment_run *run, const struct td_dcuda_world *w,
	const struct td_dcuda_world *premise, const struct power *power, uint32_t orders)
{
	struct td_dcuda_seed by[TD_DCUDA_SEEDS_MAX];
	struct td_seeds seeds = td_dcuda_saves_in_order(by, by_seed(w->dcuda, power, orders, by));
	char metric[96], note[500], energy[64];
	size_t at;

	print_energy(power, w->part[TD_DCUDA_COMPACTION], energy, sizeof(energy));
	at = snprintf(note, sizeof(note),
		"power fitted to Least-Loaded's totals; without the slices, in which those who "
		"wait keep a GPU awake, %s",
		energy);
	print_energy(power, w->part[TD_DCUDA_LARGER], energy, sizeof(energy));
	at += snprintf(note + at, sizeof(note) - at, "; with groups up to 1.5 of a GPU %s", energy);
	if (premise) {
		struct power other = fit_power(premise->dcuda);

		print_energy(&other, premise->dcuda, energy, sizeof(energy));
		snprintf(note + at, sizeof(note) - at,
			"; %s if jobs that fit on a GPU together did not slow each other down",
			energy);
	}
	td_seeds_put(&seeds, note, sizeof(note));
	snprintf(metric, sizeof(metric), "energy, light / medium / heavy (Table III), %s", w->name);
	print_energy(power, w->dcuda, energy, sizeof(energy));
	td_row_put(run, TD_SHOWN, metric, "-13.3 / -5.4 / -2.6 %", "", note, "%s", energy);
	td_row_claim(run, TD_CLAIM_DCUDA_BEST, w->variant, &seeds);
}

void td_dcuda_put_premise(
	struct td_experiment_run *run, const struct td_dcuda_world *w, uint32_t orders)
{
	const struct power power = fit_power(w->dcuda);
	const struct td_dcuda_study *s = &w->dcuda[MEDIUM];
	char metric[96], note[256], energy[64];

	print_energy(&power, w->dcuda, energy, sizeof(energy));
	snprintf(metric, sizeof(metric), "execution time, %s", w->name);
	snprintf(note, sizeof(note),
		"at gaps of 7, 5, 3 s; at 5 s shorter in %u of %u orders, best %.1f %%; overloaded "
		"%+.1f %%, Jain %+.1f %%; energy %s; DCUDA / tandem %.2fx, Jain %+.1f %%",
		s->better, orders, 100 * s->best, overloaded_of(s), jain_of(s), energy,
		s->slowdown[1] / w->tandem[MEDIUM].slowdown[1],
		(w->tandem[MEDIUM].jain[1] / s->jain[1] - 1) * 100);
	td_row_put(run, TD_SHOWN, metric, "", "", note, "%+.1f / %+.1f / %+.1f %%",
		change(w->dcuda[LIGHT].slowdown), change(s->slowdown),
		change(w->dcuda[HEAVY].slowdown));
}

void td_dcuda_put_world(struct td_experiment_run *run, const struct td_dcuda_world *w,
	const struct td_dcuda_world *premise, uint32_t orders)
{
	const struct power power = fit_power(w->dcuda);

	put_overloaded(run, w, premise, orders);
	put_execution(run, w, orders);
	put_fairness(run, w, premise, orders);
	put_best_load(run, w, &power, orders);
	put_energy(run, w, premise, &power, orders);
	put_parts(run, w, &power);
	put_tandem(run, w, orders);
	put_tandem_overloaded(run, w, orders);
	put_tandem_energy(run, w, &power, orders);
}

void td_dcuda_put_losses(FILE *out, const struct td_dcuda_world *w, uint32_t orders)
{
	static const char *const names[] = {"balancing alone", "with slices", "with compaction"};

	fprintf(out,
		"Change of the execution time by DCUDA and its parts, %s, at gaps of 7, 5 and 3 "
		"s: DCUDA %+.1f / %+.1f / %+.1f %%",
		w->name, change(w->dcuda[LIGHT].slowdown), change(w->dcuda[MEDIUM].slowdown),
		change(w->dcuda[HEAVY].slowdown));
	for (int p = TD_DCUDA_BALANCE; p <= TD_DCUDA_COMPACTION; p++)
		fprintf(out, ", %s %+.1f / %+.1f / %+.1f", names[p],
			change(w->part[p][LIGHT].slowdown), change(w->part[p][MEDIUM].slowdown),
			change(w->part[p][HEAVY].slowdown));
	fprintf(out, " %%. DCUDA is shorter in %u of %u orders at 5 s.\n", w->dcuda[MEDIUM].better,
		orders);
}

void td_dcuda_put_reasons(FILE *out, const struct td_dcuda_world *premise, uint32_t orders)
{
	fprintf(out,
		"Reasons for the losses: slices make applications wait that would otherwise run "
		"side by side, and compaction puts applications together if their demands fit "
		"one GPU. A slower application runs for longer, so that more of them are there "
		"at once, which increases overloaded time and energy. Compaction and groups "
		"have the premise that applications whose demands fit do not slow each other "
		"down (III-D2: it \"does not affect the performance\"). If that holds, and "
		"contention is the fitted model's only where demands exceed a GPU, execution is "
		"%+.1f / %+.1f / %+.1f %% at the three loads, and shorter in %u of %u orders at "
		"the medium one. But measured pairs slow each other down whatever they use "
		"alone. The paper leaves open by how much a group may exceed a GPU "
		"(\"slightly\", III-D3). Here it is a tenth, as in the example of 100 %% and 5 "
		"%%; the rows show larger values.\n\n",
		change(premise->dcuda[LIGHT].slowdown), change(premise->dcuda[MEDIUM].slowdown),
		change(premise->dcuda[HEAVY].slowdown), premise->dcuda[MEDIUM].better, orders);
	fputs("\"By the truth\" means that at every moment applications are placed so that "
	      "all together are fastest, and are moved at no cost. For up to twelve "
	      "applications this is the best placement of all; for more no single move would "
	      "improve it. \"With slices\" means this placement under DCUDA's rule that one "
	      "group at a time runs on an overloaded GPU. The priorities within a group "
	      "(III-D3) are those of proportional sharing, where an application that demands "
	      "less than an equal part gets its demand; the fitted model has none. tandem is "
	      "told that a move costs 100 ms, as DCUDA's moves do.\n\n",
		out);
	fputs("DCUDA's balancer sees only the applications' demands. Under the fitted model "
	      "slowdowns do not depend on whether demands exceed a GPU, so balancing by demand "
	      "gains less.\n",
		out);
}
