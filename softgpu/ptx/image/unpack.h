/* The compression formats of nvcc: ZSTD frames and LZ4 blocks. */
#pragma once

#include <stddef.h>

enum sg_unpack { SG_UNPACK_LZ4, SG_UNPACK_ZSTD };

/* Fills ret_bytes[0..want) exactly. -EINVAL: it is not such data, or of another length; -ENOTSUP:
 * built without the library (libzstd, liblz4). */
int sg_unpack(enum sg_unpack how, const void *from, size_t len, void *ret_bytes, size_t want);
