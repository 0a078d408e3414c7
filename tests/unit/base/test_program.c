/* Command lines: what is refused names the option, quotes the value and says what was expected. */
#include "test.h"

#include <errno.h>
#include <getopt.h>

#include "base/err.h"
#include "base/program.h"

static int take(void *arg, int letter, const char *text, struct td_err *err)
{
	int *taken = arg;

	(*taken)++;
	if (letter == 'n')
		return td_err_set(err, -ENOENT, "--name is missing");
	return strcmp(text, "5s") ? td_err_expected(err, -EINVAL, text, "1s to 10m") : 0;
}

static int parse(const char *first, const char *second, int *ret_taken, struct td_err *err)
{
	static const struct td_command_option options[] = {
		{"lease", "TIME", "", 'l'}, {"name", "", "", 'n'}};
	static const struct td_command command = {
		.name = "program", .options = options, .count = 2, .take = take};
	char words[3][16] = {"program"}, *argv[] = {words[0], words[1], words[2], NULL};

	snprintf(words[1], sizeof(words[1]), "%s", first);
	snprintf(words[2], sizeof(words[2]), "%s", second);
	optind = 1;
	*ret_taken = 0;
	*err = (struct td_err){0};
	return td_command_parse(&command, *second ? 3 : 2, argv, ret_taken, err);
}

TEST(a_bad_value_is_quoted_behind_its_options_name)
{
	struct td_err err;
	int taken;

	CHECK_EQ(parse("--lease", "5s", &taken, &err), 0);
	CHECK_EQ(taken, 1);
	CHECK_EQ(parse("--lease", "soon", &taken, &err), -EINVAL);
	CHECK_STR(err.msg, "--lease: \"soon\" is not valid: expected 1s to 10m");
	CHECK_EQ(err.code, -EINVAL);
	CHECK_EQ(parse("--lease=x", "", &taken, &err), -EINVAL);
	CHECK_STR(err.msg, "--lease: \"x\" is not valid: expected 1s to 10m");
}

TEST(an_options_name_is_not_said_twice)
{
	struct td_err err;
	int taken;

	CHECK_EQ(parse("--name", "", &taken, &err), -ENOENT);
	CHECK_STR(err.msg, "--name is missing");
	CHECK_EQ(parse("--lease", "--", &taken, &err), -EINVAL);
	CHECK_EQ(taken, 0);
	CHECK_EQ(parse("--nothing", "", &taken, &err), -EINVAL);
	CHECK(strstr(err.msg, "\"--nothing\" is not an option"));
	CHECK_EQ(parse("word", "", &taken, &err), -EINVAL);
	CHECK_STR(err.msg, "\"word\" is not valid: expected an option");
}
