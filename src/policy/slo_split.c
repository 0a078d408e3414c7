/* A service's share by model and by feedback; see slo_split.h. */
#include "policy/slo_split.h"

#include <math.h>

#include "policy/slo_share.h"

#define SHARE_MIN 0.05
#define HIGH      0.95
#define LOW       0.7
#define GROW      1.15
#define SHRINK    0.93

static struct td_slo slo_of(const struct td_slo_split *split, uint32_t batch)
{
	return (struct td_slo){.objective_s = split->objective_s * HIGH,
		.rate_per_s = split->rate_per_s,
		.batch = batch,
		.load_max = 0.8,
		.share_min = SHARE_MIN};
}

void td_slo_split_begin(struct td_slo_split *split, const struct td_curve *curves,
	const uint32_t *batches, uint32_t count, double objective_s, double rate_per_s,
	double factor)
{
	double least = INFINITY;

	*split = (struct td_slo_split){.batch = batches[0],
		.share = 1,
		.paused = true,
		.objective_s = objective_s,
		.rate_per_s = fmax(rate_per_s, 1),
		.factor = fmax(factor, 1),
		.curve = &curves[0]};
	for (uint32_t k = 0; k < count; k++) {
		const struct td_slo slo = slo_of(split, batches[k]);
		double limit = td_slo_latency_limit_s(&slo);
		double share =
			td_curve_smallest_share(&curves[k], limit / split->factor, SHARE_MIN);

		/* What not even the whole GPU holds: the batch that asks for the least. */
		if (share > 1)
			share = limit > 0 ? 1 + td_curve_at(&curves[k], 1) / limit : INFINITY;
		if (!(share < least))
			continue;
		least = share;
		split->batch = batches[k];
		split->curve = &curves[k];
		split->share = fmin(share, 1);
		split->paused = share >= 1;
	}
}

static void learn(struct td_slo_split *split)
{
	const struct td_slo slo = slo_of(split, split->batch);
	double alone = td_curve_at(split->curve, split->share);

	if (alone > 0 && split->rounds)
		split->factor = fmin(fmax(td_slo_latency_limit_s(&slo) / alone, 1), 20);
}

bool td_slo_split_observe(struct td_slo_split *split, double p99_s)
{
	double before = split->share;

	if (split->paused || split->rounds == TD_SLO_SPLIT_ROUNDS)
		return false;
	if (p99_s > HIGH * split->objective_s) {
		split->grown = true;
		split->paused = split->share >= 1;
		split->share = fmin(split->share * GROW, 1);
	} else if (p99_s < LOW * split->objective_s && !split->grown) {
		split->share = fmax(split->share * SHRINK, SHARE_MIN);
	}
	if (split->paused || split->share < before || split->share > before) {
		split->rounds++;
		return true;
	}
	learn(split);
	return false;
}
