/*
 * The experiment dcuda-memory runs 35 applications with 217 GB together on the four GPUs of
 * dcuda_machine.h, of 12 GB each. Thrashing is calibrated on Fig. 3. Their demand for cores is not
 * in the paper, so several values are run. Contention is proportional sharing and, with the data,
 * the fitted model, in which all applications are like the P100 job whose use of a GPU is nearest
 * to that demand.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "sim/base/bootstrap.h"
#include "sim/base/random.h"
#include "sim/report/experiment.h"
#include "sim/worlds/dcuda_machine.h"

#define LESS 0.5 /* per cent of the time by which overload has to be shorter */
/*
 * Slowdown by thrashing, from Fig. 3: seven copies of alexnet, with 80 % of the cores each, take
 * 5.6 times as long as one if side by side, and 1.5 x 7 times with 112 % of the memory.
 */
#define SERIAL_THRASH (1 + (1.5 * 7 / 5.6 - 1) / 0.12)
#define WORK_S        30. /* work of an application; others are tried and shown */

static double mean4(const double *values)
{
	return (values[0] + values[1] + values[2] + values[3]) / 4;
}

static void make_memory_apps(
	uint32_t order, double core, double work_s, struct td_dcuda_machine_app *apps)
{
	static const struct {
		uint32_t count;
		double gib;
	} kinds[] = {{12, 6}, {15, 7}, {8, 5}};
	uint64_t shuffle = 5000 + order;
	uint32_t at[TD_DCUDA_MACHINE_APPS], n = 0;

	for (uint32_t i = 0; i < 35; i++)
		at[i] = i;
	td_random_shuffle(&shuffle, at, 35);
	for (int k = 0; k < 3; k++) {
		for (uint32_t i = 0; i < kinds[k].count; i++, n++) {
			struct td_contender contender = td_contender_neutral;

			contender.demand = core;
			apps[at[n]] = (struct td_dcuda_machine_app){.arrive_s = 4. * at[n],
				.work_s = work_s,
				.core = core,
				.memory_gib = kinds[k].gib,
				.contender = contender};
		}
	}
}

/*
 * Returns the part of the time in which some GPU exceeds its memory for any placement, if nobody is
 * slowed down. Two applications fit 12 GB, except 6 or 7 GB beside 7.
 */
static double least_overloaded(uint32_t order, double work_s)
{
	struct td_dcuda_machine_app apps[TD_DCUDA_MACHINE_APPS];
	uint32_t over = 0, steps = 0;

	make_memory_apps(order, 0, work_s, apps);
	for (double now_s = 0; now_s < 34 * 4 + work_s; now_s += 0.5, steps++) {
		uint32_t count[8] = {0}, smaller;

		for (uint32_t i = 0; i < 35; i++)
			if (apps[i].arrive_s <= now_s && now_s < apps[i].arrive_s + work_s)
				count[(uint32_t)apps[i].memory_gib]++;
		smaller = count[6] + (count[5] > count[7] ? count[5] - count[7] : 0);
		over += count[7] + (smaller + 1) / 2 > TD_DCUDA_MACHINE_GPUS;
	}
	return (double)over / steps;
}

static void put_packing(struct td_experiment_run *run, double work_s, uint32_t orders)
{
	double values[20];
	char metric[96], spread[64];

	for (uint32_t o = 0; o < orders; o++)
		values[o] = 100 * least_overloaded(o, work_s);
	td_spread(values, orders, spread);
	snprintf(metric, sizeof(metric),
		"time in which no placement keeps all GPUs within their memory, %g s each", work_s);
	td_row_put(run, TD_SHOWN, metric, "", spread,
		"bound of all who start everybody at once, if nobody were slowed", "%.0f %%",
		td_median(values, orders));
}

enum {
	LEAST_LOADED,
	DCUDA,
	WITHOUT, /* DCUDA without its memory scheduling */
	BALANCING,
	TANDEM,
	TRUTH,
	IN_PLACE,
	IN_PLACE_WITHOUT,
	OWN_PAGES,
	UNSLICED,
	STACKED,
	STACKED_UNSLICED,
	HOWS
};

