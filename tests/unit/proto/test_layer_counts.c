/* Counts of layers as a text. */
#include <errno.h>

#include "base/err.h"
#include "proto/layers.h"
#include "test.h"

TEST(counts_are_read_and_written)
{
	uint32_t counts[TD_LAYER_KINDS];
	char text[TD_LAYERS_TEXT];

	CHECK_EQ(td_layers_parse("53,0,49,0,0,0,1,53,1,2,4294967295", counts, NULL), 0);
	CHECK_EQ(counts[TD_LAYER_CONVOLUTION], 53);
	CHECK_EQ(counts[TD_LAYER_POOLING], 2);
	CHECK_EQ(counts[TD_LAYER_OTHER], UINT32_MAX);
	td_layers_format(counts, text);
	CHECK_STR(text, "53,0,49,0,0,0,1,53,1,2,4294967295");
	for (unsigned i = 0; i < TD_LAYER_KINDS; i++)
		counts[i] = UINT32_MAX;
	td_layers_format(counts, text);
	CHECK_EQ(strlen(text), TD_LAYERS_TEXT - 2);
}

TEST(other_texts_are_quoted_and_refused)
{
	static const char *const bad[] = {"", "1", "1,2,3,4,5,6,7,8,9,10", "1,2,3,4,5,6,7,8,9,10,",
		"1,2,3,4,5,6,7,8,9,10,11,", "1,2,3,4,5,6,7,8,9,10,11,12", "1,2,3,4,5,6,7,8,9,10,-1",
		" 1,2,3,4,5,6,7,8,9,10,11", "1,2,3,4,5,6,7,8,9,10,4294967296",
		"1,2,3,4,5,6,7,8,9,10,99999999999999999999", "1,,3,4,5,6,7,8,9,10,11"};
	uint32_t counts[TD_LAYER_KINDS];
	struct td_err err;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK_EQ(td_layers_parse(bad[i], counts, &err), -EINVAL);
	CHECK_STR(err.msg, "\"1,,3,4,5,6,7,8,9,10,11\" is not valid: expected 11 counts such as "
			   "53,0,49,0,0,0,1,53,1,2,0");
}
