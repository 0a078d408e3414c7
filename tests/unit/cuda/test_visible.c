/* CUDA_VISIBLE_DEVICES of the software GPU's driver. */
#include <stdlib.h>
#include <string.h>

#include "cuda/visible.h"
#include "test.h"

/* GPU-00000000-... to GPU-03000000-..., and two that begin alike. */
static const uint8_t uuids[6][16] = {{0}, {1}, {2}, {3}, {0xab, 0xcd, 1}, {0xab, 0xcd, 2}};

/* Returns the visible GPUs as digits. */
static const char *seen(const char *list)
{
	static char text[16];
	uint32_t gpus[6] = {0}, n = td_visible(list, uuids, 6, gpus);

	for (uint32_t i = 0; i < n; i++)
		text[i] = (char)('0' + gpus[i]);
	text[n] = 0;
	return text;
}

TEST(without_the_variable_all_are_seen)
{
	CHECK_STR(seen(NULL), "012345");
}

TEST(indices_choose_and_order)
{
	CHECK_STR(seen("2"), "2");
	CHECK_STR(seen("3,0,1"), "301");
	CHECK_STR(seen(" 1 ,\t2"), "12");
	CHECK_STR(seen("05"), "5");
}

TEST(an_empty_list_shows_none)
{
	CHECK_STR(seen(""), "");
	CHECK_STR(seen(" "), "");
	CHECK_STR(seen(",1"), "");
}

TEST(what_is_no_gpu_ends_the_list)
{
	CHECK_STR(seen("1,-1,2"), "1");
	CHECK_STR(seen("-1"), "");
	CHECK_STR(seen("0,6,1"), "0");
	CHECK_STR(seen("0,two,1"), "0");
	CHECK_STR(seen("0,1x"), "0");
	CHECK_STR(seen("0,"), "0");
	CHECK_STR(seen("0,99999999999999999999"), "0");
	CHECK_STR(seen("0,4294967297"), "0");
	CHECK_STR(seen("0,MIG-1"), "0");
}

TEST(uuids_may_be_short_if_they_name_one)
{
	CHECK_STR(seen("GPU-03000000-0000-0000-0000-000000000000,GPU-01"), "31");
	CHECK_STR(seen("GPU-abcd01"), "4");
	CHECK_STR(seen("GPU-abcd02,0"), "50");
	CHECK_STR(seen("GPU-abcd,0"), "");
	CHECK_STR(seen("0,GPU-"), "0");
	CHECK_STR(seen("GPU-03000000-0000-0000-0000-0000000000000"), "");
}

TEST(one_that_is_named_twice_hides_all)
{
	CHECK_STR(seen("0,0"), "");
	CHECK_STR(seen("3,1,GPU-03"), "");
	CHECK_STR(seen("1,-1,1"), "1"); /* behind the end nothing is looked at */
}
