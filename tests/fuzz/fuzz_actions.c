/*
 * Drives the executor of actions with arbitrary requests, answers, deaths and times. Two jobs have
 * supervisors, which follow proto/orders.h; two have none. One program lies.
 *
 * There is at most one open act of a kind for a job. Numbers rise. Nobody is told to end, or gets a
 * signal, without an act that was asked for since it began, and no supervisor gets an order that is
 * older than itself. Nobody is told before the supervisor of his job has answered. A step never
 * leaves anything to do at once. In the end each act ends.
 * Input: three bytes per event.
 */
#include <signal.h>
#include <stdint.h>

#include "base/time.h"
#include "daemon/execute/actions.h"
#include "proto/orders.h"
#include "unit/daemon/fake_node.h"

#define JOBS 4
#define LIAR 3

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct super {
	struct td_supervisor *connection;
	struct fake *peer;
	unsigned seen;         /* orders that were read */
	uint64_t number, born; /* born: the highest number before it began */
	pid_t pid;             /* another one in each life */
	enum td_ordered answer;
	enum td_order_kind kind;
	uint32_t epoch;
	bool is_open, lives, silent;
};

static struct world w;
static struct super supers[2];
static const char *const names[JOBS] = {"a", "b", "c", "liar"};
/*
 * For each program: the highest number of an act before it began, how often it was told, and its
 * next action.
 */
static uint64_t born[JOBS], last_number;
static unsigned told[JOBS];
static bool dies[JOBS];

static void require(bool so)
{
	if (!so)
		abort();
}

static bool is_open_act(const struct td_act *act, uint32_t group)
{
	return act->id == group && !td_act_has_ended(act) &&
	       (act->kind == TD_ACTION_EVICT || act->kind == TD_ACTION_RESTART);
}

/* Was it asked for since the program began? Whoever joins a job without a supervisor ends, too. */
static void check_told(unsigned i)
{
	uint32_t group = w.fakes[i].process->job->group;
	bool found = false;
	struct td_list *it;

	td_list_for_each (it, &w.node.acts) {
		const struct td_act *act = td_container_of(it, struct td_act, of_node);

		found |= is_open_act(act, group) && (act->number > born[i] || i >= 2);
	}
	require(found);
}

static int take_signal(void *peer, int signal)
{
	unsigned i = (unsigned)((struct fake *)peer - w.fakes);

	require(signal == SIGTERM || signal == SIGKILL);
	check_told(i);
	dies[i] |= signal == SIGKILL;
	return 0;
}

static void connect_super(struct super *s, const char *job)
{
	struct td_msg_supervise msg = {
		.epoch = s->epoch, .can = TD_SUPERVISOR_ALL, .ordered = s->number};

	strcpy(msg.job, job);
	require(!td_supervisors_say(&w.node, &s->connection, s->peer, s->pid,
		td_identity_local(1000), &msg, w.now, NULL));
}

static void disconnect_super(struct super *s)
{
	if (!s->connection)
		return;
	td_actions_supervisor_gone(&w.node, s->connection, w.now);
	td_supervisors_gone(&w.node, s->connection);
	s->connection = NULL;
}

static void starts(unsigned i)
{
	struct fake *f = &w.fakes[i];

	fake_hello(&w, f, names[i], TD_BACKEND_SWAP, false);
	f->process->can = i == 2 ? 0 : TD_CAN_LEAVE;
	fake_attach(&w, f, 0, 0, MIB);
	fake_want(&w, f);
	born[i] = w.node.last_act;
	told[i] = 0;
	dies[i] = false;
}

static void answer(struct super *s, uint64_t number, enum td_ordered result)
{
	struct td_msg_ordered msg = {.number = number, .result = (uint8_t)result};

	if (number == s->number)
		s->answer = result;
	if (s->connection)
		td_actions_ordered(&w.node, s->connection, &msg, w.now);
}

static void take_order(struct super *s, const struct td_msg_order *order)
{
	if (order->number == s->number) {
		answer(s, s->number, s->answer);
		return;
	}
	require(order->number > s->number && order->number > s->born);
	if (s->is_open)
		answer(s, s->number, TD_ORDERED_REFUSED);
	s->number = order->number;
	s->kind = (enum td_order_kind)order->kind;
	s->is_open = order->epoch == s->epoch;
	answer(s, s->number, s->is_open ? TD_ORDERED_RUNNING : TD_ORDERED_REFUSED);
}

/* Its child has ended. */
static void child_ended(struct super *s, unsigned i)
{
	bool restarts = s->is_open && s->kind == TD_ORDER_RESTART;

	if (restarts) {
		s->epoch++;
		starts(i);
		if (s->connection)
			connect_super(s, names[i]);
	}
	if (s->is_open)
		answer(s, s->number, TD_ORDERED_DONE);
	s->is_open = false;
	if (restarts)
		return;
	s->lives = false;
	disconnect_super(s);
}

static void act_super(unsigned i)
{
	struct super *s = &supers[i];

	if (!s->lives || s->silent)
		return;
	if (s->connection && s->seen != s->peer->orders) {
		s->seen = s->peer->orders;
		take_order(s, &s->peer->order);
	}
	if (s->is_open && s->kind == TD_ORDER_SHADOW) {
		answer(s, s->number, TD_ORDERED_DONE);
		s->is_open = false;
	}
}

static void program_dies(unsigned i)
{
	if (!w.fakes[i].process)
		return;
	fake_dies(&w, &w.fakes[i]);
	if (i < 2 && supers[i].lives)
		child_ended(&supers[i], i);
}

