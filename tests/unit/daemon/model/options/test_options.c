/*
 * The daemon's options: the table's defaults hold, bad text is quoted, a file's errors name their
 * line.
 */
#include "test.h"

#include <errno.h>
#include <unistd.h>

#include "base/err.h"
#include "daemon/model/options/options.h"
#include "policy/policy.h"
#include "proto/proto.h"

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
	CHECK(options.enabled && options.moves);
}

/* Returns a value that is no option's default and is shown as it is typed. */
static const char *value_for(const struct td_option_row *row)
{
	static const char *const values[][2] = {{"name", "nvshare"}, {"time", "3s"},
		{"share", "37%"}, {"size", "5Gi"}, {"path", "/tmp/a"}, {"number", "7"},
		{"GPUs", "1.5"}, {"CPUs", "0-3,8"}, {"off|auto|on", "on"}, {"auto|on|off", "on"}};

	for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++)
		if (!strcmp(row->unit, values[i][0]))
			return values[i][1];
	CHECK_STR(row->unit, "on|off");
	return strcmp(row->value, "on") ? "on" : "off";
}

TEST(every_option_shows_what_it_was_given_and_changes_no_other)
{
	struct td_options initial, options;
	struct td_option_row before, row;
	struct td_err err = {0};

	td_options_init(&initial);
	for (size_t i = 0; td_options_row(&initial, i, &before); i++) {
		const char *value = value_for(&before);

		options = initial;
		CHECK(strcmp(before.value, value));
		CHECK_EQ(td_options_set(&options, before.key, value, &err), 0);
		for (size_t k = 0; td_options_row(&options, k, &row); k++) {
			CHECK(td_options_row(&initial, k, &before));
			CHECK_STR(row.value, k == i ? value : before.value);
		}
		CHECK(td_options_row(&initial, i, &before));
		CHECK_EQ(td_options_set(&options, before.key, before.value, &err), 0);
		CHECK(td_options_row(&options, i, &row));
		CHECK_STR(row.value, before.value);
	}
}

TEST(every_help_goes_whole_in_a_string_of_the_protocol)
{
	struct td_options options;
	struct td_option_row row;

	td_options_init(&options);
	for (size_t i = 0; td_options_row(&options, i, &row); i++)
		CHECK(strlen(row.help) <= TD_STR_MAX);
}

TEST(bad_values_are_quoted_and_change_nothing)
{
	static const char *const bad[][2] = {{"policy", "nvshere"}, {"enabled", "maybe"},
		{"moves", "auto"}, {"quantum", "30 s"}, {"swap.share", "110%"},
		{"swap.share", "0%"}, {"quantum", "0s"}, {"quantum", "2h"}, {"window", "11s"},
		{"gpu.capacity", "9e99Gi"}, {"gpu.capacity", "0"}, {"gpu.capacity", "1"},
		{"gpu.capacity", "1048575"}, {"gpu.capacity", "0.09%"}, {"quantom", "3s"}};
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

TEST(an_unknown_option_is_answered_with_all_that_there_are)
{
	char path[] = "/tmp/tandem-options-XXXXXX";
	int fd = mkstemp(path);
	struct td_options options;
	struct td_option_row row;
	struct td_err err = {0}, in_file = {0};

	td_options_init(&options);
	CHECK_EQ(td_options_set(&options, "quantom", "3s", &err), -EINVAL);
	CHECK(strstr(err.msg, "\"quantom\""));
	CHECK(fd >= 0 && dprintf(fd, "quantom = 3s\n") > 0);
	CHECK_EQ(td_options_load(&options, path, &in_file), -EINVAL);
	close(fd);
	unlink(path);
	for (size_t i = 0; td_options_row(&options, i, &row); i++) {
		bool is_muxflow = !strncmp(row.key, "muxflow.", 8);
		bool grouped = is_muxflow || !strncmp(row.key, "gpu.", 4);
		const char *group = is_muxflow ? "muxflow.*" : "gpu.*";
		const char *at = strstr(err.msg, grouped ? group : row.key);

		if (grouped) {
			CHECK(at != NULL);
			continue;
		}
		CHECK(at && strstr(in_file.msg, row.key));
		/* whole, and the last one too */
		while (at && at[strlen(row.key)] && at[strlen(row.key)] != ',')
			at = strstr(at + 1, row.key);
		CHECK(at);
	}
	/* A daemon's answer to tandem goes in two strings of the protocol. */
	CHECK(strlen(err.msg) < 2 * 255);
}

TEST(every_number_that_is_refused_is_quoted_with_its_bounds)
{
	static const char *const values[] = {"-1", "9e99Gi", "50%%", "", "many", "1.2.3",
		"99999999999999999999", "99999999999999999999h"};
	static const struct {
		const char *key, *bounds;
	} options[] = {{"quantum", "from 1ms to 1h such as 30s"},
		{"quantum.min", "from 1ms to 1h such as 100ms"},
		{"swap.share", "from 0.1% to 90% such as 10%"}, {"quantum.long", "from 1ms to 24h"},
		{"swap.share.long", "from 0.1% to 90%"}, {"drain.deadline", "from 10ms to 1h"},
		{"window", "from 0s to 10s"}, {"gpu.sample", "from 10ms to 1h"},
		{"gpu.contexts", "from 1 to 16 such as 2"},
		{"quota.jobs", "from 0 to 1024, or none"},
		{"quota.gpus", "from 0 to 64 such as 1.5, auto or none"},
		{"gpu.capacity",
			"a size from 1Mi to below 16777216Ti such as 8Gi, or a share from 0.1% to"},
		{"host.limit", "or none"}};

	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		for (size_t k = 0; k < sizeof(values) / sizeof(values[0]); k++) {
			struct td_options set;
			struct td_err err = {0};
			char quoted[40];

			td_options_init(&set);
			snprintf(quoted, sizeof(quoted), "%s: \"%s\" is ", options[i].key,
				values[k]);
			CHECK(td_options_set(&set, options[i].key, values[k], &err) < 0);
			if (!strstr(err.msg, quoted) || !strstr(err.msg, options[i].bounds))
				test_fail(__FILE__, __LINE__, "%s", err.msg);
		}
	}
}