/*
 * Why DCUDA loses: applications that found no GPU with room, and slices. over and changes have
 * figures of DCUDA without slices, of DCUDA that uses the fullest GPU where none has room, and of
 * that without slices.
 */
struct why {
	double without_room, over[3], changes[3][20];
};

static void put_why(struct td_experiment_run *run, double core, const char *sweep, uint32_t orders,
	struct why *why)
{
	char metric[96], note[600], spread[3][64];

	for (int k = 0; k < 3; k++)
		td_spread(why->changes[k], orders, spread[k]);
	snprintf(metric, sizeof(metric), "applications that find no GPU with room, cores %g%s",
		core, sweep);
	snprintf(note, sizeof(note),
		"DCUDA puts them where the load is least. If they went to the fullest GPU: memory "
		"overloaded %.0f %%, execution %+.0f %% (%s), without slices %.0f %%, %+.0f %% "
		"(%s). As DCUDA, without slices: %.0f %%, %+.0f %% (%s)",
		why->over[1], td_median(why->changes[1], orders), spread[1], why->over[2],
		td_median(why->changes[2], orders), spread[2], why->over[0],
		td_median(why->changes[0], orders), spread[0]);
	td_row_put(run, TD_SHOWN, metric, "", "", note, "%.1f of 35", why->without_room);
}

/* A range over the settings that count, for the sentences in struct said. */
struct range {
	double least, most;
};

struct said {
	struct range without_room, stacked_over, stacked, stacked_unsliced, unsliced, in_place,
		own_pages, in_place_over[2], truth_over;
	/* The range for settings in which applications run for a shorter time. */
	struct range other_stacked;
	uint32_t settings, in_range,
		others; /* in_range: settings with managed memory in which Fig. 19's range is met */
};

static void widen(struct range *range, double value, bool first)
{
	range->least = first ? value : fmin(range->least, value);
	range->most = first ? value : fmax(range->most, value);
}

static bool overlaps_the_papers(const double *changes, uint32_t orders)
{
	double least = INFINITY, most = -INFINITY;

	for (uint32_t o = 0; o < orders; o++) {
		least = fmin(least, changes[o]);
		most = fmax(most, changes[o]);
	}
	return least <= -30 && most >= -67 && most < 0;
}

/*
 * Runs one setting. fitted: the numbers of all applications in the fitted model; NULL: proportional
 * sharing.
 */
