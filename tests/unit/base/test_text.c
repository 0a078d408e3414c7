/* A text that grows: nothing is cut, and JSON of it is JSON. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "test.h"

TEST(it_grows_over_each_border)
{
	struct td_text text = {0};

	for (int i = 0; i < 5000; i++)
		td_text_add(&text, "%d,", i % 10);
	CHECK_EQ(text.length, 10000);
	CHECK(!strncmp(text.text + 9996, "8,9,", 5));
	td_text_clear(&text);
	CHECK_EQ(text.length, 0);
	td_text_put(&text, "ab", 2);
	CHECK(!strcmp(text.text, "ab"));
	td_text_deinit(&text);
}

TEST(what_is_longer_than_the_room_is_not_cut)
{
	struct td_text text = {0};
	char longer[3000];

	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = 0;
	td_text_add(&text, "<%s>", longer);
	CHECK_EQ(text.length, sizeof(longer) + 1);
	CHECK_EQ(text.text[text.length - 1], '>');
	td_text_deinit(&text);
}

TEST(json_strings_are_escaped_and_utf8)
{
	struct td_text text = {0};

	td_text_add_json(&text, "a\"b\\c\nd\x01ü\xff€\xe2\x82");
	CHECK(!strcmp(text.text, "\"a\\\"b\\\\c\\u000ad\\u0001ü?€??\""));
	td_text_deinit(&text);
}

TEST(the_beginning_of_a_file_is_a_text)
{
	char path[] = "/tmp/tandem-file-XXXXXX", text[8] = "before";
	int fd = mkstemp(path);

	CHECK(fd >= 0);
	CHECK_EQ(write(fd, "0123456789", 10), 10);
	CHECK_EQ(td_file_read(path, text, sizeof(text)), 0);
	CHECK_STR(text, "0123456");
	CHECK_EQ(ftruncate(fd, 3), 0);
	CHECK_EQ(td_file_read(path, text, sizeof(text)), 0);
	CHECK_STR(text, "012");
	close(fd);
	unlink(path);
}

TEST(a_file_that_cannot_be_read_is_an_empty_text)
{
	char text[8] = "before";

	CHECK_EQ(td_file_read("/proc/self/none", text, sizeof(text)), -ENOENT);
	CHECK_STR(text, "");
	CHECK_EQ(td_file_read("/", text, sizeof(text)), -EISDIR);
	CHECK_STR(text, "");
}
