/*
 * The experiment mudi-sim has 5,000 training tasks beside 1,000 inference services (mudi_world.h).
 * It compares the results with the paper's figures.
 */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "sim/base/bootstrap.h"
#include "sim/report/experiment.h"

#ifdef TD_HAVE_LEARN
#include "sim/worlds/mudi_world.h"

static const char *const names[TD_MUDI_POLICIES] = {"GSLICE", "gpulets", "MuxFlow", "Mudi",
	"the bound", "tandem", "Mudi by the truth", "Mudi with exact lines"};

static void put_late(struct td_experiment_run *run, const char *how, enum td_variant variant,
	const struct td_mudi_outcome *out, bool counts)
{
	double values[TD_MUDI_POLICIES][TD_MUDI_SEEDS_MAX], median[TD_MUDI_POLICIES];
	char metric[96], spread[64], note[240];
	struct td_seeds seeds = {0};

	for (int p = 0; p < TD_MUDI_POLICIES; p++) {
		for (uint32_t s = 0; s < run->seeds; s++)
			values[p][s] = out[s].late[p];
		median[p] = td_median(values[p], run->seeds);
	}
	for (uint32_t s = 0; s < run->seeds; s++) {
		bool holds = out[s].late[TD_MUDI_ITSELF] <= 2, none = false;

		for (int p = 0; p < TD_MUDI_ITSELF; p++) {
			holds &= out[s].late[TD_MUDI_ITSELF] < out[s].late[p];
			/* At 0 violations no system can have fewer. */
			none |= !(out[s].late[p] > 0);
		}
		td_seed_add(&seeds, holds, none);
	}
	td_spread(values[TD_MUDI_ITSELF], run->seeds, spread);
	snprintf(metric, sizeof(metric), "SLO violations (Fig. 8), %s", how);
	snprintf(note, sizeof(note),
		"GSLICE %.5f, gpulets %.5f, MuxFlow %.5f, bound %.5f, tandem %.5f %%",
		median[TD_MUDI_GSLICE], median[TD_MUDI_GPULETS], median[TD_MUDI_MUXFLOW],
		median[TD_MUDI_BOUND], median[TD_MUDI_TANDEM]);
	td_seeds_put(&seeds, note, sizeof(note));
	td_row_put(run, TD_SHOWN, metric, "1.2 %, MuxFlow worst", spread, note, "%.5f %%",
		median[TD_MUDI_ITSELF]);
	if (counts)
		td_row_claim(run, TD_CLAIM_MUDI_SLO, variant, &seeds);
}

/* Returns the ratio of two systems' completion times in one seed. */
static double over_in(const struct td_mudi_outcome *out, int above, int below)
{
	return out->ct_s[above] / out->ct_s[below];
}

/* Returns the median of that ratio over the seeds. values: one per seed, rising. */
static double over(struct td_experiment_run *run, const struct td_mudi_outcome *out, int above,
	int below, double *values, char *spread)
{
	double median;

	for (uint32_t s = 0; s < run->seeds; s++)
		values[s] = over_in(&out[s], above, below);
	median = td_median(values, run->seeds);
	td_spread(values, run->seeds, spread);
	return median;
}

/*
 * Adds rows of completion times. Mudi has two bounds: its rules with the truth instead of its
 * predictions, and all of it with curves from exact samples of every pair. A seed is forbidden if
 * one of the two is not faster than the baseline either, or not within 1.1 of the optimum.
 */
