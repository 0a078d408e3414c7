/*
 * Runs the experiments muxflow-sim and muxflow-ablation in the world of muxflow_world.h. The effect
 * of a cap on a job's pressure is varied: as fitted, doubled and halved; and there is proportional
 * sharing.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "sim/base/sim.h"
#include "sim/report/experiment.h"

#ifdef TD_HAVE_LEARN
#include "sim/base/workers.h"
#include "sim/worlds/muxflow_world.h"

#define SEEDS_MAX 50u
#define VARIANTS  4

static const struct {
	const char *name, *vc;
} traces[] = {{"A", "103959"}, {"B", "11cb48"}, {"C", "6c71a0"}, {"D", "6214e9"}};

static const struct {
	const char *name;
	struct td_contention contention;
} variants[VARIANTS] = {{"fitted", {false, 1}}, {"proportional", {true, 1}},
	{"doubled", {false, 2}}, {"halved", {false, 0.5}}};

static const char *const how_names[] = {"time-sharing", "priority time-sharing"};

/*
 * Adds tandem's row: the main measure, oversold GPU, which counts while the guard of +20 % latency
 * holds.
 */
static void put_tandem(struct td_experiment_run *run, int trace, int variant,
	struct td_mux_outcome out[][TD_MUX_HOWS])
{
	double sold[SEEDS_MAX], ours = 0, mux = 0;
	char metric[96], spread[64], note[160];
	double median;

	for (uint32_t s = 0; s < run->seeds; s++) {
		sold[s] = out[s][TD_MUX_TANDEM].oversold / out[s][TD_MUX_MUXFLOW].oversold;
		ours = fmax(ours, out[s][TD_MUX_TANDEM].latency);
		mux = fmax(mux, out[s][TD_MUX_MUXFLOW].latency);
	}
	median = td_median(sold, run->seeds);
	td_spread(sold, run->seeds, spread);
	snprintf(metric, sizeof(metric), "tandem: trace %s: oversold, tandem / MuxFlow, %s",
		traces[trace].name, variants[variant].name);
	snprintf(note, sizeof(note), "latency %+.0f %%, MuxFlow %+.0f %%%s", (ours - 1) * 100,
		(mux - 1) * 100,
		mux < TD_MUX_GUARD ? ""
				   : ": MuxFlow's guard does not hold, so its figure does not "
				     "count and there is nothing to compare");
	td_row_put(run, TD_SHOWN, metric, "", spread, note, "%.2fx", median);
	td_row_interval(run, sold, run->seeds);
	if (mux < TD_MUX_GUARD || ours >= TD_MUX_GUARD)
		td_row_beside(run, sold, run->seeds, 1, ours < TD_MUX_GUARD);
}

/*
 * Returns the least latency that MuxFlow's shares cost the services, in per cent above alone,
 * wherever the jobs are. 0: it is within the guard, so it forbids nothing.
 */
static double least_latency(const struct td_mux_outcome *out)
{
	return out->least_excess > 0
		       ? 100 * (TD_MUX_GUARD - 1 + out->least_excess / out->most_requests)
		       : 0;
}

/* Writes that figure in words. */
static void anywhere(double percents, char *ret, size_t size)
{
	if (percents > 0)
		snprintf(ret, size, "at least +%.0f %%", percents);
	else
		snprintf(ret, size, "not forbidden");
}

static bool is_guarded(const struct td_mux_outcome *out)
{
	return out->latency < TD_MUX_GUARD;
}

/*
 * The ratios of a baseline's figure to four others: MuxFlow's; that of jobs with the whole GPU at
 * every service and at all times; that of jobs within the guard there; and MuxFlow's if all SMs
 * were active whenever a GPU is used.
 */
struct gains {
	double ours[SEEDS_MAX], whole[SEEDS_MAX], guarded[SEEDS_MAX], all_active[SEEDS_MAX];
	/*
	 * Whether MuxFlow's latency is within the guard, and whether its shares exclude that
	 * wherever the jobs are.
	 */
	bool in_guard[SEEDS_MAX], out_of_guard[SEEDS_MAX];
};

