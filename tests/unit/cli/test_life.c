/* A supervised program with fake processes and a fake clock: when it is ended and started again. */
#include <signal.h>

#include "base/err.h"
#include "base/time.h"
#include "cli/supervise/life.h"
#include "test.h"

#define MS TD_NS_PER_MS
#define S  TD_NS_PER_S

static struct td_life life;
static uint64_t now;

static void begin(const char *restart, bool may_queue)
{
	struct td_restart parsed;

	CHECK_EQ(td_restart_parse(restart, &parsed, NULL), 0);
	now = 1000 * S;
	CHECK_EQ(td_life_begin(&life, &parsed, may_queue), TD_LIFE_START);
}

static enum td_life_action step(const struct td_life_input *input)
{
	return td_life_step(&life, input, now);
}

static enum td_life_action happens(enum td_life_event event)
{
	return step(&(struct td_life_input){.event = event});
}

static enum td_life_action ends(bool by_signal, int code)
{
	return step(&(struct td_life_input){.event = TD_LIFE_ENDED, .end = {by_signal, code}});
}

static enum td_life_action ordered(enum td_life_order order, uint64_t leave_ns, uint64_t kill_ns)
{
	return step(&(struct td_life_input){.event = TD_LIFE_ORDERED,
		.order = order,
		.leave_ns = leave_ns,
		.kill_ns = kill_ns});
}

static enum td_life_action interrupted(int signal)
{
	return step(&(struct td_life_input){.event = TD_LIFE_INTERRUPTED, .end = {true, signal}});
}

static enum td_life_action at(uint64_t ns)
{
	now = ns;
	return happens(TD_LIFE_TIME);
}

static void runs(void)
{
	CHECK_EQ(life.state, TD_LIFE_STARTING);
	CHECK_EQ(happens(TD_LIFE_STARTED), TD_LIFE_NOTHING);
	CHECK_EQ(life.state, TD_LIFE_RUNNING);
}

static void is_over(bool by_signal, int code)
{
	CHECK_EQ(life.state, TD_LIFE_OVER);
	CHECK_EQ(life.end.by_signal, by_signal);
	CHECK_EQ(life.end.code, code);
}

/* The program ends by itself and is started again; returns the delay. */
static uint64_t fails_and_starts_again(int code)
{
	uint64_t ended = now;

	CHECK_EQ(ends(false, code), TD_LIFE_TERMINATE);
	CHECK_EQ(happens(TD_LIFE_CLEARED), TD_LIFE_NOTHING);
	CHECK_EQ(life.state, TD_LIFE_BACKING_OFF);
	CHECK_EQ(at(life.wake_ns - 1), TD_LIFE_NOTHING);
	CHECK_EQ(at(life.wake_ns), TD_LIFE_START);
	runs();
	return now - ended;
}

TEST(an_end_that_calls_for_no_restart_ends_the_job)
{
	begin("no", true);
	runs();
	CHECK_EQ(ends(false, 3), TD_LIFE_END);
	is_over(false, 3);
	begin("on-failure", false);
	runs();
	CHECK_EQ(ends(false, 0), TD_LIFE_END);
	is_over(false, 0);
}

TEST(a_failure_or_a_signal_restarts_with_delays_that_double_up_to_a_minute)
{
	uint64_t expected = TD_LIFE_DELAY_NS;

	begin("on-failure", false);
	runs();
	for (int i = 0; i < 20; i++) {
		CHECK_EQ(fails_and_starts_again(1), expected);
		expected = 2 * expected < 60 * S ? 2 * expected : 60 * S;
	}
	CHECK_EQ(life.starts, 21);
	CHECK_EQ(ends(true, SIGSEGV), TD_LIFE_TERMINATE);
}

TEST(always_restarts_after_success_too)
{
	begin("always", false);
	runs();
	CHECK_EQ(fails_and_starts_again(0), 100 * MS);
}

TEST(a_run_that_lasts_sets_the_delay_back)
{
	begin("always", false);
	runs();
	fails_and_starts_again(1);
	fails_and_starts_again(1);
	now += 10 * S;
	CHECK_EQ(fails_and_starts_again(1), 100 * MS);
}

TEST(restarts_are_bounded_in_all)
{
	begin("on-failure:2", false);
	runs();
	fails_and_starts_again(1);
	now += 3600 * S;
	fails_and_starts_again(1);
	now += 3600 * S;
	CHECK_EQ(ends(false, 7), TD_LIFE_END);
	CHECK(life.gave_up);
	is_over(false, 7);
}