static void put_ct(struct td_experiment_run *run, const char *how, enum td_variant variant,
	const struct td_mudi_outcome *out, bool counts)
{
	static const char *const papers[] = {"up to 2.27x", "up to 1.49x", "up to 1.48x"};
	double values[TD_MUDI_SEEDS_MAX], rules[TD_MUDI_SEEDS_MAX], lines[TD_MUDI_SEEDS_MAX],
		exact_in[TD_MUDI_SEEDS_MAX], median, most, truth, exact;
	struct td_seeds near = {0};
	char metric[96], spread[64], other[64], note[400];

	for (int p = 0; p < TD_MUDI_ITSELF; p++) {
		struct td_seeds seeds = {0};
		uint32_t some[TD_MUDI_SEEDS_MAX], count = 0; /* lost seeds that no bound forbids */

		for (uint32_t s = 0; s < run->seeds; s++) {
			bool holds = over_in(&out[s], p, TD_MUDI_ITSELF) > 1;
			bool forbidden = over_in(&out[s], p, TD_MUDI_TRUTH) <= 1 ||
					 over_in(&out[s], p, TD_MUDI_EXACT) <= 1;

			td_seed_add(&seeds, holds, forbidden);
			if (!holds && !forbidden)
				some[count++] = s;
			exact_in[s] = over_in(&out[s], p, TD_MUDI_EXACT);
		}
		most = over(run, out, p, TD_MUDI_BOUND, values, other);
		truth = over(run, out, p, TD_MUDI_TRUTH, rules, other);
		exact = over(run, out, p, TD_MUDI_EXACT, lines, other);
		median = over(run, out, p, TD_MUDI_ITSELF, values, spread);
		snprintf(metric, sizeof(metric), "CT (Fig. 9), %s / Mudi, %s", names[p], how);
		snprintf(note, sizeof(note),
			"over the bound %.2fx, which takes shares in steps of 5 %%; over Mudi's "
			"rules by the "
			"truth %.2fx, over Mudi with lines through exact samples %.2fx (%s)",
			most, truth, exact, other);
		td_seeds_put(&seeds, note, sizeof(note));
		if (count && counts)
			td_some_put(exact_in, some, count,
				". Why the others lose: what the curves, learnt from noisy "
				"samples, have "
				"wrong; with exact ones",
				note, sizeof(note));
		td_row_put(run, TD_SHOWN, metric, papers[p], spread, note, "%.2fx", median);
		td_row_interval(run, values, run->seeds);
		if (counts)
			td_row_claim(run, TD_CLAIM_MUDI_CT, variant, &seeds);
	}
	truth = over(run, out, TD_MUDI_TRUTH, TD_MUDI_BOUND, rules, other);
	exact = over(run, out, TD_MUDI_EXACT, TD_MUDI_BOUND, lines, other);
	median = over(run, out, TD_MUDI_ITSELF, TD_MUDI_BOUND, values, spread);
	snprintf(metric, sizeof(metric), "CT, Mudi / the bound, %s", how);
	snprintf(note, sizeof(note),
		"Mudi's rules by the truth %.2fx, with lines through exact samples %.2fx (%s)",
		truth, exact, other);
	for (uint32_t s = 0; s < run->seeds; s++)
		td_seed_add(&near, over_in(&out[s], TD_MUDI_ITSELF, TD_MUDI_BOUND) <= 1.1,
			over_in(&out[s], TD_MUDI_TRUTH, TD_MUDI_BOUND) > 1.1 ||
				over_in(&out[s], TD_MUDI_EXACT, TD_MUDI_BOUND) > 1.1);
	td_seeds_put(&near, note, sizeof(note));
	td_row_put(run, TD_SHOWN, metric, "<= 1.05x", spread, note, "%.2fx", median);
	td_row_interval(run, values, run->seeds);
	if (counts)
		td_row_claim(run, TD_CLAIM_MUDI_GAP, variant, &near);
}

/*
 * Adds the row of the gap in violations. They have to be within 1.1 of the optimum's, which looks
 * for the fastest task and not for the fewest violations. Seeds are forbidden as in put_ct().
 */
static void put_gap_late(struct td_experiment_run *run, const char *how, enum td_variant variant,
	const struct td_mudi_outcome *out)
{
	static const int of[4] = {TD_MUDI_ITSELF, TD_MUDI_BOUND, TD_MUDI_TRUTH, TD_MUDI_EXACT};
	double values[4][TD_MUDI_SEEDS_MAX], median[4];
	struct td_seeds near = {0};
	char metric[96], spread[64], note[240];

	for (uint32_t s = 0; s < run->seeds; s++) {
		double most;

		for (int k = 0; k < 4; k++)
			values[k][s] = out[s].late[of[k]];
		most = 1.1 * values[1][s];
		/*
		 * Mudi's rules with the truth are no bound here: without a margin for errors they
		 * miss more objectives than with predictions.
		 */
		td_seed_add(&near, values[0][s] <= most, values[3][s] > most);
	}
	for (int k = 0; k < 4; k++)
		median[k] = td_median(values[k], run->seeds);
	td_spread(values[0], run->seeds, spread);
	snprintf(metric, sizeof(metric), "SLO violations, Mudi, the bound, %s", how);
	snprintf(note, sizeof(note),
		"Mudi's rules by the truth %.5f, with lines through exact samples %.5f %%; spread: "
		"Mudi's",
		median[2], median[3]);
	td_seeds_put(&near, note, sizeof(note));
	td_row_put(run, TD_SHOWN, metric, "within 5.86 %", spread, note, "%.5f, %.5f %%", median[0],
		median[1]);
	td_row_claim(run, TD_CLAIM_MUDI_GAP, variant, &near);
}

