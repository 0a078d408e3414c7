/* The detector of MuxFlow 4.2 on a clock of the test's: errors, resets, and the breaker. */
#include "test.h"

#include "policy/algo/control/health.h"

#define S 1000000000ull

static struct td_health health;
static struct td_health_metrics metrics;
static uint64_t now;

static enum td_health_state step(void)
{
	return td_health_step(&health, &td_health_default, &metrics, now += S);
}

/* A server that has been watched for long enough. */
static void start(void)
{
	memset(&health, 0, sizeof(health));
	metrics = (struct td_health_metrics){
		.has_figures = true, .server = TD_HEALTH_SERVER_RUNS, .server_ns = 1,
		.xid_of = TD_XID_OF_MPS};
	now = 1000 * S;
	for (unsigned i = 1; i < td_health_default.good_samples; i++)
		CHECK_EQ(step(), TD_HEALTH_STARTING);
	CHECK_EQ(step(), TD_HEALTH_GOOD);
}

static void see_xid(uint32_t xid)
{
	metrics.xid = xid;
	metrics.xid_ns = now + 1;
}

/* The server fails once, and is started anew. */
static enum td_health_state fail_and_reset(void)
{
	enum td_health_state failed;

	metrics.server = TD_HEALTH_SERVER_FAILED;
	failed = step();
	metrics.server = TD_HEALTH_SERVER_RUNS;
	metrics.server_ns++;
	if (failed == TD_HEALTH_FAILED)
		CHECK_EQ(step(), TD_HEALTH_STARTING);
	return failed;
}

TEST(a_sample_without_figures_begins_the_count_again)
{
	start();
	memset(&health, 0, sizeof(health));
	for (unsigned i = 1; i < td_health_default.good_samples; i++)
		step();
	metrics.has_figures = false;
	CHECK_EQ(step(), TD_HEALTH_STARTING);
	metrics.has_figures = true;
	CHECK_EQ(step(), TD_HEALTH_STARTING);
}

TEST(a_page_fault_fails_the_server_and_no_later_one)
{
	start();
	see_xid(31);
	CHECK_EQ(step(), TD_HEALTH_FAILED);
	CHECK_EQ(step(), TD_HEALTH_FAILED);
	metrics.server_ns = 2;
	CHECK_EQ(step(), TD_HEALTH_STARTING);
	for (unsigned i = 0; i < td_health_default.good_samples; i++)
		step();
	CHECK_EQ(health.state, TD_HEALTH_GOOD);
	see_xid(31);
	CHECK_EQ(step(), TD_HEALTH_FAILED);
}

TEST(the_error_of_a_program_outside_of_mps_is_its_own)
{
	start();
	metrics.xid_of = TD_XID_OF_OTHER;
	see_xid(31);
	CHECK_EQ(step(), TD_HEALTH_GOOD);
	metrics.xid_of = TD_XID_OF_MPS;
	CHECK_EQ(step(), TD_HEALTH_GOOD);
}

TEST(an_error_counts_as_soon_as_it_is_known_whose_it_is)
{
	start();
	metrics.xid_of = TD_XID_OF_UNKNOWN;
	see_xid(31);
	CHECK_EQ(step(), TD_HEALTH_GOOD);
	metrics.xid_of = TD_XID_OF_MPS;
	CHECK_EQ(step(), TD_HEALTH_FAILED);
}

TEST(a_device_is_lost_whoever_did_it)
{
	start();
	metrics.xid_of = TD_XID_OF_UNKNOWN;
	see_xid(79);
	CHECK_EQ(step(), TD_HEALTH_LOST);
}

TEST(noise_decides_nothing)
{
	start();
	see_xid(13);
	CHECK_EQ(step(), TD_HEALTH_GOOD);
	see_xid(777);
	CHECK_EQ(step(), TD_HEALTH_GOOD);
	CHECK(!td_xid_text(777) && td_xid_text(13));
}

TEST(without_mps_an_error_is_of_one_program)
{
	start();
	metrics.server = TD_HEALTH_SERVER_NONE;
	metrics.hangs = true;
	see_xid(31);
	CHECK_EQ(step(), TD_HEALTH_GOOD);
}

TEST(a_hang_and_a_dead_server_are_errors)
{
	start();
	metrics.hangs = true;
	CHECK_EQ(step(), TD_HEALTH_FAILED);
	start();
	metrics.server = TD_HEALTH_SERVER_FAILED;
	CHECK_EQ(step(), TD_HEALTH_FAILED);
	metrics.server = TD_HEALTH_SERVER_NONE;
	CHECK_EQ(step(), TD_HEALTH_STARTING);
}

TEST(the_third_failure_in_ten_minutes_stops_the_resets)
{
	start();
	CHECK_EQ(fail_and_reset(), TD_HEALTH_FAILED);
	CHECK_EQ(fail_and_reset(), TD_HEALTH_FAILED);
	CHECK_EQ(fail_and_reset(), TD_HEALTH_BROKEN);
	now += 599 * S - S;
	CHECK_EQ(step(), TD_HEALTH_BROKEN);
	CHECK_EQ(step(), TD_HEALTH_STARTING);
	CHECK_EQ(fail_and_reset(), TD_HEALTH_FAILED);
}

TEST(a_breaker_that_ends_with_the_same_server_asks_for_its_reset)
{
	start();
	(void)fail_and_reset();
	(void)fail_and_reset();
	metrics.server = TD_HEALTH_SERVER_FAILED;
	CHECK_EQ(step(), TD_HEALTH_BROKEN);
	now += 600 * S;
	CHECK_EQ(step(), TD_HEALTH_FAILED);
}

TEST(failures_that_are_far_apart_do_not_add_up)
{
	start();
	for (unsigned i = 0; i < 40; i++) {
		CHECK_EQ(fail_and_reset(), TD_HEALTH_FAILED);
		now += 300 * S;
	}
}

TEST(a_gpu_that_fell_off_the_bus_is_lost_for_good)
{
	start();
	see_xid(79);
	CHECK_EQ(step(), TD_HEALTH_LOST);
	metrics.server_ns = 9;
	metrics.server = TD_HEALTH_SERVER_NONE;
	now += 10000 * S;
	CHECK_EQ(step(), TD_HEALTH_LOST);
}