TEST(restarts_are_bounded_within_a_time)
{
	begin("on-failure:2/60s", false);
	runs();
	fails_and_starts_again(1);
	now += 50 * S;
	fails_and_starts_again(1);
	now += 9 * S;
	/* The first restart is 60 s away by now, the second one is not. */
	now += S;
	fails_and_starts_again(1);
	CHECK_EQ(ends(false, 1), TD_LIFE_END);
	CHECK(life.gave_up);
}

TEST(the_largest_bound_counts_right)
{
	begin("always:1000/1000h", false);
	runs();
	for (int i = 0; i < 1000; i++)
		fails_and_starts_again(0);
	CHECK_EQ(ends(false, 0), TD_LIFE_END);
	CHECK(life.gave_up);
}

TEST(a_program_that_cannot_be_executed_at_first_is_not_tried_again)
{
	struct td_life_input input = {.event = TD_LIFE_UNSTARTED, .end = {false, 127}};

	begin("always", true);
	CHECK_EQ(step(&input), TD_LIFE_END);
	is_over(false, 127);
	begin("always", true);
	runs();
	CHECK_EQ(ends(false, 1), TD_LIFE_TERMINATE);
	happens(TD_LIFE_CLEARED);
	CHECK_EQ(at(life.wake_ns), TD_LIFE_START);
	/* It is being replaced, perhaps. */
	CHECK_EQ(step(&input), TD_LIFE_TERMINATE);
	CHECK_EQ(happens(TD_LIFE_CLEARED), TD_LIFE_NOTHING);
	CHECK_EQ(life.state, TD_LIFE_BACKING_OFF);
}

TEST(a_program_whose_reader_is_gone_is_not_started_again)
{
	begin("always", false);
	runs();
	CHECK_EQ(ends(true, SIGPIPE), TD_LIFE_END);
	is_over(true, SIGPIPE);
}

TEST(an_interrupted_program_ends_as_it_likes_and_is_not_started_again)
{
	begin("always", true);
	runs();
	CHECK_EQ(interrupted(SIGINT), TD_LIFE_NOTHING);
	CHECK_EQ(life.state, TD_LIFE_RUNNING);
	CHECK_EQ(ends(false, 4), TD_LIFE_END);
	is_over(false, 4);
}

TEST(an_interruption_while_no_program_runs_ends_the_job_by_that_signal)
{
	begin("always", true);
	runs();
	CHECK_EQ(ends(false, 1), TD_LIFE_TERMINATE);
	CHECK_EQ(interrupted(SIGTERM), TD_LIFE_END);
	is_over(true, SIGTERM);
	begin("always", true);
	runs();
	CHECK_EQ(ends(false, 1), TD_LIFE_TERMINATE);
	happens(TD_LIFE_CLEARED);
	CHECK_EQ(interrupted(SIGINT), TD_LIFE_END);
	is_over(true, SIGINT);
	CHECK_EQ(interrupted(SIGINT), TD_LIFE_NOTHING);
}

TEST(what_a_program_leaves_behind_is_killed_before_the_next_start)
{
	begin("always", false);
	runs();
	CHECK_EQ(ends(false, 1), TD_LIFE_TERMINATE);
	CHECK_EQ(at(now + TD_LIFE_GRACE_NS - 1), TD_LIFE_NOTHING);
	CHECK_EQ(at(now + 1), TD_LIFE_KILL);
	/* It forks faster than it is killed. */
	CHECK_EQ(at(now + 100 * MS), TD_LIFE_KILL);
	CHECK_EQ(happens(TD_LIFE_CLEARED), TD_LIFE_START);
}

TEST(an_order_gives_time_to_leave_then_terminates_then_kills)
{
	begin("no", false);
	runs();
	CHECK_EQ(ordered(TD_LIFE_ORDER_STOP, 5 * S, 2 * S), TD_LIFE_NOTHING);
	CHECK_EQ(life.state, TD_LIFE_STOPPING);
	CHECK_EQ(at(now + 5 * S - 1), TD_LIFE_NOTHING);
	CHECK_EQ(at(now + 1), TD_LIFE_TERMINATE);
	CHECK_EQ(at(now + 2 * S - 1), TD_LIFE_NOTHING);
	CHECK_EQ(at(now + 1), TD_LIFE_KILL);
	CHECK_EQ(ends(true, SIGKILL), TD_LIFE_NOTHING);
	CHECK_EQ(life.state, TD_LIFE_CLEARING);
	CHECK_EQ(happens(TD_LIFE_CLEARED), TD_LIFE_END);
	is_over(true, SIGKILL);
}

