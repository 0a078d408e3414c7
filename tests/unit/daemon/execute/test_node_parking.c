/* The driver's checkpoints of programs (execute/parking.h): what the books say at each stage. */
#include "unit/daemon/action_world.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/execute/parking.h"
#include "daemon/explain/explain.h"
#include "daemon/memory/host.h"
#include "daemon/node/gpus.h"
#include "daemon/server/gpus/helper.h"
#include "proto/unmovable.h"

#define PARKED (&w.fakes[0])

static struct td_checkpoint_order helped;
static unsigned orders;
static int helper_result;
static struct td_msg_move told;
/* Who was told to hold, and has not answered; and the last of HOLD, SAVED and FREE. */
static struct fake *asked;
static enum td_move_stage held;

static int call_helper(void *arg, const struct td_checkpoint_order *order)
{
	(void)arg;
	helped = *order;
	orders++;
	return helper_result;
}

static void note_moves(void *peer, const struct td_msg *msg)
{
	if (msg->type == TD_MSG_TYPE_move && msg->move.stage < TD_MOVE_HOLD) {
		told = msg->move;
	} else if (msg->type == TD_MSG_TYPE_move) {
		held = (enum td_move_stage)msg->move.stage;
		asked = held == TD_MOVE_HOLD ? peer : NULL;
	}
	fake_send(peer, msg);
}

static void begin_parking(uint64_t demanded)
{
	begin_actions();
	orders = 0;
	helper_result = 0;
	memset(&told, 0, sizeof(told));
	asked = NULL;
	held = TD_MOVE_STAGE_N;
	w.node.io.send = note_moves;
	w.node.io.checkpoint = call_helper;
	(void)program(0, "parked", demanded);
	PARKED->process->can = TD_CAN_MOVE;
	fake_want(&w, PARKED);
	(void)settle(&w);
	CHECK(is_open(PARKED));
}

static void says_movable(struct fake *f, uint64_t reasons)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_movable};

	msg.movable.reasons = reasons;
	CHECK_EQ(say(&w, f, &msg), 0);
	(void)settle(&w);
}

static void answers_hold(void)
{
	struct fake *f = asked;

	asked = NULL;
	if (f)
		says_movable(f, f->process->unmovable | TD_UNMOVABLE(HELD));
}

static struct td_act *order_of(const char *name, enum td_action_kind kind)
{
	struct td_act *acts[TD_ACTS_MAX];
	uint32_t count = 0;

	CHECK_EQ(td_actions_order(&w.node, td_identity_local(1000), name, kind, "1", w.now, acts,
			 &count, NULL),
		0);
	CHECK_EQ(count, 1);
	(void)settle(&w);
	answers_hold();
	return acts[0];
}

static struct td_act *order(enum td_action_kind kind)
{
	return order_of("parked", kind);
}

static void answers_of(struct fake *f, uint64_t reasons)
{
	says_movable(f, reasons);
	answers_hold();
}

static void answers(uint64_t reasons)
{
	answers_of(PARKED, reasons);
}

/* Two of the same kind, of which programs are on the first. */
static void list_two_gpus(void)
{
	struct td_nvml_gpu listed[2] = {{.index = 0}, {.index = 1}};

	for (int i = 0; i < 2; i++) {
		memset(listed[i].uuid, i + 1, 16);
		listed[i].total_bytes = w.node.gpus[0].total_bytes;
		snprintf(listed[i].name, sizeof(listed[i].name), "%s", w.node.gpus[0].name);
	}
	td_gpus_seen(&w.node, listed, 2, w.now);
}

static void helper_ends_at(enum td_checkpoint_end end, bool is_there)
{
	td_parking_ended(&w.node, helped.number, end, is_there, w.now);
	(void)settle(&w);
}

static void helper_ends(enum td_checkpoint_end end)
{
	helper_ends_at(end, false);
}

static void checkpoint(void)
{
	(void)order(TD_ACTION_CHECKPOINT);
	CHECK_EQ(told.stage, TD_MOVE_LOOK);
	CHECK_EQ(orders, 0);
	answers(0);
	CHECK_EQ(orders, 1);
	CHECK_EQ(helped.what, TD_CHECKPOINT_SAVE);
	CHECK_EQ(helped.pid, PARKED->process->pid);
}

