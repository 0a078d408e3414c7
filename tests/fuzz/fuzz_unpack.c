/*
 * For any packed input, nothing outside the two buffers is touched. The first bytes choose the
 * format and the unpacked length.
 */
#include <stdlib.h>
#include <string.h>

#include <stdint.h>

#include "preload/image/unpack.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t want = size > 3 ? (size_t)(data[1] | data[2] << 8 | (data[3] & 3) << 16) : 0;
	void *from, *to;

	if (size < 4)
		return 0;
	from = malloc(size - 4 ? size - 4 : 1);
	to = malloc(want ? want : 1);
	if (from && to) {
		memcpy(from, data + 4, size - 4);
		(void)(data[0] & 1 ? td_unpack_lz4 : td_unpack_zstd)(from, size - 4, to, want);
	}
	free(to);
	free(from);
	return 0;
}
