/* Arbitrary text in place of /proc/pressure/memory. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "daemon/model/machine/psi.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[512];
	size_t len = size < sizeof(text) - 1 ? size : sizeof(text) - 1;
	struct td_psi psi;

	memcpy(text, data, len);
	text[len] = 0;
	if (!td_psi_parse(text, &psi))
		assert(psi.some_ppm <= 1000000 && psi.full_ppm <= 1000000);
	return 0;
}