/*
 * Adds tandem's row: the main measure, completion time, and its guard, that violations are not more
 * than Mudi's.
 */
static void put_tandem(
	struct td_experiment_run *run, const char *how, const struct td_mudi_outcome *out)
{
	double gain[TD_MUDI_SEEDS_MAX], late[TD_MUDI_SEEDS_MAX], mudi[TD_MUDI_SEEDS_MAX], median,
		of_tandem, of_mudi;
	char metric[96], spread[64], note[160];
	bool holds;

	for (uint32_t s = 0; s < run->seeds; s++) {
		gain[s] = out[s].ct_s[TD_MUDI_ITSELF] / out[s].ct_s[TD_MUDI_TANDEM];
		late[s] = out[s].late[TD_MUDI_TANDEM];
		mudi[s] = out[s].late[TD_MUDI_ITSELF];
	}
	median = td_median(gain, run->seeds);
	of_tandem = td_median(late, run->seeds);
	of_mudi = td_median(mudi, run->seeds);
	holds = of_tandem <= of_mudi;
	td_spread(gain, run->seeds, spread);
	snprintf(metric, sizeof(metric), "tandem: CT, Mudi / tandem, %s", how);
	snprintf(note, sizeof(note),
		"violations %.4f %%, Mudi %.4f %%%s; %.0f moves, %.0f changes of a share",
		of_tandem, of_mudi, holds ? "" : ": the guard does not hold", out[0].moves,
		out[0].repartitions);
	td_row_put(run, TD_SHOWN, metric, "", spread, note, "%.2fx", median);
	td_row_beside(run, gain, run->seeds, 1, holds);
}

static void put_errors(struct td_experiment_run *run, const struct td_mudi_world *w,
	enum td_layers_use use, bool profiled, const struct td_knowledge *knowledge)
{
	static const char *const uses[TD_LAYERS_N] = {
		"counts of layers", "without any", "another task's layers"};
	double errors[4];
	char metric[96];

	td_knowledge_errors(knowledge, &w->zoo, &td_mudi_variants[0].contention, profiled, errors);
	snprintf(metric, sizeof(metric),
		"prediction error of k1, k2, cut-off, latency (Fig. 11), %s", uses[use]);
	td_row_put(run, TD_SHOWN, metric,
		use == TD_LAYERS_TRUE && !profiled ? "0.23, 0.16, 0.05, 0.06" : "", "",
		profiled ? "the five tasks that were profiled" : "the four tasks that were not",
		"%.2f, %.2f, %.2f, %.2f", errors[0], errors[1], errors[2], errors[3]);
	if (use == TD_LAYERS_TRUE && !profiled)
		td_row_claim(run, TD_CLAIM_MUDI_PREDICTION, TD_FITTED, NULL);
}

static int compare_layers(
	struct td_experiment_run *run, struct td_mudi_world *w, struct td_err *err)
{
	struct td_knowledge *other = calloc(1, sizeof(*other));
	int r = other ? 0 : td_err_set(err, -ENOMEM, "out of memory");

	put_errors(run, w, TD_LAYERS_TRUE, true, &w->knowledge);
	put_errors(run, w, TD_LAYERS_TRUE, false, &w->knowledge);
	for (int use = TD_LAYERS_BLIND; !r && use < TD_LAYERS_N; use++) {
		r = td_knowledge_learn(&w->zoo, &td_mudi_variants[0].contention,
			(enum td_layers_use)use, 99, run->quick, other, err);
		if (r)
			break;
		put_errors(run, w, (enum td_layers_use)use, false, other);
		td_knowledge_deinit(other);
	}
	free(other);
	return r;
}

/* Tells whether the values exceed `none`, beyond chance. */
static bool is_more(const double *values, uint32_t count, double none)
{
	return td_interval_shows(td_bootstrap_median(values, count), none) == TD_MORE;
}

