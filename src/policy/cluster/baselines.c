/* Implements the papers' baselines; see baselines.h. */
#include "policy/cluster/baselines.h"

#include <math.h>
#include <string.h>

const double td_gpulet_sizes[TD_GPULET_SIZES] = {0.2, 0.4, 0.5, 0.6, 0.8, 1};

bool td_fifo_gang(
	const struct td_inventory *inventory, uint32_t gpus, bool same_node, uint32_t *ret_gpus)
{
	return td_inventory_find_free(inventory, TD_NO_JOB, gpus, same_node, ret_gpus) == gpus;
}

static bool is_among(const uint32_t *list, uint32_t count, uint32_t item)
{
	for (uint32_t k = 0; k < count; k++)
		if (list[k] == item)
			return true;
	return false;
}

uint32_t td_fifo_preempt(const struct td_fifo_running *running, uint32_t count, uint32_t lacking,
	uint32_t *ret_victims)
{
	uint32_t victims = 0;
	uint64_t freed = 0;

	while (freed < lacking) {
		uint32_t latest = count;

		for (uint32_t i = 0; i < count; i++)
			if (running[i].preemptible && !is_among(ret_victims, victims, i) &&
				(latest == count ||
					running[i].started_ns > running[latest].started_ns))
				latest = i;
		if (latest == count)
			return 0;
		ret_victims[victims++] = latest;
		freed += running[latest].gpus;
	}
	return victims;
}

bool td_gandiva_pack(const struct td_pack_gpu *gpus, uint32_t count, uint32_t wanted,
	uint64_t bytes, uint32_t *ret_gpus)
{
	uint32_t found = 0;

	/* ret_gpus holds the best GPUs so far, lowest utilisation first. */
	for (uint32_t g = 0; g < count && wanted; g++) {
		uint32_t at;

		if (gpus[g].free_bytes < bytes)
			continue;
		if (found == wanted &&
			!(gpus[g].utilisation < gpus[ret_gpus[found - 1]].utilisation))
			continue;
		at = found < wanted ? found++ : found - 1;
		for (; at && gpus[g].utilisation < gpus[ret_gpus[at - 1]].utilisation; at--)
			ret_gpus[at] = ret_gpus[at - 1];
		ret_gpus[at] = g;
	}
	return found == wanted;
}

uint32_t td_least_loaded(const struct td_pack_gpu *gpus, uint32_t count)
{
	uint32_t best = 0;

	for (uint32_t g = 1; g < count; g++)
		if (gpus[g].utilisation < gpus[best].utilisation)
			best = g;
	return best;
}

uint32_t td_round_robin(uint32_t *cursor, uint32_t count)
{
	uint32_t gpu = *cursor % count;

	*cursor = gpu + 1;
	return gpu;
}

uint32_t td_random_gpu(uint64_t *state, uint32_t count)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return (uint32_t)((*state >> 32) * count >> 32);
}

double td_gslice_step(struct td_gslice *gslice, double latency_s, double objective_s)
{
	if (latency_s > objective_s)
		gslice->share += gslice->step;
	else if (latency_s < gslice->slack * objective_s)
		gslice->share -= gslice->step;
	gslice->share = fmin(fmax(gslice->share, gslice->share_min), 1);
	return gslice->share;
}

double td_gpulet_size(const struct td_slo *slo, const struct td_curve *curve)
{
	double limit = td_slo_latency_limit_s(slo);

	for (uint32_t k = 0; k < TD_GPULET_SIZES; k++)
		if (td_curve_at(curve, td_gpulet_sizes[k]) <= limit)
			return td_gpulet_sizes[k];
	return 0;
}

struct search {
	const double *costs;
	uint32_t tasks, devices, places;
	uint32_t device[TD_OPTIMUM_TASKS_MAX], best_device[TD_OPTIMUM_TASKS_MAX];
	double best;
};

static uint32_t tasks_on(const struct search *s, uint32_t placed, uint32_t device)
{
	uint32_t n = 0;

	for (uint32_t t = 0; t < placed; t++)
		n += s->device[t] == device;
	return n;
}

static void place_next(struct search *s, uint32_t task, double sum)
{
	if (!(sum < s->best))
		return;
	if (task == s->tasks) {
		s->best = sum;
		memcpy(s->best_device, s->device, sizeof(s->device));
		return;
	}
	for (uint32_t d = 0; d < s->devices; d++) {
		if (tasks_on(s, task, d) == s->places)
			continue;
		s->device[task] = d;
		place_next(s, task + 1, sum + s->costs[task * s->devices + d]);
	}
}

double td_optimum(const double *costs, uint32_t tasks, uint32_t devices, uint32_t places,
	uint32_t *ret_device)
{
	struct search s = {costs, tasks, devices, places, {0}, {0}, INFINITY};

	if (tasks > TD_OPTIMUM_TASKS_MAX)
		return INFINITY;
	place_next(&s, 0, 0);
	if (s.best < INFINITY)
		memcpy(ret_device, s.best_device, tasks * sizeof(*ret_device));
	return s.best;
}
