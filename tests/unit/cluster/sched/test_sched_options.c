/* The options of all schedulers: what is wrong is refused, and the sentence says what is right. */
#include "test.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "cluster/sched/sched_options.h"

static struct td_sched_settings settings;
static struct td_err err;

static int take(bool has_profiles, int letter, const char *text)
{
	td_sched_settings_init(&settings, has_profiles);
	return td_sched_settings_take(&settings, letter, text, &err);
}

TEST(an_unknown_policy_is_refused_with_those_that_there_are)
{
	CHECK_EQ(take(true, 'P', "gslice"), -EINVAL);
	CHECK(strstr(err.msg, "\"gslice\""));
	CHECK(strstr(err.msg, "expected tandem, antman, dcuda, muxflow, mudi"));
}

TEST(without_profiles_the_policies_that_need_them_are_not_offered)
{
	CHECK_EQ(take(false, 'P', "gslice"), -EINVAL);
	CHECK(strstr(err.msg, "expected tandem, antman, dcuda"));
	CHECK(!strstr(err.msg, "muxflow") && !strstr(err.msg, "mudi"));
}

TEST(a_policy_that_lacks_its_profiles_is_refused_with_the_reason)
{
	CHECK_EQ(take(false, 'P', "mudi"), 0);
	CHECK_EQ(td_sched_settings_check(&settings, "a pod has no profile", &err), -ENOTSUP);
	CHECK(strstr(err.msg, "mudi") && strstr(err.msg, "a pod has no profile"));
	CHECK_EQ(td_sched_settings_check(&settings, "", &err), 0);
	CHECK_EQ(take(false, 'P', "dcuda"), 0);
	CHECK_EQ(td_sched_settings_check(&settings, "a pod has no profile", &err), 0);
}

TEST(a_quota_is_a_number_of_gpus_of_a_tenant_or_of_everybody_else)
{
	CHECK_EQ(take(false, 'Q', "blue=3"), 0);
	CHECK_EQ(settings.scheduler.brain.tenants[1].quota, 3);
	CHECK(!strcmp(settings.scheduler.brain.tenants[1].name, "blue"));
	CHECK_EQ(take(false, 'Q', "7"), 0);
	CHECK_EQ(settings.scheduler.brain.tenants[0].quota, 7);
	CHECK_EQ(take(false, 'Q', "=3"), -EINVAL);
	CHECK(take(false, 'Q', "blue=-1") < 0);
	CHECK_EQ(take(false, 'i', "1ms"), -ERANGE);
}