static bool state_is(const char *state)
{
	return !strcmp(td_process_state(PARKED->process), state);
}

static char state_cause[32];

static void keep_first(void *arg, const struct td_msg *row)
{
	(void)arg;
	if (!*state_cause)
		snprintf(state_cause, sizeof(state_cause), "%.31s", row->cause.id);
}

static bool is_explained_by(const char *cause)
{
	*state_cause = 0;
	(void)td_explain(&w.node, PARKED->process, td_identity_local(0), w.now, keep_first, NULL);
	return !strcmp(state_cause, cause);
}

TEST(what_the_driver_has_taken_off_is_charged_to_nobody)
{
	begin_parking(40 * MIB);
	checkpoint();
	CHECK(state_is("locked") && is_explained_by("locked") && !is_open(PARKED));
	CHECK(w.node.gpus[0].account.charged >= 40 * MIB);
	helper_ends(TD_CHECKPOINT_DONE);
	CHECK(strstr(w.last_event[TD_EVENT_ACTION].detail, "40.0 MiB left the GPU in "));
	CHECK(state_is("checkpointed") && is_explained_by("checkpointed") && !is_open(PARKED));
	CHECK_EQ(w.node.gpus[0].account.charged, 0);
	later(100 * S);
	CHECK(state_is("checkpointed"));
	(void)order(TD_ACTION_RESTORE);
	CHECK_EQ(helped.what, TD_CHECKPOINT_BACK);
	CHECK(w.node.gpus[0].account.charged >= 40 * MIB);
	CHECK(!is_open(PARKED));
	helper_ends(TD_CHECKPOINT_DONE);
	CHECK(is_open(PARKED) && !PARKED->process->parking.is_saved);
	CHECK(strstr(w.last_event[TD_EVENT_ACTION].detail, "40.0 MiB came back in "));
}

/* The word was on its way when HOLD was sent: the library does not hold yet. */
TEST(an_earlier_word_is_no_answer_to_hold)
{
	begin_parking(MIB);
	(void)order(TD_ACTION_CHECKPOINT);
	says_movable(PARKED, 0);
	CHECK_EQ(held, TD_MOVE_HOLD);
	says_movable(PARKED, TD_UNMOVABLE(GRAPHS));
	CHECK_EQ(orders, 0);
	answers_hold();
	CHECK_EQ(orders, 1);
}

TEST(who_comes_back_waits_for_room_and_is_refused_in_the_end)
{
	struct td_act *act;

	begin_parking(40 * MIB);
	checkpoint();
	helper_ends(TD_CHECKPOINT_DONE);
	(void)plain_program(1, "other", 40 * MIB);
	(void)settle(&w);
	CHECK(is_open(&w.fakes[1]));
	act = order(TD_ACTION_RESTORE);
	CHECK_EQ(act->state, TD_ACTION_ASKED);
	CHECK_EQ(orders, 1);
	later(11 * S);
	CHECK_EQ(act->state, TD_ACTION_REFUSED);
	CHECK(strstr(act->reason, "has room for 24"));
	CHECK(state_is("checkpointed"));
	CHECK_EQ(orders, 1);
}

TEST(what_the_driver_refuses_goes_on)
{
	struct td_act *act;

	begin_parking(MIB);
	act = order(TD_ACTION_CHECKPOINT);
	answers(0);
	helper_ends(TD_CHECKPOINT_REFUSED);
	CHECK_EQ(act->state, TD_ACTION_REFUSED);
	CHECK(strstr(act->reason, "refuses"));
	CHECK(is_open(PARKED));
	helper_result = -EAGAIN;
	act = order(TD_ACTION_CHECKPOINT);
	answers(0);
	CHECK_EQ(act->state, TD_ACTION_REFUSED);
	CHECK(strstr(act->reason, "too many checkpoints are under way"));
	CHECK(is_open(PARKED));
}

TEST(nobody_has_all_helpers)
{
	const struct td_identity one = td_identity_local(1000), other = {1000, 7};
	struct td_helpers helpers;

	begin_parking(MIB);
	td_helpers_init(&helpers, NULL, &w.node);
	for (int i = 0; i < TD_HELPERS_MAX / 2; i++) {
		CHECK(td_helpers_allow(&helpers, one));
		helpers.all[i].source.fd = 0;
		helpers.all[i].who = one;
	}
	CHECK(!td_helpers_allow(&helpers, one));
	CHECK(td_helpers_allow(&helpers, other));
}

