/* Whatever an image says, the text found lies within it. */
#include <stdlib.h>

#include "ptx/fatbin.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint32_t sms[] = {0, 52, 75, 90, UINT32_MAX};
	struct sg_fatbin_ptx ptx;

	for (unsigned n = 0; n < sizeof(sms) / sizeof(sms[0]); n++) {
		const uint8_t *text;

		if (sg_fatbin_find_ptx(data, size, sms[n], &ptx))
			continue;
		text = (const uint8_t *)ptx.text;
		if (ptx.sm > sms[n] || text < data || ptx.len > size ||
			(size_t)(text - data) > size - ptx.len)
			abort();
	}
	return 0;
}
