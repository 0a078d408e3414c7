/*
 * Names of slices, one a line: whatever they are, the chosen ones are free ones, each once, with
 * all that must be among them; and a container that is given them gets what libtandem.so
 * understands.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/parse.h"
#include "kubernetes/slices.h"

#define NAMES 256

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool so)
{
	if (!so)
		abort();
}

static void check_grant(char *const *names, size_t count)
{
	struct td_grant grant;
	struct td_err err = {0};
	char value[TD_GRANT_VALUE];
	const char *name;

	if (td_slices_grant(names, count, &grant, &err)) {
		require(*err.msg);
		return;
	}
	require(grant.hundredths == count && grant.gpus && grant.candidate_count >= grant.gpus);
	for (uint32_t at = 0; (name = td_grant_variable(&grant, at, value)); at++) {
		require(*value && strlen(value) < sizeof(value));
		require(strcmp(name, "TANDEM_MEM") || !td_parse_limit(value, NULL));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), *names[NAMES], *rest;
	const char *chosen[NAMES];
	size_t count = 0, most = size ? data[0] : 0, must = size ? data[size - 1] % 4 : 0;
	struct td_err err = {0};

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = 0;
	rest = text;
	for (char *name; count < NAMES && (name = strsep(&rest, "\n"));)
		names[count++] = name;
	must = must < count ? must : count;
	if (!td_slices_prefer(names, count, names, must, most, NULL, chosen, &err)) {
		for (size_t i = 0; i < most; i++)
			for (size_t k = 0; k < i; k++)
				require(chosen[i] != chosen[k]);
	} else {
		require(*err.msg);
	}
	check_grant(names, count);
	free(text);
	return 0;
}
