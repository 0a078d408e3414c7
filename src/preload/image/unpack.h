/* Unpacks what compilers compress kernel images with: Zstandard frames and LZ4 blocks. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * Fills `to` with exactly `want` bytes. False: the data is damaged or has another length, or memory
 * is short. Nothing outside either buffer is touched.
 */
bool td_unpack_zstd(const void *from, size_t len, void *to, size_t want);
bool td_unpack_lz4(const void *from, size_t len, void *to, size_t want);
