/*
 * Why a program cannot move to another GPU, or get another share of the SMs while it runs: a mask
 * that the library sends with MOVABLE and MOVED, and the words for it. The rows are in
 * unmovable.def.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum td_unmovable_bit {
#define UNMOVABLE(id, words) TD_UNMOVABLE_BIT_##id,
#include "proto/unmovable.def"
#undef UNMOVABLE
	TD_UNMOVABLE_N,
};

#define TD_UNMOVABLE(id) (1ull << TD_UNMOVABLE_BIT_##id)

/*
 * The reasons that do not matter where only the program's share of the SMs changes: all its memory
 * stays, on the GPU where it is.
 */
#define TD_UNMOVABLE_TO_GPU                                                                        \
	(TD_UNMOVABLE(ONE_GPU) | TD_UNMOVABLE(MPS) | TD_UNMOVABLE(VMM) | TD_UNMOVABLE(HARDWARE))

/* The reasons that matter only there: a GPU of the same kind has as many SMs. */
#define TD_UNMOVABLE_TO_SHARE                                                                      \
	(TD_UNMOVABLE(NO_SHARES) | TD_UNMOVABLE(FIXED_SHARE) | TD_UNMOVABLE(COOPERATIVE))

/*
 * Returns the words for the lowest known bit of the mask. If no bit is known, they say that the
 * reason is not known.
 */
const char *td_unmovable_words(uint64_t mask);
