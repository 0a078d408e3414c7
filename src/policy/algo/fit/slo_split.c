/* Finds a service's share by a model and by feedback; see slo_split.h. */
#include "policy/algo/fit/slo_split.h"

#include <math.h>

#include "policy/algo/fit/slo_share.h"

#define SHARE_MIN 0.05
#define HIGH      0.95
#define LOW       0.7
#define LOAD_MAX  0.8
#define GROW      1.15
#define SHRINK    0.93
/*
 * Jobs beside a service without a cap run only part of the time (duty) if even this share of the
 * SMs is too much for the service.
 */
#define GUESTS     0.25
#define SHARE_MOST (1 - GUESTS) /* largest share of a service that has a cap */
#define ROOM_FIRST (GUESTS / 2)
#define ROOM_MIN   (GUESTS * 0.02)

static struct td_slo slo_of(const struct td_slo_split *split, uint32_t batch)
{
	return (struct td_slo){.objective_s = split->objective_s * HIGH,
		.rate_per_s = split->rate_per_s,
		.batch = batch,
		.load_max = LOAD_MAX,
		.share_min = SHARE_MIN};
}

static void give_room(struct td_slo_split *split, double room)
{
	split->room = room;
	split->guest_share = fmax(room, GUESTS);
	split->duty = fmin(1, room / GUESTS);
}

/* Gives the service all SMs. The jobs beside it start with this room; see td_slo_split. */
static void uncap(struct td_slo_split *split, double room)
{
	split->share = 1;
	give_room(split, room);
}

/*
 * Tells whether the service would hold its objective alone, by the latency curve. The load is not
 * checked, because the measured P99 tells more about it.
 */
static bool alone_holds(const struct td_slo_split *split)
{
	double fill_s = (split->batch - 1) / split->rate_per_s;

	return fill_s + td_curve_at(split->curve, 1) <= split->objective_s * HIGH;
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

		/*
		 * Not even the whole GPU holds the objective with this batch; choose the batch that
		 * is closest.
		 */
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
	split->paused = !alone_holds(split);
	if (split->share > SHARE_MOST)
		uncap(split, least <= 2 ? ROOM_FIRST : ROOM_MIN);
}

static void learn(struct td_slo_split *split)
{
	const struct td_slo slo = slo_of(split, split->batch);
	double alone = td_curve_at(split->curve, split->share);

	if (alone > 0 && split->rounds && !(split->room > 0))
		split->factor = fmin(fmax(td_slo_latency_limit_s(&slo) / alone, 1), 20);
}

/* Returns how far the room can grow from `held` until a line with this rise reaches the limit. */
static double reach(double limit, double held, double rise)
{
	return rise > 0 ? fmax(0, limit - held) / rise : INFINITY;
}

/*
 * Returns how far the room can grow from `held` until the line through both points reaches the
 * limit of latency or of load.
 */
static double reach_either(const struct td_slo_split *split, const struct td_slo_seen *held,
	const struct td_slo_seen *other)
{
	double width = other->room - held->room;

	return held->room + fmin(reach(HIGH * split->objective_s, held->p99_s,
					 (other->p99_s - held->p99_s) / width),
				    reach(HIGH, held->busy, (other->busy - held->busy) / width));
}

/* Returns how much more room the jobs may try, after what has held; see slo_split.h. */
static double try_room(const struct td_slo_split *split)
{
	const struct td_slo_seen *held = &split->held, *before = &split->before;
	double room = held->room * GROW;

	if (split->missed.room > 0 && split->missed.p99_s < INFINITY)
		room = reach_either(split, held, &split->missed);
	else if (before->room > 0)
		room = (held->room + reach_either(split, held, before)) / 2;
	if (split->missed.room > 0)
		room = fmin(room, (held->room + split->missed.room) / 2);
	return fmin(fmin(room, 2 * held->room), 1);
}

/*
 * Tries a split without the cap, under which it has held. The jobs keep their share, and get more
 * later if P99 allows it.
 */
static bool try_uncapped(struct td_slo_split *split)
{
	if (split->capped > 0 || split->rounds + 2 >= TD_SLO_SPLIT_ROUNDS)
		return false;
	learn(split);
	split->capped = split->share;
	uncap(split, 1 - split->share);
	return true;
}

/* Restores the cap, because the service missed its objective without it. */
static void cap_again(struct td_slo_split *split)
{
	split->share = split->capped;
	split->guest_share = 1 - split->share;
	split->duty = 1;
	split->room = 0;
	split->grown = true;
}

/* Moves the room to the next value to try. Returns true if it has changed. */
static bool move_room(struct td_slo_split *split, double p99_s, double busy)
{
	const struct td_slo_seen seen = {split->room, p99_s, busy};
	double room;

	if (p99_s > HIGH * split->objective_s && !(split->held.room > 0) && split->capped > 0) {
		cap_again(split);
		return true;
	}
	if (p99_s > HIGH * split->objective_s) {
		split->missed = seen;
		split->paused = !(split->held.room > 0) && split->room / 2 < ROOM_MIN;
		give_room(split,
			split->held.room > 0 ? split->held.room : fmax(split->room / 2, ROOM_MIN));
		return true;
	}
	if (seen.room > split->held.room)
		split->before = split->held;
	split->held = seen;
	room = try_room(split);
	if (room * SHRINK < split->room || split->rounds + 2 >= TD_SLO_SPLIT_ROUNDS)
		return false;
	give_room(split, room);
	return true;
}

/*
 * Raises the share in proportion to the excess of P99, or by a least factor. A batch takes alpha +
 * beta / share, so the latency falls by no more than the share grows.
 */
static bool grow(struct td_slo_split *split, double p99_s)
{
	double lacks = p99_s / (HIGH * split->objective_s);

	split->grown = true;
	split->share *= lacks < INFINITY ? fmax(lacks, GROW) : GROW;
	split->guest_share = 1 - split->share;
	if (split->share > SHARE_MOST)
		uncap(split, ROOM_FIRST);
	return true;
}

/*
 * Shrinks the share. Latency hardly shows a queue before it grows without end, so the bound is how
 * busy the service is; that grows at most in inverse proportion to the share.
 */
static bool shrink(struct td_slo_split *split, double busy)
{
	double before = split->share;

	if (split->grown || busy > LOAD_MAX * SHRINK)
		return false;
	split->share = fmax(split->share * SHRINK, SHARE_MIN);
	split->guest_share = 1 - split->share;
	return split->share < before;
}

bool td_slo_split_observe(struct td_slo_split *split, double p99_s, double busy)
{
	bool missed = p99_s > HIGH * split->objective_s, changed = false;

	if (split->paused || split->rounds == TD_SLO_SPLIT_ROUNDS)
		return false;
	if (split->room > 0)
		changed = move_room(split, p99_s, busy);
	else if (missed)
		changed = grow(split, p99_s);
	else if (p99_s < LOW * split->objective_s)
		changed = shrink(split, busy);
	if (!changed && !(split->room > 0))
		changed = try_uncapped(split);
	if (!changed) {
		learn(split);
		return false;
	}
	split->rounds++;
	split->paused |= missed && split->rounds == TD_SLO_SPLIT_ROUNDS;
	return true;
}
