/* When an MPS server is suspect, tried, and found to hang. */
#include "daemon/model/measure/hang.h"
#include "test.h"

#define S  1000000000ull
#define MS 1000000ull

static const struct td_hang_params params = {
	.quiet_ns = 5 * S, .tried_ns = 2 * S, .retry_ns = 10 * S};
static struct td_hang hang;

static void begin(void)
{
	hang = (struct td_hang){0};
	td_hang_server(&hang, 100);
}

TEST(the_death_of_a_client_sends_a_canary_at_once)
{
	begin();
	CHECK(!td_hang_wants_canary(&hang, S));
	td_hang_died(&hang, S);
	CHECK(td_hang_wants_canary(&hang, S));
	td_hang_sent(&hang, &params, S);
	CHECK(!td_hang_wants_canary(&hang, S));
	CHECK_EQ(td_hang_wakeup(&hang, &params, S), 3 * S);
	td_hang_canary(&hang, &params, TD_CANARY_WELL, S + 50 * MS);
	CHECK_EQ(hang.state, TD_HANG_QUIET);
	CHECK(!td_hang_step(&hang, 10 * S));
}

TEST(a_canary_that_does_not_come_back_means_a_hang_until_there_is_another_server)
{
	begin();
	td_hang_died(&hang, S);
	td_hang_sent(&hang, &params, S);
	CHECK(!td_hang_step(&hang, 3 * S - 1));
	CHECK(td_hang_step(&hang, 3 * S));
	CHECK(!td_hang_step(&hang, 4 * S)); /* it is said once */
	CHECK_EQ(hang.state, TD_HANG_HUNG);
	td_hang_canary(&hang, &params, TD_CANARY_WELL, 4 * S);
	td_hang_died(&hang, 4 * S);
	CHECK_EQ(hang.state, TD_HANG_HUNG);
	td_hang_server(&hang, 100);
	CHECK_EQ(hang.state, TD_HANG_HUNG);
	td_hang_server(&hang, 0);
	CHECK_EQ(hang.state, TD_HANG_QUIET);
}

TEST(another_death_meanwhile_sends_another_one)
{
	begin();
	td_hang_died(&hang, S);
	td_hang_sent(&hang, &params, S);
	td_hang_died(&hang, S + 10 * MS);
	td_hang_canary(&hang, &params, TD_CANARY_WELL, S + 50 * MS);
	CHECK(td_hang_wants_canary(&hang, S + 50 * MS));
}

TEST(a_canary_that_cannot_try_is_sent_again_later)
{
	begin();
	td_hang_died(&hang, S);
	td_hang_sent(&hang, &params, S);
	td_hang_canary(&hang, &params, TD_CANARY_FAILED, S);
	CHECK(!td_hang_wants_canary(&hang, 11 * S - 1));
	CHECK_EQ(td_hang_wakeup(&hang, &params, S), 11 * S);
	CHECK(td_hang_wants_canary(&hang, 11 * S));
	/* Another death does not wait for that. */
	td_hang_died(&hang, 2 * S);
	CHECK(td_hang_wants_canary(&hang, 2 * S));
}

TEST(work_that_does_not_end_is_suspect_after_a_while)
{
	begin();
	td_hang_progress(&hang, &params, 10, 500, S);
	td_hang_progress(&hang, &params, 11, 500, 2 * S);
	CHECK_EQ(td_hang_wakeup(&hang, &params, 2 * S), 6 * S);
	td_hang_progress(&hang, &params, 12, 500, 6 * S - 1);
	CHECK_EQ(hang.state, TD_HANG_QUIET);
	td_hang_progress(&hang, &params, 12, 500, 6 * S);
	CHECK(td_hang_wants_canary(&hang, 6 * S));
}

TEST(programs_that_are_idle_are_not_suspect_again_and_again)
{
	begin();
	td_hang_progress(&hang, &params, 10, 500, S);
	td_hang_progress(&hang, &params, 10, 500, 6 * S);
	CHECK_EQ(hang.state, TD_HANG_SUSPECT);
	td_hang_sent(&hang, &params, 6 * S);
	td_hang_canary(&hang, &params, TD_CANARY_WELL, 6 * S);
	td_hang_progress(&hang, &params, 10, 500, 60 * S);
	CHECK_EQ(hang.state, TD_HANG_QUIET);
	CHECK_EQ(td_hang_wakeup(&hang, &params, 60 * S), UINT64_MAX);
	/* Until something is launched. */
	td_hang_progress(&hang, &params, 11, 500, 61 * S);
	td_hang_progress(&hang, &params, 11, 500, 66 * S);
	CHECK_EQ(hang.state, TD_HANG_SUSPECT);
}

TEST(work_that_ends_is_not_suspect)
{
	begin();
	for (uint64_t s = 1; s < 100; s++) {
		td_hang_progress(&hang, &params, s, s * 7, s * S);
		CHECK_EQ(hang.state, TD_HANG_QUIET);
	}
}

TEST(without_a_server_nobody_hangs)
{
	hang = (struct td_hang){0};
	td_hang_progress(&hang, &params, 1, 1, S);
	td_hang_progress(&hang, &params, 2, 1, 20 * S);
	CHECK_EQ(hang.state, TD_HANG_QUIET);
}
