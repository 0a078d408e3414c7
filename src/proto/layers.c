/* Parses and names the layer kinds; see layers.h. */
#include "proto/layers.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"

const char *const td_layer_words[TD_LAYER_KINDS] = {
#define KIND(name, word, help) word,
#include "proto/layer_kinds.def"
#undef KIND
};

int td_layers_parse(const char *text, uint32_t ret_counts[TD_LAYER_KINDS], struct td_err *err)
{
	const char *at = text;

	for (unsigned i = 0; i < TD_LAYER_KINDS; i++) {
		char ends_with = i + 1 < TD_LAYER_KINDS ? ',' : '\0';
		unsigned long long count;
		char *end;

		if (*at < '0' || *at > '9')
			break;
		errno = 0;
		count = strtoull(at, &end, 10);
		if (errno || count > UINT32_MAX || *end != ends_with)
			break;
		ret_counts[i] = (uint32_t)count;
		if (!ends_with)
			return 0;
		at = end + 1;
	}
	return td_err_expected(err, -EINVAL, text, "11 counts such as 53,0,49,0,0,0,1,53,1,2,0");
}

void td_layers_format(const uint32_t counts[TD_LAYER_KINDS], char ret[TD_LAYERS_TEXT])
{
	int at = 0;

	for (unsigned i = 0; i < TD_LAYER_KINDS; i++)
		at += snprintf(
			ret + at, (size_t)(TD_LAYERS_TEXT - at), "%s%u", i ? "," : "", counts[i]);
}