static void run_memory(struct td_experiment_run *run, double core, double work_s, double thrash,
	const struct td_contender *fitted, uint32_t orders, struct said *said)
{
	struct td_contention contention = {.proportional = !fitted, .capped_pressure = 1};
	enum td_variant variant = fitted ? TD_FITTED : TD_PROPORTIONAL;
	static const struct td_dcuda_how hows[HOWS] = {{.by_count = true},
		{.dcuda = true, .memory = true, .compact = true, .slices = true},
		{.dcuda = true, .compact = true, .slices = true}, {.dcuda = true, .memory = true},
		{.tandem = true}, {.truth = true, .memory = true, .slices = true},
		{.dcuda = true, .memory = true, .compact = true, .slices = true, .in_place = true},
		{.dcuda = true, .compact = true, .slices = true, .in_place = true},
		{.dcuda = true, .memory = true, .compact = true, .slices = true, .own_pages = true},
		{.dcuda = true, .memory = true, .compact = true},
		{.dcuda = true, .memory = true, .compact = true, .slices = true, .stack = true},
		{.dcuda = true, .memory = true, .compact = true, .stack = true}};
	double changes[20], truth[20], in_place[20], own_pages[20], alone = 0, over[HOWS] = {0};
	struct why why = {0};
	double gains[20], less[20], jain[2] = {0};
	bool counts = work_s >= WORK_S && !(thrash > 0);
	char metric[96], spread[64], note[500], sweep[32] = "", of_in_place[64], of_own[64];

	if (thrash > 0)
		snprintf(sweep, sizeof(sweep), ", thrashing %.1fx at 112 %%",
			1 + (thrash - 1) * 0.12);
	else if (!counts)
		snprintf(sweep, sizeof(sweep), ", %g s each", work_s);
	else if (fitted)
		snprintf(sweep, sizeof(sweep), ", fitted");
	for (uint32_t o = 0; o < orders; o++) {
		double slowdown[HOWS] = {0}, of_memory[HOWS] = {0};

		for (int how = 0; how < HOWS; how++) {
			struct td_dcuda_machine_app apps[TD_DCUDA_MACHINE_APPS];
			struct td_dcuda_how of = hows[how];
			struct td_dcuda_outcome out;

			of.worst_thrash = thrash;
			make_memory_apps(o, core, work_s, apps);
			for (int i = 0; fitted && i < 35; i++)
				apps[i].contender = *fitted;
			out = td_dcuda_simulate(of, &contention, 12, apps, 35);
			slowdown[how] = out.slowdown;
			of_memory[how] = 100 * mean4(out.memory_overloaded);
			over[how] += of_memory[how] / orders;
			jain[0] += how == DCUDA ? out.jain / orders : 0;
			jain[1] += how == TANDEM ? out.jain / orders : 0;
			why.without_room += how == DCUDA ? (double)out.without_room / orders : 0;
		}
		less[o] = of_memory[DCUDA] - of_memory[WITHOUT];
		gains[o] = slowdown[DCUDA] / slowdown[TANDEM];
		changes[o] = (slowdown[DCUDA] / slowdown[LEAST_LOADED] - 1) * 100;
		truth[o] = (slowdown[TRUTH] / slowdown[LEAST_LOADED] - 1) * 100;
		in_place[o] = (slowdown[IN_PLACE] / slowdown[LEAST_LOADED] - 1) * 100;
		own_pages[o] = (slowdown[OWN_PAGES] / slowdown[LEAST_LOADED] - 1) * 100;
		for (int k = 0; k < 3; k++)
			why.changes[k][o] =
				(slowdown[UNSLICED + k] / slowdown[LEAST_LOADED] - 1) * 100;
		alone += (slowdown[BALANCING] / slowdown[LEAST_LOADED] - 1) * 100 / orders;
	}
	snprintf(metric, sizeof(metric),
		"memory overloaded, without / with memory scheduling (Fig. 18), cores %g%s", core,
		sweep);
	snprintf(note, sizeof(note),
		"mean of the GPUs; interval: of the difference, in points; if a slice's group "
		"found its memory in place %.0f -> %.0f %%; "
		"placed "
		"by the truth, with slices %.0f %%",
		over[IN_PLACE_WITHOUT], over[IN_PLACE], over[TRUTH]);
	td_row_put(run,
		!counts ? TD_SHOWN
		: td_interval_shows(td_bootstrap_median(less, orders), -LESS) == TD_LESS
			? TD_REPRODUCED
			: TD_NOT_REPRODUCED,
		metric, "> 40 % -> < 20 %", "", note, "%.0f %% -> %.0f %%", over[WITHOUT],
		over[DCUDA]);
	td_row_interval(run, less, orders);
	if (counts)
		td_row_claim(run, TD_CLAIM_DCUDA_MEMORY, variant, NULL);
	snprintf(metric, sizeof(metric), "execution against Least-Loaded (Fig. 19), cores %g%s",
		core, sweep);
	td_spread(changes, orders, spread);
	td_spread(in_place, orders, of_in_place);
	td_spread(own_pages, orders, of_own);
	snprintf(note, sizeof(note),
		"thrashing from Fig. 3; it hangs on what slices of 100 ms do to paging: if who "
		"waits for its slice brought nothing in %+.0f %% (%s), if a slice's group found "
		"its memory in place %+.0f %% (%s); and on where those go who find no GPU with "
		"room: if to the fullest %+.0f %%; placed by the truth, with slices %+.0f %%",
		td_median(own_pages, orders), of_own, td_median(in_place, orders), of_in_place,
		td_median(why.changes[1], orders), td_median(truth, orders));
	td_row_put(run,
		!counts                                ? TD_SHOWN
		: overlaps_the_papers(changes, orders) ? TD_REPRODUCED
						       : TD_NOT_REPRODUCED,
		metric, "-30 to -67 %", spread, note, "median %+.0f %%",
		td_median(changes, orders));
	td_row_interval(run, changes, orders);
	if (counts)
		td_row_claim(run, TD_CLAIM_DCUDA_MEMORY, variant, NULL);
	snprintf(metric, sizeof(metric),
		"balancing alone, without slices and compaction, cores %g%s", core, sweep);
	td_row_put(run, TD_SHOWN, metric, "", "", "memory overloaded, execution",
		"%.0f -> %.0f %%, %+.0f %%", over[LEAST_LOADED], over[BALANCING], alone);
	for (int k = 0; k < 3; k++)
		why.over[k] = over[UNSLICED + k];
	put_why(run, core, sweep, orders, &why);
	if (counts) {
		bool first = !said->settings++;

		widen(&said->without_room, why.without_room, first);
		widen(&said->stacked_over, why.over[1], first);
		widen(&said->unsliced, td_median(why.changes[0], orders), first);
		widen(&said->stacked, td_median(why.changes[1], orders), first);
		widen(&said->stacked_unsliced, td_median(why.changes[2], orders), first);
		widen(&said->in_place, td_median(in_place, orders), first);
		widen(&said->own_pages, td_median(own_pages, orders), first);
		widen(&said->in_place_over[0], over[IN_PLACE_WITHOUT], first);
		widen(&said->in_place_over[1], over[IN_PLACE], first);
		widen(&said->truth_over, over[TRUTH], first);
		said->in_range += overlaps_the_papers(own_pages, orders);
	} else if (!(thrash > 0)) {
		widen(&said->other_stacked, td_median(why.changes[1], orders), !said->others++);
	}
	snprintf(metric, sizeof(metric), "tandem: execution, DCUDA / tandem, cores %g%s", core,
		sweep);
	td_spread(gains, orders, spread);
	snprintf(note, sizeof(note), "memory overloaded %.0f %%; Jain %.2f, DCUDA %.2f%s",
		over[TANDEM], jain[1], jain[0],
		jain[1] >= jain[0] ? "" : ": the guard does not hold");
	td_row_put(run, TD_SHOWN, metric, "", spread, note, "%.2fx", td_median(gains, orders));
	td_row_beside(run, gains, orders, 1, jain[1] >= jain[0]);
}

