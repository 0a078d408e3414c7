/* Writes the rows and sentences of antman-trace; see exp_antman.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/research/exp_antman.h"

#define FIFO    TD_ANTMAN_FIFO
#define PREEMPT TD_ANTMAN_PREEMPT
#define GANDIVA TD_ANTMAN_GANDIVA
#define ANTMAN  TD_ANTMAN_ITSELF
#define TANDEM  TD_ANTMAN_TANDEM

/*
 * These variations of AntMan show why its seeds are lost (enum td_antman_other). The last one runs
 * the same jobs without limits of memory.
 */
#define VARIATIONS (TD_ANTMAN_OTHERS + 1)
#define UNLIMITED  TD_ANTMAN_OTHERS
static const char *const variations[VARIATIONS] = {"without contention",
	"if only guests under the guard were slow", "if only guests slowed guests",
	"without the guard", "if guests moved", "without limits of memory"};

struct td_antman_setting td_antman_setting_of(uint32_t index)
{
	static const double loads[TD_ANTMAN_LOADS] = {0.6, 0.9, 1.2, 2.0, 5.0};

	return (struct td_antman_setting){loads[index % TD_ANTMAN_LOADS],
		index / TD_ANTMAN_LOADS & 1, index / TD_ANTMAN_LOADS & 2};
}

struct ratios {
	double guaranteed[TD_ANTMAN_SEEDS_MAX], preempted[TD_ANTMAN_SEEDS_MAX],
		evicted[TD_ANTMAN_SEEDS_MAX], tandem[TD_ANTMAN_SEEDS_MAX],
		tandem_guaranteed[TD_ANTMAN_SEEDS_MAX], moves[TD_ANTMAN_SEEDS_MAX];
	/*
	 * unguarded, moving: FIFO's completion time over that of AntMan without its guard, and over
	 * that of AntMan whose guests move. slow_*: the guaranteed jobs' slowdown under the two.
	 */
	double unguarded[TD_ANTMAN_SEEDS_MAX], moving[TD_ANTMAN_SEEDS_MAX],
		slow_unguarded[TD_ANTMAN_SEEDS_MAX], slow_moving[TD_ANTMAN_SEEDS_MAX];
	/* AntMan's completion time over that of AntMan whose guests move. */
	double antman_moving[TD_ANTMAN_SEEDS_MAX];
	double guard[TD_ANTMAN_SEEDS_MAX], least_slow[TD_ANTMAN_SEEDS_MAX];
	double misled[TD_ANTMAN_SEEDS_MAX], untold[TD_ANTMAN_SEEDS_MAX],
		untold_guaranteed[TD_ANTMAN_SEEDS_MAX];
};

/*
 * The ratios of a baseline's figure to AntMan's, to the bound, and to AntMan's in each variation.
 * 0: there is none.
 */
struct gains {
	double ours[TD_ANTMAN_SEEDS_MAX], most[TD_ANTMAN_SEEDS_MAX], pair_sum[TD_ANTMAN_SEEDS_MAX],
		varied[VARIATIONS][TD_ANTMAN_SEEDS_MAX];
	bool in_guard[TD_ANTMAN_SEEDS_MAX]; /* guaranteed jobs are within their 5 % of mean JCT */
};

static enum td_variant variant_of(const struct td_antman_setting *setting)
{
	return setting->proportional ? TD_PROPORTIONAL : TD_FITTED;
}

/*
 * Counts over all rows that count: lost seeds, seeds that a bound forbids, and other lost seeds
 * that a variation would win.
 */
struct tally {
	uint32_t rows, lost, forbidden, turned[VARIATIONS], limited, by_none;
	/* Runs in which a world with less contention is slower than the measured one. */
	uint32_t worse, worlds;
	double least_moving, most_moving, least_tandem,
		most_tandem; /* medians of AntMan's mean JCT over that of the other */
};

static double ratio(const struct td_antman_outcome *outcome, int over, int under, int metric)
{
	return outcome->metrics[over][metric] / outcome->metrics[under][metric];
}

/*
 * Computes the gains over a baseline in one figure. unlimited: the outcomes without limits of
 * memory, or NULL.
 */
static void collect_gains(const struct td_antman_outcome *outcomes,
	const struct td_antman_outcome *unlimited, uint32_t seeds, int baseline, int metric,
	struct gains *ret)
{
	bool is_span = metric == TD_METRIC_MAKESPAN_S;