static double median_of(const struct td_mudi_outcome *out, uint32_t seeds,
	double (*get)(const struct td_mudi_outcome *), char *ret_spread)
{
	double values[TD_MUDI_SEEDS_MAX], median;

	for (uint32_t s = 0; s < seeds; s++)
		values[s] = get(&out[s]);
	median = td_median(values, seeds);
	td_spread(values, seeds, ret_spread);
	return median;
}

#define GET(name_, value_)                                                                         \
	static double name_(const struct td_mudi_outcome *out)                                     \
	{                                                                                          \
		return value_;                                                                     \
	}

GET(more_ct, out->ct_s[TD_MUDI_MORE] / out->ct_s[TD_MUDI_ITSELF])
GET(even_ct, out->ct_s[TD_MUDI_EVEN] / out->ct_s[TD_MUDI_MORE])
GET(even_exact_ct, out->ct_s[TD_MUDI_EVEN] / out->ct_s[TD_MUDI_MORE_EXACT])
GET(more_makespan, out->makespan_s[TD_MUDI_MORE] / out->makespan_s[TD_MUDI_ITSELF])
GET(more_swapped, out->swapped[TD_MUDI_MORE])
GET(mudi_swapped, out->swapped[TD_MUDI_ITSELF])
GET(transfer_ms, out->transfer_ms[TD_MUDI_ITSELF])

static void put_swaps(struct td_experiment_run *run, const struct td_mudi_outcome *out)
{
	char spread[64], note[160];
	double more = median_of(out, run->seeds, more_swapped, spread);
	double longer[TD_MUDI_SEEDS_MAX];
	double one = median_of(out, run->seeds, mudi_swapped, spread);
	const double *kinds = out[0].by_kind[TD_MUDI_ITSELF];

	for (uint32_t s = 0; s < run->seeds; s++)
		longer[s] = more_swapped(&out[s]) - mudi_swapped(&out[s]);
	snprintf(note, sizeof(note),
		"first seed, by service: %.0f, %.0f, %.0f, %.0f, %.0f, %.0f %%", kinds[0], kinds[1],
		kinds[2], kinds[3], kinds[4], kinds[5]);
	td_row_put(run, TD_SHOWN, "time with training memory on the host (Table 4), Mudi",
		"15.5 to 33.4 % by service", spread, note, "%.1f %%", one);
	td_row_put(run, is_more(longer, run->seeds, 0) ? TD_REPRODUCED : TD_NOT_REPRODUCED,
		"time with training memory on the host, Mudi with up to three tasks",
		"37.78 %, 1.61x of one task's", "",
		"direction counts; interval: of the difference, in points", "%.1f %%", more);
	td_row_interval(run, longer, run->seeds);
	snprintf(note, sizeof(note),
		"%.2f swaps per hour and task in the first seed; paper 1.6 to 3.5",
		out[0].swaps_per_h[TD_MUDI_ITSELF]);
	td_row_put(run, TD_SHOWN, "mean transfer of a swap (Fig. 16), Mudi", "23.31 ms (YOLOv5)",
		spread, note, "%.1f ms", median_of(out, run->seeds, transfer_ms, spread));
}

/*
 * Shows the lateness over all of the services' time until the last task is done, and over their
 * time with tasks, because that is longer with three tasks on a GPU.
 */
static void put_more_late(
	struct td_experiment_run *run, enum td_variant variant, const struct td_mudi_outcome *out)
{
	static const int of[2] = {TD_MUDI_ITSELF, TD_MUDI_MORE};
	double late[2] = {0}, late_s[2] = {0}, late_beside[2] = {0}, later[TD_MUDI_SEEDS_MAX];
	char metric[96], note[400];
	uint32_t more = 0;

