/* Jobs are evicted, restarted and shadowed, whoever dies, refuses or is silent meanwhile. */
#include "unit/daemon/action_world.h"

TEST(an_evicted_program_is_told_to_leave_and_drained_before_it_ends)
{
	struct fake *a, *b;

	begin_actions();
	a = runs(0, "a");
	b = runs(1, "b");
	CHECK_EQ(order_by(1000, "a", TD_ACTION_EVICT)->state, TD_ACTION_ASKED);
	step();
	CHECK_EQ(a->leaves, 1);
	CHECK_EQ(a->leave.patience_ns, 5 * S);
	CHECK(a->leave.drains && is_open(a));
	CHECK_STR(td_process_state(a->process), "leaving");
	says_leaving(a, TD_LEAVING_ENDS);
	CHECK_EQ(act_of(a, TD_ACTION_EVICT)->state, TD_ACTION_RUNNING);
	CHECK(!is_open(a) && a->process->phase == TD_PHASE_CLOSED);
	CHECK(is_open(b) && !b->leaves);
	fake_dies(&w, a);
	step();
	CHECK(td_list_empty(&w.node.acts));
	CHECK_EQ(w.events[TD_EVENT_ACTION], 3); /* asked, running, done */
	CHECK(!terms[0] && !kills[0]);
}

TEST(who_asks_again_joins_what_is_under_way)
{
	struct fake *a;
	uint64_t number;

	begin_actions();
	a = runs(0, "a");
	number = order_by(1000, "a", TD_ACTION_EVICT)->number;
	step();
	CHECK_EQ(order_by(0, "a", TD_ACTION_EVICT)->number, number);
	step();
	plans(TD_ACTION_EVICT, a);
	step();
	CHECK_EQ(act_of(a, TD_ACTION_EVICT)->number, number);
	CHECK_EQ(a->leaves, 1);
	CHECK_EQ(w.events[TD_EVENT_ACTION], 1);
}

TEST(who_does_not_end_gets_sigterm_and_sigkill_and_is_given_up)
{
	struct fake *a;

	begin_actions();
	a = runs(0, "a");
	(void)order_by(1000, "a", TD_ACTION_EVICT);
	later(5 * S - 1);
	CHECK(!terms[0]);
	later(1);
	CHECK(terms[0] == 1 && !kills[0]);
	later(5 * S - 1);
	CHECK(terms[0] == 1 && !kills[0]);
	later(1);
	CHECK(terms[0] == 1 && kills[0] == 1);
	CHECK(!td_act_has_ended(act_of(a, TD_ACTION_EVICT)));
	later(10 * S);
	CHECK_EQ(act_of(a, TD_ACTION_EVICT)->state, TD_ACTION_TIMED_OUT);
	CHECK_STR(act_of(a, TD_ACTION_EVICT)->reason, "1 of its processes have not ended");
	/* It is given up: it takes its turns again. */
	CHECK(is_open(a) && !a->process->leave.asked_ns);
	CHECK(terms[0] == 1 && kills[0] == 1);
}

TEST(a_handler_of_its_own_is_called_once_and_keeps_its_turns)
{
	struct fake *a;

	begin_actions();
	a = runs(0, "a");
	(void)order_by(1000, "a", TD_ACTION_EVICT);
	step();
	says_leaving(a, TD_LEAVING_HANDLES);
	CHECK(is_open(a));
	later(5 * S);
	CHECK(is_open(a) && !terms[0]);
	later(5 * S);
	CHECK(!terms[0] && kills[0] == 1);
}

TEST(one_that_ignores_sigterm_is_drained_and_killed)
{
	struct fake *a;

	begin_actions();
	a = runs(0, "a");
	(void)order_by(1000, "a", TD_ACTION_EVICT);
	step();
	says_leaving(a, TD_LEAVING_IGNORES);
	CHECK(!is_open(a));
	later(10 * S);
	CHECK(kills[0] == 1);
}

