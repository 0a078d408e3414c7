/* The daemon's options: the table's defaults hold, bad text is quoted, a file's errors name their line. */
#include "test.h"

#include <errno.h>
#include <unistd.h>

#include "base/err.h"
#include "daemon/options.h"
#include "policy/policy.h"

TEST(every_default_is_valid_and_shown_as_typed)
{
	struct td_options options;
	struct td_option_row row;
	struct td_err err = {0};
	size_t i;

	td_options_init(&options);
	for (i = 0; td_options_row(&options, i, &row); i++)
		CHECK_EQ(td_options_set(&options, row.key, row.value, &err), 0);
	CHECK(i >= 7);
	CHECK_STR(options.policy->name, "tandem");
	CHECK_EQ(options.quantum_ns, 30000000000ll);
	CHECK_EQ(options.swap_share_ppm, 100000);
	CHECK(options.enabled);
}

TEST(bad_values_are_quoted_and_change_nothing)
{
	static const char *const bad[][2] = {{"policy", "nvshere"}, {"enabled", "maybe"},
		{"quantum", "30 s"}, {"swap.share", "110%"}, {"swap.share", "0%"},
		{"quantum", "0s"}, {"quantum", "2h"}, {"window", "11s"}, {"gpu.capacity", "9e99Gi"},
		{"gpu.capacity", "0"}, {"quantom", "3s"}};
	struct td_options options, before;
	struct td_err err;

	td_options_init(&options);
	before = options;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CHECK(td_options_set(&options, bad[i][0], bad[i][1], &err) < 0);
		CHECK(strstr(err.msg, bad[i][1]) || strstr(err.msg, bad[i][0]));
		CHECK(!memcmp(&options, &before, sizeof(options)));
	}
}

TEST(a_policy_that_needs_more_than_the_node_has_is_refused_with_a_reason)
{
	struct td_options options;
	struct td_err err;

	td_options_init(&options);
	for (const struct td_policy *const *p = td_policies; *p; p++) {
		uint32_t lacks = td_policy_lacks(*p, TD_NODE_HAS);

		CHECK_EQ(
			td_options_set(&options, "policy", (*p)->name, &err), lacks ? -ENOTSUP : 0);
		if (!lacks)
			CHECK(options.policy == *p);
		else
			CHECK(options.policy != *p && strstr(err.msg, td_ability_text(lacks)) &&
				strstr(err.msg, (*p)->name));
	}
	/* What is no policy is answered with what can be had here. */
	CHECK_EQ(td_options_set(&options, "policy", "foo", &err), -EINVAL);
	CHECK(strstr(err.msg, "\"foo\"") && strstr(err.msg, "tandem"));
	for (const struct td_policy *const *p = td_policies; *p; p++)
		CHECK(strstr(err.msg, (*p)->name) &&
			(strstr(err.msg, (*p)->name) > strchr(err.msg, ';')) ==
				(td_policy_lacks(*p, TD_NODE_HAS) != 0));
	/* Whatever comes: these need nothing, and none of the abilities lacks its words. */
	CHECK(!td_policy_find("tandem")->needs && !td_policy_find("nvshare")->needs);
	for (uint32_t bit = 0; bit < TD_ABILITY_N; bit++)
		CHECK(td_ability_text(1u << bit));
	CHECK(!td_ability_text(0));
}

TEST(a_file_sets_options_and_its_errors_name_the_line)
{
	char path[] = "/tmp/tandem-options-XXXXXX";
	int fd = mkstemp(path);
	struct td_options options;
	struct td_err err = {0};

	CHECK(fd >= 0);
	CHECK(dprintf(fd, "# comment\n\n quantum = 5s\npolicy=nvshare\n") > 0);
	td_options_init(&options);
	CHECK_EQ(td_options_load(&options, path, &err), 0);
	CHECK_EQ(options.quantum_ns, 5000000000ll);
	CHECK_STR(options.policy->name, "nvshare");
	CHECK(dprintf(fd, "windows\n") > 0);
	CHECK_EQ(td_options_load(&options, path, &err), -EINVAL);
	CHECK(strstr(err.msg, ":5: \"windows\""));
	close(fd);
	unlink(path);
	CHECK_EQ(td_options_load(&options, path, &err), -ENOENT);
}

TEST(a_capacity_is_a_size_or_a_share_of_each_gpu)
{
	struct td_options options;

	td_options_init(&options);
	CHECK_EQ(td_options_capacity(&options, 1000), 1000);
	CHECK_EQ(td_options_set(&options, "gpu.capacity", "25%", NULL), 0);
	CHECK_EQ(td_options_capacity(&options, 1000), 250);
	CHECK_EQ(td_options_set(&options, "gpu.capacity", "16Gi", NULL), 0);
	CHECK_EQ(td_options_capacity(&options, 80ull << 30), 16ll << 30);
	CHECK_EQ(td_options_capacity(&options, 8ull << 30), 8ll << 30);
}
