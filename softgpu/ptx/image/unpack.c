/* Decompression by libzstd and liblz4, if the build found them. */
#include "ptx/image/unpack.h"

#include <errno.h>
#include <limits.h>

#ifdef HAVE_ZSTD
#include <zstd.h>

static int unpack_zstd(const void *from, size_t len, void *ret_bytes, size_t want)
{
	return ZSTD_decompress(ret_bytes, want, from, len) == want ? 0 : -EINVAL;
}
#else
static int unpack_zstd(const void *from, size_t len, void *ret_bytes, size_t want)
{
	(void)from, (void)len, (void)ret_bytes, (void)want;
	return -ENOTSUP;
}
#endif

#ifdef HAVE_LZ4
#include <lz4.h>

static int unpack_lz4(const void *from, size_t len, void *ret_bytes, size_t want)
{
	if (len > INT_MAX || want > INT_MAX)
		return -EINVAL;
	return LZ4_decompress_safe(from, ret_bytes, (int)len, (int)want) == (int)want ? 0 : -EINVAL;
}
#else
static int unpack_lz4(const void *from, size_t len, void *ret_bytes, size_t want)
{
	(void)from, (void)len, (void)ret_bytes, (void)want;
	return -ENOTSUP;
}
#endif

int sg_unpack(enum sg_unpack how, const void *from, size_t len, void *ret_bytes, size_t want)
{
	return how == SG_UNPACK_ZSTD ? unpack_zstd(from, len, ret_bytes, want)
				     : unpack_lz4(from, len, ret_bytes, want);
}