static void put_text(FILE *out, const struct said *s)
{
	fprintf(out,
		"These sentences are about the rows with proportional sharing. The applications "
		"have 217 GB, arrive within 140 s and share 48 GB. %.0f to %.0f of the 35 "
		"applications come when no GPU has room for them. DCUDA then places them by "
		"load, so that all GPUs exceed their memory, and its Algorithm 2 can move "
		"nothing, because it needs a target below 90 %%. This loses more than the "
		"slices do. If those applications went to the GPU with the most memory in use, "
		"and nothing else changed, memory would be overloaded %.0f to %.0f %% of the "
		"time, and execution would be %+.0f to %+.0f %% against Least-Loaded, depending "
		"on the demand for cores, and %+.0f to %+.0f %% without slices. The paper has "
		"-30 to -67 %%. Where applications run for less than 30 s it would be %+.0f to "
		"%+.0f %%. Without slices alone it is %+.0f to %+.0f %%. DCUDA's groups have to "
		"fit in memory, so they are smaller with memory scheduling, and more "
		"applications wait.\n\n",
		s->without_room.least, s->without_room.most, s->stacked_over.least,
		s->stacked_over.most, s->stacked.least, s->stacked.most, s->stacked_unsliced.least,
		s->stacked_unsliced.most, s->other_stacked.least, s->other_stacked.most,
		s->unsliced.least, s->unsliced.most);
	fprintf(out,
		"A world with less thrashing is shown, too. It is no bound, because DCUDA "
		"places by what it sees there. In it a slice's group finds its memory in place "
		"at no cost, as in the paper (\"eliminates overhead of memory swap\"), and only "
		"applications that run together can thrash. Memory is then overloaded %.0f to "
		"%.0f %% of the time without DCUDA's memory scheduling, and %.0f to %.0f %% "
		"with it; execution is %+.0f to %+.0f %%. In the world of the rows all "
		"applications on a GPU thrash, with slices or without, because a slice of 100 "
		"ms is shorter than the time to bring in 1.2 GB over PCIe. If the truth places "
		"applications under DCUDA's slices, memory is overloaded %.0f to %.0f %% of the "
		"time: one GPU has all that does not fit, and the others are within their "
		"memory. In a third world a slice pages only for its own memory, because "
		"waiting applications bring nothing in. There execution is %+.0f to %+.0f %%, "
		"within the paper's range in %u of %u settings. The paper does not say which "
		"memory a slice finds in place, and no table measures it. tandem lets "
		"applications wait until there is memory.\n\n",
		s->in_place_over[0].least, s->in_place_over[0].most, s->in_place_over[1].least,
		s->in_place_over[1].most, s->in_place.least, s->in_place.most, s->truth_over.least,
		s->truth_over.most, s->own_pages.least, s->own_pages.most, s->in_range,
		s->settings);
}

