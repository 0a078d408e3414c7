/*
 * The two kinds of 16-bit numbers, f16 (10 bits of mantissa) and bf16 (7), as doubles and back: a
 * double holds each of them exactly, and is rounded once.
 */
#pragma once

#include "ptx/vm/ops.h"

#define HALF_NAN 0x7fffu /* the NaN that PTX calls canonical */

static inline double sg_ptx_from_half(uint16_t v, bool is_bf16)
{
	uint64_t bits = (uint64_t)(v & 0x7fff) << (is_bf16 ? 16 : 13);
	float f = sg_ptx_f32(bits);

	/* The exponent is 112 too small; where it was all ones it must be so again. */
	if (!is_bf16) {
		f *= 0x1p112f;
		if (f >= 65536.0f)
			f = sg_ptx_f32(bits | 0x7f800000u);
	}
	return v & 0x8000 ? -f : f;
}

/* mode must not be one of the roundings to whole numbers. */
uint16_t sg_ptx_to_half(double v, bool is_bf16, enum rounding mode);

/* Replaces a subnormal f16 by zero with the same sign. */
static inline uint16_t sg_ptx_flush_half(uint16_t v)
{
	return v & 0x7c00 ? v : v & 0x8000;
}
