/* Actions of plans and people: who may ask, what is remembered, and how long. */
#include "unit/daemon/action_world.h"

TEST(nobody_evicts_jobs_of_another_user)
{
	struct td_act *acts[TD_ACTS_MAX];
	struct td_err err = {0}, unknown = {0};
	uint32_t count = 0;
	struct fake *a;

	begin_actions();
	a = runs(0, "a");
	CHECK_EQ(td_actions_order(&w.node, td_identity_local(1001), "a", TD_ACTION_EVICT, "", w.now,
			 acts, &count, &err),
		-ENOENT);
	/* As if it was not there. */
	CHECK_EQ(td_actions_order(&w.node, td_identity_local(1001), "b", TD_ACTION_EVICT, "", w.now,
			 acts, &count, &unknown),
		-ENOENT);
	*strchr(err.msg, '"') = *strchr(unknown.msg, '"') = ' ';
	CHECK_EQ(strlen(err.msg), strlen(unknown.msg));
	step();
	CHECK(!a->leaves && !w.events[TD_EVENT_ACTION]);
	CHECK_EQ(order_by(0, "a", TD_ACTION_EVICT)->state, TD_ACTION_ASKED);
}

TEST(a_name_means_each_job_of_that_name)
{
	struct td_act *acts[TD_ACTS_MAX];
	uint32_t count = 0;
	struct fake *a, *b;

	begin_actions();
	a = runs(0, "a");
	b = runs(1, "b");
	snprintf(a->process->name, sizeof(a->process->name), "train");
	snprintf(b->process->name, sizeof(b->process->name), "train");
	CHECK_EQ(td_actions_order(&w.node, td_identity_local(1000), "train", TD_ACTION_EVICT, "",
			 w.now, acts, &count, NULL),
		0);
	CHECK_EQ(count, 2);
	CHECK_STR(acts[0]->job, "a");
	CHECK_STR(acts[1]->job, "b");
	step();
	CHECK(a->leaves == 1 && b->leaves == 1);
}

TEST(what_cannot_be_asked_for_by_hand_is_said)
{
	struct td_act *acts[TD_ACTS_MAX];
	struct td_err err = {0};
	uint32_t count = 0;

	begin_actions();
	(void)runs(0, "a");
	CHECK_EQ(td_actions_order(&w.node, td_identity_local(1000), "a", TD_ACTION_MAKE_ROOM, "",
			 w.now, acts, &count, &err),
		-EINVAL);
	CHECK(strstr(err.msg, "expected evict"));
}

TEST(a_user_pauses_and_resumes_and_the_policy_does_not_undo_that)
{
	struct fake *a;

	begin_actions();
	a = runs(0, "a");
	CHECK_EQ(order_by(1000, "a", TD_ACTION_PAUSE)->state, TD_ACTION_DONE);
	step();
	CHECK(!is_open(a));
	plans(TD_ACTION_RESUME, a);
	step();
	CHECK(!is_open(a));
	planned_count = 0;
	CHECK_EQ(order_by(1000, "a", TD_ACTION_RESUME)->state, TD_ACTION_DONE);
	step();
	CHECK(is_open(a) && td_list_empty(&w.node.acts));
}

TEST(a_policy_pauses_and_resumes)
{
	struct fake *a;

	begin_actions();
	a = runs(0, "a");
	a->slow = true;
	plans(TD_ACTION_PAUSE, a);
	step();
	CHECK(!is_open(a));
	CHECK_STR(td_process_state(a->process), "paused");
	CHECK_EQ(act_of(a, TD_ACTION_PAUSE)->state, TD_ACTION_RUNNING);
	a->slow = false;
	step();
	CHECK_EQ(act_of(a, TD_ACTION_PAUSE)->state, TD_ACTION_DONE);
	/* Until it says so. */
	planned_count = 0;
	step();
	CHECK(!is_open(a));
	plans(TD_ACTION_RESUME, a);
	step();
	CHECK(is_open(a));
}

TEST(another_policy_knows_nothing_of_the_pauses_of_the_one_before)
{
	struct fake *a;

	begin_actions();
	a = runs(0, "a");
	plans(TD_ACTION_PAUSE, a);
	step();
	CHECK(!is_open(a));
	w.node.options.policy = td_policy_find("timeshare");
	td_node_options_changed(&w.node, w.now, "policy");
	step();
	CHECK(is_open(a));
}