	for (uint32_t s = 0; s < seeds; s++) {
		const struct td_antman_outcome *o = &outcomes[s];
		double of = o->metrics[baseline][metric];

		ret->ours[s] = of / o->metrics[ANTMAN][metric];
		ret->in_guard[s] =
			is_span || ratio(o, ANTMAN, PREEMPT, TD_METRIC_GUARANTEED_JCT_MEAN_S) <=
					   1 + TD_ANTMAN_SLACK;
		ret->most[s] = of / (is_span ? o->most.span_s : o->most.jct_s);
		ret->pair_sum[s] = of / o->least_span_s;
		for (int v = 0; v < TD_ANTMAN_OTHERS; v++)
			ret->varied[v][s] = of / o->other[v][metric];
		ret->varied[UNLIMITED][s] =
			unlimited ? ratio(&unlimited[s], baseline, ANTMAN, metric) : 0;
	}
}

static void collect(const struct td_antman_outcome *outcomes, uint32_t seeds, struct ratios *ret)
{
	for (uint32_t s = 0; s < seeds; s++) {
		const struct td_antman_outcome *o = &outcomes[s];
		const double *unguarded = o->other[TD_ANTMAN_UNGUARDED],
			     *moving = o->other[TD_ANTMAN_MOVING];
		double fifo = o->metrics[FIFO][TD_METRIC_JCT_MEAN_S],
		       tandem = o->metrics[TANDEM][TD_METRIC_JCT_MEAN_S],
		       preempt = o->metrics[PREEMPT][TD_METRIC_GUARANTEED_JCT_MEAN_S];

		ret->guaranteed[s] = ratio(o, ANTMAN, PREEMPT, TD_METRIC_GUARANTEED_JCT_MEAN_S);
		ret->preempted[s] = o->metrics[PREEMPT][TD_METRIC_EVICTED_PERCENT];
		ret->evicted[s] = o->metrics[ANTMAN][TD_METRIC_EVICTIONS];
		ret->tandem[s] = ratio(o, ANTMAN, TANDEM, TD_METRIC_JCT_MEAN_S);
		ret->tandem_guaranteed[s] =
			ratio(o, TANDEM, PREEMPT, TD_METRIC_GUARANTEED_JCT_MEAN_S);
		ret->moves[s] = o->metrics[TANDEM][TD_METRIC_MOVES];
		ret->unguarded[s] = fifo / unguarded[TD_METRIC_JCT_MEAN_S];
		ret->moving[s] = fifo / moving[TD_METRIC_JCT_MEAN_S];
		ret->antman_moving[s] =
			o->metrics[ANTMAN][TD_METRIC_JCT_MEAN_S] / moving[TD_METRIC_JCT_MEAN_S];
		ret->slow_unguarded[s] = unguarded[TD_METRIC_GUARANTEED_JCT_MEAN_S] / preempt;
		ret->slow_moving[s] = moving[TD_METRIC_GUARANTEED_JCT_MEAN_S] / preempt;
		ret->misled[s] = o->misled[TD_METRIC_JCT_MEAN_S] / tandem;
		ret->untold[s] = o->untold[TD_METRIC_JCT_MEAN_S] / tandem;
		ret->untold_guaranteed[s] = o->untold[TD_METRIC_GUARANTEED_JCT_MEAN_S] / preempt;
		ret->guard[s] = o->guard;
		ret->least_slow[s] = o->least_slow;
	}
}

static void name_metric(const struct td_antman_setting *setting, const char *what, char ret[96])
{
	snprintf(ret, 96, "%s, load %g%s%s", what, setting->load,
		setting->memory ? ", 6-31 GB" : ", no memory limits",
		setting->proportional ? ", proportional" : "");
}

/* Appends a text such as "2.39x (1 to 5.02)". */
static void put_median(char *note, size_t size, const char *label, double *values, uint32_t n)
{
	char spread[64];
	size_t at = strlen(note);

	td_spread(values, n, spread);
	snprintf(note + at, size - at, "%s %.2fx (%s)", label, td_median(values, n), spread);
}

/*
 * Tells whether no policy can gain in that seed: antman_bound.h. The pair sum is no bound, because
 * it is a mean of the mix, and a scheduler may choose better pairs.
 */
static bool is_forbidden(const struct gains *gains, uint32_t seed)
{
	return gains->most[seed] <= 1 + 1e-6;
}