	for (uint32_t s = 0; s < run->seeds; s++) {
		for (int k = 0; k < 2; k++) {
			late[k] += out[s].late[of[k]] / run->seeds;
			late_s[k] += out[s].late_s[of[k]] / run->seeds;
			late_beside[k] += out[s].late_beside[of[k]] / run->seeds;
		}
		later[s] = out[s].late[of[1]] - out[s].late[of[0]];
		more += out[s].late_beside[of[1]] > out[s].late_beside[of[0]];
	}
	snprintf(note, sizeof(note),
		"direction counts, by the interval of the difference; means over seeds. The run "
		"lasts longer with three, and services "
		"without tasks are never late: in time %.0f and %.0f service-seconds; of the time "
		"with tasks %.4f and %.4f %%, more with three in %u of %u seeds",
		late_s[0], late_s[1], late_beside[0], late_beside[1], more, run->seeds);
	snprintf(metric, sizeof(metric), "SLO violations (Fig. 17), one task, up to three, %s",
		td_variant_names[variant]);
	td_row_put(run, is_more(later, run->seeds, 0) ? TD_REPRODUCED : TD_NOT_REPRODUCED, metric,
		"1.03x (0.52 %)", "", note, "%.4f, %.4f %%", late[0], late[1]);
	td_row_interval(run, later, run->seeds);
	td_row_claim(run, TD_CLAIM_MUDI_LOADS, variant, NULL);
}

/*
 * Adds the row that Mudi is better than Random in completion times and violations. A seed is
 * forbidden if Mudi is no faster than Random even with curves from exact samples of all companies.
 */
static void put_random(
	struct td_experiment_run *run, enum td_variant variant, const struct td_mudi_outcome *out)
{
	char metric[96], spread[64], of_exact[64], note[300];
	double exact = median_of(out, run->seeds, even_exact_ct, of_exact), late = 0;
	double ct = median_of(out, run->seeds, even_ct, spread);
	struct td_seeds seeds = {0};
	double together[2] = {0};

	for (uint32_t s = 0; s < run->seeds; s++) {
		late += out[s].late[TD_MUDI_EVEN] / run->seeds;
		td_seed_add(&seeds,
			even_ct(&out[s]) > 1 &&
				out[s].late[TD_MUDI_EVEN] > out[s].late[TD_MUDI_MORE],
			even_exact_ct(&out[s]) <= 1);
		together[0] += out[s].together[TD_MUDI_EVEN] / run->seeds;
		together[1] += out[s].together[TD_MUDI_MORE] / run->seeds;
	}
	snprintf(note, sizeof(note),
		"violations of Random: %.1f %%; over Mudi with lines through exact samples %.2fx "
		"(%s); tasks on a GPU that has any: %.1f under Random, %.1f under Mudi",
		late, exact, of_exact, together[0], together[1]);
	td_seeds_put(&seeds, note, sizeof(note));
	snprintf(metric, sizeof(metric), "CT (Fig. 17), Random / Mudi with up to three tasks, %s",
		td_variant_names[variant]);
	td_row_put(run, TD_SHOWN, metric, "Mudi better in all metrics", spread, note, "%.2fx", ct);
	td_row_claim(run, TD_CLAIM_MUDI_LOADS, variant, &seeds);
}

/*
 * Adds rows in which only the direction counts: more tasks on a GPU make each slower, and Random is
 * the worst.
 */
static void put_more(
	struct td_experiment_run *run, enum td_variant variant, const struct td_mudi_outcome *out)
{
	double ct, longer[TD_MUDI_SEEDS_MAX];
	char metric[96], spread[64];

	for (uint32_t s = 0; s < run->seeds; s++)
		longer[s] = more_ct(&out[s]);
	ct = median_of(out, run->seeds, more_ct, spread);
	snprintf(metric, sizeof(metric), "CT (Fig. 17), Mudi with up to three tasks / with one, %s",
		td_variant_names[variant]);

	td_row_put(run, is_more(longer, run->seeds, 1) ? TD_REPRODUCED : TD_NOT_REPRODUCED, metric,
		"1.07x", spread, "direction counts; 1.6x the tasks, memory of 40 GiB", "%.2fx", ct);
	td_row_interval(run, longer, run->seeds);
	td_row_claim(run, TD_CLAIM_MUDI_LOADS, variant, NULL);
	ct = median_of(out, run->seeds, more_makespan, spread);
	snprintf(metric, sizeof(metric),
		"makespan (Fig. 17), Mudi with up to three tasks / with one, %s",
		td_variant_names[variant]);
	td_row_put(run, TD_SHOWN, metric, "1.09x", spread, "", "%.2fx", ct);
	put_more_late(run, variant, out);
	put_random(run, variant, out);
	if (variant == TD_FITTED)
		put_swaps(run, out);
}