TEST(a_library_that_cannot_leave_gets_sigterm_at_once)
{
	struct fake *a;

	begin_actions();
	a = runs(0, "a");
	a->process->can = 0;
	(void)order_by(1000, "a", TD_ACTION_EVICT);
	step();
	CHECK(!a->leaves && terms[0] == 1);
	later(10 * S);
	CHECK(terms[0] == 1 && kills[0] == 1);
}

TEST(what_the_daemon_may_not_end_is_refused_unless_it_leaves_by_itself)
{
	struct fake *a;

	begin_actions();
	w.node.owner = 7;
	a = runs(0, "a");
	a->process->can = 0;
	CHECK_EQ(order_by(1000, "a", TD_ACTION_EVICT)->state, TD_ACTION_REFUSED);
	CHECK_STR(act_of(a, TD_ACTION_EVICT)->reason,
		"tandemd runs as user 7 and may not end process 100 of user 1000");
	a->process->can = TD_CAN_LEAVE;
	CHECK_EQ(order_by(1000, "a", TD_ACTION_EVICT)->state, TD_ACTION_ASKED);
	later(10 * S);
	CHECK(!terms[0] && !kills[0]);
	later(10 * S);
	CHECK_EQ(act_of(a, TD_ACTION_EVICT)->state, TD_ACTION_TIMED_OUT);
	CHECK(strstr(act_of(a, TD_ACTION_EVICT)->reason, "process 100 cannot be ended"));
}

TEST(whoever_joins_a_job_that_is_evicted_is_told_too)
{
	struct fake *a, *b;

	begin_actions();
	a = runs(0, "a");
	(void)order_by(1000, "a", TD_ACTION_EVICT);
	step();
	b = program(1, "a", MIB);
	b->process->can = TD_CAN_LEAVE;
	step();
	CHECK(a->leaves == 1 && b->leaves == 1);
	fake_dies(&w, a);
	step();
	CHECK_EQ(act_of(b, TD_ACTION_EVICT)->state, TD_ACTION_ASKED);
	fake_dies(&w, b);
	step();
	CHECK(td_list_empty(&w.node.acts));
}

TEST(a_supervisor_hears_of_it_before_the_programs_do)
{
	struct fake *a, *s;
	uint64_t number;

	begin_actions();
	s = supervised("a", 3);
	a = runs(0, "a");
	number = order_by(1000, "a", TD_ACTION_EVICT)->number;
	step();
	CHECK(s->orders == 1 && !a->leaves);
	CHECK_EQ(s->order.number, number);
	CHECK_EQ(s->order.kind, TD_ORDER_STOP);
	CHECK_EQ(s->order.epoch, 3);
	CHECK_EQ(s->order.leave_ns, 10 * S);
	CHECK_EQ(s->order.kill_ns, 5 * S);
	CHECK_EQ(s->order.requeue, 1);
	ordered(number, TD_ORDERED_RUNNING, "");
	CHECK_EQ(a->leaves, 1);
	fake_dies(&w, a);
	step();
	/* Nothing of it is on a GPU: the supervisor need not wait. */
	CHECK(s->orders == 2 && s->order.number == number && !s->order.leave_ns);
	CHECK(!td_list_empty(&w.node.acts));
	ordered(number, TD_ORDERED_DONE, "");
	CHECK(td_list_empty(&w.node.acts));
	CHECK_EQ(s->orders, 2);
}

TEST(a_supervisor_that_says_done_keeps_no_program)
{
	struct fake *a;
	uint64_t number;

	begin_actions();
	(void)supervised("a", 1);
	a = runs(0, "a");
	number = order_by(0, "a", TD_ACTION_EVICT)->number;
	step();
	ordered(number, TD_ORDERED_DONE, "");
	CHECK_EQ(a->leaves, 1);
	later(5 * S);
	CHECK_EQ(terms[0], 1);
	later(5 * S);
	CHECK_EQ(kills[0], 1);
	fake_dies(&w, a);
	step();
	CHECK(td_list_empty(&w.node.acts));
}