/* Notes how many of the lost seeds that no bound forbids each variation would win. */
static void put_reason(
	const struct gains *gains, uint32_t seeds, char *note, size_t size, struct tally *tally)
{
	uint32_t turned[VARIATIONS] = {0}, open = 0, by_none = 0;
	bool limited = gains->varied[UNLIMITED][0] > 0;

	for (uint32_t k = 0; k < seeds; k++) {
		bool none = true;

		if (gains->ours[k] > 1 || is_forbidden(gains, k))
			continue;
		open++;
		for (int v = 0; v < VARIATIONS; v++) {
			turned[v] += gains->varied[v][k] > 1;
			none &= !(gains->varied[v][k] > 1);
		}
		by_none += none;
	}
	if (!open)
		return;
	tally->by_none += by_none;
	tally->limited += limited ? open : 0;
	snprintf(note + strlen(note), size - strlen(note),
		". Gain, of %u that no bound forbids:", open);
	for (int v = 0; v < VARIATIONS; v++) {
		tally->turned[v] += turned[v];
		if (v != UNLIMITED || limited)
			snprintf(note + strlen(note), size - strlen(note), "%s %s %u", v ? "," : "",
				variations[v], turned[v]);
	}
	if (by_none)
		snprintf(
			note + strlen(note), size - strlen(note), ", by none of these %u", by_none);
}

/* Adds the row of a gain, which has to be more than 1 in every seed. */
static void put_gain(struct td_experiment_run *run, const struct td_antman_setting *setting,
	const char *what, const char *paper, bool counts, bool is_span, struct gains *gains,
	struct tally *tally)
{
	uint32_t n = run->seeds;
	struct td_seeds seeds = {0};
	char metric[96], spread[64], reason[400] = "", note[767] = "";

	for (uint32_t k = 0; k < n; k++) /* before td_median() sorts them */
		td_seed_add_guarded(
			&seeds, gains->ours[k] > 1, gains->in_guard[k], is_forbidden(gains, k));
	if (counts) {
		put_reason(gains, n, reason, sizeof(reason), tally);
		tally->rows++;
		tally->lost += seeds.lost - seeds.unguarded;
		tally->forbidden += seeds.forbidden;
	}
	name_metric(setting, what, metric);
	td_spread(gains->ours, n, spread);
	put_median(note, sizeof(note),
		is_span ? "whoever keeps the guard, at most" : "whoever keeps the order, at most",
		gains->most, n);
	if (is_span)
		put_median(note, sizeof(note), "; two jobs on every GPU", gains->pair_sum, n);
	td_seeds_put(&seeds, note, sizeof(note));
	snprintf(note + strlen(note), sizeof(note) - strlen(note), ". AntMan");
	for (int v = 0; v < TD_ANTMAN_OTHERS; v++) {
		snprintf(note + strlen(note), sizeof(note) - strlen(note), "%s ", v ? "," : "");
		put_median(note, sizeof(note), variations[v], gains->varied[v], n);
	}
	snprintf(note + strlen(note), sizeof(note) - strlen(note), "%s", reason);
	td_row_put(run, TD_SHOWN, metric, paper, spread, note, "%.2fx", td_median(gains->ours, n));
	td_row_interval(run, gains->ours, n);
	if (counts)
		td_row_claim(run, is_span ? TD_CLAIM_ANTMAN_MAKESPAN : TD_CLAIM_ANTMAN_JCT,
			variant_of(setting), &seeds);
}

/* Adds the rows of completion times and makespans against both baselines. */
static void put_gains(struct td_experiment_run *run, const struct td_antman_setting *setting,
	const struct td_antman_outcome *outcomes, const struct td_antman_outcome *unlimited,
	struct tally *tally)
{
	static const struct {
		const char *what, *paper;
		int baseline, metric;
	} rows[] = {{"mean JCT, FIFO / AntMan", "2.05x", FIFO, TD_METRIC_JCT_MEAN_S},
		{"mean JCT, Gandiva / AntMan", "1.84x", GANDIVA, TD_METRIC_JCT_MEAN_S},
		{"makespan, FIFO / AntMan", "1.76x", FIFO, TD_METRIC_MAKESPAN_S},
		{"makespan, Gandiva / AntMan", "1.67x", GANDIVA, TD_METRIC_MAKESPAN_S}};

