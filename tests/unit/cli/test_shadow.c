/* A second instance takes the first one's place when it is ready, and else leaves it untouched. */
#include "cli/supervise/shadow.h"
#include "test.h"

static struct td_shadow shadow;

static enum td_shadow_action step(enum td_shadow_event event, uint64_t now_ns)
{
	const struct td_shadow_input input = {
		.event = event, .ready_ns = 100, .kill_ns = 10, .reason = "exit status 3"};

	return td_shadow_step(&shadow, &input, now_ns);
}

static void begin(void)
{
	shadow = (struct td_shadow)TD_SHADOW_INIT;
	CHECK_EQ(step(TD_SHADOW_ORDERED, 1000), TD_SHADOW_START);
	CHECK_EQ(shadow.wake_ns, 1100);
}

TEST(the_first_instance_is_told_once_the_second_is_ready)
{
	begin();
	CHECK_EQ(step(TD_SHADOW_TIME, 1099), TD_SHADOW_NOTHING);
	CHECK_EQ(step(TD_SHADOW_READY, 1050), TD_SHADOW_HAND_OVER);
	CHECK_EQ(step(TD_SHADOW_READY, 1051), TD_SHADOW_NOTHING);
	CHECK_EQ(step(TD_SHADOW_CANCELLED, 1052), TD_SHADOW_NOTHING);
	CHECK(!shadow.is_done && shadow.wake_ns == 1060);
	CHECK_EQ(step(TD_SHADOW_ENDED, 1055), TD_SHADOW_NOTHING);
	CHECK(shadow.is_done && shadow.state == TD_SHADOW_NONE);
	CHECK_EQ(shadow.wake_ns, UINT64_MAX);
}

TEST(a_first_instance_that_stays_is_killed)
{
	begin();
	(void)step(TD_SHADOW_READY, 1050);
	CHECK_EQ(step(TD_SHADOW_TIME, 1059), TD_SHADOW_NOTHING);
	CHECK_EQ(step(TD_SHADOW_TIME, 1060), TD_SHADOW_KILL);
	CHECK(shadow.wake_ns > 1060);
	CHECK_EQ(step(TD_SHADOW_TIME, shadow.wake_ns), TD_SHADOW_KILL);
	(void)step(TD_SHADOW_ENDED, shadow.wake_ns);
	CHECK(shadow.is_done);
}

TEST(a_shadow_that_ends_too_early_changes_nothing)
{
	begin();
	CHECK_EQ(step(TD_SHADOW_ENDED, 1050), TD_SHADOW_NOTHING);
	CHECK(!shadow.is_done && shadow.state == TD_SHADOW_NONE);
	CHECK(strstr(shadow.reason, "exit status 3"));
	CHECK_EQ(step(TD_SHADOW_ORDERED, 1060), TD_SHADOW_START);
	CHECK(!*shadow.reason);
}

TEST(a_shadow_that_is_never_ready_is_ended)
{
	begin();
	CHECK_EQ(step(TD_SHADOW_TIME, 1100), TD_SHADOW_TERMINATE);
	CHECK_EQ(step(TD_SHADOW_READY, 1101), TD_SHADOW_NOTHING);
	CHECK_EQ(step(TD_SHADOW_TIME, 1110), TD_SHADOW_KILL);
	(void)step(TD_SHADOW_ENDED, 1111);
	CHECK(!shadow.is_done && strstr(shadow.reason, "tandem_ready()"));
}

TEST(a_cancelled_shadow_is_ended)
{
	begin();
	CHECK_EQ(step(TD_SHADOW_CANCELLED, 1020), TD_SHADOW_TERMINATE);
	CHECK_EQ(step(TD_SHADOW_FIRST_ENDED, 1021), TD_SHADOW_NOTHING);
	CHECK_EQ(step(TD_SHADOW_ORDERED, 1022), TD_SHADOW_NOTHING);
	(void)step(TD_SHADOW_ENDED, 1023);
	CHECK(!shadow.is_done && !strcmp(shadow.reason, "exit status 3"));
}

TEST(the_shadow_is_the_heir_of_a_first_instance_that_dies)
{
	begin();
	CHECK_EQ(step(TD_SHADOW_FIRST_ENDED, 1020), TD_SHADOW_TAKE_OVER);
	CHECK(shadow.is_done && shadow.state == TD_SHADOW_NONE);
	CHECK_EQ(step(TD_SHADOW_ENDED, 1030), TD_SHADOW_NOTHING);
}

TEST(times_saturate)
{
	const struct td_shadow_input input = {
		.event = TD_SHADOW_ORDERED, .ready_ns = UINT64_MAX, .kill_ns = UINT64_MAX};

	shadow = (struct td_shadow)TD_SHADOW_INIT;
	(void)td_shadow_step(&shadow, &input, 5);
	CHECK_EQ(shadow.wake_ns, UINT64_MAX);
}
