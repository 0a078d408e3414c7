/* Values typed by humans: what is accepted, what is refused, and that the refusal quotes the text.
 */
#include "test.h"

#include <errno.h>

#include "base/err.h"
#include "base/parse.h"

static uint64_t size_of(const char *text)
{
	struct td_err err = {0};
	uint64_t bytes = 0;

	if (td_parse_size(text, 1000, &bytes, &err))
		test_fail(__FILE__, __LINE__, "%s", err.msg);
	return bytes;
}

TEST(sizes_accept_every_usual_suffix)
{
	CHECK_EQ(size_of("17"), 17);
	CHECK_EQ(size_of("8g"), 8ll << 30);
	CHECK_EQ(size_of("8Gi"), 8ll << 30);
	CHECK_EQ(size_of("8GiB"), 8ll << 30);
	CHECK_EQ(size_of("1.5m"), 3ll << 19);
	CHECK_EQ(size_of("50%"), 500);
	CHECK_EQ(size_of("12.5%"), 125);
}

TEST(bad_sizes_are_refused_and_quoted)
{
	static const char *const bad[] = {"", "-1", "9e99Gi", "50%%", "101%", "8x", "8 g", "1.",
		".5g", "nan", "0x10", "99999999999t", "18446744073709551616"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct td_err err = {0};
		uint64_t bytes = 42;
		char quoted[80];

		snprintf(quoted, sizeof(quoted), "\"%s\"", bad[i]);
		CHECK(td_parse_size(bad[i], 1000, &bytes, &err) < 0);
		CHECK(strstr(err.msg, quoted));
		CHECK_EQ(bytes, 42);
	}
}

TEST(percentages_need_a_whole)
{
	uint64_t bytes;

	CHECK_EQ(td_parse_size("50%", 0, &bytes, NULL), -EINVAL);
}

TEST(durations_default_to_seconds)
{
	uint64_t ns;

	CHECK_EQ(td_parse_duration("30", &ns, NULL), 0);
	CHECK_EQ(ns, 30000000000ll);
	CHECK_EQ(td_parse_duration("1.5ms", &ns, NULL), 0);
	CHECK_EQ(ns, 1500000);
	CHECK_EQ(td_parse_duration("2m", &ns, NULL), 0);
	CHECK_EQ(ns, 120000000000ll);
	CHECK_EQ(td_parse_duration("5 s", &ns, NULL), -EINVAL);
}

TEST(ratios_are_ppm)
{
	uint32_t ppm;

	CHECK_EQ(td_parse_ratio("10%", &ppm, NULL), 0);
	CHECK_EQ(ppm, 100000);
	CHECK_EQ(td_parse_ratio("0.25", &ppm, NULL), 0);
	CHECK_EQ(ppm, 250000);
	CHECK_EQ(td_parse_ratio("1.01", &ppm, NULL), -ERANGE);
	CHECK_EQ(td_parse_ratio("ten", &ppm, NULL), -EINVAL);
}

TEST(a_limit_is_a_size_or_share_of_more_than_nothing_that_can_be_kept_as_typed)
{
	static const char *const bad[] = {"0", "0%", "0.0Gi", "", "-1", "50%%", "101%", "none",
		"0.000000000000000000000000000001t"};
	struct td_err err;

	CHECK_EQ(td_parse_limit("8Gi", NULL), 0);
	CHECK_EQ(td_parse_limit("40%", NULL), 0);
	CHECK_EQ(td_parse_limit("1.00000000000000000000000000Gi", NULL), 0);
	CHECK_EQ(td_parse_limit("1.000000000000000000000000000Gi", NULL), 0);
	CHECK_EQ(td_parse_limit("1.0000000000000000000000000000Gi", NULL), -ERANGE);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CHECK(td_parse_limit(bad[i], &err) < 0);
		CHECK(strstr(err.msg, bad[i]) && err.msg[0] == '"');
	}
}

TEST(a_duty_is_from_one_per_cent_to_all)
{
	uint32_t ppm = 7;

	CHECK_EQ(td_parse_duty("1%", &ppm, NULL), 0);
	CHECK_EQ(ppm, 10000);
	CHECK_EQ(td_parse_duty("100%", &ppm, NULL), 0);
	CHECK_EQ(ppm, 1000000);
	CHECK_EQ(td_parse_duty("0.9%", &ppm, NULL), -ERANGE);
	CHECK_EQ(td_parse_duty("101%", &ppm, NULL), -ERANGE);
	CHECK_EQ(td_parse_duty("half", &ppm, NULL), -EINVAL);
	CHECK_EQ(ppm, 1000000);
}

