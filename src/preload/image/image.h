/* The memory that the variables of a kernel image take, known before the image is loaded. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct td_image_data {
	uint64_t device_bytes;
	uint64_t managed_bytes; /* bytes of __managed__ variables, which are unified memory */
	bool unknown; /* some entries cannot be read: unsupported compression or declaration */
};

/*
 * Takes an image as it is passed to cuModuleLoadData: a cubin, PTX, or a fatbin of them. In a
 * fatbin the largest entry of each kind counts. Returns zeros for anything else. len: its length,
 * or SIZE_MAX if only the image's header tells it. unpack: also reads compressed entries, which
 * takes 2 to 5 ms per MB (a Xeon of 2023) and at most 512 MiB per image; anything beyond is
 * unknown. Without unpack, compressed entries count nothing.
 */
struct td_image_data td_image_data(const void *image, size_t len, bool unpack);