/*
 * Adds the row of a gain, which counts only while MuxFlow's guard holds. A seed is forbidden if not
 * even jobs with the whole GPU at all times do better than the baseline, or if no placement holds
 * the guard there under MuxFlow's shares. The figure of jobs with each service within the guard at
 * all times is only shown: the guard is of the mean.
 */
static void put_gain(struct td_experiment_run *run, int variant, const char *metric,
	const char *paper, struct gains *gains)
{
	uint32_t n = run->seeds;
	double median, whole, all_active, guarded;
	struct td_seeds seeds = {0};
	char spread[64], note[300];

	for (uint32_t k = 0; k < n; k++) /* before td_median() sorts them */
		td_seed_add_guarded(&seeds, gains->ours[k] > 1, gains->in_guard[k],
			gains->whole[k] <= 1 || gains->out_of_guard[k]);
	median = td_median(gains->ours, n);
	whole = td_median(gains->whole, n);
	all_active = td_median(gains->all_active, n);
	guarded = td_median(gains->guarded, n);
	td_spread(gains->ours, n, spread);
	snprintf(note, sizeof(note),
		"if every service is within +20 %% of latency at all times, by the truth: %.2fx; "
		"with the whole GPU at all times: %.2fx; MuxFlow, if all SMs were active whenever "
		"a GPU is used: %.2fx",
		guarded, whole, all_active);
	td_seeds_put(&seeds, note, sizeof(note));
	td_row_put(run, TD_SHOWN, metric, paper, spread, note, "%.2fx", median);
	td_row_interval(run, gains->ours, n);
	td_row_claim(run, TD_CLAIM_MUXFLOW_GAINS, (enum td_variant)variant, &seeds);
}

/*
 * The range over all baselines, traces and seeds of a variant, which has to overlap the paper's.
 * in_guard: the guard holds in all of them. out_of_guard: where it fails, it cannot hold.
 */
struct range {
	double least, most;
	bool in_guard, out_of_guard;
};

static const struct range no_range = {INFINITY, -INFINITY, true, true};

static void add_to_range(struct range *range, const struct gains *gains, uint32_t seeds)
{
	for (uint32_t k = 0; k < seeds; k++) {
		range->least = fmin(range->least, gains->ours[k]);
		range->most = fmax(range->most, gains->ours[k]);
		range->in_guard &= gains->in_guard[k];
		range->out_of_guard &= gains->in_guard[k] || gains->out_of_guard[k];
	}
}

static void put_range(struct td_experiment_run *run, int variant, const char *what,
	const char *paper, const struct range *range, double least, double most)
{
	struct td_seeds seeds = {0};
	char metric[96];

	td_seed_add_guarded(&seeds, range->least <= most && range->most >= least, range->in_guard,
		!range->in_guard && range->out_of_guard);
	snprintf(metric, sizeof(metric), "%s, range over all traces, seeds and baselines, %s", what,
		variants[variant].name);
	td_row_put(run, TD_SHOWN, metric, paper, "",
		range->in_guard ? "" : "latency is not within +20 % in all of them", "%.2f-%.2fx",
		range->least, range->most);
	td_row_claim(run, TD_CLAIM_MUXFLOW_GAINS, (enum td_variant)variant, &seeds);
}

/* Adds the rows against one baseline. ranges: of JCT and of oversold GPU. */
static void put_baseline(struct td_experiment_run *run, int trace, int variant, int baseline,
	struct td_mux_outcome out[][TD_MUX_HOWS], struct range ranges[2])
{
	struct gains jct, sold;
	char metric[96];

