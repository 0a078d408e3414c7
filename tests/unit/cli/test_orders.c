/* Orders of the daemon: each is carried out once, whoever sends it how often. */
#include "base/time.h"
#include "cli/supervise/orders.h"
#include "test.h"

static struct td_life life;
static struct td_shadow shadow;
static struct td_orders orders;
static struct td_msg answers[TD_ORDERS_ANSWERS];
static struct td_life_input input;
static unsigned count;

static void begin(bool may_queue)
{
	memset(&orders, 0, sizeof(orders));
	shadow = (struct td_shadow)TD_SHADOW_INIT;
	(void)td_life_begin(&life, &(struct td_restart){0}, may_queue);
	(void)td_life_step(&life, &(struct td_life_input){.event = TD_LIFE_STARTED}, 1);
}

static enum td_orders_for who;

static bool takes(uint64_t number, enum td_order_kind kind, uint32_t epoch, bool requeue)
{
	struct td_msg_order msg = {.number = number,
		.kind = (uint8_t)kind,
		.epoch = epoch,
		.leave_ns = 5,
		.kill_ns = 7,
		.requeue = requeue};

	who = td_orders_take(&orders, &msg, &life, &shadow, &input, answers, &count);
	return who == TD_ORDERS_LIFE;
}

static void check_answer(unsigned i, uint64_t number, enum td_ordered result)
{
	CHECK(i < count);
	CHECK_EQ(answers[i].type, TD_MSG_TYPE_ordered);
	CHECK_EQ(answers[i].ordered.number, number);
	CHECK_EQ(answers[i].ordered.result, result);
	CHECK_EQ(!!*answers[i].ordered.reason, result == TD_ORDERED_REFUSED);
}

static bool ends(void)
{
	count = td_orders_end(&orders, &life, &shadow, answers);
	return count;
}

static enum td_life_action step(enum td_life_event event)
{
	return td_life_step(&life, &(struct td_life_input){.event = event}, 2);
}

TEST(a_new_order_is_carried_out_and_answered)
{
	begin(true);
	CHECK(takes(10, TD_ORDER_STOP, 1, false));
	CHECK_EQ(input.order, TD_LIFE_ORDER_STOP);
	CHECK(input.leave_ns == 5 && input.kill_ns == 7);
	CHECK_EQ(count, 1);
	check_answer(0, 10, TD_ORDERED_RUNNING);
	CHECK(!ends());
	(void)td_life_step(&life, &input, 2);
	(void)step(TD_LIFE_ENDED);
	CHECK(!ends());
	CHECK_EQ(step(TD_LIFE_CLEARED), TD_LIFE_END);
	CHECK(ends());
	check_answer(0, 10, TD_ORDERED_DONE);
	CHECK(!ends());
}

TEST(an_order_to_queue_needs_a_job_that_may)
{
	begin(true);
	CHECK(takes(10, TD_ORDER_STOP, 1, true));
	CHECK_EQ(input.order, TD_LIFE_ORDER_REQUEUE);
	(void)td_life_step(&life, &input, 2);
	(void)step(TD_LIFE_ENDED);
	(void)step(TD_LIFE_CLEARED);
	CHECK(ends());
	check_answer(0, 10, TD_ORDERED_DONE);
	begin(false);
	CHECK(takes(10, TD_ORDER_STOP, 1, true));
	CHECK_EQ(input.order, TD_LIFE_ORDER_STOP);
}

TEST(a_restart_is_done_when_the_new_program_runs)
{
	begin(false);
	CHECK(takes(10, TD_ORDER_RESTART, 1, false));
	(void)td_life_step(&life, &input, 2);
	(void)step(TD_LIFE_ENDED);
	CHECK_EQ(step(TD_LIFE_CLEARED), TD_LIFE_START);
	CHECK(!ends());
	(void)step(TD_LIFE_STARTED);
	CHECK(ends());
	check_answer(0, 10, TD_ORDERED_DONE);
	/* Asked again, it says so again and does nothing. */
	CHECK(!takes(10, TD_ORDER_RESTART, 1, false));
	check_answer(0, 10, TD_ORDERED_DONE);
}

TEST(a_restart_of_a_job_that_the_user_ends_is_refused_in_the_end)
{
	begin(false);
	CHECK(takes(10, TD_ORDER_RESTART, 1, false));
	(void)td_life_step(&life, &input, 2);
	(void)step(TD_LIFE_INTERRUPTED);
	(void)step(TD_LIFE_ENDED);
	CHECK(ends());
	check_answer(0, 10, TD_ORDERED_REFUSED);
}

TEST(an_order_about_an_earlier_start_is_refused)
{
	begin(false);
	CHECK(!takes(10, TD_ORDER_RESTART, 0, false));
	check_answer(0, 10, TD_ORDERED_REFUSED);
	CHECK(!takes(11, TD_ORDER_RESTART, 2, false));
	check_answer(0, 11, TD_ORDERED_REFUSED);
	CHECK(!ends());
}

TEST(an_equal_number_is_answered_again_and_may_shorten_times)
{
	begin(false);
	CHECK(takes(10, TD_ORDER_STOP, 1, false));
	(void)td_life_step(&life, &input, 2);
	CHECK(takes(10, TD_ORDER_RESTART, 1, false));
	/* Its kind does not change. */
	CHECK_EQ(input.order, TD_LIFE_ORDER_STOP);
	CHECK_EQ(count, 1);
	check_answer(0, 10, TD_ORDERED_RUNNING);
}