/*
 * Returns the P100 job whose own use of a GPU is nearest to `core`. All applications get its
 * numbers. The balancer is told `core`.
 */
static struct td_contender nearest(const struct td_profiles *profiles, double core)
{
	struct td_contender kind = profiles->profiles[0].contender;

	for (uint32_t i = 1; i < profiles->count; i++)
		if (fabs(profiles->profiles[i].contender.demand - core) < fabs(kind.demand - core))
			kind = profiles->profiles[i].contender;
	kind.demand = core;
	return kind;
}

int td_exp_dcuda_memory(struct td_experiment_run *run, struct td_err *err)
{
	static const double cores[] = {0.2, 0.4, 0.8}, works_s[] = {25, 20, 15};
	td_auto_free struct td_profiles *profiles = calloc(1, sizeof(*profiles));
	struct said said = {.settings = 0}, of_fitted = {.settings = 0};
	int r = profiles ? 0 : td_err_set(err, -ENOMEM, "out of memory");

	if (!r && run->data)
		r = td_profiles_fit(run->data, "p100", profiles, err);
	if (r)
		return r;
	put_packing(run, WORK_S, run->quick ? 5 : 20);
	for (int c = 0; c < 3; c++)
		run_memory(run, cores[c], WORK_S, 0, NULL, run->quick ? 5 : 20, &said);
	for (int c = 0; c < 3 && profiles->count; c++) {
		struct td_contender kind = nearest(profiles, cores[c]);

		run_memory(run, cores[c], WORK_S, 0, &kind, run->quick ? 5 : 20, &of_fitted);
	}
	run_memory(run, 0.8, WORK_S, SERIAL_THRASH, NULL, run->quick ? 5 : 20, &said);
	for (int k = 0; k < 3; k++) {
		put_packing(run, works_s[k], run->quick ? 5 : 20);
		run_memory(run, 0.4, works_s[k], 0, NULL, run->quick ? 5 : 20, &said);
	}
	put_text(run->report, &said);
	fputs("Thrashing is calibrated on Fig. 3 (1.5 times the serial time at 112 % of the "
	      "memory). The applications' demand for cores is not in the paper, so several "
	      "values are run; its alexnet uses 80 % in Fig. 3. That figure compares with a "
	      "serial run. Seven such applications side by side would take 0.8 of the serial "
	      "time if nothing thrashed, so the slowdown by thrashing could also be 1.9. This "
	      "is shown for a demand of 0.8.\n",
		run->report);
	return 0;
}
