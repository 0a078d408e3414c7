/* Finds the beginning and length of a kernel image, so that a copy of it can be kept. */
#pragma once

#include <stddef.h>

/*
 * Takes an image as it is passed to cuModuleLoadData. Returns its first byte and its length. For
 * the fatbin wrapper that nvcc makes, this is the fatbin within, which a driver accepts too.
 * Returns NULL for a wrapper of several fatbins and for an unknown kind of image.
 */
const void *td_image_extent(const void *image, size_t *ret_bytes);