TEST(a_restarted_program_is_not_told_to_leave)
{
	struct fake *a, *b, *s;
	uint64_t number;

	begin_actions();
	s = supervised("a", 1);
	a = runs(0, "a");
	number = order_by(1000, "a", TD_ACTION_RESTART)->number;
	CHECK_EQ(s->order.kind, TD_ORDER_RESTART);
	ordered(number, TD_ORDERED_RUNNING, "");
	CHECK_EQ(a->leaves, 1);
	/* The new one is there before the end of the old one is noticed. */
	b = program(1, "a", MIB);
	b->process->can = TD_CAN_LEAVE;
	step();
	CHECK(!b->leaves);
	fake_dies(&w, a);
	step();
	CHECK(!b->leaves && s->orders == 2);
	(void)supervised("a", 2);
	ordered(number, TD_ORDERED_DONE, "");
	CHECK(td_list_empty(&w.node.acts) && !b->leaves && !terms[1]);
}

TEST(without_a_supervisor_nothing_is_restarted_nor_shadowed)
{
	struct fake *a;

	begin_actions();
	a = runs(0, "a");
	CHECK_EQ(order_by(1000, "a", TD_ACTION_RESTART)->state, TD_ACTION_REFUSED);
	CHECK(strstr(act_of(a, TD_ACTION_RESTART)->reason, "tandem run --restart"));
	plans(TD_ACTION_START_SHADOW, a);
	step();
	CHECK_EQ(act_of(a, TD_ACTION_START_SHADOW)->state, TD_ACTION_REFUSED);
	CHECK(!a->leaves && is_open(a));
	(void)supervised("a", 1);
	supervisor->can = 0;
	CHECK_EQ(order_by(1000, "a", TD_ACTION_RESTART)->state, TD_ACTION_REFUSED);
	CHECK(!w.fakes[SUPERVISOR].orders);
}

TEST(a_shadow_is_the_supervisors_to_start)
{
	struct fake *a, *s;
	uint64_t number;

	begin_actions();
	s = supervised("a", 1);
	a = runs(0, "a");
	plans(TD_ACTION_START_SHADOW, a);
	step();
	number = act_of(a, TD_ACTION_START_SHADOW)->number;
	CHECK(s->orders == 1 && s->order.kind == TD_ORDER_SHADOW && s->order.number == number);
	ordered(number, TD_ORDERED_RUNNING, "");
	later(60 * S);
	CHECK(!a->leaves && !terms[0] && is_open(a));
	planned_count = 0;
	ordered(number, TD_ORDERED_DONE, "");
	CHECK(td_list_empty(&w.node.acts));
}

static struct td_act *order_share(void)
{
	struct td_act *acts[TD_ACTS_MAX];
	uint32_t count;

	CHECK_EQ(td_actions_order(&w.node, td_identity_local(1000), "a", TD_ACTION_START_SHADOW,
			 "40%", w.now, acts, &count, NULL),
		0);
	return acts[0];
}

TEST(a_shadow_is_refused_where_a_share_has_no_effect)
{
	struct fake *a, *s;

	begin_actions();
	s = supervised("a", 1);
	a = runs(0, "a");
	w.node.gpu_views[0].mps = TD_MPS_OFF;
	CHECK(order_share()->state == TD_ACTION_REFUSED && !s->orders);
	CHECK(strstr(act_of(a, TD_ACTION_START_SHADOW)->reason, "MPS, which is off on GPU 0"));
	w.node.gpu_views[0].mps = TD_MPS_FAILED;
	CHECK(order_share()->state == TD_ACTION_REFUSED && !s->orders);
	w.node.gpu_views[0].mps = TD_MPS_ON;
	CHECK(order_share()->state == TD_ACTION_ASKED && s->orders == 1);
}

