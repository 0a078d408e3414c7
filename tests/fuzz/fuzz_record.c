/* Arbitrary records of nodes. One that can be read is written and read again, and is the same. */
#include <assert.h>
#include <errno.h>

#include "base/text.h"
#include "cluster/node/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct td_record record, again;
	struct td_text text = {0};
	int r = td_record_read((const char *)data, size, &record);

	assert(r == 0 || r == -EBADMSG || r == -ENOMEM);
	if (r)
		return 0;
	td_record_write(&record, &text);
	r = td_record_read(text.text, text.length, &again);
	assert(r == 0 && !td_record_differs(&record, &again));
	td_text_deinit(&text);
	return 0;
}
