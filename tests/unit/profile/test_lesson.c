/* Lines of what was measured of a service that runs. */
#include <errno.h>
#include <string.h>

#include "test.h"

#include "base/err.h"
#include "profile/lesson.h"

static struct td_err err;

static const struct td_lesson made = {.service = "api",
	.gpu = "Software GPU, large",
	.layers = {53, 0, 49, 0, 0, 0, 1, 53, 1, 2, UINT32_MAX},
	.batch = 8,
	.share_ppm = 400000,
	.latency_ns = 21500000};

TEST(a_line_reads_as_it_was_written)
{
	char line[TD_LESSON_TEXT];
	struct td_lesson read;
	size_t n = td_lesson_write(&made, line);

	CHECK(n && line[n - 1] == '\n' && strlen(line) == n);
	line[n - 1] = 0;
	CHECK_STR(line,
		"api\t53,0,49,0,0,0,1,53,1,2,4294967295\t8\t400000\t21500000\tSoftware GPU, "
		"large");
	CHECK_EQ(td_lesson_parse(line, &read, &err), 0);
	CHECK(!memcmp(&read, &made, sizeof(read)));
}

TEST(a_name_that_would_break_the_line_is_not_written)
{
	struct td_lesson bad = made;
	char line[TD_LESSON_TEXT];

	strcpy(bad.gpu, "a\nb");
	CHECK_EQ(td_lesson_write(&bad, line), 0);
	bad = made;
	strcpy(bad.service, "../api");
	CHECK_EQ(td_lesson_write(&bad, line), 0);
}

TEST(a_bad_line_is_refused)
{
	static const char *const bad[] = {"", "api", "a/b\t1,0,0,0,0,0,0,0,0,0,0\t1\t1\t1\tg",
		"api\t0,0,0,0,0,0,0,0,0,0,0\t1\t1\t1\tg", "api\t1,0,0,0,0,0,0,0,0,0\t1\t1\t1\tg",
		"api\t1,0,0,0,0,0,0,0,0,0,0\t0\t1\t1\tg",
		"api\t1,0,0,0,0,0,0,0,0,0,0\t1\t1000001\t1\tg",
		"api\t1,0,0,0,0,0,0,0,0,0,0\t1\t1\t0\tg", "api\t1,0,0,0,0,0,0,0,0,0,0\t1\t1\t1\t",
		"api\t1,0,0,0,0,0,0,0,0,0,0\t1\t1\t1",
		"api\t1,0,0,0,0,0,0,0,0,0,0\t1\t1\t1\tg\x01"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct td_lesson read = made;
		char line[128];

		strcpy(line, bad[i]);
		err = (struct td_err){0};
		CHECK_EQ(td_lesson_parse(line, &read, &err), -EINVAL);
		CHECK(err.msg[0] && !memcmp(&read, &made, sizeof(read)));
	}
}