	for (uint32_t s = 0; s < run->seeds; s++) {
		const struct td_mux_outcome *of = out[s];

		jct.ours[s] = of[baseline].jct_s / of[TD_MUX_MUXFLOW].jct_s;
		jct.whole[s] = of[baseline].jct_s / of[TD_MUX_WHOLE].jct_s;
		jct.guarded[s] = of[baseline].jct_s / of[TD_MUX_GUARDED].jct_s;
		jct.all_active[s] = of[baseline].jct_s / of[TD_MUX_ALL_ACTIVE].jct_s;
		sold.all_active[s] = of[TD_MUX_ALL_ACTIVE].oversold / of[baseline].oversold;
		sold.ours[s] = of[TD_MUX_MUXFLOW].oversold / of[baseline].oversold;
		sold.whole[s] = of[TD_MUX_WHOLE].oversold / of[baseline].oversold;
		sold.guarded[s] = of[TD_MUX_GUARDED].oversold / of[baseline].oversold;
		jct.in_guard[s] = sold.in_guard[s] = is_guarded(&of[TD_MUX_MUXFLOW]);
		jct.out_of_guard[s] = sold.out_of_guard[s] = least_latency(&of[TD_MUX_MUXFLOW]) > 0;
	}
	add_to_range(&ranges[0], &jct, run->seeds);
	add_to_range(&ranges[1], &sold, run->seeds);
	snprintf(metric, sizeof(metric), "trace %s: JCT, %s / MuxFlow, %s", traces[trace].name,
		how_names[baseline], variants[variant].name);
	put_gain(run, variant, metric, "1.10-2.24x", &jct);
	snprintf(metric, sizeof(metric), "trace %s: oversold, MuxFlow / %s, %s", traces[trace].name,
		how_names[baseline], variants[variant].name);
	put_gain(run, variant, metric, "1.08-1.97x", &sold);
}

/*
 * Adds the row of the guard, which is that latency stays within +20 %. A seed is forbidden if no
 * placement can hold the guard with MuxFlow's shares.
 */
static void put_latency(struct td_experiment_run *run, int trace, int variant,
	struct td_mux_outcome out[][TD_MUX_HOWS])
{
	double most = 0, sharing = 0, priority = 0, least = 0, truth = 0, all_active = 0;
	char metric[96], note[400], at_least[32];
	struct td_seeds seeds = {0};

	for (uint32_t s = 0; s < run->seeds; s++) {
		const struct td_mux_outcome *of = out[s];

		td_seed_add(&seeds,
			is_guarded(&of[TD_MUX_MUXFLOW]) &&
				of[TD_MUX_TIME_SHARING].latency > of[TD_MUX_MUXFLOW].latency &&
				of[TD_MUX_TIME_SHARING].latency > of[TD_MUX_PRIORITY].latency,
			least_latency(&of[TD_MUX_MUXFLOW]) > 0);
		most = fmax(most, out[s][TD_MUX_MUXFLOW].latency);
		sharing = fmax(sharing, out[s][TD_MUX_TIME_SHARING].latency);
		priority = fmax(priority, out[s][TD_MUX_PRIORITY].latency);
		least = fmax(least, least_latency(&out[s][TD_MUX_MUXFLOW]));
		truth = fmax(truth, out[s][TD_MUX_TRUTH].latency);
		all_active = fmax(all_active, out[s][TD_MUX_ALL_ACTIVE].latency);
	}
	snprintf(metric, sizeof(metric), "trace %s: online latency, %s", traces[trace].name,
		variants[variant].name);
	anywhere(least, at_least, sizeof(at_least));
	snprintf(note, sizeof(note),
		"time-sharing %+.0f %%, priority %+.0f %%; MuxFlow's rules by the truth %+.0f %%, "
		"its shares wherever the jobs are %s (each of the seed where it is the most); if "
		"all SMs were active %+.0f %%",
		(sharing - 1) * 100, (priority - 1) * 100, (truth - 1) * 100, at_least,
		(all_active - 1) * 100);
	td_seeds_put(&seeds, note, sizeof(note));
	td_row_put(run, TD_SHOWN, metric, "< +20 %; time-sharing to +50 %", "", note, "%+.0f %%",
		(most - 1) * 100);
	td_row_claim(run, TD_CLAIM_MUXFLOW_LATENCY, (enum td_variant)variant, &seeds);
}

static void put_trace(struct td_experiment_run *run, int trace, int variant,
	struct td_mux_outcome out[][TD_MUX_HOWS], struct range ranges[2])
{
	char metric[96], note[96];