TEST(an_order_that_comes_again_only_shortens_its_times)
{
	begin("no", false);
	runs();
	CHECK_EQ(ordered(TD_LIFE_ORDER_STOP, 5 * S, 2 * S), TD_LIFE_NOTHING);
	CHECK_EQ(ordered(TD_LIFE_ORDER_STOP, 50 * S, 2 * S), TD_LIFE_NOTHING);
	CHECK_EQ(life.wake_ns, now + 5 * S);
	CHECK_EQ(ordered(TD_LIFE_ORDER_STOP, 0, 3 * S), TD_LIFE_TERMINATE);
	CHECK_EQ(ordered(TD_LIFE_ORDER_STOP, 0, 9 * S), TD_LIFE_NOTHING);
	CHECK_EQ(life.wake_ns, now + 3 * S);
	CHECK_EQ(ordered(TD_LIFE_ORDER_STOP, 0, S), TD_LIFE_NOTHING);
	CHECK_EQ(life.wake_ns, now + S);
	CHECK_EQ(ordered(TD_LIFE_ORDER_STOP, UINT64_MAX, UINT64_MAX), TD_LIFE_NOTHING);
	CHECK_EQ(life.wake_ns, now + S);
}

TEST(a_program_that_leaves_in_time_gives_the_others_the_rest_of_the_time)
{
	begin("no", false);
	runs();
	CHECK_EQ(ordered(TD_LIFE_ORDER_STOP, 5 * S, 2 * S), TD_LIFE_NOTHING);
	now += S;
	CHECK_EQ(ends(false, 0), TD_LIFE_NOTHING);
	CHECK_EQ(at(now + 4 * S), TD_LIFE_TERMINATE);
	CHECK_EQ(at(now + 2 * S), TD_LIFE_KILL);
	CHECK_EQ(happens(TD_LIFE_CLEARED), TD_LIFE_END);
	is_over(false, 0);
}

TEST(an_order_to_restart_starts_at_once_and_counts_as_no_failure)
{
	begin("on-failure:1", false);
	runs();
	for (int i = 0; i < 5; i++) {
		CHECK_EQ(ordered(TD_LIFE_ORDER_RESTART, 0, S), TD_LIFE_TERMINATE);
		CHECK_EQ(ends(true, SIGTERM), TD_LIFE_NOTHING);
		CHECK_EQ(happens(TD_LIFE_CLEARED), TD_LIFE_START);
		runs();
	}
	CHECK_EQ(life.failures, 0);
	CHECK_EQ(fails_and_starts_again(1), 100 * MS);
}

TEST(a_queued_job_asks_with_growing_delays_until_it_is_admitted)
{
	begin("no", true);
	runs();
	CHECK_EQ(ordered(TD_LIFE_ORDER_REQUEUE, 0, S), TD_LIFE_TERMINATE);
	CHECK_EQ(ends(true, SIGTERM), TD_LIFE_NOTHING);
	CHECK_EQ(happens(TD_LIFE_CLEARED), TD_LIFE_NOTHING);
	CHECK_EQ(life.state, TD_LIFE_QUEUED);
	CHECK_EQ(at(now + S - 1), TD_LIFE_NOTHING);
	CHECK_EQ(at(now + 1), TD_LIFE_ASK);
	CHECK_EQ(at(now + 2 * S - 1), TD_LIFE_NOTHING);
	CHECK_EQ(at(now + 1), TD_LIFE_ASK);
	CHECK_EQ(happens(TD_LIFE_ADMITTED), TD_LIFE_START);
	runs();
	CHECK_EQ(happens(TD_LIFE_ADMITTED), TD_LIFE_NOTHING);
}

TEST(a_job_that_may_not_queue_ends_when_it_is_evicted)
{
	begin("always", false);
	runs();
	CHECK_EQ(ordered(TD_LIFE_ORDER_REQUEUE, 0, S), TD_LIFE_TERMINATE);
	CHECK_EQ(ends(true, SIGTERM), TD_LIFE_NOTHING);
	CHECK_EQ(happens(TD_LIFE_CLEARED), TD_LIFE_END);
	is_over(true, SIGTERM);
}

