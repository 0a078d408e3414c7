/* Where a kernel image begins and ends, so that a copy of it can be kept. */
#pragma once

#include <stddef.h>

/*
 * For an image as cuModuleLoadData takes it: returns its first byte and its length. A wrapper of a
 * fatbin, as nvcc makes it, is left out: a driver takes what is in it. NULL: it is of a kind that
 * cannot be kept (several fatbins of one wrapper), or of none that is known.
 */
const void *td_image_extent(const void *image, size_t *ret_bytes);