TEST(a_share_asked_for_by_hand_reaches_the_supervisor)
{
	struct td_act *acts[TD_ACTS_MAX];
	struct td_err err = {0};
	struct fake *s;
	uint32_t count;

	begin_actions();
	s = supervised("a", 1);
	(void)runs(0, "a");
	CHECK_EQ(td_actions_order(&w.node, td_identity_local(1000), "a", TD_ACTION_START_SHADOW,
			 "0%", w.now, acts, &count, &err),
		-ERANGE);
	CHECK(strstr(err.msg, "\"0%\"") && !s->orders);
	CHECK_EQ(td_actions_order(&w.node, td_identity_local(1000), "a", TD_ACTION_START_SHADOW,
			 "40%", w.now, acts, &count, &err),
		0);
	CHECK(s->orders == 1 && s->order.sm_share_ppm == 400000);
	CHECK(s->order.kill_ns == w.node.options.evict_deadline_ns);
	ordered(acts[0]->number, TD_ORDERED_REFUSED, "the second instance has ended");
	CHECK(strstr(act_of(&w.fakes[0], TD_ACTION_START_SHADOW)->reason, "second instance"));
}

TEST(the_instance_that_the_supervisor_names_answers_and_the_others_stand_by)
{
	struct td_msg_supervise msg = {.epoch = 1, .can = TD_SUPERVISOR_ALL, .job = "a"};
	struct fake *a, *b;

	begin_actions();
	(void)supervised("a", 1);
	a = runs(0, "a");
	b = runs(1, "a");
	a->process->instance = 1;
	b->process->instance = 2;
	for (msg.instance = 0; msg.instance < 3; msg.instance++) {
		CHECK_EQ(td_supervisors_say(&w.node, &supervisor, &w.fakes[SUPERVISOR],
				 supervisor_pid, td_identity_local(1000), &msg, w.now, NULL),
			0);
		step();
		CHECK_EQ(w.node.views[0].stands_by, msg.instance == 2);
		CHECK_EQ(w.node.views[1].stands_by, msg.instance == 1);
	}
	CHECK_EQ(a->process->job->restarts, 0);
}

TEST(a_silent_supervisor_is_passed_by)
{
	struct fake *a, *s;

	begin_actions();
	s = supervised("a", 1);
	a = runs(0, "a");
	(void)order_by(1000, "a", TD_ACTION_RESTART);
	later(TD_ORDER_ANSWER_NS - 1);
	CHECK_EQ(act_of(a, TD_ACTION_RESTART)->state, TD_ACTION_ASKED);
	later(1);
	CHECK_EQ(act_of(a, TD_ACTION_RESTART)->state, TD_ACTION_TIMED_OUT);
	CHECK(!a->leaves && is_open(a));
	(void)order_by(1000, "a", TD_ACTION_EVICT);
	later(TD_ORDER_ANSWER_NS);
	CHECK(a->leaves == 1 && s->orders == 2);
	fake_dies(&w, a);
	step();
	CHECK(td_list_empty(&w.node.acts));
}

TEST(time_to_leave_begins_when_a_program_is_told)
{
	struct fake *a;
	uint64_t number;

	begin_actions();
	(void)supervised("a", 1);
	a = runs(0, "a");
	number = order_by(1000, "a", TD_ACTION_EVICT)->number;
	later(4 * S);
	ordered(number, TD_ORDERED_RUNNING, "");
	CHECK(a->leaves == 1 && a->leave.patience_ns == 5 * S);
	later(5 * S - 1);
	CHECK(!terms[0]);
	later(1);
	CHECK(terms[0] == 1 && !kills[0]);
	later(5 * S);
	CHECK_EQ(kills[0], 1);
}

