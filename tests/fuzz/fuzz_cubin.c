/* Whatever an image says, the names found lie within it. */
#include <stdlib.h>
#include <string.h>

#include "ptx/image/cubin.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sg_cubin cubin;

	if (!sg_cubin_read(data, size, &cubin))
		return 0;
	for (size_t n = 0; n <= cubin.kernels; n++) {
		const char *name = sg_cubin_kernel(data, size, n);
		const uint8_t *at = (const uint8_t *)name;

		if (!name != (n == cubin.kernels))
			abort();
		if (name && (at < data || strlen(name) >= size - (size_t)(at - data)))
			abort();
	}
	return 0;
}
