/*
 * The common beginning of tests of actions: signals that are counted, a policy that plans what it
 * is told to, and a supervisor.
 */
#pragma once

#include <signal.h>

#include "unit/daemon/node_world.h"

#include "base/time.h"
#include "daemon/execute/actions.h"
#include "proto/orders.h"

#define S TD_NS_PER_S
/* Who supervises. */
#define SUPERVISOR (FAKES_MAX - 1)

static unsigned terms[FAKES_MAX], kills[FAKES_MAX];
static int signal_result;
static struct td_action planned[8];
static unsigned planned_count;
static struct td_supervisor *supervisor;
static pid_t supervisor_pid;

static int count_signal(void *peer, int signal)
{
	unsigned i = (unsigned)((struct fake *)peer - w.fakes);

	if (signal == SIGTERM)
		terms[i]++;
	else if (signal == SIGKILL)
		kills[i]++;
	return signal_result;
}

static void plan_what_is_planned(void *state, const struct td_policy_options *options,
	const struct td_view *view, uint64_t now_ns, struct td_plan *plan)
{
	td_policy_find("timeshare")->step(state, options, view, now_ns, plan);
	for (unsigned i = 0; i < planned_count; i++)
		plan->actions[plan->action_count++] = planned[i];
}

static struct td_policy planner;

static void begin_actions(void)
{
	begin();
	memset(terms, 0, sizeof(terms));
	memset(kills, 0, sizeof(kills));
	signal_result = 0;
	planned_count = 0;
	supervisor = NULL;
	supervisor_pid = 7;
	w.node.io.signal = count_signal;
	w.node.options.evict_deadline_ns = 10 * S;
	planner = *td_policy_find("timeshare");
	planner.name = "planner";
	planner.step = plan_what_is_planned;
	w.node.options.policy = &planner;
	td_node_options_changed(&w.node, w.now, "policy");
	CHECK(w.node.policy == &planner);
}

/* Runs, and takes LEAVE. */
__attribute__((unused)) static struct fake *runs(unsigned i, const char *job)
{
	struct fake *f = program(i, job, MIB);

	f->process->can = TD_CAN_LEAVE;
	fake_want(&w, f);
	(void)settle(&w);
	CHECK(is_open(f));
	return f;
}

/* Does what the loop would; nothing is due already. */
static void step(void)
{
	uint64_t wakeup = settle(&w);

	CHECK(wakeup > w.now);
}

__attribute__((unused)) static void later(uint64_t ns)
{
	w.now += ns;
	step();
}

__attribute__((unused)) static struct td_act *order_by(
	uid_t uid, const char *job, enum td_action_kind kind)
{
	struct td_act *acts[TD_ACTS_MAX];
	uint32_t count = 0;

	CHECK_EQ(td_actions_order(
			 &w.node, td_identity_local(uid), job, kind, "", w.now, acts, &count, NULL),
		0);
	CHECK_EQ(count, 1);
	return acts[0];
}

__attribute__((unused)) static const struct td_act *act_of(
	const struct fake *f, enum td_action_kind kind)
{
	return td_actions_of(&w.node, f->process, kind);
}

__attribute__((unused)) static void plans(enum td_action_kind kind, const struct fake *f)
{
	const struct td_client *client =
		td_container_of(f->process->clients.next, struct td_client, of_process);

	planned[planned_count++] = (struct td_action){.kind = kind, .client = client->id};
}

__attribute__((unused)) static void says_leaving(struct fake *f, enum td_leaving how)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_leaving};

	msg.leaving.how = (uint8_t)how;
	CHECK_EQ(say(&w, f, &msg), 0);
	step();
}

__attribute__((unused)) static struct fake *supervised(const char *job, uint32_t epoch)
{
	struct td_msg_supervise msg = {.epoch = epoch, .can = TD_SUPERVISOR_ALL};

	strcpy(msg.job, job);
	CHECK_EQ(td_supervisors_say(&w.node, &supervisor, &w.fakes[SUPERVISOR], supervisor_pid,
			 td_identity_local(1000), &msg, w.now, NULL),
		0);
	return &w.fakes[SUPERVISOR];
}

__attribute__((unused)) static void ordered(
	uint64_t number, enum td_ordered result, const char *reason)
{
	struct td_msg_ordered msg = {.number = number, .result = (uint8_t)result};

	strcpy(msg.reason, reason);
	td_actions_ordered(&w.node, supervisor, &msg, w.now);
	step();
}

__attribute__((unused)) static void supervisor_dies(void)
{
	td_actions_supervisor_gone(&w.node, supervisor, w.now);
	td_supervisors_gone(&w.node, supervisor);
	supervisor = NULL;
	step();
}
