/*
 * Unpacks the two formats in which compilers compress kernel images: Zstandard frames and LZ4
 * blocks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * Fills `to` with exactly `want` bytes. Returns false if the data is damaged or has another length,
 * or if malloc failed. Reads and writes nothing outside the two buffers.
 */
bool td_unpack_zstd(const void *from, size_t len, void *to, size_t want);
bool td_unpack_lz4(const void *from, size_t len, void *to, size_t want);
