/*
 * Why a program cannot move to another GPU: a mask that the library sends with MOVABLE and MOVED,
 * and the words for it. The rows are in unmovable.def.
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
 * Returns the words for the lowest known bit of the mask. If no bit is known, they say that the
 * reason is not known.
 */
const char *td_unmovable_words(uint64_t mask);
