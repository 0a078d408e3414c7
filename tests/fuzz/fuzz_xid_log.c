/* Arbitrary text in place of a record of the kernel's log. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "gpu/xid_log.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[512];
	size_t len = size < sizeof(text) - 1 ? size : sizeof(text) - 1;
	struct td_xid_row row;

	memcpy(text, data, len);
	text[len] = 0;
	if (td_xid_log_parse(text, &row))
		assert(row.xid && row.pid >= 0);
	return 0;
}
