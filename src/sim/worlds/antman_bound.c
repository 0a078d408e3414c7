/* Computes bounds for AntMan's trace; see antman_bound.h. */
#include "sim/worlds/antman_bound.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"

/* --- what guests find --- */

/*
 * Raises most[k] of each kind k in a company to the sum of the company's speeds, if that is more.
 * Does the same for all larger companies that begin with it.
 */
static void try_companies(const struct td_profiles *profiles,
	const struct td_contention *contention, const bool *used, uint32_t from, uint32_t count,
	uint32_t kinds[TD_SIM_OCCUPANTS], double *most)
{
	struct td_contender company[TD_SIM_OCCUPANTS];
	double speeds[TD_SIM_OCCUPANTS], sum = 0;

	for (uint32_t i = 0; i < count; i++)
		company[i] = profiles->profiles[kinds[i]].contender;
	if (count)
		td_contention_speeds(contention, company, count, speeds);
	for (uint32_t i = 0; i < count; i++)
		sum += speeds[i];
	for (uint32_t i = 0; i < count; i++)
		most[kinds[i]] = fmax(most[kinds[i]], sum);
	if (count == TD_SIM_OCCUPANTS)
		return;
	for (uint32_t k = from; k < profiles->count; k++) {
		if (!used[k])
			continue;
		kinds[count] = k;
		try_companies(profiles, contention, used, k, count + 1, kinds, most);
	}
}

/* Computes the room by turns, where a second of a job's work takes its demand of the GPU's time. */
static void room_by_turns(
	const struct td_profiles *profiles, double slack, struct td_guest_room *ret)
{
	for (uint32_t k = 0; k < profiles->count; k++) {
		ret->weight[k] = profiles->profiles[k].contender.demand;
		ret->beside[k] = 1 - ret->weight[k] / (1 + slack);
	}
}

/*
 * Returns the most work of guests beside a guaranteed job. Guests with duties d_i make the job
 * sum(d_i c_i) slower, and each has at most the speed d_i / (1 + the job's effect on it). The
 * maximum of sum(d_i v_i) with sum(d_i c_i) <= slack and sum(d_i) <= places has one kind, or two
 * that use up both.
 */
static double most_beside(const double *costs, const double *values, const bool *used,
	uint32_t kinds, double slack, double places)
{
	double most = 0;

	for (uint32_t a = 0; a < kinds; a++) {
		if (!used[a])
			continue;
		most = fmax(most, values[a] * fmin(places, slack / fmax(costs[a], 1e-12)));
		for (uint32_t b = 0; b < kinds; b++) {
			double duty;

			if (!used[b] || !(costs[a] < costs[b]))
				continue;
			duty = (slack - places * costs[a]) / (costs[b] - costs[a]);
			if (duty > 0 && duty < places)
				most = fmax(most, duty * values[b] + (places - duty) * values[a]);
		}
	}
	return most;
}

static void room_side_by_side(const struct td_profiles *profiles,
	const struct td_contention *contention, const bool *used, double slack,
	struct td_guest_room *ret)
{
	double most[TD_PROFILES_MAX] = {0}, costs[TD_PROFILES_MAX], values[TD_PROFILES_MAX];
	uint32_t kinds[TD_SIM_OCCUPANTS];

	try_companies(profiles, contention, used, 0, 0, kinds, most);
	for (uint32_t k = 0; k < profiles->count; k++)
		ret->weight[k] = most[k] > 1 ? 1 / most[k] : 1;
	for (uint32_t l = 0; l < profiles->count; l++) {
		for (uint32_t k = 0; k < profiles->count; k++) {
			struct td_contender pair[2] = {
				profiles->profiles[l].contender, profiles->profiles[k].contender};
			double speeds[2];

			td_contention_speeds(contention, pair, 2, speeds);
			costs[k] = 1 / speeds[0] - 1;
			values[k] = ret->weight[k] * speeds[1];
		}
		ret->beside[l] = most_beside(
			costs, values, used, profiles->count, slack, TD_SIM_OCCUPANTS - 1);
	}
}

void td_guest_room(const struct td_profiles *profiles, const struct td_contention *contention,
	const bool *used, double slack, struct td_guest_room *ret)
{
	*ret = (struct td_guest_room){0};
	if (contention->proportional)
		room_by_turns(profiles, slack, ret);
	else
		room_side_by_side(profiles, contention, used, slack, ret);
}

double td_least_cost_beside(
	const struct td_contention *contention, const struct td_contender pair[2])
{
	double least = INFINITY;

	for (int d = 1; d <= 1000; d++) {
		struct td_contender both[2] = {pair[0], pair[1]};
		double speeds[2];

		both[0].duty = d / 1000.;
		td_contention_speeds(contention, both, 2, speeds);
		least = fmin(least, (1 - speeds[1]) / speeds[0]);
	}
	return least;
}

/* --- the guaranteed jobs --- */

struct change {
	double at_s, capacity;
};

struct fluid {
	const struct td_sim_job *jobs;
	uint32_t count, gpus;
	const struct td_guest_room *room;
	/* Changes of the capacity for other jobs; two for each guaranteed job. */
	struct change *changes;
	uint32_t change_count;
	double *left; /* work that is left of each job, as size */
	bool all;     /* true: all jobs are in the fluid; false: only jobs without a guarantee */
};

