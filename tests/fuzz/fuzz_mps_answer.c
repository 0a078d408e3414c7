/* Arbitrary answers of nvidia-cuda-mps-control. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "gpu/mps.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[256];
	size_t len = size < sizeof(text) - 1 ? size : sizeof(text) - 1;

	memcpy(text, data, len);
	text[len] = 0;
	assert(td_mps_parse_list(text) >= 0);
	(void)td_mps_parse_fault(text);
	return 0;
}
