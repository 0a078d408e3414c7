/*
 * A kernel's demand of a GPU, and how long it takes alone: the arithmetic of the meter.
 *
 * SM activity is the share of the SMs that have a block, over the time in which the kernel runs
 * (MuxFlow 4.1). Core demand is the share of the blocks that the GPU could hold of this kernel
 * (DCUDA III-C1). Both follow from the grid and the occupancy, so they are asked once per function,
 * grid, block and dynamic shared memory.
 *
 * The time alone is learnt from launches between two events. Such an interval is exact where the
 * stream was still busy when the kernel came. Otherwise it holds the time from the event to the
 * launch, which is subtracted as far as it is known: too much, where the thread lost its processor.
 * Beside other programs an interval may hold their time, and nothing is subtracted: the shortest
 * one counts for long.
 *
 * The functions are pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct td_shape {
	const void *function;       /* handle of a kernel or function, or of an executable graph */
	uint32_t grid[3], block[3]; /* zeros: a graph, whose kernels are not known */
	uint32_t shared_bytes;      /* dynamic shared memory */
};

struct td_demand {
	/* The shares of the SMs and of their room that it uses, at most 1000000 each. */
	uint32_t active_ppm, core_ppm;
};

/*
 * Returns the demand of a kernel. blocks_per_sm: from the occupancy; 0: not known, and the kernel
 * counts as one that fills the GPU.
 */
struct td_demand td_demand_of(uint64_t blocks, uint32_t blocks_per_sm, uint32_t sms);

/* Returns the number of blocks; saturates at UINT64_MAX. */
uint64_t td_shape_blocks(const struct td_shape *shape);

/* Returns a hash that identifies a kind of launch in a context. It is never 0 or TD_KEY_BUSY. */
#define TD_KEY_BUSY 1u
uint64_t td_shape_key(const void *context, const struct td_shape *shape);

/* Says how precisely a sample measures the kernel. */
enum td_sample_kind {
	TD_SAMPLE_EXACT,  /* the kernel took exactly that long */
	TD_SAMPLE_DRY,    /* the stream was idle; the gap is subtracted as far as known */
	TD_SAMPLE_SHARED, /* the sample may include time of other programs */
};

/*
 * Adds a sample to the time that a kind takes without other programs. Returns the new state, packed
 * into one word; 0: nothing learnt yet.
 */
uint64_t td_solo_learn(uint64_t solo, uint64_t sample_ns, enum td_sample_kind kind);
uint64_t td_solo_ns(uint64_t solo);
/*
 * The time counts as known after this many samples. Until then the shortest counts, since the first
 * may include work that is done only once.
 */
#define TD_SOLO_FIRST 4u
bool td_solo_is_known(uint64_t solo);
/* Limits an interval of a kind whose time is known: a delay that is not the kernel's is cut off. */
uint64_t td_solo_clip(uint64_t solo, uint64_t sample_ns);

/*
 * Returns the share of launches to time, of 2^32, for a kind that takes solo_ns. It is so small
 * that the events cost at most a few thousandths of the time. UINT32_MAX: all. Launches are drawn
 * at random, so that they do not fall into step with the program.
 */
uint32_t td_sample_chance(uint64_t solo_ns);
/* Returns the next random number for that. It is not 0 if the state is not 0. */
uint64_t td_sample_draw(uint64_t state);