static uint64_t no_turn(void *arg, uint64_t now_ns)
{
	(void)arg;
	(void)now_ns;
	return TD_NEVER;
}

/* A real process ends in the helper's place: by the signal, or with status 0, which is DONE. */
static void process_ends(int signal)
{
	struct td_helpers helpers;
	struct td_loop loop;
	siginfo_t info;
	int steps[2];
	pid_t pid;

	CHECK_EQ(td_loop_init(&loop, no_turn, NULL), 0);
	td_helpers_init(&helpers, &loop, &w.node);
	CHECK_EQ(pipe2(steps, O_CLOEXEC | O_NONBLOCK), 0);
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		if (signal)
			(void)kill(getpid(), signal);
		_exit(0);
	}
	CHECK(pid > 0);
	helpers.all[0].pid = pid;
	helpers.all[0].number = helped.number;
	helpers.all[0].steps = steps[0];
	helpers.all[0].source.fd = (int)syscall(SYS_pidfd_open, pid, 0);
	CHECK_EQ(td_loop_add(&loop, &helpers.all[0].source), 0);
	CHECK_EQ(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	td_helpers_turn(&helpers, w.now);
	CHECK_EQ(helpers.all[0].source.fd, -1);
	(void)settle(&w);
	close(steps[1]);
	td_loop_deinit(&loop);
}

/* The status of a process that a signal ended reads as DONE, too. */
TEST(a_helper_that_a_signal_ended_has_not_done_its_work)
{
	begin_parking(MIB);
	checkpoint();
	process_ends(SIGKILL);
	CHECK(!state_is("checkpointed"));
	CHECK_EQ(orders, 2);
	CHECK_EQ(helped.what, TD_CHECKPOINT_BACK);
	begin_parking(MIB);
	checkpoint();
	process_ends(0);
	CHECK(state_is("checkpointed"));
}

TEST(what_would_break_a_program_is_not_tried)
{
	struct td_act *act;

	begin_parking(MIB);
	act = order(TD_ACTION_CHECKPOINT);
	answers(TD_UNMOVABLE(UNIFIED) | TD_UNMOVABLE(GRAPHS));
	CHECK_EQ(act->state, TD_ACTION_REFUSED);
	CHECK(strstr(act->reason, "unified memory"));
	CHECK_EQ(orders, 0);
	CHECK(is_open(PARKED));
}

TEST(what_a_killed_helper_has_done_is_undone)
{
	struct td_act *act;

	begin_parking(MIB);
	act = order(TD_ACTION_CHECKPOINT);
	answers(0);
	helper_ends(TD_CHECKPOINT_END_N);
	CHECK_EQ(orders, 2);
	CHECK_EQ(helped.what, TD_CHECKPOINT_BACK);
	CHECK(!is_open(PARKED));
	helper_ends(TD_CHECKPOINT_DONE);
	CHECK_EQ(act->state, TD_ACTION_REFUSED);
	CHECK(is_open(PARKED));
	act = order(TD_ACTION_CHECKPOINT);
	answers(0);
	helper_ends(TD_CHECKPOINT_END_N);
	helper_ends(TD_CHECKPOINT_END_N);
	CHECK_EQ(act->state, TD_ACTION_REFUSED);
	CHECK(state_is("checkpointed"));
}

