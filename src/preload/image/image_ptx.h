/* Reads PTX, one of the kinds of kernel images; see image.h. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "preload/image/image.h"

/*
 * Returns whether the image begins as PTX text. Only then is its end searched. len: the length, or
 * SIZE_MAX if a NUL ends the image.
 */
bool td_image_is_ptx(const char *image, size_t len);
struct td_image_data td_image_ptx(const char *image, size_t len);

/* Returns a + b, or UINT64_MAX on overflow. */
static inline uint64_t td_image_plus(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}
