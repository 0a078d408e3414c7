/* Reading CSV: quotes, ends of lines, numbers, and errors that name file and line. */
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/err.h"
#include "sim/base/csv.h"

static struct td_csv csv;
static struct td_err err;

static int open_text(const char *text)
{
	err = (struct td_err){0};
	return td_csv_open_text(&csv, "a.csv", text, strlen(text), &err);
}

TEST(rows_are_taken_apart)
{
	double value = 0;

	CHECK_EQ(open_text("name,x\r\nfirst,1.5\n\n\"a, \"\"b\"\"\",-2e3"), 0);
	CHECK_EQ(csv.column_count, 2);
	CHECK_EQ(td_csv_column(&csv, "x"), 1);
	CHECK_EQ(td_csv_column(&csv, "y"), -1);
	CHECK_EQ(td_csv_next(&csv, &err), 0);
	CHECK_STR(td_csv_text(&csv, 0), "first");
	CHECK_EQ(td_csv_number(&csv, 1, 0, 2, &value, &err), 0);
	CHECK(value > 1.49 && value < 1.51);
	CHECK_EQ(td_csv_next(&csv, &err), 0);
	CHECK_STR(td_csv_text(&csv, 0), "a, \"b\"");
	CHECK_EQ(td_csv_number(&csv, 1, -1e9, 1e9, &value, &err), 0);
	CHECK_EQ(value, -2000);
	CHECK_EQ(td_csv_next(&csv, &err), 1);
	td_csv_close(&csv);
}

TEST(a_bad_row_is_named_and_the_next_one_is_read)
{
	CHECK_EQ(open_text("a,b\n1\n1,2,3\n\"open,2\n\"x\"y,2\n1,2\n"), 0);
	CHECK_EQ(td_csv_next(&csv, &err), -EINVAL);
	CHECK_STR(err.msg, "a.csv:2: 1 fields: expected 2 as in the header");
	CHECK_EQ(td_csv_next(&csv, &err), -EINVAL);
	CHECK(strstr(err.msg, "a.csv:3: 3 fields"));
	CHECK_EQ(td_csv_next(&csv, &err), -EINVAL);
	CHECK(strstr(err.msg, "a.csv:4: a quote is not closed"));
	CHECK_EQ(td_csv_next(&csv, &err), -EINVAL);
	CHECK(strstr(err.msg, "a.csv:5: \"y,2\" after a quote"));
	CHECK_EQ(td_csv_next(&csv, &err), 0);
	CHECK_EQ(td_csv_next(&csv, &err), 1);
	td_csv_close(&csv);
}

TEST(numbers_are_decimal_finite_and_in_range)
{
	static const char *const bad[] = {
		"nan", "inf", "0x10", "1e999", "", "1,5", "--1", "e", "1 2"};
	double value = 7;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char text[64];

		snprintf(text, sizeof(text), "n\n\"%s\"\n", bad[i]);
		CHECK_EQ(open_text(text), 0);
		CHECK_EQ(td_csv_next(&csv, &err), 0);
		CHECK_EQ(td_csv_number(&csv, 0, -1e9, 1e9, &value, &err), -EINVAL);
		CHECK(strstr(err.msg, "a.csv:2: n is \"") && strstr(err.msg, "expected a number"));
		CHECK_EQ(value, 7);
		td_csv_close(&csv);
	}
	CHECK_EQ(open_text("n\n17\n"), 0);
	CHECK_EQ(td_csv_next(&csv, &err), 0);
	CHECK_EQ(td_csv_number(&csv, 0, 0, 10, &value, &err), -EINVAL);
	CHECK_STR(err.msg, "a.csv:2: n is 17: expected 0 to 10");
	td_csv_close(&csv);
}

TEST(what_is_no_csv_is_refused)
{
	const char *names[] = {"a", "c"};
	int at[2];

	CHECK_EQ(open_text(""), -EINVAL);
	CHECK_EQ(open_text("\n\n"), -EINVAL);
	CHECK_EQ(td_csv_open_text(&csv, "b.csv", "a\0b\n", 4, &err), -EINVAL);
	CHECK(strstr(err.msg, "b.csv: the file is not text"));
	CHECK_EQ(td_csv_open(&csv, "/nonexistent/x.csv", &err), -ENOENT);
	CHECK(strstr(err.msg, "/nonexistent/x.csv: No such file"));
	CHECK_EQ(open_text("a,b,,,a\n1,2,,,3\n"), -EINVAL);
	CHECK_STR(err.msg, "a.csv:1: two columns are called \"a\"");
	CHECK_EQ(open_text("a,,\n1,,\n"), 0); /* without a name nobody asks for them */
	td_csv_close(&csv);
	CHECK_EQ(open_text("a,b\n1,2\n"), 0);
	CHECK_EQ(td_csv_need(&csv, names, 2, at, &err), -EINVAL);
	CHECK_STR(err.msg, "a.csv:1: there is no column \"c\"");
	td_csv_close(&csv);
}

/* "a,b" and four rows, by gzip. */
static const unsigned char packed[] = {0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03,
	0x4b, 0xd4, 0x49, 0xe2, 0x32, 0xd4, 0x31, 0xe2, 0x32, 0xd6, 0x31, 0xe1, 0x32, 0xd5, 0x31,
	0xe3, 0x32, 0xd7, 0xb1, 0xe0, 0x02, 0x00, 0xb9, 0x66, 0x2a, 0x5c, 0x14, 0x00, 0x00, 0x00};

static int open_packed(size_t bytes)
{
	char path[] = "/tmp/test_sim_csv.XXXXXX";
	int fd = mkstemp(path), r;

	err = (struct td_err){0};
	if (fd < 0 || write(fd, packed, bytes) != (ssize_t)bytes)
		return -EIO;
	r = td_csv_open(&csv, path, &err);
	close(fd);
	unlink(path);
	return r;
}

TEST(a_packed_file_that_ends_too_early_is_not_taken_for_a_short_one)
{
	unsigned rows = 0;
	int r = open_packed(sizeof(packed));

	if (r == -ENOSYS)
		return; /* built without zlib */
	CHECK_EQ(r, 0);
	while (!td_csv_next(&csv, &err))
		rows++;
	CHECK_EQ(rows, 4);
	td_csv_close(&csv);
	for (size_t bytes = sizeof(packed) - 1; bytes > 20; bytes--) {
		CHECK_EQ(open_packed(bytes), -EIO);
		CHECK(strstr(err.msg, "end too early") || strstr(err.msg, "cannot be read"));
	}
}

TEST(a_byte_order_mark_is_no_part_of_the_first_column)
{
	CHECK_EQ(open_text("\xef\xbb\xbfname,x\nfirst,1\n"), 0);
	CHECK_EQ(td_csv_column(&csv, "name"), 0);
	CHECK_EQ(td_csv_next(&csv, &err), 0);
	td_csv_close(&csv);
	CHECK_EQ(open_text("\xef\xbb\xbf"), -EINVAL);
}
