/* What the variables of a kernel image take of memory: known before it is loaded. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct td_image_data {
	uint64_t device_bytes;
	uint64_t managed_bytes; /* unified: of __managed__ variables */
	bool unknown;           /* it has some that are compressed, and nothing that can be read */
};

/*
 * Of an image as cuModuleLoadData takes it: a cubin, PTX, or a fatbin of them, of which the largest of each counts. It is `len` bytes long; SIZE_MAX: as long as
 * it says itself. Nothing for what is none of these.
 */
struct td_image_data td_image_data(const void *image, size_t len);
