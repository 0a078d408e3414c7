/* Base64 there and back. */
#include "test.h"

#include "base/text.h"
#include "proto/base64.h"

TEST(the_examples_of_the_standard)
{
	static const char *const pair[][2] = {{"", ""}, {"f", "Zg=="}, {"fo", "Zm8="},
		{"foo", "Zm9v"}, {"foob", "Zm9vYg=="}, {"fooba", "Zm9vYmE="},
		{"foobar", "Zm9vYmFy"}, {"\xfb\xff\xbf", "+/+/"}};

	for (size_t i = 0; i < sizeof(pair) / sizeof(*pair); i++) {
		struct td_text text = {0};
		char bytes[16];
		size_t length;

		td_base64_add(&text, pair[i][0], strlen(pair[i][0]));
		CHECK_STR(text.text ? text.text : "", pair[i][1]);
		td_text_deinit(&text);
		CHECK(td_base64_decode(pair[i][1], strlen(pair[i][1]), bytes, &length));
		CHECK_EQ(length, strlen(pair[i][0]));
		CHECK_STR(bytes, pair[i][0]);
	}
}

TEST(other_texts_are_refused)
{
	static const char *const bad[] = {
		"Z", "Zg", "Zg=", "Z===", "====", "Zm9v=", "Z=9v", "Zm9 ", "Zm-_", "Zg==Zg=="};
	char bytes[16];
	size_t length;

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		if (td_base64_decode(bad[i], strlen(bad[i]), bytes, &length))
			test_fail(__FILE__, __LINE__, "\"%s\" was decoded", bad[i]);
}