static int learn(
	struct td_experiment_run *run, struct td_mudi_world *w, int variant, struct td_err *err)
{
	td_knowledge_deinit(&w->knowledge);
	w->knowledge = (struct td_knowledge){.profiling_gpu_s = 0};
	return td_knowledge_learn(&w->zoo, &td_mudi_variants[variant].contention, TD_LAYERS_TRUE,
		99, run->quick, &w->knowledge, err);
}

static void put_setting(struct td_experiment_run *run, const char *how, enum td_variant variant,
	const struct td_mudi_outcome *out, bool counts)
{
	put_late(run, how, variant, out, counts);
	put_ct(run, how, variant, out, counts);
	if (counts)
		put_gap_late(run, how, variant, out);
	put_tandem(run, how, out);
}

/* Shows why GSLICE is ahead: how near feedback and Mudi come to the bound at load 1. */
static void put_feedback(struct td_experiment_run *run, const struct td_mudi_outcome *out)
{
	double values[TD_MUDI_SEEDS_MAX], gslice, mudi;
	char spread[64];

	gslice = over(run, out, TD_MUDI_GSLICE, TD_MUDI_BOUND, values, spread);
	mudi = over(run, out, TD_MUDI_ITSELF, TD_MUDI_BOUND, values, spread);
	fprintf(run->report,
		"Where Mudi loses: GSLICE sees exact latencies every second, and the rates of "
		"its services are constant for half an hour, which is the best case for "
		"feedback. At load 1 its mean completion time is %.2f times the bound's in the "
		"median, and Mudi's is %.2f times. Mudi fits two lines to six samples, but the "
		"true curve, a + b / x, bends. And Mudi chooses the batch with which the task "
		"is fastest at the largest cut-off, not at the share that the service will "
		"have. The layer counts predict the slopes of unseen tasks only until a pair "
		"has been sampled; the rows compare this with a prediction without layer "
		"counts.\n\n",
		gslice, mudi);
}

static int run_fitted(struct td_experiment_run *run, struct td_mudi_world *w, struct td_err *err)
{
	static struct td_mudi_outcome out[4][TD_MUDI_SEEDS_MAX];
	double iterations = 0;
	int r = compare_layers(run, w, err);

	for (int load = 1; !r && load <= 4; load++) {
		const struct td_mudi_setting setting = {0, load, 1, false, false};
		char how[32];

		if (run->quick && (load == 2 || load == 3))
			continue;
		snprintf(how, sizeof(how), "fitted, load %d", load);
		r = td_mudi_run(run, w, &setting, out[load - 1], err);
		if (!r)
			put_setting(run, how, TD_FITTED, out[load - 1], load == 1);
		if (!r && load == 1)
			put_feedback(run, out[0]);
		for (uint32_t s = 0; !r && s < run->seeds; s++)
			iterations = fmax(iterations, out[load - 1][s].iterations);
	}
	if (r)
		return r;
	td_mudi_put_loads(run, TD_FITTED, out[0], out[3]);
	td_row_put(run, iterations <= 25 ? TD_BY_CONSTRUCTION : TD_NOT_REPRODUCED,
		"iterations of a tuning (Fig. 18), mean of the worst seed and load",
		"< 25, mean 16", "", "the tuner ends after 25", "%.1f", iterations);
	td_row_claim(run, TD_CLAIM_MUDI_TUNING, TD_FITTED, NULL);
	r = td_mudi_run_more(run, w, 0, out[1], err);
	if (!r)
		put_more(run, TD_FITTED, out[1]);
	for (int k = 0; !r && k < 2 && !run->quick; k++) {
		const struct td_mudi_setting setting = {0, 1, k ? 1.6 : 1.2, false, false};
		char how[32];

		snprintf(how, sizeof(how), "fitted, %gx the tasks", setting.crowd);
		r = td_mudi_run(run, w, &setting, out[0], err);
		if (!r)
			put_setting(run, how, TD_FITTED, out[0], false);
	}
	return r;
}

/*
 * Runs Fig. 15 and 17 in another variant, for the claim's rows: without loads 2 and 3, and at load
 * 4 without the bounds. low: the variant's results at load 1.
 */
static int run_orders(struct td_experiment_run *run, struct td_mudi_world *w, int v,
	const struct td_mudi_outcome *low, struct td_err *err)
{
	static struct td_mudi_outcome out[TD_MUDI_SEEDS_MAX];
	const struct td_mudi_setting setting = {v, 4, 1, false, true};
	int r = td_mudi_run(run, w, &setting, out, err);

	if (r)
		return r;
	td_mudi_put_loads(run, (enum td_variant)v, low, out);
	r = td_mudi_run_more(run, w, v, out, err);
	if (!r)
		put_more(run, (enum td_variant)v, out);
	return r;
}

