/*
 * Finds the period of a stream of work; see period.h. All arithmetic is in integers, so it is the
 * same on every machine.
 */
#include "preload/measure/period.h"

#include <string.h>

#define PPM       1000000u
#define WORDS     (TD_PERIOD_SIGNATURES / 64)
#define VOTES_MAX 8
#define SMOOTHING 8

#define RUN_NEW   3   /* regular intervals in a row that make a new mark */
#define RUN_KNOWN 1   /* like RUN_NEW, for one that was the mark before */
#define MISSES    2   /* irregular intervals in a row after which the mark is given up */
#define LONGEST   4   /* an interval of more than this times the usual one is not a step */
#define COUNTED   64  /* an irregular interval counts at most this times the usual one */
#define HALVED    256 /* number of intervals after which older ones count half */

#define ALIKE_PPM    750000 /* share of signatures that two similar sets have in common */
#define COVERED_PPM  600000 /* share of time that a new mark's regular intervals must cover */
#define SCORE_PPM    300000 /* least score of a mark, from all of the following */
#define MARGIN_PPM   100000 /* by how much another mark must be better to replace it */
#define DOUBLING_PPM 20000  /* subtracted from the score for each doubling of the period */
#define ALONE_PPM    500000 /* subtracted if no other signature is in its intervals */
#define FOLD         2654435761u

static uint16_t *bucket_of(struct td_period *period, uint32_t signature)
{
	return &period->buckets[signature * FOLD >> 22];
}

_Static_assert(2 * TD_PERIOD_SIGNATURES == 1 << (32 - 22), "a bucket for each hash");

static struct td_period_mark *at(struct td_period *period, uint16_t index)
{
	return index ? &period->marks[index - 1] : NULL;
}

static uint16_t index_of(const struct td_period *period, const struct td_period_mark *mark)
{
	return (uint16_t)(mark - period->marks + 1);
}

static struct td_period_mark *find_mark(struct td_period *period, uint32_t signature)
{
	struct td_period_mark *mark = at(period, *bucket_of(period, signature));

	while (mark && mark->signature != signature)
		mark = at(period, mark->chain);
	return mark;
}

/* -- the list by last occurrence -- */

static void take_out(struct td_period *period, struct td_period_mark *mark)
{
	struct td_period_mark *newer = at(period, mark->newer), *older = at(period, mark->older);

	*(newer ? &newer->older : &period->newest) = mark->older;
	*(older ? &older->newer : &period->oldest) = mark->newer;
}

static void put_first(struct td_period *period, struct td_period_mark *mark)
{
	struct td_period_mark *second = at(period, period->newest);
	uint16_t index = index_of(period, mark);

	mark->newer = 0;
	mark->older = period->newest;
	*(second ? &second->newer : &period->oldest) = index;
	period->newest = index;
}

static void unchain(struct td_period *period, struct td_period_mark *mark)
{
	uint16_t *link = bucket_of(period, mark->signature), index = index_of(period, mark);

	while (*link != index)
		link = &at(period, *link)->chain;
	*link = mark->chain;
}

static struct td_period_mark *add_mark(
	struct td_period *period, uint32_t signature, uint64_t now_ns)
{
	struct td_period_mark *mark;
	uint16_t *bucket = bucket_of(period, signature);

	if (period->count < TD_PERIOD_SIGNATURES) {
		mark = &period->marks[period->count++];
	} else {
		mark = at(period, period->oldest);
		if (period->mark == period->oldest)
			period->mark = 0;
		take_out(period, mark);
		unchain(period, mark);
	}
	*mark = (struct td_period_mark){.signature = signature,
		.chain = *bucket,
		.last_ns = now_ns,
		.began_ns = now_ns,
		.began_event = period->events};
	*bucket = index_of(period, mark);
	put_first(period, mark);
	return mark;
}

/* -- intervals -- */

/* Gathers the mark and all signatures that occurred since its last occurrence. Returns how many. */
static uint32_t gather(
	struct td_period *period, const struct td_period_mark *mark, uint64_t set[WORDS])
{
	uint16_t index = period->newest, end = index_of(period, mark);
	uint32_t n = 1;

	memset(set, 0, WORDS * sizeof(*set));
	for (; index != end; index = period->marks[index - 1].older, n++)
		set[(index - 1) / 64] |= 1ull << ((index - 1) % 64);
	set[(end - 1) / 64] |= 1ull << ((end - 1) % 64);
	return n;
}

static bool is_alike(const uint64_t a[WORDS], const uint64_t b[WORDS])
{
	uint64_t both = 0, either = 0;

	for (unsigned i = 0; i < WORDS; i++) {
		both += (uint64_t)__builtin_popcountll(a[i] & b[i]);
		either += (uint64_t)__builtin_popcountll(a[i] | b[i]);
	}
	return both * PPM >= either * ALIKE_PPM;
}

static uint64_t smooth(uint64_t old, uint64_t sample, uint32_t weight)
{
	return sample >= old ? old + (sample - old) / weight : old - (old - sample) / weight;
}