	for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
		bool is_span = rows[k].metric == TD_METRIC_MAKESPAN_S;
		struct gains gains;

		collect_gains(
			outcomes, unlimited, run->seeds, rows[k].baseline, rows[k].metric, &gains);
		put_gain(run, setting, rows[k].what, rows[k].paper,
			setting->load > (is_span ? 1.15 : 0.85), is_span, &gains, tally);
	}
}

static void put_preempted(
	struct td_experiment_run *run, const struct td_antman_setting *setting, double *values)
{
	char metric[96], spread[64];

	snprintf(metric, sizeof(metric), "jobs that preemption preempts, load %g%s", setting->load,
		setting->memory ? ", 6-31 GB" : ", no memory limits");
	td_spread(values, run->seeds, spread);
	if (!setting->proportional && !setting->memory)
		td_row_put(run, TD_SHOWN, metric, "46 %", spread, "none under AntMan", "%.0f %%",
			td_median(values, run->seeds));
}

/* Adds tandem's row: the main measure, mean JCT, and its guard, guaranteed jobs within 5 %. */
static void put_tandem(struct td_experiment_run *run, const struct td_antman_setting *setting,
	struct ratios *ratios)
{
	double guard = td_median(ratios->tandem_guaranteed, run->seeds);
	double gain = td_median(ratios->tandem, run->seeds);
	char metric[96], spread[64], note[128];

	name_metric(setting, "tandem: mean JCT, AntMan / tandem", metric);
	td_spread(ratios->tandem, run->seeds, spread);
	snprintf(note, sizeof(note), "guaranteed JCT, tandem / preemption: %.2fx%s; %.0f moves",
		guard, guard <= 1.05 ? "" : ": the guard does not hold",
		td_median(ratios->moves, run->seeds));
	td_row_put(run, TD_SHOWN, metric, "", spread, note, "%.2fx", gain);
	td_row_beside(run, ratios->tandem, run->seeds, 1, guard <= 1.05);
}

/*
 * Shows how much tandem loses if demands are wrong. Otherwise schedulers know the demand of each
 * kind exactly, from the fit of what pairs lose.
 */
static void put_misled(struct td_experiment_run *run, const struct td_antman_setting *setting,
	struct ratios *ratios)
{
	char metric[96], spread[64], note[200] = "";

	name_metric(setting, "tandem told no demands / told them", metric);
	td_spread(ratios->untold, run->seeds, spread);
	snprintf(note, sizeof(note),
		"mean JCT, every kind told to use %.1f of a GPU; guaranteed JCT, tandem / "
		"preemption: %.2fx; ",
		TD_ANTMAN_UNTOLD, td_median(ratios->untold_guaranteed, run->seeds));
	put_median(note, sizeof(note), "mean JCT, each told wrong by up to 50 %:", ratios->misled,
		run->seeds);
	td_row_put(run, TD_SHOWN, metric, "", spread, note, "%.2fx",
		td_median(ratios->untold, run->seeds));
	td_row_interval(run, ratios->untold, run->seeds);
}

/*
 * Adds the rows of guaranteed jobs. The figure with a smaller duty explains the result, but is no
 * bound: with other speeds Algorithm 1 would place other jobs.
 */
static void put_guaranteed(struct td_experiment_run *run, const struct td_antman_setting *setting,
	struct ratios *ratios)
{
	struct td_seeds seeds = {0};
	char metric[96], spread[64], note[240] = "";

	for (uint32_t k = 0; k < run->seeds; k++)
		td_seed_add(&seeds, ratios->guaranteed[k] <= 1 + TD_ANTMAN_SLACK, false);
	name_metric(setting, "guaranteed JCT, AntMan / preemption", metric);
	td_spread(ratios->guaranteed, run->seeds, spread);
	put_median(note, sizeof(note), "5 % on the GPU for all, with their queue:", ratios->guard,
		run->seeds);
	put_median(note, sizeof(note), "; no guest above the least duty:", ratios->least_slow,
		run->seeds);
	td_seeds_put(&seeds, note, sizeof(note));
	td_row_put(run, TD_SHOWN, metric, "1x", spread, note, "%.2fx",
		td_median(ratios->guaranteed, run->seeds));
	td_row_interval(run, ratios->guaranteed, run->seeds);
	td_row_claim(run, TD_CLAIM_ANTMAN_GUARANTEED, variant_of(setting), &seeds);
}