TEST(a_supervisor_that_refuses_says_why)
{
	struct fake *a;
	uint64_t number;

	begin_actions();
	(void)supervised("a", 1);
	a = runs(0, "a");
	number = order_by(1000, "a", TD_ACTION_RESTART)->number;
	ordered(number, TD_ORDERED_REFUSED, "its bound of 3 is reached\n");
	CHECK_EQ(act_of(a, TD_ACTION_RESTART)->state, TD_ACTION_REFUSED);
	CHECK(strstr(act_of(a, TD_ACTION_RESTART)->reason, "its bound of 3 is reached"));
	CHECK(!strchr(act_of(a, TD_ACTION_RESTART)->reason, '\n'));
	CHECK(!a->leaves);
	/* To end it nobody else is needed. */
	number = order_by(1000, "a", TD_ACTION_EVICT)->number;
	ordered(number, TD_ORDERED_REFUSED, "no");
	CHECK_EQ(a->leaves, 1);
	CHECK(!td_act_has_ended(act_of(a, TD_ACTION_EVICT)));
}

TEST(a_supervisor_that_comes_again_gets_the_same_order)
{
	struct fake *a, *s;
	uint64_t number;

	begin_actions();
	s = supervised("a", 1);
	a = runs(0, "a");
	number = order_by(1000, "a", TD_ACTION_RESTART)->number;
	step();
	supervisor_dies();
	later(S);
	CHECK_EQ(s->orders, 1);
	(void)supervised("a", 1);
	step();
	CHECK(s->orders == 2 && s->order.number == number && s->order.leave_ns == 9 * S);
	ordered(number, TD_ORDERED_RUNNING, "");
	CHECK_EQ(a->leaves, 1);
	/* And in the middle of it. */
	supervisor_dies();
	fake_dies(&w, a);
	step();
	(void)supervised("a", 2);
	step();
	CHECK(s->orders == 3 && s->order.number == number);
	ordered(number, TD_ORDERED_DONE, "");
	CHECK(td_list_empty(&w.node.acts));
}

TEST(a_new_job_of_the_same_name_does_not_inherit_an_order)
{
	struct fake *a, *b, *s;

	begin_actions();
	s = supervised("a", 1);
	a = runs(0, "a");
	ordered(order_by(1000, "a", TD_ACTION_EVICT)->number, TD_ORDERED_RUNNING, "");
	supervisor_dies();
	fake_dies(&w, a);
	step();
	supervisor_pid++;
	(void)supervised("a", 1);
	b = runs(1, "a");
	CHECK_EQ(s->orders, 1);
	later(3 * S);
	CHECK(td_list_empty(&w.node.acts));
	CHECK(s->orders == 1 && !b->leaves && is_open(b));
}

TEST(a_supervisor_that_has_ended_restarts_nothing)
{
	struct fake *a, *b;

	begin_actions();
	(void)supervised("a", 1);
	a = runs(0, "a");
	(void)order_by(1000, "a", TD_ACTION_RESTART);
	step();
	supervisor_dies();
	later(3 * S);
	CHECK_EQ(act_of(a, TD_ACTION_RESTART)->state, TD_ACTION_REFUSED);
	CHECK_STR(act_of(a, TD_ACTION_RESTART)->reason, "its supervisor has ended");
	/* But what was to end ends. */
	(void)supervised("b", 1);
	b = runs(1, "b");
	ordered(order_by(1000, "b", TD_ACTION_EVICT)->number, TD_ORDERED_RUNNING, "");
	CHECK_EQ(b->leaves, 1);
	supervisor_dies();
	later(3 * S);
	later(2 * S);
	CHECK_EQ(terms[1], 1);
	fake_dies(&w, b);
	step();
	CHECK(td_list_empty(&w.node.acts) ||
		act_of(a, TD_ACTION_RESTART)->of_node.next == &w.node.acts);
}

