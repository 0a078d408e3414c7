/*
 * Shared code of tandem-sim's verbs: signals on a simulated clock, texts of any bytes, folders that
 * are tried, lines that stay on their page.
 */
#include "test.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "sim/base/plot.h"
#include "sim/base/sim.h"
#include "sim/report/experiment.h"

static char *text;
static size_t size;

static FILE *begin(void)
{
	FILE *out = open_memstream(&text, &size);

	CHECK(out);
	return out;
}

TEST(a_signal_within_a_second_is_the_first_one_again)
{
	td_sim_stop = 0;
	CHECK(!td_sim_signalled(5000000000));
	CHECK(td_sim_stop);
	CHECK(!td_sim_signalled(5000000000));
	CHECK(!td_sim_signalled(5999999999));
	CHECK(td_sim_signalled(6000000000));
	CHECK(td_sim_signalled(60000000000));
	td_sim_stop = 0;
}

static void check_json(const char *from, const char *expected)
{
	FILE *out = begin();

	td_json_text(out, from);
	fclose(out);
	CHECK_STR(text, expected);
	free(text);
}

TEST(texts_in_json_are_utf8_whatever_they_were)
{
	check_json("a\"b\\\n", "\"a\\\"b\\\\\\u000a\"");
	check_json("h\xc3\xbcgel \xe2\x82\xac \xf0\x9f\x98\x80",
		"\"h\xc3\xbcgel \xe2\x82\xac \xf0\x9f\x98\x80\"");
	check_json("h\xfcgel", "\"h\xef\xbf\xbdgel\"");
	check_json("\xc3", "\"\xef\xbf\xbd\"");
	check_json("\xe2\x82", "\"\xef\xbf\xbd\xef\xbf\xbd\"");
	check_json("\xc0\xaf", "\"\xef\xbf\xbd\xef\xbf\xbd\""); /* a longer form than needed */
	check_json("\xe0\x80\xaf", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
	check_json("\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""); /* half of a pair */
	check_json("\xf4\x90\x80\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
}

/* All of a line between the axes' ends, which are at 70 and 570 of 720. */
static void check_line(const double *x, uint32_t count, bool log_x)
{
	static const double y[] = {50, 100};
	const struct td_series series = {"one", x, y, count};
	FILE *out = begin();
	double at, unused;
	char *points;

	td_plot_lines(out, &(struct td_plot){"title", "x", "y", log_x, &series, 1});
	fclose(out);
	points = strstr(text, "points='");
	CHECK(points);
	points += strlen("points='");
	for (uint32_t i = 0; i < count; i++) {
		int taken = 0;

		CHECK_EQ(sscanf(points, "%lf,%lf %n", &at, &unused, &taken), 2);
		CHECK(at >= 70 && at <= 570);
		points += taken;
	}
	free(text);
}

static uint32_t count_of(const char *part)
{
	uint32_t count = 0;

	for (const char *at = text; (at = strstr(at, part)); at += strlen(part))
		count++;
	return count;
}

/* Ticks are at 1, 10, 100 and 1000, or at 0, 200, ... 1000. The other axis has one at 100. */
TEST(an_axis_has_a_tick_for_each_power_of_ten_or_each_step)
{
	static const double x[] = {1, 1000}, y[] = {50, 100};
	const struct td_series series = {"one", x, y, 2};
	FILE *out = begin();

	td_plot_lines(out, &(struct td_plot){"title", "x", "y", true, &series, 1});
	fclose(out);
	CHECK_EQ(count_of(">1<") + count_of(">10<") + count_of(">100<") + count_of(">1000<"), 5);
	CHECK_EQ(count_of("<text"), count_of("</text>"));
	free(text);
	out = begin();
	td_plot_lines(out, &(struct td_plot){"title", "x", "y", false, &series, 1});
	fclose(out);
	CHECK_EQ(count_of(">200<") + count_of(">400<") + count_of(">600<") + count_of(">800<"), 4);
	free(text);
}

/* The page is 720 by 320. */
TEST(all_of_a_plot_is_on_the_page_and_each_line_has_its_name)
{
	static const double x[] = {1, 9}, y[] = {50, 100}, z[] = {20, 30};
	const struct td_series series[] = {{"one", x, y, 2}, {"<two>", x, z, 2}};
	FILE *out = begin();
	uint32_t lines = 0;

	td_plot_lines(out, &(struct td_plot){"title", "x", "y", false, series, 2});
	fclose(out);
	CHECK_EQ(count_of(">one</text>"), 1);
	CHECK_EQ(count_of(">&lt;two></text>") + count_of(">&lt;two&gt;</text>"), 1);
	for (const char *at = text; (at = strstr(at, "<line ")); lines++) {
		double x1, y1, x2, y2;

		CHECK_EQ(
			sscanf(at, "<line x1='%lf' y1='%lf' x2='%lf' y2='%lf'", &x1, &y1, &x2, &y2),
			4);
		CHECK(x1 >= 0 && x1 <= 720 && x2 >= 0 && x2 <= 720);
		CHECK(y1 >= 0 && y1 <= 320 && y2 >= 0 && y2 <= 320);
		at++;
	}
	CHECK(lines >= 4);
	free(text);
}

TEST(a_line_of_one_place_is_on_the_page)
{
	static const double one[] = {5000}, same[] = {300, 300}, two[] = {300, 900};

	for (int log_x = 0; log_x < 2; log_x++) {
		check_line(one, 1, log_x);
		check_line(same, 2, log_x);
		check_line(two, 2, log_x);
	}
}

TEST(a_folder_where_nothing_can_be_made_is_said_before)
{
	char folder[] = "/tmp/tandem-sim-common-XXXXXX", below[64];
	struct td_err err = {0};

	CHECK(mkdtemp(folder));
	snprintf(below, sizeof(below), "%s/a/b", folder);
	CHECK_EQ(td_sim_try_dir(below, &err), 0);
	CHECK_EQ(rmdir(below), 0); /* nothing is left in it */
	snprintf(below, sizeof(below), "%s/a", folder);
	rmdir(below);
	rmdir(folder);
	CHECK(td_sim_try_dir("/dev/null/x", &err) < 0);
	CHECK(td_sim_try_dir("/proc", &err) < 0);
	CHECK(!strncmp(err.msg, "/proc: ", 7));
}

TEST(a_file_has_its_name_when_it_is_whole_and_leaves_nothing_otherwise)
{
	char folder[] = "/tmp/tandem-sim-common-XXXXXX", path[64], taken[64];
	struct td_err err = {0};
	FILE *out;

	CHECK(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/a.csv", folder);
	out = td_sim_create(folder, "a.csv", &err);
	CHECK(out && fputs("1\n", out) >= 0 && !fflush(out));
	CHECK(access(path, F_OK));
	CHECK_EQ(td_sim_close(out, folder, "a.csv", &err), 0);
	CHECK_EQ(unlink(path), 0);
	/* A folder has the name already. */
	snprintf(taken, sizeof(taken), "%s/b.csv", folder);
	CHECK(!mkdir(taken, 0700));
	out = td_sim_create(folder, "b.csv", &err);
	CHECK(out && fputs("1\n", out) >= 0);
	CHECK(td_sim_close(out, folder, "b.csv", &err) < 0);
	CHECK(strstr(err.msg, "b.csv"));
	CHECK_EQ(rmdir(taken), 0);
	CHECK_EQ(rmdir(folder), 0); /* nothing is left in it */
}

/* A bound that leaves no gain where the claim holds anyway, or in another seed, excuses nothing. */
TEST(a_claim_is_bounded_when_each_seed_that_loses_is)
{
	struct td_seeds seeds = {0};
	char note[64] = "x";

	td_seed_add(&seeds, true, false);
	td_seed_add(&seeds, true, true);
	CHECK_EQ(td_seeds_verdict(&seeds), TD_REPRODUCED);
	td_seeds_put(&seeds, note, sizeof(note));
	CHECK_STR(note, "x");
	td_seed_add(&seeds, false, true);
	CHECK_EQ(td_seeds_verdict(&seeds), TD_BOUNDED);
	td_seed_add(&seeds, false, false);
	CHECK_EQ(td_seeds_verdict(&seeds), TD_NOT_REPRODUCED);
	td_seeds_put(&seeds, note, sizeof(note));
	CHECK_STR(note, "x; a bound forbids 1 of the 2 seeds that lose");
}

TEST(what_would_turn_some_seeds_is_said_with_the_number_that_it_turns)
{
	static const double values[] = {9, 0.9, 1.2, 1};
	static const uint32_t some[] = {1, 3, 2};
	char note[64] = "x:";

	td_some_put(values, some, 3, " so", note, sizeof(note));
	CHECK_STR(note, "x: so 0.9 to 1.2x (1)");
	td_some_put(values, some, 1, ", so", note, sizeof(note));
	CHECK_STR(note, "x: so 0.9 to 1.2x (1), so 0.9x (0)");
}
