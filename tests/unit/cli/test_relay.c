/* Which signals are passed on: those that the witness of the process group has not had. */
#include <signal.h>

#include "base/time.h"
#include "cli/supervise/relay.h"
#include "test.h"

static struct td_relay relay;
static uint64_t now;

static uint64_t bit(int number)
{
	return 1ull << (number - 1);
}

static void begin(void)
{
	memset(&relay, 0, sizeof(relay));
	now = TD_NS_PER_S;
}

static bool comes(int number)
{
	return td_relay_add(&relay, &(struct td_relay_signal){.number = number}, now);
}

/* The next that is passed on by now; 0: none. */
static int passed(void)
{
	struct td_relay_signal signal;

	return td_relay_take(&relay, now, &signal) ? signal.number : 0;
}

TEST(a_signal_for_the_supervisor_alone_is_passed_on_after_a_while)
{
	begin();
	CHECK_EQ(td_relay_wake_ns(&relay), UINT64_MAX);
	CHECK(comes(SIGTERM));
	CHECK_EQ(td_relay_wake_ns(&relay), now + TD_RELAY_WAIT_NS);
	now += TD_RELAY_WAIT_NS - 1;
	CHECK(!td_relay_is_due(&relay, now));
	CHECK_EQ(passed(), 0);
	now++;
	CHECK_EQ(passed(), SIGTERM);
	CHECK_EQ(passed(), 0);
}

TEST(a_signal_for_the_group_is_not_passed_on)
{
	begin();
	CHECK(comes(SIGINT));
	td_relay_witness(&relay, bit(SIGINT), now);
	now += TD_RELAY_WAIT_NS;
	CHECK_EQ(passed(), 0);
}

TEST(a_signal_that_the_witness_had_first_is_not_passed_on)
{
	begin();
	td_relay_witness(&relay, bit(SIGTERM) | bit(64) | bit(1), now);
	now += TD_RELAY_WAIT_NS - 1;
	CHECK(comes(SIGTERM));
	CHECK(comes(64));
	now += TD_RELAY_WAIT_NS;
	CHECK_EQ(passed(), 0);
	/* Only once: the next one is another one. */
	CHECK(comes(SIGTERM));
	now += TD_RELAY_WAIT_NS;
	CHECK_EQ(passed(), SIGTERM);
}

TEST(a_signal_that_only_the_witness_had_is_forgotten)
{
	begin();
	td_relay_witness(&relay, bit(SIGUSR1), now);
	now += TD_RELAY_WAIT_NS;
	CHECK(comes(SIGUSR1));
	now += TD_RELAY_WAIT_NS;
	CHECK_EQ(passed(), SIGUSR1);
}

TEST(of_two_equal_signals_the_witness_takes_one)
{
	begin();
	CHECK(comes(SIGUSR1));
	CHECK(comes(SIGUSR1));
	td_relay_witness(&relay, bit(SIGUSR1), now);
	now += TD_RELAY_WAIT_NS;
	CHECK_EQ(passed(), SIGUSR1);
	CHECK_EQ(passed(), 0);
}

TEST(signals_keep_their_order)
{
	begin();
	CHECK(comes(SIGUSR2));
	CHECK(comes(SIGUSR1));
	CHECK(comes(SIGTERM));
	td_relay_witness(&relay, bit(SIGUSR1), now);
	now += TD_RELAY_WAIT_NS;
	CHECK_EQ(passed(), SIGUSR2);
	CHECK_EQ(passed(), SIGTERM);
}

TEST(stop_and_continue_cancel_each_other_as_in_the_kernel)
{
	begin();
	CHECK(comes(SIGTSTP));
	CHECK(comes(SIGCONT));
	now += TD_RELAY_WAIT_NS;
	CHECK_EQ(passed(), SIGCONT);
	CHECK(comes(SIGCONT));
	CHECK(comes(SIGTTIN));
	now += TD_RELAY_WAIT_NS;
	CHECK_EQ(passed(), SIGTTIN);
	CHECK_EQ(passed(), 0);
}

TEST(a_stop_that_is_over_is_not_passed_on)
{
	begin();
	CHECK(comes(SIGTSTP));
	td_relay_continue(&relay);
	now += TD_RELAY_WAIT_NS;
	CHECK_EQ(passed(), 0);
	td_relay_witness(&relay, bit(SIGTSTP), now);
	td_relay_continue(&relay);
	CHECK(comes(SIGTSTP));
	now += TD_RELAY_WAIT_NS;
	CHECK_EQ(passed(), SIGTSTP);
}

TEST(a_flood_is_passed_on_at_once)
{
	begin();
	for (int i = 0; i < TD_RELAY_MAX; i++)
		CHECK(comes(40));
	CHECK(!comes(40));
	now += TD_RELAY_WAIT_NS;
	for (int i = 0; i < TD_RELAY_MAX; i++)
		CHECK_EQ(passed(), 40);
	CHECK_EQ(passed(), 0);
}