TEST(a_slack_is_from_a_thousandth_to_all)
{
	uint32_t ppm = 7;

	CHECK_EQ(td_parse_slack("0.1%", &ppm, NULL), 0);
	CHECK_EQ(ppm, 1000);
	CHECK_EQ(td_parse_slack("0", &ppm, NULL), -ERANGE);
	CHECK_EQ(ppm, 1000);
}

TEST(numbers_keep_their_range)
{
	uint64_t v;

	CHECK_EQ(td_parse_u64("7", 1, 7, &v, NULL), 0);
	CHECK_EQ(v, 7);
	CHECK_EQ(td_parse_u64("8", 1, 7, &v, NULL), -ERANGE);
	CHECK_EQ(td_parse_u64("1.0", 1, 7, &v, NULL), -EINVAL);
}

static void check_expected(int r, const struct td_err *err, const char *text, const char *bounds)
{
	char quoted[80];

	snprintf(quoted, sizeof(quoted), "\"%s\" is %s: expected", text,
		r == -ERANGE ? "out of range" : "not valid");
	if (r >= 0 || !strstr(err->msg, quoted) || !strstr(err->msg, bounds))
		test_fail(__FILE__, __LINE__, "%s: %s", text, err->msg);
}

TEST(whatever_is_wrong_is_quoted_with_what_may_be_typed)
{
	static const char *const values[] = {"-1", "50%%", "", "abc", "1.5.5", " 5",
		"99999999999999999999", "99999999999999999999999999999999999999%"};

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		const char *text = values[i];
		struct td_err err;
		uint64_t value;
		uint32_t ppm;

		check_expected(td_parse_u64(text, 3, 9, &value, &err), &err, text, "from 3 to 9");
		check_expected(td_parse_size(text, 0, &value, &err), &err, text, "a size below");
		check_expected(
			td_parse_size(text, 100, &value, &err), &err, text, "from 0% to 100%");
		check_expected(td_parse_gpus(text, 4, &value, &err), &err, text, "from 0 to 4");
		check_expected(td_parse_duration(text, &value, &err), &err, text, "from 0s to");
		check_expected(td_parse_ratio(text, &ppm, &err), &err, text, "from 0% to 100%");
		check_expected(td_parse_limit(text, &err), &err, text, "from 1 byte to");
		check_expected(td_parse_duty(text, &ppm, &err), &err, text, "from 1% to 100%");
		check_expected(td_parse_slack(text, &ppm, &err), &err, text, "from 0.1% to 100%");
	}
}

TEST(people_read_three_digits)
{
	char buf[32];

	CHECK_STR(td_format_size(buf, sizeof(buf), 17), "17 B");
	CHECK_STR(td_format_size(buf, sizeof(buf), 12ull << 30), "12.0 GiB");
	CHECK_STR(td_format_size(buf, sizeof(buf), 640ull << 20), "640 MiB");
	CHECK_STR(td_format_duration(buf, sizeof(buf), 1250000000), "1.25 s");
}

TEST(what_would_move_a_terminals_cursor_is_not_printed)
{
	char text[] = "a\nb\033[31m\177\303\266";

	CHECK_STR(td_printable(text), "a?b?[31m?\303\266");
}

static const char *printable(const char *text)
{
	static char copy[64];

	snprintf(copy, sizeof(copy), "%s", text);
	return td_printable(copy);
}

TEST(only_characters_that_are_shown_as_they_are_stay)
{
	/* Latin, Greek, Han, an emoji of four bytes with a joiner. */
	const char *good = "na\303\257ve \316\261 \346\274\242 \360\237\221\251\342\200\215";

	CHECK_STR(printable(good), good);
	CHECK_STR(printable("a\302\233b"), "a??b");            /* CSI of C1 */
	CHECK_STR(printable("a\302\205\302\237b"), "a????b");  /* next line */
	CHECK_STR(printable("\342\200\256b"), "???b");         /* right to left */
	CHECK_STR(printable("\342\201\247b"), "???b");         /* isolate */
	CHECK_STR(printable("\342\200\250b"), "???b");         /* line separator */
	CHECK_STR(printable("a\233b\377\200"), "a?b??");       /* no UTF-8 */
	CHECK_STR(printable("\300\233\340\202\233"), "?????"); /* longer than need be */
	CHECK_STR(printable("\355\240\200"), "???");           /* half of a pair */
	CHECK_STR(printable("\364\220\200\200"), "????");      /* beyond the last */
	CHECK_STR(printable("cut \346\274"), "cut ??");        /* cut off */
	CHECK_STR(printable("\360\237\221"), "???");
	CHECK_STR(printable(""), "");
}