static double arrival(const struct fluid *f, uint32_t job)
{
	return (double)(f->jobs[job].submit_ns - f->jobs[0].submit_ns) * 1e-9;
}

static bool is_guaranteed(const struct fluid *f, uint32_t job)
{
	return f->jobs[job].class == TD_CLASS_GUARANTEED;
}

static int by_time(const void *a, const void *b)
{
	const struct change *x = a, *y = b;

	return (x->at_s > y->at_s) - (x->at_s < y->at_s);
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/*
 * Serves guaranteed jobs first come first served. Returns the sum of their completion times. frees:
 * when each GPU is free, in ascending order. A job takes the first ones, so the others are free no
 * sooner than it starts, and nobody overtakes it.
 */
static double run_guaranteed(struct fluid *f, double *frees, struct td_antman_bound *ret)
{
	double sum = 0;
	uint32_t n = 0;

	for (uint32_t g = 0; g < f->gpus; g++)
		frees[g] = 0;
	for (uint32_t i = 0; i < f->count; i++) {
		const struct td_sim_job *job = &f->jobs[i];
		double start, end, taken;

		if (!is_guaranteed(f, i))
			continue;
		start = fmax(arrival(f, i), frees[job->gpus - 1]);
		end = start + job->work_s;
		for (uint32_t k = 0; k < job->gpus; k++)
			frees[k] = end;
		qsort(frees, f->gpus, sizeof(*frees), ascending);
		taken = job->gpus * (1 - f->room->beside[job->profile]);
		f->changes[f->change_count++] = (struct change){start, -taken};
		f->changes[f->change_count++] = (struct change){end, taken};
		sum += end - arrival(f, i);
		ret->span_s = fmax(ret->span_s, end);
		n++;
	}
	qsort(f->changes, f->change_count, sizeof(*f->changes), by_time);
	ret->guaranteed_jct_s = n ? sum / n : 0;
	return sum;
}

/* --- the fluid --- */

static uint32_t smallest(const struct fluid *f, uint32_t arrived)
{
	uint32_t best = UINT32_MAX;

	for (uint32_t i = 0; i < arrived; i++)
		if (f->left[i] > 0 && (best == UINT32_MAX || f->left[i] < f->left[best]))
			best = i;
	return best;
}

/*
 * Serves the fluid with the smallest rest first, in the capacity that the changes leave. Returns
 * the sum of the completion times; *ret_last_s is the last one.
 */
static double run_fluid(struct fluid *f, double *ret_last_s)
{
	double now_s = 0, capacity = f->gpus, sum = 0;
	uint32_t arrived = 0, change = 0;

	for (;;) {
		uint32_t job;
		double until_s = INFINITY, done;

		while (arrived < f->count && arrival(f, arrived) <= now_s) {
			const struct td_sim_job *of = &f->jobs[arrived];

			f->left[arrived] =
				is_guaranteed(f, arrived) && !f->all
					? 0
					: of->work_s * of->gpus * f->room->weight[of->profile];
			arrived++;
		}
		while (change < f->change_count && f->changes[change].at_s <= now_s)
			capacity += f->changes[change++].capacity;
		if (arrived < f->count)
			until_s = arrival(f, arrived);
		if (change < f->change_count)
			until_s = fmin(until_s, f->changes[change].at_s);
		job = smallest(f, arrived);
		if (job == UINT32_MAX && arrived == f->count)
			return sum;
		if (job == UINT32_MAX) {
			now_s = until_s;
			continue;
		}
		done = fmax(0, capacity) * (until_s - now_s);
		if (!(f->left[job] <= done)) {
			f->left[job] -= done;
			now_s = until_s;
			continue;
		}
		now_s += f->left[job] / fmax(1e-12, capacity);
		f->left[job] = 0;
		sum += now_s - arrival(f, job);
		*ret_last_s = fmax(*ret_last_s, now_s);
	}
}

int td_antman_bound(const struct td_sim_job *jobs, uint32_t count, uint32_t gpus,
	const struct td_guest_room *room, struct td_antman_bound *ret)
{
	td_auto_free struct change *changes = calloc(2 * (size_t)count + 1, sizeof(*changes));
	td_auto_free double *left = calloc((size_t)count + 1, sizeof(double));
	td_auto_free double *frees = calloc((size_t)gpus + 1, sizeof(double));
	struct fluid f = {jobs, count, gpus, room, changes, 0, left, false};
	double alone = 0, guaranteed, others, last_s = 0;

	*ret = (struct td_antman_bound){0};
	if (!changes || !left || !frees)
		return -ENOMEM;
	guaranteed = run_guaranteed(&f, frees, ret);
	for (uint32_t i = 0; i < count; i++) {
		alone += is_guaranteed(&f, i) ? 0 : jobs[i].work_s;
		ret->span_s = fmax(ret->span_s, arrival(&f, i) + jobs[i].work_s);
	}
	(void)run_fluid(&f, &ret->span_s);
	f.change_count = 0;
	others = fmax(alone, run_fluid(&f, &last_s));
	f.all = true;
	ret->jct_s = fmax(guaranteed + others, run_fluid(&f, &last_s)) / count;
	return 0;
}