TEST(an_order_that_is_repeated_after_the_end_of_its_program_leaves_the_new_one_alone)
{
	begin(false);
	CHECK(takes(10, TD_ORDER_RESTART, 1, false));
	(void)td_life_step(&life, &input, 2);
	(void)step(TD_LIFE_ENDED);
	CHECK_EQ(step(TD_LIFE_CLEARED), TD_LIFE_START);
	CHECK_EQ(life.state, TD_LIFE_STARTING);
	/* The daemon has seen the end, too, and does not know yet that a new one starts. */
	CHECK(!takes(10, TD_ORDER_RESTART, 1, false));
	check_answer(0, 10, TD_ORDERED_RUNNING);
	(void)step(TD_LIFE_STARTED);
	CHECK(ends());
	check_answer(0, 10, TD_ORDERED_DONE);
}

TEST(a_lower_number_is_refused_and_a_higher_one_takes_its_place)
{
	begin(false);
	CHECK(takes(10, TD_ORDER_STOP, 1, false));
	(void)td_life_step(&life, &input, 2);
	CHECK(!takes(9, TD_ORDER_STOP, 1, false));
	check_answer(0, 9, TD_ORDERED_REFUSED);
	CHECK(takes(11, TD_ORDER_RESTART, 1, false));
	CHECK_EQ(count, 2);
	check_answer(0, 10, TD_ORDERED_REFUSED);
	check_answer(1, 11, TD_ORDERED_RUNNING);
	(void)td_life_step(&life, &input, 2);
	(void)step(TD_LIFE_ENDED);
	CHECK_EQ(step(TD_LIFE_CLEARED), TD_LIFE_START);
}

TEST(orders_that_cannot_be_carried_out_are_refused)
{
	begin(false);
	CHECK(!takes(10, TD_ORDER_SHADOW, 1, false));
	check_answer(0, 10, TD_ORDERED_REFUSED);
	CHECK(!takes(11, TD_ORDER_N, 1, false));
	check_answer(0, 11, TD_ORDERED_REFUSED);
	(void)step(TD_LIFE_INTERRUPTED);
	CHECK(!takes(12, TD_ORDER_RESTART, 1, false));
	check_answer(0, 12, TD_ORDERED_REFUSED);
	(void)step(TD_LIFE_ENDED);
	CHECK(!takes(13, TD_ORDER_STOP, 1, false));
	check_answer(0, 13, TD_ORDERED_REFUSED);
}

static enum td_shadow_action shadow_step(enum td_shadow_event event)
{
	const struct td_shadow_input in = {.event = event, .kill_ns = 5, .reason = "exit status 1"};

	return td_shadow_step(&shadow, &in, 3);
}

TEST(an_order_for_a_shadow_ends_with_the_shadow)
{
	begin(false);
	orders.may_shadow = true;
	CHECK(!takes(10, TD_ORDER_SHADOW, 1, false));
	CHECK_EQ(who, TD_ORDERS_SHADOW);
	check_answer(0, 10, TD_ORDERED_RUNNING);
	(void)shadow_step(TD_SHADOW_ORDERED);
	CHECK(!ends());
	CHECK(!takes(10, TD_ORDER_SHADOW, 1, false));
	CHECK_EQ(who, TD_ORDERS_NOBODY);
	(void)shadow_step(TD_SHADOW_READY);
	CHECK(!ends());
	(void)shadow_step(TD_SHADOW_ENDED);
	CHECK(ends());
	check_answer(0, 10, TD_ORDERED_DONE);
}

TEST(a_shadow_that_fails_is_answered_with_its_reason)
{
	begin(false);
	orders.may_shadow = true;
	(void)takes(20, TD_ORDER_SHADOW, 1, false);
	(void)shadow_step(TD_SHADOW_ORDERED);
	(void)shadow_step(TD_SHADOW_ENDED);
	CHECK(ends());
	check_answer(0, 20, TD_ORDERED_REFUSED);
	CHECK(strstr(answers[0].ordered.reason, "exit status 1"));
}

TEST(a_second_order_for_a_shadow_is_refused_and_an_order_to_stop_is_not)
{
	begin(false);
	orders.may_shadow = true;
	(void)takes(10, TD_ORDER_SHADOW, 1, false);
	(void)shadow_step(TD_SHADOW_ORDERED);
	CHECK(!takes(11, TD_ORDER_SHADOW, 1, false));
	CHECK_EQ(who, TD_ORDERS_NOBODY);
	check_answer(1, 11, TD_ORDERED_REFUSED);
	CHECK(takes(12, TD_ORDER_STOP, 1, false));
	check_answer(0, 12, TD_ORDERED_RUNNING);
}

TEST(nothing_is_shadowed_that_may_not_be_or_does_not_run)
{
	begin(false);
	CHECK(!takes(10, TD_ORDER_SHADOW, 1, false));
	check_answer(0, 10, TD_ORDERED_REFUSED);
	begin(false);
	orders.may_shadow = true;
	(void)step(TD_LIFE_ENDED);
	CHECK(!takes(10, TD_ORDER_SHADOW, 1, false));
	CHECK_EQ(who, TD_ORDERS_NOBODY);
	check_answer(0, 10, TD_ORDERED_REFUSED);
}
