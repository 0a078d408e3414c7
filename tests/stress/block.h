/*
 * Blocks of device memory whose every word is known, and a stressed program's actions on them.
 *
 * A block's words follow from three numbers: word i is value(i), a constant or a hash of i, and
 * where i is a multiple of BLOCK_STRIDE it is factor * value(i) + term. Copies, fills and kernels
 * change these numbers and the device's words alike; verifying compares all of them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda/types.h"

#define BLOCKS_MAX   12u
#define BLOCK_STRIDE 1024u /* words from one that kernels change to the next */

/*
 * How a block is allocated: cuMemAlloc, with pitch, in stream order, the program's own VMM, unified
 * memory, by a graph, as a library's variable. Each has a letter in BLOCK_KINDS.
 */
enum block_kind {
	BLOCK_PLAIN,
	BLOCK_PITCH,
	BLOCK_ASYNC,
	BLOCK_OWN_VMM,
	BLOCK_MANAGED,
	BLOCK_GRAPH,
	BLOCK_LIBRARY,
	BLOCK_KIND_N
};

struct block {
	enum block_kind kind;
	CUdeviceptr address; /* 0: none */
	size_t bytes;        /* as mapped or allocated */
	void *library;       /* of BLOCK_LIBRARY */
	uint32_t words;      /* that are used */
	bool hashed;
	uint32_t value, factor, term;
};

#define BLOCK_KINDS "ptavmgl"

/* One thread's. */
struct lane {
	uint64_t random;
	int device;
	CUstream stream;
	bool can_capture; /* a stream that does not wait for the legacy one */
	/* the process's only thread, so no other call can break a capture in the global mode */
	bool is_alone;
	CUfunction affine;
	const char *kinds; /* letters, each as likely as another: not the lane's own */
	uint32_t *staging; /* of the largest block */
	struct block blocks[BLOCKS_MAX];
	uint64_t verified_bytes, refused, launches;
};

/* Loads the kernels and makes the stream; the context is current. */
void lane_init(struct lane *lane, int device, const char *kinds, uint64_t seed);

/*
 * Does one random action and checks one block. Ends the process with a message if anything is
 * wrong.
 */
void lane_turn(struct lane *lane);

/*
 * Builds a graph node by node, without capture: a fill of the block, or a copy of `from`, kernels,
 * and memory operations; launched several times.
 */
void lane_build_graph(struct lane *lane, struct block *b, const struct block *from);

/* Memory for a block; or CUDA_ERROR_OUT_OF_MEMORY. */
CUresult block_of_graph(struct lane *lane, size_t bytes, CUdeviceptr *ret);
CUresult block_of_library(struct lane *lane, size_t bytes, struct block *b);

/*
 * Set the expected words of a block: as a fill makes them, as another's, or as kernels with these
 * factors and terms make them.
 */
void block_fill(struct block *b, uint32_t value, bool hashed);
void block_copy(struct block *b, const struct block *from);
void block_apply(struct block *b, uint32_t m, uint32_t c);
uint32_t block_word(const struct block *b, uint32_t i);

/* Checks every block. */
void lane_verify(struct lane *lane);
void lane_deinit(struct lane *lane);

uint32_t lane_below(struct lane *lane, uint32_t n);
