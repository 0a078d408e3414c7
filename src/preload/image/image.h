/* The memory that the variables of a kernel image take, known before the image is loaded. */
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
 * For an image as cuModuleLoadData takes it: a cubin, PTX, or a fatbin of them, of which the
 * largest of each kind counts. len is its length; SIZE_MAX: as long as it says itself. The result
 * is zero for anything else. unpack: also look into compressed entries, which takes 2 to 5 ms per
 * MB (a Xeon of 2023) and at most 512 MiB per image; the rest is unknown. Without unpack,
 * compressed entries count nothing.
 */
struct td_image_data td_image_data(const void *image, size_t len, bool unpack);