/*
 * Adds the row that no guaranteed job is preempted. AntMan's scheduler cannot take a GPU from a
 * job, so the row shows nothing about it.
 */
static void put_none_preempted(struct td_experiment_run *run,
	const struct td_antman_setting *setting, const double *evicted)
{
	double sum = 0;
	char metric[96];

	for (uint32_t s = 0; s < run->seeds; s++)
		sum += evicted[s];
	name_metric(setting, "jobs that AntMan preempts", metric);
	td_row_put(run, sum > 0 ? TD_NOT_REPRODUCED : TD_BY_CONSTRUCTION, metric, "none", "",
		"its rules preempt nobody", "%.0f", sum);
	td_row_claim(run, TD_CLAIM_ANTMAN_PREEMPTED, variant_of(setting), NULL);
}

/*
 * Shows which part of AntMan causes its losses: the guard of the guaranteed jobs, or the rule that
 * guests stay on their GPU.
 */
static void put_parts(struct td_experiment_run *run, const struct td_antman_setting *setting,
	struct ratios *ratios)
{
	char metric[96], spread[64], moved[64], note[200];
	uint32_t n = run->seeds;

	name_metric(setting, "mean JCT, FIFO / AntMan without its guard", metric);
	td_spread(ratios->unguarded, n, spread);
	td_spread(ratios->moving, n, moved);
	snprintf(note, sizeof(note),
		"guaranteed jobs then take %.2fx as long; with the guard and guests that move: "
		"%.2fx (%s), guaranteed jobs %.2fx",
		td_median(ratios->slow_unguarded, n), td_median(ratios->moving, n), moved,
		td_median(ratios->slow_moving, n));
	td_row_put(
		run, TD_SHOWN, metric, "", spread, note, "%.2fx", td_median(ratios->unguarded, n));
	td_row_interval(run, ratios->unguarded, n);
}

static void put_setting(struct td_experiment_run *run, const struct td_antman_setting *setting,
	struct ratios *ratios, struct tally *tally)
{
	double moving = td_median(ratios->antman_moving, run->seeds),
	       tandem = td_median(ratios->tandem, run->seeds);

	put_guaranteed(run, setting, ratios);
	put_none_preempted(run, setting, ratios->evicted);
	put_preempted(run, setting, ratios->preempted);
	if (setting->load > 1.15) {
		put_parts(run, setting, ratios);
		tally->least_moving = fmin(tally->least_moving, moving);
		tally->most_moving = fmax(tally->most_moving, moving);
		tally->least_tandem = fmin(tally->least_tandem, tandem);
		tally->most_tandem = fmax(tally->most_tandem, tandem);
	}
	put_tandem(run, setting, ratios);
	if (setting->load > 1.15 && setting->load < 1.25)
		put_misled(run, setting, ratios);
}

static void count_worse(const struct td_antman_outcome *outcome, struct tally *tally)
{
	for (int v = TD_ANTMAN_FREE; v <= TD_ANTMAN_GUESTS_ALONE; v++) {
		tally->worlds++;
		tally->worse += outcome->other[v][TD_METRIC_JCT_MEAN_S] >
				outcome->metrics[ANTMAN][TD_METRIC_JCT_MEAN_S] * (1 + 1e-9);
	}
}

static void put_bounds(FILE *out, const struct tally *tally)
{
	fprintf(out,
		"A row is bounded if each of its lost seeds is forbidden by a bound of that "
		"very seed. A bound holds for every policy that serves guaranteed jobs in order "
		"of arrival, even if it knows all durations, moves jobs at no cost and has no "
		"limits of memory. (src/sim/worlds/antman_bound.h has the proof. The bound of "
		"makespans holds only for policies that keep the guard, too.) AntMan's own "
		"results in other worlds are no bound, because Algorithm 1 places by what it "
		"sees. In %u of %u runs of a world in which no job is slower than in the "
		"measured one beside the same jobs, the mean completion time is longer. The "
		"pair sum is no bound either, because it is a mean of the mix.\n\n",
		tally->worse, tally->worlds);
}

