/* Any "key=value" is set or refused; what is set is shown and can be set again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "daemon/model/options/options.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), *equals;
	struct td_options options;
	struct td_option_row row;
	struct td_err err = {0};

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = 0;
	td_options_init(&options);
	equals = strchr(text, '=');
	if (equals) {
		*equals = 0;
		if (!td_options_set(&options, text, equals + 1, &err)) {
			for (size_t i = 0; td_options_row(&options, i, &row); i++)
				if (td_options_set(&options, row.key, row.value, &err))
					abort();
			if (td_options_capacity(&options, 1000) > 1000)
				abort();
		} else if (!*err.msg) {
			abort();
		}
	}
	free(text);
	return 0;
}
