/*
 * For any image, the text found lies within it, or is unpacked and has the length that the image
 * states.
 */
#include <stdlib.h>
#include <string.h>

#include "ptx/image/fatbin.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const uint8_t *data, size_t size, uint32_t sm)
{
	struct sg_fatbin_ptx ptx;
	const uint8_t *text;

	if (sg_fatbin_find_ptx(data, size, sm, &ptx))
		return;
	text = (const uint8_t *)ptx.text;
	if (ptx.sm > sm || memchr(text, 0, ptx.len))
		abort();
	if (!ptx.owned && (text < data || ptx.len > size || (size_t)(text - data) > size - ptx.len))
		abort();
	sg_fatbin_ptx_deinit(&ptx);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint32_t sms[] = {0, 52, 75, 90, 103, UINT32_MAX};

	for (unsigned n = 0; n < sizeof(sms) / sizeof(sms[0]); n++)
		check(data, size, sms[n]);
	return 0;
}
