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
	const void *function;       /* a kernel's or function's handle, or an executable graph */
	uint32_t grid[3], block[3]; /* zeros: a graph, whose kernels are not told */
	uint32_t shared_bytes;      /* dynamic */
};

struct td_demand {
	uint32_t active_ppm, core_ppm; /* at most 1000000 each */
};

/* blocks_per_sm 0: not known; then the kernel counts as one that fills the GPU. */
struct td_demand td_demand_of(uint64_t blocks, uint32_t blocks_per_sm, uint32_t sms);

/* Saturates. */
uint64_t td_shape_blocks(const struct td_shape *shape);

/* Names a kind of launch in a context. Never 0 or TD_KEY_BUSY. */
#define TD_KEY_BUSY 1u
uint64_t td_shape_key(const void *context, const struct td_shape *shape);

/* How sure a sample is. */
enum td_sample_kind {
	TD_SAMPLE_EXACT,  /* the kernel took that long */
	TD_SAMPLE_DRY,    /* the stream had run dry; the gap is subtracted as far as it is known */
	TD_SAMPLE_SHARED, /* it may hold the time of other programs */
};

/* A kind's time alone as learnt so far, in one word; 0: nothing yet. */
uint64_t td_solo_learn(uint64_t solo, uint64_t sample_ns, enum td_sample_kind kind);
uint64_t td_solo_ns(uint64_t solo);
/*
 * There were TD_SOLO_FIRST intervals. Until then the shortest counts, as the first may hold what
 * is done once; a dry one only where all are.
 */
#define TD_SOLO_FIRST 4u
bool td_solo_is_known(uint64_t solo);
/* An interval of a kind whose time is known, without a delay that is none of the kernel's. */
uint64_t td_solo_clip(uint64_t solo, uint64_t sample_ns);

/*
 * Which part of the launches of a kind is timed, if they take solo_ns each, out of 2^32: so few
 * that the events cost a few thousandths of the time at most. UINT32_MAX: all of them. They are
 * drawn by chance, so that they do not fall into step with the program.
 */
uint32_t td_sample_chance(uint64_t solo_ns);
/* The next number by which they are drawn. Not 0 for a state that is not 0. */
uint64_t td_sample_draw(uint64_t state);
