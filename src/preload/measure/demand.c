/* The arithmetic of the meter; see demand.h. */
#include "preload/measure/demand.h"

#include "base/bounds.h"

#define PPM 1000000u

/*
 * The bits of a word of td_solo_learn: nanoseconds; whether they are exact; number of TD_SAMPLE_DRY
 * samples in a row; number of samples.
 */
#define NS_BITS     44
#define NS_MASK     ((1ull << NS_BITS) - 1)
#define SURE        (1ull << NS_BITS)
#define DRY_SHIFT   (NS_BITS + 1)
#define DRY_MASK    63u
#define DRY_MAX     32u /* after so many samples in a row, an exact time is no longer trusted */
#define TIMES_SHIFT (DRY_SHIFT + 6)
#define OUTLIER     3  /* an interval of more than this times the usual one includes a delay */
#define FOLLOW      4  /* a sample moves the time by one part in this of the difference */
#define CREEP       64 /* like FOLLOW, where the difference may be other programs' time */
/* The events of a sample take about this long, so a sample is due after a thousand times that. */
#define SAMPLE_NS 4000u
#define EVERY_NS  (1000ull * SAMPLE_NS)

struct td_demand td_demand_of(uint64_t blocks, uint32_t blocks_per_sm, uint32_t sms)
{
	uint64_t room = (uint64_t)blocks_per_sm * sms, waves, rest;
	struct td_demand demand = {PPM, PPM};

	if (!room || !blocks)
		return demand;
	waves = blocks / room;
	rest = blocks % room;
	if (!waves)
		demand.core_ppm = (uint32_t)(rest * PPM / room);
	/* In each full wave all SMs have a block. The blocks of the last wave are spread evenly. */
	if (rest && rest < sms)
		demand.active_ppm = (uint32_t)((double)PPM * ((double)waves + (double)rest / sms) /
					       (double)(waves + 1));
	return demand;
}

uint64_t td_shape_blocks(const struct td_shape *shape)
{
	uint64_t plane = (uint64_t)shape->grid[0] * shape->grid[1], blocks;

	return __builtin_mul_overflow(plane, shape->grid[2], &blocks) ? UINT64_MAX : blocks;
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * 0x9e3779b97f4a7c15;
	return hash ^ hash >> 32;
}

uint64_t td_shape_key(const void *context, const struct td_shape *shape)
{
	uint64_t hash = mix((uintptr_t)context, (uintptr_t)shape->function);

	hash = mix(hash, (uint64_t)shape->grid[0] << 32 | shape->grid[1]);
	hash = mix(hash, (uint64_t)shape->grid[2] << 32 | shape->shared_bytes);
	/* A block has at most 1024 threads, so no dimension needs more than 11 bits. */
	hash = mix(hash, (uint64_t)shape->block[0] << 42 ^ (uint64_t)shape->block[1] << 21 ^
				 shape->block[2]);
	return hash > TD_KEY_BUSY ? hash : hash + 2;
}

uint64_t td_solo_ns(uint64_t solo)
{
	return solo & NS_MASK;
}

bool td_solo_is_known(uint64_t solo)
{
	return solo >> TIMES_SHIFT >= TD_SOLO_FIRST;
}

uint64_t td_solo_clip(uint64_t solo, uint64_t sample_ns)
{
	return td_min_u64(sample_ns, OUTLIER * td_solo_ns(solo));
}

struct learnt {
	uint64_t ns;
	uint32_t dry, times;
	bool sure;
};

static uint64_t pack(const struct learnt *learnt)
{
	uint64_t ns = learnt->ns ? learnt->ns : 1;

	return td_min_u64(ns, NS_MASK) | (learnt->sure ? SURE : 0) |
	       (uint64_t)learnt->dry << DRY_SHIFT | (uint64_t)learnt->times << TIMES_SHIFT;
}

/* Moves the time towards the sample by one part in FOLLOW of the difference. */
static uint64_t follow(uint64_t ns, uint64_t sample_ns)
{
	return sample_ns > ns ? ns + (sample_ns - ns) / FOLLOW : ns - (ns - sample_ns) / FOLLOW;
}

static void learn_exact(struct learnt *learnt, uint64_t sample_ns)
{
	sample_ns = td_min_u64(sample_ns, OUTLIER * learnt->ns);
	learnt->ns = learnt->sure ? follow(learnt->ns, sample_ns) : sample_ns;
	learnt->sure = true;
	learnt->dry = 0;
}

/*
 * The shortest interval counts, since the first may include work that is done only once. A dry
 * interval counts only while there is no other: if the thread lost its processor after the launch,
 * part of the kernel is taken for the gap. `dry` notes that the time comes from such an interval.
 */
static void learn_first(struct learnt *learnt, uint64_t sample_ns, enum td_sample_kind kind)
{
	bool dry = kind == TD_SAMPLE_DRY;

	if (!learnt->ns || (learnt->dry && !dry))
		learnt->ns = sample_ns;
	else if (learnt->dry || !dry)
		learnt->ns = td_min_u64(learnt->ns, sample_ns);
	else
		return;
	learnt->dry = dry;
	learnt->sure |= kind == TD_SAMPLE_EXACT;
}

/* An exact time is kept until DRY_MAX samples in a row were not exact. */
static void learn_dry(struct learnt *learnt, uint64_t sample_ns)
{
	if (!learnt->sure) {
		learnt->ns = follow(learnt->ns, sample_ns);
		return;
	}
	learnt->dry++;
	if (learnt->dry < DRY_MAX)
		return;
	learnt->sure = false;
	learnt->dry = 0;
}

/*
 * If a kind of work was measured once while no other program ran, its estimate does not rise
 * because of other programs. If it never was, its estimate is at most the shortest interval seen.
 */
static void learn_shared(struct learnt *learnt, uint64_t sample_ns)
{
	if (sample_ns <= learnt->ns) {
		learnt->ns = learnt->sure ? follow(learnt->ns, sample_ns) : sample_ns;
	} else if (!learnt->sure) {
		learnt->ns += td_min_u64(sample_ns - learnt->ns, learnt->ns) / CREEP;
	}
}

uint64_t td_solo_learn(uint64_t solo, uint64_t sample_ns, enum td_sample_kind kind)
{
	struct learnt learnt = {solo & NS_MASK, solo >> DRY_SHIFT & DRY_MASK,
		(uint32_t)(solo >> TIMES_SHIFT), solo & SURE};

	if (!td_solo_is_known(solo)) {
		learn_first(&learnt, sample_ns, kind);
	} else {
		switch (kind) {
		case TD_SAMPLE_EXACT: learn_exact(&learnt, sample_ns); break;
		case TD_SAMPLE_DRY: learn_dry(&learnt, sample_ns); break;
		case TD_SAMPLE_SHARED: learn_shared(&learnt, sample_ns); break;
		}
	}
	learnt.times += learnt.times < TD_SOLO_FIRST;
	return pack(&learnt);
}

uint32_t td_sample_chance(uint64_t solo_ns)
{
	uint64_t every = EVERY_NS / (solo_ns + SAMPLE_NS);

	return every < 2 ? UINT32_MAX : (uint32_t)((1ull << 32) / every);
}

/* Marsaglia's xorshift64. */
uint64_t td_sample_draw(uint64_t state)
{
	state ^= state << 13;
	state ^= state >> 7;
	return state ^ state << 17;
}