TEST(a_move_that_the_library_refuses_goes_by_the_driver)
{
	const struct td_act *act;
	const struct td_client *client;

	begin_parking(8 * MIB);
	list_two_gpus();
	answers(TD_UNMOVABLE(GRAPHS));
	act = order(TD_ACTION_MIGRATE);
	CHECK_EQ(helped.what, TD_CHECKPOINT_MOVE);
	CHECK_EQ(helped.pair_count, 2);
	CHECK_EQ(helped.pairs[0][0][0], 1);
	CHECK_EQ(helped.pairs[0][1][0], 2);
	CHECK_EQ(helped.pairs[1][1][0], 1);
	CHECK_EQ(act->state, TD_ACTION_RUNNING);
	helper_ends(TD_CHECKPOINT_DONE);
	CHECK_EQ(told.stage, TD_MOVE_PUT);
	CHECK_EQ(told.gpu[0], 2);
	client = td_container_of(PARKED->process->clients.next, struct td_client, of_process);
	CHECK_EQ(client->gpu, 1);
	CHECK_EQ(PARKED->process->moves, 1);
	CHECK_EQ(w.node.gpus[0].account.charged, 0);
	CHECK(w.node.gpus[1].account.charged >= 8 * MIB);
	CHECK(is_open(PARKED));
	/* And with what neither moves, it stays. */
	answers(TD_UNMOVABLE(GRAPHS) | TD_UNMOVABLE(UNIFIED));
	orders = 0;
	(void)order(TD_ACTION_MIGRATE);
	CHECK_EQ(orders, 0);
	CHECK_EQ(client->gpu, 1);
}

static void says_moved(enum td_move_stage stage, uint64_t reasons)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_moved};

	msg.moved.number = told.number;
	msg.moved.stage = (uint8_t)stage;
	msg.moved.reasons = reasons;
	msg.moved.to = 2;
	CHECK_EQ(say(&w, PARKED, &msg), 0);
	(void)settle(&w);
}

/* Orders a move, for which the program attaches to the other GPU at slot 2. */
static struct td_act *prepared_move(void)
{
	struct td_act *act = order(TD_ACTION_MIGRATE);

	CHECK_EQ(told.stage, TD_MOVE_PREPARE);
	fake_attach(&w, PARKED, 2, 1, 0);
	CHECK_EQ(PARKED->slot[2].ceiling.device_bytes, UINT64_MAX);
	says_moved(TD_MOVE_PREPARED, 0);
	CHECK_EQ(told.stage, TD_MOVE_GO);
	return act;
}

/* The client on the other GPU detaches while a ceiling binds it, which nobody would lift then. */
TEST(a_move_that_came_to_nothing_leaves_no_ceiling_behind)
{
	struct td_msg detach = {.type = TD_MSG_TYPE_detach, .detach = {.slot = 2}};
	const struct td_act *act;

	begin_parking(8 * MIB);
	list_two_gpus();
	answers(0);
	act = prepared_move();
	says_moved(TD_MOVE_FAILED, TD_UNMOVABLE(POOLS));
	answers_hold();
	CHECK_EQ(helped.what, TD_CHECKPOINT_MOVE);
	CHECK(PARKED->slot[2].ceiling.device_bytes != UINT64_MAX);
	CHECK_EQ(say(&w, PARKED, &detach), 0);
	/* The pools are gone when the driver refuses. They are still the library's reason. */
	says_movable(PARKED, TD_UNMOVABLE(HELD));
	helper_ends(TD_CHECKPOINT_NO_LOCK);
	CHECK_EQ(act->state, TD_ACTION_REFUSED);
	CHECK(!strcmp(act->reason,
		"it has memory pools, and the driver does not lock it for a checkpoint"));
	(void)prepared_move();
}

TEST(two_that_go_by_the_driver_do_not_get_the_same_room)
{
	struct fake *second = &w.fakes[1], *other = &w.fakes[2];
	struct td_act *act;

	begin_parking(16 * MIB);
	(void)plain_program(1, "second", 16 * MIB);
	second->process->can = TD_CAN_MOVE;
	(void)settle(&w);
	list_two_gpus();
	fake_hello(&w, other, "other", TD_BACKEND_PLAIN, false);
	fake_attach(&w, other, 1, 1, 40 * MIB);
	fake_want(&w, other);
	(void)settle(&w);
	answers(TD_UNMOVABLE(GRAPHS));
	answers_of(second, TD_UNMOVABLE(GRAPHS));
	act = order(TD_ACTION_MIGRATE);
	CHECK_EQ(act->state, TD_ACTION_RUNNING);
	CHECK_EQ(orders, 1);
	act = order_of("second", TD_ACTION_MIGRATE);
	CHECK_EQ(orders, 1);
	later(11 * S);
	CHECK_EQ(act->state, TD_ACTION_REFUSED);
	CHECK(strstr(act->reason, "has room for 8"));
	CHECK_EQ(orders, 1);
	/* The memory of the first one can leave again, so the second one finds room afterwards. */
	helper_ends(TD_CHECKPOINT_DONE);
	(void)order_of("second", TD_ACTION_MIGRATE);
	CHECK_EQ(orders, 2);
}