#define HAS (TD_HAS(STEPS) | TD_HAS(DUTY) | TD_HAS(HOST_MEMORY))

TEST(a_policy_that_needs_more_than_the_node_has_is_refused_with_all_reasons)
{
	struct td_options options;
	struct td_err err;

	td_options_init(&options);
	options.has = HAS;
	for (const struct td_policy *const *p = td_policies; *p; p++) {
		uint32_t lacks = td_policy_lacks(*p, HAS);

		CHECK_EQ(
			td_options_set(&options, "policy", (*p)->name, &err), lacks ? -ENOTSUP : 0);
		CHECK_EQ(options.policy == *p, !lacks);
		for (uint32_t bit = 0; lacks && bit < TD_ABILITY_N; bit++)
			CHECK_EQ(strstr(err.msg, td_ability_at(bit)->text) != NULL,
				lacks >> bit & 1);
		CHECK(!lacks || strstr(err.msg, (*p)->name));
	}
	/* The error for an unknown policy lists those that this node can run. */
	CHECK_EQ(td_options_set(&options, "policy", "foo", &err), -EINVAL);
	CHECK(strstr(err.msg, "\"foo\"") && strstr(err.msg, "tandem"));
	for (const struct td_policy *const *p = td_policies; *p; p++)
		CHECK(strstr(err.msg, (*p)->name) &&
			(strstr(err.msg, (*p)->name) > strchr(err.msg, ';')) ==
				(td_policy_lacks(*p, HAS) != 0));
	/* These need nothing, whatever there is. */
	CHECK(!td_policy_find("tandem")->needs && !td_policy_find("nvshare")->needs);
}

TEST(a_policy_may_be_asked_for_before_it_is_known_what_the_node_has)
{
	struct td_options options;
	struct td_err err;

	td_options_init(&options);
	CHECK_EQ(td_options_set(&options, "policy", "muxflow", &err), 0);
	CHECK(options.policy == td_policy_find("muxflow"));
	CHECK_EQ(td_options_set(&options, "policy", "foo", &err), -EINVAL);
	CHECK(!strchr(err.msg, ';'));
}

TEST(each_ability_has_its_words)
{
	for (uint32_t bit = 0; bit < TD_ABILITY_N; bit++) {
		const struct td_ability *ability = td_ability_at(bit);

		CHECK(*ability->id && *ability->text && *ability->why);
	}
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

TEST(the_limit_of_the_host_is_none_a_size_or_a_share_of_the_machine)
{
	struct td_options options;
	uint64_t half;

	td_options_init(&options);
	CHECK_EQ(td_options_host(&options), UINT64_MAX);
	CHECK_EQ(td_options_set(&options, "host.limit", "64Mi", NULL), 0);
	CHECK_EQ(td_options_host(&options), 64ull << 20);
	CHECK_EQ(td_options_set(&options, "host.limit", "50%", NULL), 0);
	half = td_options_host(&options);
	CHECK(half >= 16ull << 20 && half < 1ull << 50);
	CHECK_EQ(td_options_set(&options, "host.limit", "25%", NULL), 0);
	CHECK(td_options_host(&options) <= half / 2 + 1);
}

TEST(mps_is_off_auto_or_on)
{
	struct td_options options;
	struct td_err err = {0};

	td_options_init(&options);
	CHECK_EQ(options.mps, TD_MPS_OPTION_AUTO);
	CHECK_EQ(td_options_set(&options, "mps", "on", NULL), 0);
	CHECK_EQ(options.mps, TD_MPS_OPTION_ON);
	CHECK_EQ(td_options_set(&options, "mps", "yes", &err), -EINVAL);
	CHECK_STR(err.msg, "mps: \"yes\" is not valid: expected off, auto or on");
	CHECK_EQ(options.mps, TD_MPS_OPTION_ON);
}