TEST(an_eviction_takes_the_place_of_a_restart)
{
	struct fake *a, *s;
	uint64_t restart, evict;

	begin_actions();
	s = supervised("a", 1);
	a = runs(0, "a");
	restart = order_by(1000, "a", TD_ACTION_RESTART)->number;
	ordered(restart, TD_ORDERED_RUNNING, "");
	evict = order_by(1000, "a", TD_ACTION_EVICT)->number;
	CHECK(evict > restart && s->order.number == evict && s->order.kind == TD_ORDER_STOP);
	CHECK_EQ(act_of(a, TD_ACTION_RESTART)->state, TD_ACTION_REFUSED);
	/* Not the other way round. */
	step();
	CHECK_EQ(order_by(1000, "a", TD_ACTION_RESTART)->state, TD_ACTION_REFUSED);
	/* A report of the supervisor about the old order is no news. */
	ordered(restart, TD_ORDERED_REFUSED, "another order came");
	ordered(evict, TD_ORDERED_RUNNING, "");
	CHECK_EQ(a->leaves, 1);
	fake_dies(&w, a);
	step();
	ordered(evict, TD_ORDERED_DONE, "");
	CHECK(td_list_empty(&w.node.acts));
}

TEST(numbers_rise_whatever_the_time)
{
	uint64_t first, second;

	begin_actions();
	(void)runs(0, "a");
	(void)runs(1, "b");
	first = order_by(1000, "a", TD_ACTION_EVICT)->number;
	second = order_by(1000, "b", TD_ACTION_EVICT)->number;
	CHECK(first >= w.now && second > first);
}

TEST(an_answer_to_nothing_is_no_news)
{
	struct fake *a;
	struct td_msg msg = {.type = TD_MSG_TYPE_leaving};

	begin_actions();
	(void)supervised("a", 1);
	a = runs(0, "a");
	ordered(5, TD_ORDERED_DONE, "");
	CHECK(is_open(a));
	CHECK_EQ(say(&w, a, &msg), -EPROTO);
	ordered(order_by(1000, "a", TD_ACTION_EVICT)->number, TD_ORDERED_RUNNING, "");
	CHECK_EQ(a->leaves, 1);
	msg.leaving.how = TD_LEAVING_N;
	CHECK_EQ(say(&w, a, &msg), -EPROTO);
	CHECK(!a->process->leave.answered);
}

TEST(a_supervisor_answers_for_its_own_orders_only)
{
	struct td_supervisor *first;
	struct fake *a;
	uint64_t number;

	begin_actions();
	(void)supervised("a", 1);
	first = supervisor;
	a = runs(0, "a");
	number = order_by(1000, "a", TD_ACTION_EVICT)->number;
	supervisor = NULL;
	(void)supervised("b", 1);
	ordered(number, TD_ORDERED_RUNNING, "");
	CHECK(!a->leaves);
	supervisor = first;
	ordered(number, TD_ORDERED_RUNNING, "");
	CHECK_EQ(a->leaves, 1);
}

TEST(a_supervisor_can_end_what_the_daemon_may_not)
{
	struct fake *a;

	begin_actions();
	w.node.owner = 7;
	(void)supervised("a", 1);
	a = runs(0, "a");
	a->process->can = 0;
	ordered(order_by(1000, "a", TD_ACTION_EVICT)->number, TD_ORDERED_RUNNING, "");
	CHECK(!td_act_has_ended(act_of(a, TD_ACTION_EVICT)) && !terms[0]);
}

TEST(a_gate_that_was_closed_for_an_end_that_does_not_come_opens_again)
{
	struct fake *a;

	begin_actions();
	w.node.owner = 7;
	a = runs(0, "a");
	(void)order_by(1000, "a", TD_ACTION_EVICT);
	step();
	says_leaving(a, TD_LEAVING_ENDS);
	CHECK(!is_open(a));
	later(10 * S);
	CHECK(!is_open(a));
	later(10 * S);
	CHECK_EQ(act_of(a, TD_ACTION_EVICT)->state, TD_ACTION_TIMED_OUT);
	CHECK(is_open(a));
}