TEST(a_program_may_end_while_the_driver_is_at_it)
{
	begin_parking(8 * MIB);
	checkpoint();
	fake_dies(&w, PARKED);
	(void)settle(&w);
	helper_ends(TD_CHECKPOINT_DONE);
	CHECK_EQ(w.node.gpus[0].account.charged, 0);
}

static const struct td_client *client_of(const struct fake *f)
{
	return td_container_of(f->process->clients.next, struct td_client, of_process);
}

/* A move whose helper is killed, after it had begun to restore the program on the new GPU. */
static struct td_act *move_whose_helper_is_killed(void)
{
	struct td_act *act;

	begin_parking(8 * MIB);
	list_two_gpus();
	answers(TD_UNMOVABLE(GRAPHS));
	act = order(TD_ACTION_MIGRATE);
	CHECK_EQ(helped.what, TD_CHECKPOINT_MOVE);
	helper_ends_at(TD_CHECKPOINT_END_N, true);
	CHECK_EQ(helped.what, TD_CHECKPOINT_BACK);
	return act;
}

TEST(who_is_on_the_new_gpu_when_its_helper_is_killed_is_charged_there)
{
	static const enum td_checkpoint_end ends[] = {
		TD_CHECKPOINT_UNLOCKED, TD_CHECKPOINT_NOT_SAVED};

	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
		(void)move_whose_helper_is_killed();
		helper_ends(ends[i]);
		CHECK_EQ(told.stage, TD_MOVE_PUT);
		CHECK_EQ(PARKED->process->moves, 1);
		CHECK_EQ(client_of(PARKED)->gpu, 1);
		CHECK_EQ(w.node.gpus[0].account.charged, 0);
		CHECK(is_open(PARKED));
		CHECK_EQ(held, TD_MOVE_FREE);
	}
}

TEST(who_is_brought_back_when_its_helper_is_killed_is_charged_where_it_was)
{
	const struct td_act *act = move_whose_helper_is_killed();

	helper_ends(TD_CHECKPOINT_DONE);
	CHECK_EQ(act->state, TD_ACTION_REFUSED);
	CHECK_EQ(client_of(PARKED)->gpu, 0);
	CHECK(is_open(PARKED));
	/* Nothing had been restored there. */
	(void)order(TD_ACTION_MIGRATE);
	helper_ends(TD_CHECKPOINT_END_N);
	helper_ends(TD_CHECKPOINT_UNLOCKED);
	CHECK_EQ(client_of(PARKED)->gpu, 0);
}

TEST(where_a_program_is_can_be_found_out_by_a_restore)
{
	const struct td_act *act = move_whose_helper_is_killed();

	helper_ends(TD_CHECKPOINT_END_N);
	CHECK_EQ(act->state, TD_ACTION_REFUSED);
	CHECK(state_is("checkpointed"));
	(void)order(TD_ACTION_RESTORE);
	helper_ends(TD_CHECKPOINT_UNLOCKED);
	CHECK_EQ(told.stage, TD_MOVE_PUT);
	CHECK_EQ(client_of(PARKED)->gpu, 1);
	CHECK_EQ(w.node.gpus[0].account.charged, 0);
	CHECK(is_open(PARKED));
}

TEST(who_was_restored_by_a_helper_that_was_killed_runs)
{
	begin_parking(8 * MIB);
	checkpoint();
	helper_ends(TD_CHECKPOINT_DONE);
	CHECK_EQ(held, TD_MOVE_SAVED);
	(void)order(TD_ACTION_RESTORE);
	helper_ends(TD_CHECKPOINT_END_N);
	helper_ends(TD_CHECKPOINT_NOT_SAVED);
	CHECK(state_is("running"));
	CHECK(is_open(PARKED));
	CHECK_EQ(held, TD_MOVE_FREE);
}