static void count_interval(struct td_period_mark *mark, uint64_t ns, bool regular)
{
	uint64_t most_ns = mark->mean_ns * COUNTED;

	mark->regular_ppm = (uint32_t)smooth(mark->regular_ppm, regular ? PPM : 0, SMOOTHING);
	mark->run = regular ? (uint8_t)(mark->run + (mark->run < UINT8_MAX)) : 0;
	mark->misses = regular ? 0 : (uint8_t)(mark->misses + (mark->misses < UINT8_MAX));
	if (!mark->votes)
		return; /* the first occurrence: there is no interval before it */
	mark->total_ns += ns < most_ns ? ns : most_ns;
	mark->regular_ns += regular ? ns : 0;
	if (++mark->intervals < HALVED)
		return;
	mark->intervals /= 2;
	mark->total_ns /= 2;
	mark->regular_ns /= 2;
}

static void learn(struct td_period_mark *mark, uint64_t ns, uint64_t events)
{
	uint32_t weight = mark->run < SMOOTHING ? mark->run + 1u : SMOOTHING;
	uint64_t off = ns > mark->mean_ns ? ns - mark->mean_ns : mark->mean_ns - ns;

	mark->mean_ns = smooth(mark->mean_ns, ns, weight);
	mark->deviation_ns = smooth(mark->deviation_ns, off, weight);
	mark->mean_events = smooth(mark->mean_events, events, weight);
	mark->votes = (uint8_t)(mark->votes + (mark->votes < VOTES_MAX));
}

/*
 * An interval of the mark ends. Is it similar to most earlier ones? After a lasting change the new
 * pattern becomes the usual one.
 */
static bool is_interval_regular(
	struct td_period *period, struct td_period_mark *mark, uint64_t now_ns)
{
	uint64_t set[WORDS], ns = now_ns - mark->began_ns,
			     events = period->events - mark->began_event;
	uint32_t n = gather(period, mark, set);
	bool regular = mark->votes && ns <= TD_PERIOD_MAX_NS &&
		       (ns - 1) / LONGEST < mark->mean_ns && events <= 2 * mark->mean_events &&
		       2 * events >= mark->mean_events && is_alike(set, mark->set);

	count_interval(mark, ns, regular);
	if (regular) {
		learn(mark, ns, events);
		mark->alone = n == 1;
	} else if (mark->votes && --mark->votes) {
		/*
		 * The set of launches that was usual so far has votes left, so it stays the usual
		 * one.
		 */
	} else {
		memcpy(mark->set, set, sizeof(set));
		mark->mean_ns = ns;
		mark->mean_events = events;
		mark->deviation_ns = 0;
		mark->votes = 1;
	}
	mark->began_ns = now_ns;
	mark->began_event = period->events;
	return regular;
}

/* -- which mark -- */

static uint32_t covered_ppm(const struct td_period_mark *mark)
{
	return mark->total_ns >= PPM ? (uint32_t)(mark->regular_ns / (mark->total_ns / PPM)) : 0;
}

static int64_t score_ppm(const struct td_period_mark *mark)
{
	uint64_t mean_ns = mark->mean_ns > TD_PERIOD_MIN_NS ? mark->mean_ns : TD_PERIOD_MIN_NS;
	int64_t score = covered_ppm(mark);

	score -= (int64_t)(mark->deviation_ns / (mean_ns / 1000)) * 1000;
	score -= (63 - __builtin_clzll(mean_ns / TD_PERIOD_MIN_NS)) * DOUBLING_PPM;
	return score - (mark->alone ? ALONE_PPM : 0);
}

static bool is_better(
	const struct td_period *period, const struct td_period_mark *mark, uint64_t now_ns)
{
	const struct td_period_mark *present =
		period->mark ? &period->marks[period->mark - 1] : NULL;
	bool absent = !present || present->misses >= MISSES ||
		      (now_ns - present->last_ns) / LONGEST > present->mean_ns;

	if (mark == present)
		return false;
	if (absent && mark->known && mark->run >= RUN_KNOWN)
		return true;
	if (mark->run < RUN_NEW || covered_ppm(mark) < COVERED_PPM || score_ppm(mark) < SCORE_PPM)
		return false;
	return absent || score_ppm(mark) > score_ppm(present) + MARGIN_PPM;
}

enum td_period_verdict td_period_event(
	struct td_period *period, uint32_t signature, uint64_t now_ns, struct td_period_step *ret)
{
	struct td_period_mark *mark = find_mark(period, signature);
	uint64_t took_ns;
	bool ends, regular;

	period->events++;
	if (!mark) {
		add_mark(period, signature, now_ns);
		return TD_PERIOD_NOTHING;
	}
	ends = now_ns - mark->last_ns >= TD_PERIOD_MIN_NS;
	took_ns = now_ns - mark->began_ns;
	regular = ends && is_interval_regular(period, mark, now_ns);
	mark->last_ns = now_ns;
	if (period->newest != index_of(period, mark)) {
		take_out(period, mark);
		put_first(period, mark);
	}
	if (!ends)
		return TD_PERIOD_NOTHING;
	if (regular && is_better(period, mark, now_ns)) {
		period->mark = index_of(period, mark);
		mark->known = true;
	}
	if (period->mark != index_of(period, mark))
		return TD_PERIOD_NOTHING;
	*ret = (struct td_period_step){
		regular ? took_ns : 0, signature ? signature : FOLD, mark->regular_ppm};
	return regular ? TD_PERIOD_STEP : TD_PERIOD_BREAK;
}
