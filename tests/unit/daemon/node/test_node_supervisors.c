/* Returns which supervisors exist, and of which jobs. */
#include "unit/daemon/node_world.h"

#include "proto/orders.h"

static struct td_supervisor *says(
	struct td_supervisor *supervisor, uid_t uid, const char *job, uint32_t epoch, int expected)
{
	struct td_msg_supervise msg = {.pid = 70 + epoch, .epoch = epoch, .can = 0xff};
	struct td_err err = {0};

	snprintf(msg.job, sizeof(msg.job), "%s", job);
	CHECK_EQ(td_supervisors_say(
			 &w.node, &supervisor, &w, 7, td_identity_local(uid), &msg, w.now, &err),
		expected);
	CHECK_EQ(!expected, !*err.msg);
	return supervisor;
}

TEST(a_supervisor_is_found_by_the_job_that_it_names)
{
	struct fake *a, *b;
	struct td_supervisor *s;

	begin();
	a = program(0, "a", MIB);
	b = program(1, "b", MIB);
	CHECK(!td_supervisors_find(&w.node, a->process->job));
	s = says(NULL, 1000, "a", 1, 0);
	CHECK(td_supervisors_find(&w.node, a->process->job) == s);
	CHECK(!td_supervisors_find(&w.node, b->process->job));
	CHECK_EQ(s->can, TD_SUPERVISOR_ALL);
	td_supervisors_gone(&w.node, s);
	CHECK(!td_supervisors_find(&w.node, a->process->job));
}

TEST(what_it_says_again_takes_the_place_of_what_it_said)
{
	struct td_supervisor *s;

	begin();
	s = says(NULL, 1000, "a", 1, 0);
	CHECK(says(s, 1000, "a", 2, 0) == s);
	CHECK_EQ(s->epoch, 2);
	CHECK_EQ(s->child, 72);
}

TEST(nobody_supervises_jobs_of_another_user)
{
	struct fake *a;

	begin();
	a = program(0, "a", MIB);
	(void)says(NULL, 1001, "a", 1, 0);
	CHECK(!td_supervisors_find(&w.node, a->process->job));
}

TEST(the_latest_connection_of_a_supervisor_counts)
{
	struct fake *a;
	struct td_supervisor *old, *new;

	begin();
	a = program(0, "a", MIB);
	old = says(NULL, 1000, "a", 1, 0);
	new = says(NULL, 1000, "a", 1, 0);
	CHECK(td_supervisors_find(&w.node, a->process->job) == new);
	td_supervisors_gone(&w.node, old);
	CHECK(td_supervisors_find(&w.node, a->process->job) == new);
}

TEST(a_job_without_a_name_and_a_second_job_are_refused)
{
	char name[80] = {0};
	struct td_supervisor *s;

	begin();
	CHECK(!says(NULL, 1000, "", 1, -EINVAL));
	memset(name, 'x', 64);
	CHECK(!says(NULL, 1000, name, 1, -EINVAL));
	s = says(NULL, 1000, "a", 1, 0);
	CHECK(says(s, 1000, "b", 2, -EINVAL) == s);
	CHECK_STR(s->job, "a");
	CHECK_EQ(s->epoch, 1);
}

TEST(each_new_start_of_the_command_is_a_restart)
{
	struct td_supervisor *s;
	struct fake *a;

	begin();
	s = says(NULL, 1000, "a", 1, 0);
	a = program(0, "a", MIB);
	CHECK_EQ(a->process->job->restarts, 0);
	CHECK_EQ(w.events[TD_EVENT_RESTARTED], 0);
	(void)says(s, 1000, "a", 1, 0); /* it says the same once more */
	CHECK_EQ(w.events[TD_EVENT_RESTARTED], 0);
	(void)says(s, 1000, "a", 2, 0);
	CHECK_EQ(w.events[TD_EVENT_RESTARTED], 1);
	CHECK_EQ(a->process->job->restarts, 1);
	CHECK_STR(s->name, a->process->name);
	(void)says(s, 1000, "a", 3, 0);
	CHECK_EQ(w.events[TD_EVENT_RESTARTED], 2);
	CHECK_EQ(a->process->job->restarts, 2);
	td_supervisors_gone(&w.node, s);
	CHECK_EQ(a->process->job->restarts, 0);
}

TEST(a_new_daemon_counts_the_restarts_before_it)
{
	struct fake *a;

	begin();
	(void)says(NULL, 1000, "a", 4, 0);
	a = program(0, "a", MIB);
	CHECK_EQ(w.events[TD_EVENT_RESTARTED], 0); /* nothing has happened now */
	CHECK_EQ(a->process->job->restarts, 3);
}