static void check_acts(void)
{
	struct td_list *it, *other;
	unsigned count = 0;

	td_list_for_each (it, &w.node.acts) {
		const struct td_act *a = td_container_of(it, struct td_act, of_node);

		count++;
		require(a->state < TD_ACTION_STATE_N);
		td_list_for_each (other, &w.node.acts) {
			const struct td_act *b = td_container_of(other, struct td_act, of_node);

			require(a == b || a->id != b->id || !a->id || a->kind != b->kind);
			require(a == b || a->number != b->number);
		}
	}
	require(count <= JOBS * TD_ACTION_N + 8);
	require(w.node.last_act >= last_number);
	last_number = w.node.last_act;
}

static void check_leaves(void)
{
	for (unsigned i = 0; i < JOBS; i++) {
		if (!w.fakes[i].process || w.fakes[i].leaves == told[i])
			continue;
		told[i] = w.fakes[i].leaves;
		check_told(i);
	}
}

static void run(void)
{
	uint64_t wakeup = 0;

	for (unsigned k = 0; k < 4; k++) {
		wakeup = settle(&w);
		check_leaves();
		for (unsigned i = 0; i < 2; i++)
			act_super(i);
		for (unsigned i = 0; i < JOBS; i++)
			if (dies[i])
				program_dies(i);
	}
	wakeup = settle(&w);
	check_leaves();
	check_acts();
	require(wakeup > w.now);
}

static void ask(unsigned i, enum td_action_kind kind, uid_t uid)
{
	struct td_act *acts[TD_ACTS_MAX];
	uint32_t count = 0;

	if (!w.fakes[i].process)
		return;
	if (!td_actions_order(&w.node, td_identity_local(uid), names[i], kind, "0", w.now, acts,
		    &count, NULL))
		require((count == 1 || kind == TD_ACTION_MIGRATE) && uid != 1001);
}

static void plan(unsigned i, uint8_t arg)
{
	struct td_action action = {.kind = (enum td_action_kind)(arg % (TD_ACTION_N + 1))};
	struct td_plan plan = {.actions = &action, .action_count = 1, .action_max = 1};

	if (w.fakes[i].process && !td_list_empty(&w.fakes[i].process->clients))
		action.client = td_container_of(
			w.fakes[i].process->clients.next, struct td_client, of_process)
					->id;
	td_actions_plan(&w.node, &plan, w.now);
}

static void says_leaving(unsigned i, uint8_t arg)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_leaving};

	msg.leaving.how = i == LIAR ? arg : arg % TD_LEAVING_N;
	if (w.fakes[i].process && (i == LIAR || told[i]))
		(void)say(&w, &w.fakes[i], &msg);
}

/* Comes again, as a new connection. */
static void reconnect(unsigned i)
{
	struct super *s = &supers[i % 2];

	if (s->lives && !s->connection)
		connect_super(s, names[i % 2]);
}

static void super_dies(unsigned i)
{
	supers[i % 2].lives = false;
	disconnect_super(&supers[i % 2]);
	/* Its child with it. */
	program_dies(i % 2);
}

static void revive(unsigned i)
{
	struct super *s = &supers[i % 2];

	if (w.fakes[i].process)
		return;
	if (i < 2) {
		s->lives = true;
		s->is_open = s->silent = false;
		s->epoch = 1;
		s->pid++;
		s->number = 0;
		s->seen = s->peer->orders; /* what another one has not read is gone */
		s->born = w.node.last_act;
		connect_super(s, names[i]);
	}
	starts(i);
}

static void one(const uint8_t *event)
{
	unsigned i = event[0] % JOBS;
	uint8_t arg = event[2];

	switch (event[1] % 12) {
	case 0: ask(i, TD_ACTION_EVICT, arg & 1 ? 1000 : 0); break;
	case 1: ask(i, TD_ACTION_RESTART, 1000); break;
	case 2: ask(i, arg & 1 ? TD_ACTION_PAUSE : TD_ACTION_RESUME, 1000); break;
	case 3: ask(i, TD_ACTION_EVICT, 1001); break;
	case 4: plan(i, arg); break;
	case 5: says_leaving(i, arg); break;
	case 6: program_dies(i); break;
	case 7: super_dies(i); break;
	case 8: disconnect_super(&supers[i % 2]); break;
	case 9: reconnect(i); break;
	case 10: revive(i); break;
	default:
		supers[i % 2].silent = arg & 1;
		w.now += (uint64_t)arg * TD_NS_PER_S / 16;
		break;
	}
	run();
}

static void begin(void)
{
	world_init(&w);
	w.node.io.signal = take_signal;
	w.node.options.evict_deadline_ns = 4 * TD_NS_PER_S;
	(void)td_options_set(&w.node.options, "policy", "timeshare", NULL);
	td_node_options_changed(&w.node, w.now, "policy");
	last_number = 0;
	memset(supers, 0, sizeof(supers));
	for (unsigned i = 0; i < 2; i++)
		supers[i].peer = &w.fakes[JOBS + i];
	for (unsigned i = 0; i < JOBS; i++)
		revive(i);
	run();
}

/* Time goes on, and nobody asks for anything any more. */
static void end(void)
{
	struct td_list *it;

	for (unsigned i = 0; i < 8; i++) {
		w.now += 90 * TD_NS_PER_S;
		run();
	}
	td_list_for_each (it, &w.node.acts)
		require(td_act_has_ended(td_container_of(it, struct td_act, of_node)) ||
			td_container_of(it, struct td_act, of_node)->kind == TD_ACTION_PAUSE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	begin();
	for (size_t at = 0; at + 3 <= size && at < 3 * 200; at += 3)
		one(data + at);
	end();
	return 0;
}
