/* The value of --tandem: what is accepted, what is refused, and the variables that come of it. */
#include "test.h"

#include <string.h>

#include "base/err.h"
#include "slurm/spec.h"

static struct td_slurm_spec spec;

static const char *error_of(const char *text)
{
	static struct td_err err;

	err = (struct td_err){0};
	return td_slurm_spec_parse(text, &spec, &err) ? err.msg : "none";
}

static const char *variable_of(const char *name)
{
	static char value[TD_JOB_VALUE_MAX];
	const char *found;

	for (uint32_t k = 0; (found = td_slurm_spec_variable(&spec, k, value)); k++)
		if (!strcmp(found, name))
			return value;
	return "none";
}

TEST(a_share_is_a_part_of_a_gpu_or_whole_ones)
{
	static const struct {
		const char *text;
		uint32_t hundredths, gpus;
	} good[] = {{"0.5", 50, 1}, {"0.01", 1, 1}, {"0.25", 25, 1}, {"1", 100, 1}, {"1.0", 100, 1},
		{"2", 200, 2}, {"64", 6400, 64}};

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		CHECK_STR(error_of(good[i].text), "none");
		CHECK_EQ(spec.hundredths, good[i].hundredths);
		CHECK_EQ(spec.gpus, good[i].gpus);
	}
}

TEST(bad_shares_are_refused_and_quoted)
{
	static const char *const bad[] = {"", "0", "0.005", "0.125x", "1.5", "65", "-1", "half",
		"50%", "0.5 ", "1e0", "0x1", "nan", "0.001"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char quoted[64];

		snprintf(quoted, sizeof(quoted), "\"%s\"", bad[i]);
		if (!strstr(error_of(bad[i]), quoted))
			test_fail(__FILE__, __LINE__, "%s: %s", bad[i], error_of(bad[i]));
	}
}

TEST(settings_become_variables)
{
	CHECK_STR(error_of("0.5,mem=8Gi,class=guaranteed,slack=1%,weight=7,duty=30%"), "none");
	CHECK_STR(variable_of("TANDEM_MEM"), "8Gi");
	CHECK_STR(variable_of("TANDEM_CLASS"), "guaranteed");
	CHECK_STR(variable_of("TANDEM_SLACK"), "1%");
	CHECK_STR(variable_of("TANDEM_WEIGHT"), "7");
	CHECK_STR(variable_of("TANDEM_DUTY"), "30%");
	CHECK_STR(variable_of("TANDEM_BACKEND"), "auto");
	CHECK_STR(variable_of("TANDEM_MEM_SOFT"), "none");
}

TEST(a_share_alone_limits_the_memory_and_is_the_weight)
{
	CHECK_STR(error_of("0.3"), "none");
	CHECK_STR(variable_of("TANDEM_MEM"), "30%");
	CHECK_STR(variable_of("TANDEM_WEIGHT"), "30");
	CHECK_STR(variable_of("TANDEM_CLASS"), "besteffort");
	CHECK_STR(variable_of("TANDEM_DUTY"), "none");
	CHECK_STR(error_of("2"), "none");
	CHECK_STR(variable_of("TANDEM_MEM"), "none");
	CHECK_STR(variable_of("TANDEM_WEIGHT"), "100");
	CHECK_STR(error_of("1,soft=4Gi"), "none");
	CHECK_STR(variable_of("TANDEM_MEM_SOFT"), "4Gi");
	CHECK_STR(variable_of("TANDEM_BACKEND"), "swap");
}

TEST(bad_settings_are_refused_and_quoted)
{
	static const struct {
		const char *text, *error;
	} bad[] = {
		{"0.5,memory=8Gi", "\"memory=8Gi\" is not valid: expected mem=VALUE, soft=VALUE, "
				   "class=VALUE, weight=VALUE, duty=VALUE or slack=VALUE"},
		{"0.5,8Gi", "\"8Gi\" is not valid: expected mem=VALUE"},
		{"0.5,", "\"\" is not valid: expected mem=VALUE"},
		{"0.5,mem=", "mem=: \"\" is not valid"},
		{"0.5,mem=8x", "mem=: \"8x\" is not valid"},
		{"0.5,mem=1Gi,mem=2Gi", "mem= is given twice"},
		{"0.5,class=gold", "class=: \"gold\" is not valid: expected online, guaranteed or"},
		{"0.5,weight=0", "weight=: \"0\""}, {"0.5,duty=0%", "duty=: \"0%\""},
		{"0.5,slack=1%", "slack=: \"1%\" has no effect"},
		{"0.5,slack=1%,class=online", "slack=: \"1%\" has no effect"}};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (!strstr(error_of(bad[i].text), bad[i].error))
			test_fail(__FILE__, __LINE__, "%s: %s", bad[i].text, error_of(bad[i].text));
}

TEST(a_text_that_is_too_long_or_not_printable_is_refused)
{
	char text[2 * TD_SLURM_SPEC_MAX];

	memset(text, '1', sizeof(text));
	text[sizeof(text) - 1] = 0;
	CHECK(strcmp(error_of(text), "none"));
	CHECK(strcmp(error_of("0.5\n"), "none"));
	CHECK(strcmp(error_of("0.5,class=\033[2J"), "none"));
	CHECK(strcmp(error_of(NULL), "none"));
}
