/* Any bytes as a CSV file: rows and numbers are read or refused. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/err.h"
#include "sim/base/csv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct td_csv csv;
	struct td_err err;
	int r;

	if (td_csv_open_text(&csv, "fuzz", (const char *)data, len, &err))
		return 0;
	while ((r = td_csv_next(&csv, &err)) != 1) {
		double value = 0;

		for (int c = 0; !r && c < (int)csv.field_count; c++)
			if (!td_csv_number(&csv, c, -5, 1e6, &value, &err) &&
				!(value >= -5 && value <= 1e6))
				abort();
	}
	td_csv_close(&csv);
	return 0;
}
