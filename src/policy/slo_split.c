/* A service's share by model and by feedback; see slo_split.h. */
#include "policy/slo_split.h"

#include <math.h>

#include "policy/slo_share.h"

#define SHARE_MIN  0.05
#define HIGH       0.95
#define LOW        0.7
#define GROW       1.15
#define SHRINK     0.93
#define SHARE_MOST 0.9 /* of a capped service */
#define GUESTS     0.25
#define DUTY_MIN   0.02

static struct td_slo slo_of(const struct td_slo_split *split, uint32_t batch)
{
	return (struct td_slo){.objective_s = split->objective_s * HIGH,
		.rate_per_s = split->rate_per_s,
		.batch = batch,
		.load_max = 0.8,
		.share_min = SHARE_MIN};
}

/* The service has all SMs, the others a quarter of them in a part of the time. */
static void uncap(struct td_slo_split *split)
{
	split->share = 1;
	split->guest_share = GUESTS;
	split->duty = 0.5;
}

void td_slo_split_begin(struct td_slo_split *split, const struct td_curve *curves,
	const uint32_t *batches, uint32_t count, double objective_s, double rate_per_s,
	double factor)
{
	double least = INFINITY;

	*split = (struct td_slo_split){.batch = batches[0],
		.duty = 1,
		.objective_s = objective_s,
		.rate_per_s = fmax(rate_per_s, 1),
		.factor = fmax(factor, 1),
		.curve = &curves[0]};
	for (uint32_t k = 0; k < count; k++) {
		const struct td_slo slo = slo_of(split, batches[k]);
		double limit = td_slo_latency_limit_s(&slo);
		double share =
			td_curve_smallest_share(&curves[k], limit / split->factor, SHARE_MIN);

		/* What not even the whole GPU holds: the batch that lacks the least. */
		if (share > 1)
			share = limit > 0 ? 1 + td_curve_at(&curves[k], 1) / limit : INFINITY;
		if (!(share < least) && k)
			continue;
		least = share;
		split->batch = batches[k];
		split->curve = &curves[k];
	}
	split->share = fmin(least, 1);
	split->guest_share = 1 - split->share;
	split->paused = !(least <= 2); /* alone it would not hold either */
	if (split->share > SHARE_MOST)
		uncap(split);
}

static void learn(struct td_slo_split *split)
{
	const struct td_slo slo = slo_of(split, split->batch);
	double alone = td_curve_at(split->curve, split->share);

	if (alone > 0 && split->rounds && split->duty >= 1)
		split->factor = fmin(fmax(td_slo_latency_limit_s(&slo) / alone, 1), 20);
}

/* True: changed. */
static bool grow(struct td_slo_split *split)
{
	if (split->duty < 1) {
		split->paused = split->duty / 2 < DUTY_MIN;
		split->duty = fmax(split->duty / 2, DUTY_MIN);
		return true;
	}
	split->grown = true;
	split->share *= GROW;
	split->guest_share = 1 - split->share;
	if (split->share > SHARE_MOST)
		uncap(split);
	return true;
}

static bool shrink(struct td_slo_split *split)
{
	double before = split->share;

	if (split->duty < 1 || split->grown)
		return false;
	split->share = fmax(split->share * SHRINK, SHARE_MIN);
	split->guest_share = 1 - split->share;
	return split->share < before;
}

bool td_slo_split_observe(struct td_slo_split *split, double p99_s)
{
	bool changed = false;

	if (split->paused || split->rounds == TD_SLO_SPLIT_ROUNDS)
		return false;
	if (p99_s > HIGH * split->objective_s)
		changed = grow(split);
	else if (p99_s < LOW * split->objective_s)
		changed = shrink(split);
	if (changed)
		split->rounds++;
	else
		learn(split);
	return changed;
}
