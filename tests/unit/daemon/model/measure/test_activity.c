/* A client's activity, by its program's meter, on a clock of the test's. */
#include "test.h"

#include "daemon/model/measure/activity.h"

#define MS  1000000ull
#define PPM 1000000u

static struct td_activity activity;
static struct td_activity_counters counters;
static uint64_t now_ns;
static uint32_t share_ppm = PPM;

static void begin(void)
{
	activity = (struct td_activity){0};
	counters = (struct td_activity_counters){0};
	now_ns = 1000 * MS;
	CHECK(!td_activity_read(&activity, &counters, share_ppm, now_ns));
}

/* So much later it has been charged so much more. */
static bool pass(uint64_t elapsed_ns, uint64_t used_ns, uint64_t active_ns, uint64_t core_ns)
{
	now_ns += elapsed_ns;
	counters.used_ns += used_ns;
	counters.active_ns += active_ns;
	counters.core_ns += core_ns;
	return td_activity_read(&activity, &counters, share_ppm, now_ns);
}

TEST(rates_are_the_parts_of_a_window)
{
	begin();
	CHECK(!activity.known);
	CHECK(pass(100 * MS, 50 * MS, 25 * MS, 10 * MS));
	CHECK(activity.known);
	CHECK_EQ(activity.used_ppm, PPM / 2);
	CHECK_EQ(activity.active_ppm, PPM / 4);
	CHECK_EQ(activity.core_ppm, PPM / 10);
}

TEST(the_need_of_sms_is_of_the_time_in_which_it_runs)
{
	begin();
	CHECK(pass(100 * MS, 0, 0, 0));
	CHECK_EQ(activity.need_ppm, 0);
	CHECK(pass(100 * MS, 10 * MS, 7 * MS, 0));
	CHECK_EQ(activity.need_ppm, 700000);
	CHECK(pass(100 * MS, 0, 0, 0));
	CHECK_EQ(activity.need_ppm, 700000);
	CHECK(pass(100 * MS, 100 * MS, 30 * MS, 0));
	CHECK_EQ(activity.need_ppm, 500000);
}

/* The new share does not convert the time that was charged before. */
TEST(another_share_of_the_sms_counts_from_then_on)
{
	begin();
	share_ppm = PPM / 4;
	CHECK(pass(100 * MS, 100 * MS, 100 * MS, 100 * MS));
	CHECK_EQ(activity.active_ppm, PPM / 4);
	CHECK_EQ(activity.core_ppm, PPM / 4);
	for (int i = 0; i < 100; i++)
		CHECK(pass(100 * MS, 80 * MS, 80 * MS, 80 * MS));
	CHECK_EQ(activity.active_ppm, PPM / 5);
	share_ppm = PPM;
	CHECK(pass(100 * MS, 20 * MS, 20 * MS, 20 * MS));
	CHECK_EQ(activity.active_ppm, PPM / 5);
	CHECK_EQ(activity.core_ppm, PPM / 5);
	share_ppm = PPM / 2;
	CHECK(pass(100 * MS, 40 * MS, 40 * MS, 40 * MS));
	CHECK_EQ(activity.active_ppm, PPM / 5);
	CHECK_EQ(activity.used_ppm, 2 * PPM / 5);
	share_ppm = PPM;
}

TEST(nothing_is_new_before_a_window_is_over)
{
	begin();
	CHECK(!pass(99 * MS, 99 * MS, 0, 0));
	CHECK_EQ(activity.used_ppm, 0);
	CHECK(pass(1 * MS, 0, 0, 0));
	CHECK_EQ(activity.used_ppm, 990000);
}

TEST(what_is_queued_at_once_is_worked_off_as_a_gpu_does_it)
{
	begin();
	CHECK(pass(100 * MS, 250 * MS, 125 * MS, 0));
	CHECK_EQ(activity.used_ppm, PPM);
	CHECK(pass(100 * MS, 0, 0, 0));
	CHECK_EQ(activity.used_ppm, PPM);
	CHECK(pass(100 * MS, 0, 0, 0));
	CHECK_EQ(activity.used_ppm, PPM / 2);
	CHECK(pass(100 * MS, 0, 0, 0));
	CHECK_EQ(activity.used_ppm, 0);
	CHECK_EQ(activity.used_ns, 250 * MS);
	CHECK_EQ(activity.active_ns, 125 * MS);
}

TEST(what_is_queued_is_as_active_as_what_runs)
{
	begin();
	CHECK(pass(100 * MS, 112 * MS, 56 * MS, 0));
	CHECK_EQ(activity.active_ppm, PPM / 2);
	CHECK(pass(100 * MS, 88 * MS, 44 * MS, 0));
	CHECK_EQ(activity.used_ppm, PPM);
	CHECK_EQ(activity.active_ppm, PPM / 2);
}

TEST(core_demand_may_be_more_than_one_gpu_and_is_bounded)
{
	begin();
	CHECK(pass(100 * MS, 300 * MS, 300 * MS, 300 * MS));
	CHECK_EQ(activity.core_ppm, 3 * PPM);
	CHECK(pass(100 * MS, 0, 0, UINT64_MAX / 4));
	CHECK_EQ(activity.core_ppm, TD_ACTIVITY_CORES_MAX_PPM);
}

TEST(a_counter_that_falls_begins_anew)
{
	begin();
	CHECK(pass(100 * MS, 100 * MS, 100 * MS, 100 * MS));
	counters = (struct td_activity_counters){10 * MS, 10 * MS, 10 * MS};
	CHECK(pass(100 * MS, 0, 0, 0));
	CHECK_EQ(activity.used_ppm, 0);
	CHECK(pass(100 * MS, 20 * MS, 20 * MS, 20 * MS));
	CHECK_EQ(activity.used_ppm, PPM / 5);
	CHECK_EQ(activity.used_ns, 120 * MS);
}

TEST(a_lie_is_believed_for_ten_seconds_at_most)
{
	unsigned windows = 0;

	begin();
	CHECK(pass(100 * MS, UINT64_MAX / 2, UINT64_MAX / 2, 0));
	while (activity.used_ppm && windows < 1000) {
		CHECK(activity.used_ppm <= PPM && activity.active_ppm <= PPM);
		CHECK(pass(100 * MS, 0, 0, 0));
		windows++;
	}
	CHECK_EQ(windows, 100);
}

TEST(what_is_no_longer_measured_is_not_known)
{
	begin();
	CHECK(pass(100 * MS, 50 * MS, 0, 0));
	td_activity_stop(&activity);
	CHECK(!activity.known);
	CHECK_EQ(activity.used_ppm, 0);
	CHECK(!pass(1000 * MS, 0, 0, 0));
	CHECK(pass(100 * MS, 10 * MS, 0, 0));
	CHECK_EQ(activity.used_ppm, PPM / 10);
}

TEST(what_was_charged_before_the_first_look_is_not_lost)
{
	activity = (struct td_activity){0};
	now_ns = 1000 * MS;
	counters = (struct td_activity_counters){150 * MS, 150 * MS, 0};
	CHECK(!td_activity_read(&activity, &counters, share_ppm, now_ns));
	CHECK(pass(100 * MS, 0, 0, 0));
	CHECK(pass(100 * MS, 0, 0, 0));
	CHECK_EQ(activity.used_ns, 150 * MS);
}