	for (int b = 0; b < 2; b++)
		put_baseline(run, trace, variant, b, out, ranges);
	put_latency(run, trace, variant, out);
	snprintf(metric, sizeof(metric), "trace %s: online service time without its queue, %s",
		traces[trace].name, variants[variant].name);
	snprintf(note, sizeof(note), "time-sharing %+.0f %%, priority %+.0f %%",
		(out[0][TD_MUX_TIME_SHARING].service - 1) * 100,
		(out[0][TD_MUX_PRIORITY].service - 1) * 100);
	td_row_put(run, TD_SHOWN, metric, "", "", note, "%+.0f %%",
		(out[0][TD_MUX_MUXFLOW].service - 1) * 100);
}

/*
 * Adds the row of the order of means, which counts while the latency of full MuxFlow is within the
 * guard in every seed. It is bounded if the guard cannot hold under its shares in any seed; or if
 * the order fails only at -S, and no placement under the fixed share of -S oversells more than -S-M
 * does. If the service makes no difference to a job (by turns, as long as 40 % is within what
 * max-min fairness leaves), matching gains nothing, and each of its moves costs.
 */
static void put_ablation(struct td_experiment_run *run, int trace, int variant,
	struct td_mux_outcome out[][TD_MUX_HOWS])
{
	double sold[TD_MUX_HOWS] = {0}, most = 0, latency = 0, least = 0;
	bool others, sharing, holds, in_guard = true, out_of_guard = true, forbidden;
	struct td_seeds seeds = {0};
	char metric[96], note[400], at_least[32];

	for (uint32_t s = 0; s < run->seeds; s++) {
		for (int how = TD_MUX_MUXFLOW; how < TD_MUX_TANDEM; how++)
			sold[how] += out[s][how].oversold / run->seeds;
		most += out[s][TD_MUX_NO_SHARE].most_fixed / run->seeds;
		latency = fmax(latency, out[s][TD_MUX_MUXFLOW].latency);
		least = fmax(least, least_latency(&out[s][TD_MUX_MUXFLOW]));
		in_guard &= is_guarded(&out[s][TD_MUX_MUXFLOW]);
		out_of_guard &= is_guarded(&out[s][TD_MUX_MUXFLOW]) ||
				least_latency(&out[s][TD_MUX_MUXFLOW]) > 0;
	}
	sharing = sold[TD_MUX_NO_SHARE] >= sold[TD_MUX_NO_BOTH];
	others = sold[TD_MUX_MUXFLOW] >= sold[TD_MUX_NO_SHARE] &&
		 sold[TD_MUX_MUXFLOW] >= sold[TD_MUX_NO_MATCH] &&
		 sold[TD_MUX_NO_MATCH] >= sold[TD_MUX_NO_BOTH];
	holds = others && sharing;
	forbidden = (others && !sharing && most <= sold[TD_MUX_NO_BOTH] * (1 + 1e-6)) ||
		    (!in_guard && out_of_guard);
	td_seed_add_guarded(&seeds, holds, in_guard, forbidden);
	snprintf(metric, sizeof(metric), "trace %s: oversold of full, -S, -M, -S-M, %s",
		traces[trace].name, variants[variant].name);
	anywhere(least, at_least, sizeof(at_least));
	snprintf(note, sizeof(note),
		"means over seeds; the most of any placement under -S's share, moves at no cost: "
		"%.4f, -S-M %.4f; latency of full %+.0f %%%s, its shares wherever the jobs are %s",
		most, sold[TD_MUX_NO_BOTH], (latency - 1) * 100,
		in_guard ? "" : ": the guard does not hold", at_least);
	td_row_put(run, TD_SHOWN, metric, "full >= -S, -M >= -S-M", "", note,
		"%.3f, %.3f, %.3f, %.3f", sold[TD_MUX_MUXFLOW], sold[TD_MUX_NO_SHARE],
		sold[TD_MUX_NO_MATCH], sold[TD_MUX_NO_BOTH]);
	td_row_claim(run, TD_CLAIM_MUXFLOW_ABLATION, (enum td_variant)variant, &seeds);
}