static void put_why(FILE *out, const struct tally *tally, double pair_sum, double guest_speed)
{
	uint32_t open = tally->lost - tally->forbidden;

	fprintf(out,
		"Where AntMan loses: in the %u rows of the order %u seeds are lost, and a bound "
		"forbids %u of them. Of the other %u these variations would win:",
		tally->rows, tally->lost, tally->forbidden, open);
	for (int v = 0; v < TD_ANTMAN_OTHERS; v++)
		fprintf(out, "%s %s %u", v ? "," : "", variations[v], tally->turned[v]);
	fprintf(out, ", %s %u of the %u with memory limits; no variation would win %u of them. ",
		variations[UNLIMITED], tally->turned[UNLIMITED], tally->limited, tally->by_none);
	fprintf(out,
		"Two jobs of the mix do %.2f times the work of one together, so sharing gains "
		"little. A guest beside a guaranteed job of this mix has a speed of %.2f if "
		"that job is 4 %% slower, and it stays there when GPUs come free elsewhere. If "
		"guests moved to GPUs without jobs, at the cost of a restart and by otherwise "
		"the same rules, AntMan would be %.2f to %.2f times as fast as it is, in the "
		"median at loads of 1.2 and more, with and without limits of memory. tandem is "
		"%.2f to %.2f times as fast. Without the guard guests are as fast as the pair "
		"permits, and guaranteed jobs are slower.\n\n",
		pair_sum, guest_speed, tally->least_moving, tally->most_moving, tally->least_tandem,
		tally->most_tandem);
}

void td_antman_put(struct td_experiment_run *run, const struct td_antman_outcome *outcomes,
	uint32_t settings, double pair_sum, double guest_speed)
{
	struct tally tally = {.least_moving = INFINITY, .least_tandem = INFINITY};
	double within = NAN;
	char shown[32] = "no load";

	for (uint32_t k = 0; k < settings; k++) {
		const struct td_antman_setting setting = td_antman_setting_of(k);
		const struct td_antman_outcome *of = outcomes + (size_t)k * run->seeds;
		const struct td_antman_outcome *unlimited =
			setting.memory ? of - (size_t)TD_ANTMAN_LOADS * run->seeds : NULL;
		struct ratios ratios;
		struct gains gains;
		double median;

		for (uint32_t s = 0; s < run->seeds; s++)
			count_worse(&of[s], &tally);
		collect(of, run->seeds, &ratios);
		put_gains(run, &setting, of, unlimited, &tally);
		put_setting(run, &setting, &ratios, &tally);
		collect_gains(of, NULL, run->seeds, FIFO, TD_METRIC_JCT_MEAN_S, &gains);
		median = td_median(gains.ours, run->seeds);
		if (!setting.proportional && median >= 1.6 && median <= 2.5)
			within = setting.load;
	}
	if (within > 0)
		snprintf(shown, sizeof(shown), "load %g", within);
	td_row_put(run, within > 0 ? TD_REPRODUCED : TD_NOT_REPRODUCED,
		"a load at which FIFO / AntMan is 1.6 to 2.5", "one shown", "",
		"of the median; not of every seed", "%s", shown);
	td_row_claim(run, TD_CLAIM_ANTMAN_JCT, TD_FITTED, NULL);
	td_row_put(run, TD_SHOWN, "pair sum of the mix", "1.76x", "",
		"what two jobs on a GPU do together, of one alone: the mean", "%.2f", pair_sum);
	td_row_put(run, TD_SHOWN,
		"speed of a guest beside a guaranteed job that is 4 % slower at most", "", "",
		"of its speed alone: the mean of the mix; the rest of the time it waits", "%.2f",
		guest_speed);
	put_bounds(run->report, &tally);
	put_why(run->report, &tally, pair_sum, guest_speed);
	fputs("Guaranteed jobs. The coordinator lets a mini-batch be 4 % longer: the paper has "
	      "no limit, but of its 10,000 jobs none was interfered with by more (Table 5). With "
	      "the queue in which they wait for each other where they alone fill the cluster, 5 % "
	      "on the GPU are more: in the row is what 5 % for all of them come to with nobody "
	      "else there, and what AntMan's would be if every guest had the least duty at all "
	      "times, 2 % of the time (ours; the paper has none, but its guests always run).\n\n"
	      "Contention variants: AntMan caps no SMs, it holds guests to a duty, so doubled "
	      "and halved pressure under caps are the same run; fitted and proportional are "
	      "both shown. Gandiva packs two jobs with their true memory and use, as its paper "
	      "gives it; FIFO and AntMan see neither. Kinds are the nearest of Gavel's, P100 "
	      "fit.\n",
		run->report);
}
