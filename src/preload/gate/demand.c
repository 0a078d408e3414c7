/* See demand.h. */
#include "preload/gate/demand.h"

#define PPM 1000000u

/* A word of td_solo_learn: nanoseconds, how many samples in a row were not exact, is it exact? */
#define NS_BITS   48
#define NS_MASK   ((1ull << NS_BITS) - 1)
#define SURE      (1ull << NS_BITS)
#define DRY_SHIFT (NS_BITS + 1)
#define DRY_MAX   32u /* after so many, what was exact is no longer trusted */
#define FOLLOW    4   /* a sample moves the time by this part of the difference */
#define CREEP     64  /* likewise, where the difference may be other programs' time */
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
	/* All SMs have a block in each full wave. The blocks of the last one are dealt out evenly. */
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

static uint64_t pack(uint64_t ns, bool sure, uint32_t dry)
{
	ns = ns ? ns : 1;
	return (ns < NS_MASK ? ns : NS_MASK) | (sure ? SURE : 0) | (uint64_t)dry << DRY_SHIFT;
}

/* Moves towards the sample by a part of the difference. */
static uint64_t follow(uint64_t ns, uint64_t sample_ns)
{
	return sample_ns > ns ? ns + (sample_ns - ns) / FOLLOW : ns - (ns - sample_ns) / FOLLOW;
}

uint64_t td_solo_learn(uint64_t solo, uint64_t sample_ns, enum td_sample_kind kind)
{
	uint64_t ns = solo & NS_MASK;
	uint32_t dry = (uint32_t)(solo >> DRY_SHIFT);
	bool sure = solo & SURE;

	if (!ns)
		return pack(sample_ns, kind == TD_SAMPLE_EXACT, 0);
	switch (kind) {
	case TD_SAMPLE_EXACT: return pack(sure ? follow(ns, sample_ns) : sample_ns, true, 0);
	case TD_SAMPLE_DRY:
		if (!sure)
			return pack(follow(ns, sample_ns), false, 0);
		return pack(ns, dry + 1 < DRY_MAX, dry + 1 < DRY_MAX ? dry + 1 : 0);
	case TD_SAMPLE_SHARED: break;
	}
	if (sample_ns <= ns)
		return pack(follow(ns, sample_ns), sure, dry);
	/* What was once seen alone is not longer because others are there now. */
	if (sure)
		return solo;
	sample_ns = sample_ns - ns < ns ? sample_ns - ns : ns;
	return pack(ns + sample_ns / CREEP, sure, dry);
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