TEST(a_helper_at_work_is_waited_for_when_the_client_has_left)
{
	struct td_msg detach = {.type = TD_MSG_TYPE_detach};
	const struct td_act *act;

	begin_parking(8 * MIB);
	list_two_gpus();
	answers(TD_UNMOVABLE(GRAPHS));
	act = order(TD_ACTION_MIGRATE);
	CHECK_EQ(helped.what, TD_CHECKPOINT_MOVE);
	CHECK_EQ(say(&w, PARKED, &detach), 0);
	(void)settle(&w);
	CHECK_EQ(act->state, TD_ACTION_RUNNING);
	CHECK(state_is("locked"));
	helper_ends(TD_CHECKPOINT_END_N);
	CHECK_EQ(helped.what, TD_CHECKPOINT_BACK);
	helper_ends(TD_CHECKPOINT_UNLOCKED);
	CHECK(!state_is("locked"));
	CHECK_EQ(held, TD_MOVE_FREE);
}

TEST(a_checkpoint_takes_its_part_of_host_limit)
{
	struct td_act *act;

	begin_parking(8 * MIB);
	(void)plain_program(1, "second", 8 * MIB);
	w.fakes[1].process->can = TD_CAN_MOVE;
	snprintf(w.node.options.host_limit, sizeof(w.node.options.host_limit), "12m");
	td_node_options_changed(&w.node, w.now, "host.limit");
	(void)settle(&w);
	checkpoint();
	helper_ends(TD_CHECKPOINT_DONE);
	CHECK_EQ(td_host_left(&w.node), 4 * MIB);
	act = order_of("second", TD_ACTION_CHECKPOINT);
	CHECK_EQ(act->state, TD_ACTION_REFUSED);
	CHECK(strstr(act->reason, "host.limit leaves room for 4.0 MiB on the host"));
	CHECK(strstr(act->reason, "it needs 8"));
	(void)order(TD_ACTION_RESTORE);
	helper_ends(TD_CHECKPOINT_DONE);
	CHECK_EQ(td_host_left(&w.node), 12 * MIB);
}

TEST(who_was_checkpointed_by_an_earlier_daemon_is_charged_nothing)
{
	begin_parking(8 * MIB);
	orders = 0;
	says_movable(PARKED, TD_UNMOVABLE(HELD) | TD_UNMOVABLE(SAVED));
	CHECK(state_is("checkpointed") && !is_open(PARKED));
	PARKED->slot[0].resident = 8 * MIB;
	fake_memory(&w, PARKED, 0);
	CHECK_EQ(client_of(PARKED)->saved.used, 8 * MIB);
	(void)settle(&w);
	CHECK_EQ(w.node.gpus[0].account.charged, 0);
	CHECK_EQ(orders, 0);
	(void)order(TD_ACTION_RESTORE);
	CHECK_EQ(helped.what, TD_CHECKPOINT_BACK);
	helper_ends(TD_CHECKPOINT_DONE);
	CHECK(is_open(PARKED));
	CHECK_EQ(held, TD_MOVE_FREE);
}

TEST(who_was_held_by_an_earlier_daemon_is_brought_back)
{
	begin_parking(8 * MIB);
	orders = 0;
	says_movable(PARKED, TD_UNMOVABLE(HELD));
	CHECK_EQ(orders, 1);
	CHECK_EQ(helped.what, TD_CHECKPOINT_BACK);
	helper_ends(TD_CHECKPOINT_NOT_SAVED);
	CHECK(is_open(PARKED));
	CHECK_EQ(held, TD_MOVE_FREE);
	/* It may say so again later; that is no news. */
	says_movable(PARKED, TD_UNMOVABLE(HELD));
	CHECK(is_open(PARKED));
}

TEST(a_uuid_is_read_back_as_it_was_written)
{
	uint8_t uuid[16], read[16];
	char hex[TD_CHECKPOINT_HEX];

	for (unsigned i = 0; i < 16; i++)
		uuid[i] = (uint8_t)(17 * i + 3);
	CHECK_EQ(td_checkpoint_unhex(td_checkpoint_hex(hex, uuid), read), 0);
	CHECK(!memcmp(uuid, read, 16));
	hex[31] = 'g';
	CHECK_EQ(td_checkpoint_unhex(hex, read), -EINVAL);
	hex[31] = '\0';
	CHECK_EQ(td_checkpoint_unhex(hex, read), -EINVAL);
}
