/* What compilers pack kernel images with: frames of Zstandard, blocks of LZ4. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Fill `to` with exactly `want` bytes. False: it is not such data, or of another length; or memory is short. Nothing outside either buffer is touched. */
bool td_unpack_zstd(const void *from, size_t len, void *to, size_t want);
bool td_unpack_lz4(const void *from, size_t len, void *to, size_t want);