#define TRACES 4

/* The simulations of one variant: a task for each trace and seed. */
struct batch {
	struct td_mux_world *w;
	struct td_mux_matching *m;
	const struct td_trace *trace;
	uint32_t seeds;
	bool ablation;
};

struct result {
	struct td_mux_outcome out[TD_MUX_HOWS];
	uint32_t jobs;
};

static int run_task(void *arg, uint32_t index, void *ret, struct td_err *err)
{
	struct batch *batch = arg;
	uint32_t t = index / batch->seeds, s = index % batch->seeds;
	struct result *result = ret;
	int r = td_mux_make_jobs(batch->w, batch->trace, traces[t].vc, 100 * (s + 1) + t, err);

	result->jobs = batch->w->count;
	for (int how = 0; !r && how < TD_MUX_HOWS; how++) {
		bool is_ablation = how > TD_MUX_MUXFLOW && how < TD_MUX_TANDEM;

		if (how != TD_MUX_MUXFLOW && is_ablation != batch->ablation)
			continue;
		if (td_sim_stop)
			return td_err_set(err, -EINTR, "stopped");
		if (td_mux_simulate(batch->w, batch->m, (enum td_mux_how)how, &result->out[how]))
			return td_err_set(err, -ENOMEM, "the matching failed");
	}
	if (!r && batch->ablation)
		result->out[TD_MUX_NO_SHARE].most_fixed = td_mux_most_fixed(batch->w);
	return r;
}

static void put_batch(
	struct td_experiment_run *run, int variant, bool ablation, const struct result *results)
{
	struct td_mux_outcome out[SEEDS_MAX][TD_MUX_HOWS];
	struct range ranges[2] = {no_range, no_range};

	for (int t = 0; t < TRACES; t++, results += run->seeds) {
		const struct td_mux_outcome *first = &results[0].out[TD_MUX_MUXFLOW];

		for (uint32_t s = 0; s < run->seeds; s++)
			memcpy(out[s], results[s].out, sizeof(out[s]));
		if (ablation) {
			put_ablation(run, t, variant, out);
		} else {
			put_trace(run, t, variant, out, ranges);
			put_tandem(run, t, variant, out);
		}
		fprintf(run->report,
			"Trace %s, %s, first seed: there are %u jobs; MuxFlow made %llu moves "
			"(%.0f GPU h) and did not finish %.0f jobs.\n\n",
			traces[t].name, variants[variant].name, results[0].jobs,
			(unsigned long long)first->moves, first->moved_h, first->unfinished);
	}
	if (ablation)
		return;
	put_range(run, variant, "JCT", "overlaps 1.10-2.24x", &ranges[0], 1.10, 2.24);
	put_range(run, variant, "oversold", "overlaps 1.08-1.97x", &ranges[1], 1.08, 1.97);
}