TEST(a_policy_evicts_besteffort_jobs_only)
{
	struct fake *a, *b;

	begin_actions();
	a = runs(0, "a");
	b = runs(1, "b");
	CHECK_EQ(td_node_set_job(
			 &w.node, td_identity_local(1000), "b", "class", "guaranteed", w.now, NULL),
		0);
	plans(TD_ACTION_EVICT, a);
	plans(TD_ACTION_EVICT, b);
	step();
	CHECK(a->leaves == 1 && !b->leaves);
	CHECK_EQ(act_of(b, TD_ACTION_EVICT)->state, TD_ACTION_REFUSED);
	/* Its user may. */
	CHECK_EQ(order_by(1000, "b", TD_ACTION_EVICT)->state, TD_ACTION_ASKED);
}

TEST(a_refusal_is_remembered_for_a_while)
{
	struct fake *a;
	uint64_t number;

	begin_actions();
	a = runs(0, "a");
	plans(TD_ACTION_MIGRATE, a);
	step();
	number = act_of(a, TD_ACTION_MIGRATE)->number;
	CHECK_EQ(act_of(a, TD_ACTION_MIGRATE)->state, TD_ACTION_REFUSED);
	CHECK(*act_of(a, TD_ACTION_MIGRATE)->reason);
	later(TD_MOVE_REFUSAL_NS - 1);
	CHECK_EQ(act_of(a, TD_ACTION_MIGRATE)->number, number);
	CHECK_EQ(w.events[TD_EVENT_ACTION], 1);
	later(1);
	CHECK(act_of(a, TD_ACTION_MIGRATE)->number > number);
	CHECK_EQ(w.events[TD_EVENT_ACTION], 2);
	/* It is not remembered for longer than its subject lives either. */
	planned_count = 0;
	fake_dies(&w, a);
	step();
	CHECK(td_list_empty(&w.node.acts));
}

TEST(memory_leaves_an_open_gate_where_a_program_can_do_with_less)
{
	static struct td_policy spills;
	struct fake *a;

	begin_actions();
	a = runs(0, "a");
	plans(TD_ACTION_MAKE_ROOM, a);
	step();
	CHECK_EQ(act_of(a, TD_ACTION_MAKE_ROOM)->state, TD_ACTION_REFUSED);
	begin_actions();
	a = spilling_program(0, "a", MIB);
	spills = planner;
	spills.needs = TD_HAS(HOST_MEMORY);
	w.node.options.policy = &spills;
	td_node_options_changed(&w.node, w.now, "policy");
	step();
	plans(TD_ACTION_MAKE_ROOM, a);
	step();
	CHECK_EQ(act_of(a, TD_ACTION_MAKE_ROOM)->state, TD_ACTION_RUNNING);
	planned_count = 0;
	step();
	CHECK(td_list_empty(&w.node.acts));
	CHECK(!w.events[TD_EVENT_ACTION]);
}

TEST(an_action_of_nobody_is_ignored)
{
	struct fake *a;

	begin_actions();
	a = runs(0, "a");
	planned[planned_count++] = (struct td_action){.kind = TD_ACTION_EVICT, .client = 999};
	plans(TD_ACTION_N, a);
	step();
	CHECK(td_list_empty(&w.node.acts));
}

static unsigned told;
static enum td_action_state last_told;

static void count_acted(void *arg, const struct td_act *act)
{
	(void)arg;
	told++;
	last_told = act->state;
}

TEST(who_waits_is_told_of_each_state)
{
	struct fake *a;

	begin_actions();
	told = 0;
	w.node.io.acted = count_acted;
	a = runs(0, "a");
	(void)order_by(1000, "a", TD_ACTION_EVICT);
	CHECK(told == 1 && last_told == TD_ACTION_ASKED);
	step();
	says_leaving(a, TD_LEAVING_ENDS);
	CHECK(told == 2 && last_told == TD_ACTION_RUNNING);
	fake_dies(&w, a);
	step();
	CHECK(told == 3 && last_told == TD_ACTION_DONE);
}

static bool explains(const struct fake *f, const char *text)
{
	return strstr(explained(&w, f), text);
}

TEST(explain_shows_what_is_done_and_what_was_refused)
{
	struct fake *a;

	begin_actions();
	a = runs(0, "a");
	(void)order_by(1000, "a", TD_ACTION_RESTART);
	w.now += 2 * S;
	CHECK(explains(a, "The action restart failed 2.00 s ago: nobody can start it again"));
	(void)order_by(1000, "a", TD_ACTION_EVICT);
	w.now += S;
	CHECK(explains(a, "It was told to end.") &&
		explains(a, "The action evict on its job began 1.00 s ago. Its state is: asked."));
	begin_actions();
	a = runs(0, "a");
	plans(TD_ACTION_PAUSE, a);
	step();
	CHECK(explains(a, "The policy has paused it."));
}