static int run_all(struct td_experiment_run *run, struct td_mudi_world *w, struct td_err *err)
{
	static struct td_mudi_outcome out[TD_MUDI_SEEDS_MAX];
	int r = 0;

	for (int v = 0; !r && v < (run->quick ? 1 : TD_MUDI_VARIANTS); v++) {
		const struct td_mudi_setting setting = {v, 1, 1, false, false};

		r = learn(run, w, v, err);
		if (!r && v == 0)
			fprintf(run->report, "Profiling took %.1f GPU hours.\n\n",
				w->knowledge.profiling_gpu_s / 3600);
		if (!r && v == 0) {
			r = run_fitted(run, w, err);
			continue;
		}
		r = r ? r : td_mudi_run(run, w, &setting, out, err);
		if (!r)
			put_setting(run, td_mudi_variants[v].name, (enum td_variant)v, out, true);
		r = r ? r : run_orders(run, w, v, out, err);
	}
	return r;
}

int td_exp_mudi_sim(struct td_experiment_run *run, struct td_err *err)
{
	struct td_mudi_world *w = calloc(1, sizeof(*w));
	struct td_trace trace = {0};
	char path[PATH_MAX];
	int r = w ? td_zoo_read(run->data, &w->zoo, err)
		  : td_err_set(err, -ENOMEM, "out of memory");

	snprintf(path, sizeof(path), "%s/jobs_philly.csv.gz", run->data);
	r = r ? r : td_trace_read(path, false, &trace, err);
	if (!r) {
		w->trace = &trace;
		w->task_count = run->quick ? TD_MUDI_TASKS / 5 : TD_MUDI_TASKS;
		r = td_mudi_pools(w, err);
		r = r ? r : run_all(run, w, err);
	}
	for (uint32_t s = 0; !r && s < TD_ZOO_SERVICES; s++)
		fprintf(run->report,
			"%s: the objective is %.0f ms, load 1 is %.0f requests/s, alpha is %.2f, "
			"and a "
			"batch of 16 takes %.1f ms.\n",
			w->zoo.services[s].name, w->zoo.services[s].objective_s * 1e3,
			0.15 * w->zoo.most_per_s[s], w->zoo.services[s].contender.serial,
			td_service_batch_s(&w->zoo.services[s], 16) * 1e3);
	fputs("\nMudi has two bounds. \"By the truth\": each batch gets the smallest share "
	      "under which Mudi's two conditions hold for the true time of a batch, plus its "
	      "10 %; the task gets the best batch and the best GPU. \"With lines through "
	      "exact samples\": Mudi as it is, but the curve of every pair is fitted to six "
	      "samples without noise, at no cost. The difference between the two bounds is "
	      "the cost of the curve's form. The difference between the second one and Mudi "
	      "is the cost of learning and of noise.\n",
		run->report);
	fputs("\nThe bound tries all batches and shares with the true speeds for the task "
	      "that is next, so it is no optimum over time. Fig. 17 and Table 4 have GPUs of "
	      "40 GiB. The memory of tasks and services is declared, not measured: 4 to 32 "
	      "GiB a task; 2.5 to 3 GiB a service, and 50 to 120 MiB for each request of a "
	      "batch. Mudi with up to three tasks puts them beside the services with the "
	      "smallest slopes (in seconds over share), which are those with the shortest "
	      "batches, even if other GPUs have no task. The row tells how many tasks are on "
	      "a GPU. The row is bounded because Mudi does the same with lines through exact "
	      "samples of every company of three: the cause is its rule, not its learning. In "
	      "the paper's 12 GPUs every service always had tasks beside it.\n",
		run->report);
	for (int c = 0; w && c < TD_MUDI_CLASSES; c++)
		free(w->pools[c]);
	if (w)
		td_knowledge_deinit(&w->knowledge);
	free(w);
	td_trace_deinit(&trace);
	return r;
}
#else
int td_exp_mudi_sim(struct td_experiment_run *run, struct td_err *err)
{
	return td_err_set(
		err, -ENOSYS, "%s: built without BLAS, so nothing can be trained", run->name);
}
#endif
