/* What the variables of a kernel image take of a device: known before it is loaded. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * Bytes of an image as cuModuleLoadData takes it: a cubin, PTX, or a fatbin of them, of which the largest counts. It is `len` bytes long; SIZE_MAX: as long as
 * it says itself. Unified variables are not in it, nor what a fatbin has compressed; 0 for what is none of these.
 */
uint64_t td_image_data_bytes(const void *image, size_t len);
