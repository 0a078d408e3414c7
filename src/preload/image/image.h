/* What the variables of a kernel image take of memory: known before it is loaded. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct td_image_data {
	uint64_t device_bytes;
	uint64_t managed_bytes; /* unified: of __managed__ variables */
	bool unknown; /* some of it is compressed, or declared, in a way that is not read here */
};

/*
 * Of an image as cuModuleLoadData takes it: a cubin, PTX, or a fatbin of them, of which the largest of each counts. It is `len` bytes long; SIZE_MAX: as long as
 * it says itself. Nothing for what is none of these. unpack: what is compressed is looked into, which takes 2 to 5 ms for each MB of it (a Xeon of 2023), up to 512 MiB of an image, beyond which nothing is known; else it has
 * nothing.
 */
struct td_image_data td_image_data(const void *image, size_t len, bool unpack);