static void put_notes(FILE *out, bool ablation)
{
	fputs("Contention variants: doubled and halved is the pressure that jobs with a cap "
	      "of SMs have on others. With one job beside a service only the service feels "
	      "it. So all that concerns the jobs (completion times and oversold GPUs of "
	      "MuxFlow and its baselines, all of muxflow-ablation) is the same in fitted, "
	      "doubled and halved: these are three copies of one world, and proportional "
	      "sharing is a second world. Only latencies, and tandem's results that depend on "
	      "them, are of four worlds.\n\n"
	      "Guard: completion times and oversold GPUs of MuxFlow, and of its ablation, "
	      "count only where its latency is within +20 %. Where it is not, the seed is "
	      "lost even if the order holds. Such a seed is forbidden if MuxFlow's own shares "
	      "cannot keep the mean latency within the guard for any placement. To test this, "
	      "in every interval as many jobs of each kind as MuxFlow has are put, under its "
	      "own shares and with settled controllers, on those GPUs where the services' "
	      "mean latency is least above the guard.\n\n",
		out);
	if (ablation) {
		fputs("Bound of -S: wherever a job is placed, it takes at least its work divided "
		      "by the highest speed that its kind can have with 40 % of the SMs, whichever "
		      "service is beside it. Under time-sharing that speed is the same beside all "
		      "services. So -S-M, which moves no job, reaches the bound, and a matching "
		      "that "
		      "moves any job is below it. The report of muxflow-sim explains services, SM "
		      "activity and time-sharing.\n",
			out);
		return;
	}
	fputs("Shown without forbidding a seed: the most that any share and duty give the "
	      "jobs under MuxFlow's matching if every service stays within +20 % of its "
	      "latency at all times, found with the true speeds. (A mean within +20 % may "
	      "cost less.) The bound of completion times and oversold GPUs is what jobs get "
	      "if they have the whole GPU at all times, at any cost to the service. To show "
	      "which part of MuxFlow loses, its shares and matching are also run with the "
	      "true speeds of pairs instead of the predictor.\n\n"
	      "The SM activity is 0.62 of the used GPU time, as measured on three clusters: "
	      "16 of 26 % before sharing on MuxFlow's own (its 7.5), 41.5 of 66.1 and 38.5 of "
	      "62.0 % on Acme's two. MuxFlow's shares (\"according to the SM activity\", "
	      "4.3), its duty and its predictor use this activity. One column shows the case "
	      "that all SMs are active whenever a GPU is used, which is the most that a "
	      "monitor could show. The duty that holds the activity at 0.9 then takes much of "
	      "the GPU from jobs.\n\n"
	      "Where MuxFlow's guard fails: the job's share is what the service's activity "
	      "leaves, however much the job slows the service down. The services here are "
	      "Gavel's Recommendation jobs, which are slowed down much. tandem has MuxFlow's "
	      "matching and predictor, but its own split, which holds the guard and leaves "
	      "jobs less. Time-sharing is ideal here: switching costs nothing, and no overlap "
	      "is lost. That favours the baselines. A T4's clock is not modelled, so a_C is "
	      "1. Services are busy up to 85 % of the time at their peak, where a queue turns "
	      "a small slowdown into a long latency. So both are shown: the latency with the "
	      "queue, and the service time without it.\n",
		out);
}

static int run_all(struct td_experiment_run *run, bool ablation, struct td_err *err)
{
	struct td_learn_options options = td_learn_default;
	td_auto_free struct result *results = calloc(TRACES * run->seeds, sizeof(*results));
	struct td_mux_matching *m = calloc(1, sizeof(*m));
	struct td_trace trace = {0};
	struct td_mux_world *w = NULL;
	int r = results && m ? td_mux_prepare(run, &w, m, &trace, err)
			     : td_err_set(err, -ENOMEM, "out of memory");
	struct batch batch = {w, m, &trace, run->seeds, ablation};

	options.epochs = 60;
	for (int v = 0; !r && v < (run->quick ? 1 : VARIANTS); v++) {
		w->contention = variants[v].contention;
		memset(w->guarded, 0, sizeof(w->guarded));
		memset(w->hurt, 0, sizeof(w->hurt));
		r = td_mux_train(w, &options, 4242, err);
		r = r ? r
		      : td_workers_run(run->jobs, TRACES * run->seeds, run_task, &batch, results,
				sizeof(*results), err);
		if (!r)
			put_batch(run, v, ablation, results);
	}
	if (w)
		td_model_deinit(&w->model);
	if (m)
		free(m->memory);
	free(m);
	free(w);
	td_trace_deinit(&trace);
	put_notes(run->report, ablation);
	return r;
}

int td_exp_muxflow_sim(struct td_experiment_run *run, struct td_err *err)
{
	return run_all(run, false, err);
}

int td_exp_muxflow_ablation(struct td_experiment_run *run, struct td_err *err)
{
	return run_all(run, true, err);
}
#else
int td_exp_muxflow_sim(struct td_experiment_run *run, struct td_err *err)
{
	return td_err_set(
		err, -ENOSYS, "%s: built without BLAS, so nothing can be trained", run->name);
}

int td_exp_muxflow_ablation(struct td_experiment_run *run, struct td_err *err)
{
	return td_exp_muxflow_sim(run, err);
}
#endif