TEST(orders_while_no_program_runs)
{
	begin("always", true);
	runs();
	ends(false, 1);
	happens(TD_LIFE_CLEARED);
	CHECK_EQ(ordered(TD_LIFE_ORDER_RESTART, 0, S), TD_LIFE_START);
	runs();
	ends(false, 2);
	happens(TD_LIFE_CLEARED);
	CHECK_EQ(ordered(TD_LIFE_ORDER_REQUEUE, 0, S), TD_LIFE_NOTHING);
	CHECK_EQ(life.state, TD_LIFE_QUEUED);
	CHECK_EQ(ordered(TD_LIFE_ORDER_RESTART, 0, S), TD_LIFE_START);
	runs();
	ends(false, 3);
	happens(TD_LIFE_CLEARED);
	CHECK_EQ(ordered(TD_LIFE_ORDER_STOP, 0, S), TD_LIFE_END);
	is_over(false, 3);
	CHECK_EQ(ordered(TD_LIFE_ORDER_RESTART, 0, S), TD_LIFE_NOTHING);
}

TEST(an_order_during_the_start_holds)
{
	begin("always", true);
	CHECK_EQ(ordered(TD_LIFE_ORDER_STOP, 0, S), TD_LIFE_TERMINATE);
	CHECK_EQ(happens(TD_LIFE_STARTED), TD_LIFE_NOTHING);
	CHECK_EQ(life.state, TD_LIFE_STOPPING);
	CHECK_EQ(ends(true, SIGTERM), TD_LIFE_NOTHING);
	CHECK_EQ(happens(TD_LIFE_CLEARED), TD_LIFE_END);
}

TEST(a_user_who_ends_a_job_that_is_restarted_ends_it)
{
	begin("always", true);
	runs();
	CHECK_EQ(ordered(TD_LIFE_ORDER_RESTART, 0, S), TD_LIFE_TERMINATE);
	CHECK_EQ(interrupted(SIGINT), TD_LIFE_NOTHING);
	CHECK_EQ(ends(true, SIGINT), TD_LIFE_END);
	is_over(true, SIGINT);
}

/* Whatever comes in whatever order: a start only where no program is, and nothing after the end. */
TEST(random_events_never_start_a_second_program)
{
	for (unsigned seed = 1; seed <= 2000; seed++) {
		unsigned random = seed;
		int programs = 1;

		begin(seed % 2 ? "always:5/10s" : "on-failure", seed % 3);
		for (int i = 0; i < 200; i++) {
			struct td_life_input input = {.kill_ns = random % 7 * S};
			enum td_life_action action;

			random = random * 1103515245 + 12345;
			input.event = (random >> 16) % TD_LIFE_EVENT_N;
			input.order = 1 + (random >> 20) % (TD_LIFE_ORDER_N - 1);
			input.leave_ns = (random >> 22) % 3 * S;
			input.end = (struct td_life_end){random >> 28 & 1, 1 + (random >> 24) % 9};
			if (input.event == TD_LIFE_INTERRUPTED && random >> 25 & 3)
				continue;
			now += (random >> 18) % 4 * S / 2;
			if (input.event == TD_LIFE_ENDED || input.event == TD_LIFE_UNSTARTED) {
				if (!programs)
					continue;
				programs--;
			}
			action = step(&input);
			CHECK(life.state != TD_LIFE_OVER || action == TD_LIFE_END ||
				action == TD_LIFE_NOTHING);
			if (action == TD_LIFE_START)
				CHECK_EQ(++programs, 1);
			CHECK_EQ(td_life_has_program(&life), programs);
		}
	}
}

/* -- what is typed -- */

static void check_refused(const char *text)
{
	struct td_restart ret = {.most = 77};
	struct td_err err = {0};

	CHECK(td_restart_parse(text, &ret, &err) < 0);
	CHECK(strstr(err.msg, text) && strstr(err.msg, "expected"));
	CHECK_EQ(ret.most, 77);
}

TEST(restart_options_are_read_or_quoted)
{
	struct td_restart ret;

	CHECK_EQ(td_restart_parse("no", &ret, NULL), 0);
	CHECK_EQ(ret.when, TD_RESTART_NEVER);
	CHECK_EQ(td_restart_parse("on-failure", &ret, NULL), 0);
	CHECK(ret.when == TD_RESTART_ON_FAILURE && !ret.most && !ret.window_ns);
	CHECK_EQ(td_restart_parse("always:1000/2m", &ret, NULL), 0);
	CHECK(ret.when == TD_RESTART_ALWAYS && ret.most == 1000 && ret.window_ns == 120 * S);
	CHECK_EQ(td_restart_parse("on-failure:3", &ret, NULL), 0);
	CHECK(ret.most == 3 && !ret.window_ns);
	check_refused("");
	check_refused("never");
	check_refused("no:3");
	check_refused("always:");
	check_refused("always:0");
	check_refused("always:1001");
	check_refused("always:-1");
	check_refused("always:3/");
	check_refused("always:3/0s");
	check_refused("always:3/xs");
	check_refused("always:00000000000000000003");
	check_refused("on-failure ");
}
