/* Moves to another GPU (execute/moves.h): what they leave behind when they come to nothing. */
#include "unit/daemon/action_world.h"

#include <errno.h>

#include "daemon/node/gpus.h"
#include "proto/unmovable.h"

#define MOVER (&w.fakes[0])

static struct td_msg_move told;
static unsigned moves_told;

static void note_moves(void *peer, const struct td_msg *msg)
{
	if (msg->type == TD_MSG_TYPE_move) {
		told = msg->move;
		moves_told++;
	}
	fake_send(peer, msg);
}

static struct td_act *migrate(void)
{
	struct td_act *acts[TD_ACTS_MAX];
	uint32_t count = 0;

	CHECK_EQ(td_actions_order(&w.node, td_identity_local(1000), "mover", TD_ACTION_MIGRATE, "1",
			 w.now, acts, &count, NULL),
		0);
	CHECK_EQ(count, 1);
	return acts[0];
}

/* On GPU 0, where it runs; somebody else's program keeps GPU 1 known. */
static void begin_moves(uint64_t demanded, uint64_t others)
{
	struct fake *other;

	begin_actions();
	moves_told = 0;
	w.node.io.send = note_moves;
	(void)program(0, "mover", demanded);
	MOVER->process->can = TD_CAN_MOVE;
	fake_want(&w, MOVER);
	other = &w.fakes[1];
	fake_hello(&w, other, "other", TD_BACKEND_SWAP, false);
	fake_attach(&w, other, 1, 1, others);
	fake_want(&w, other);
	(void)settle(&w);
	CHECK(is_open(MOVER));
}

static void says_moved(enum td_move_stage stage)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_moved};

	msg.moved.number = told.number;
	msg.moved.stage = (uint8_t)stage;
	msg.moved.from = 0;
	msg.moved.to = 2;
	CHECK_EQ(say(&w, MOVER, &msg), 0);
	(void)settle(&w);
}

static void prepares(void)
{
	CHECK_EQ(moves_told, 1);
	CHECK_EQ(told.stage, TD_MOVE_PREPARE);
	fake_attach(&w, MOVER, 2, 1, 0);
	says_moved(TD_MOVE_PREPARED);
}

static void detaches(uint32_t slot)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_detach};

	msg.detach.slot = slot;
	MOVER->slot[slot].demanded = MOVER->slot[slot].resident = 0;
	CHECK_EQ(say(&w, MOVER, &msg), 0);
}

TEST(a_program_that_gives_up_the_old_context_can_move_again)
{
	const struct td_act *act;

	begin_moves(MIB, MIB);
	act = migrate();
	CHECK_EQ(act->state, TD_ACTION_ASKED);
	CHECK(MOVER->process->moving.number == act->number);
	detaches(0);
	MOVER->slots = 0;
	(void)settle(&w);
	CHECK_EQ(moves_told, 2);
	CHECK_EQ(told.stage, TD_MOVE_CANCEL);
	CHECK(!MOVER->process->moving.number);
}

TEST(nobody_makes_room_for_what_can_never_fit)
{
	const struct td_act *act;

	begin_moves(40 * MIB, 40 * MIB);
	act = migrate();
	prepares();
	CHECK_EQ(act->state, TD_ACTION_REFUSED);
	CHECK(strstr(act->reason, "has room for 24"));
	CHECK_EQ(told.stage, TD_MOVE_CANCEL);
	CHECK_EQ(w.fakes[1].slot[1].resident, 40 * MIB);
	CHECK(is_open(&w.fakes[1]));
}

TEST(a_job_keeps_its_hard_limit_where_it_moves)
{
	const struct td_act *act;

	begin_moves(20 * MIB, MIB);
	limit("mover", "8M");
	(void)settle(&w);
	act = migrate();
	prepares();
	CHECK_EQ(act->state, TD_ACTION_REFUSED);
	CHECK(strstr(act->reason, "has room for 8"));
}

/* The mover may allocate between its last report and the closing of its gate. */
TEST(a_mover_has_more_room_than_it_has_reported)
{
	const struct td_act *act;

	begin_moves(8 * MIB, MIB);
	act = migrate();
	prepares();
	CHECK_EQ(act->state, TD_ACTION_RUNNING);
	CHECK_EQ(told.stage, TD_MOVE_GO);
	CHECK_EQ(MOVER->slot[2].limit, 14 * MIB);
}

TEST(what_was_there_before_is_not_believed_when_memory_has_left)
{
	const struct td_act *act;
	struct td_list *it;

	begin_moves(MIB, MIB);
	act = migrate();
	prepares();
	CHECK_EQ(act->state, TD_ACTION_RUNNING);
	CHECK_EQ(told.stage, TD_MOVE_GO);
	CHECK(MOVER->process->moving.goes);
	td_list_for_each (it, &MOVER->process->clients)
		CHECK(!td_container_of(it, struct td_client, of_process)->was_there);
	/* An act that is done is forgotten, and is not to be looked at any more. */
	says_moved(TD_MOVE_DONE);
	CHECK_EQ(MOVER->process->moves, 1);
	CHECK(!MOVER->process->moving.number && !MOVER->process->moving.goes);
	/* A second DONE changes nothing. */
	says_moved(TD_MOVE_DONE);
	CHECK_EQ(MOVER->process->moves, 1);
}

TEST(a_gpu_of_another_daemon_is_no_place_to_move_to)
{
	const struct td_act *act;
	struct fake *other = &w.fakes[1];
	struct td_msg detach = {.type = TD_MSG_TYPE_detach};

	begin_moves(MIB, MIB);
	w.node.listed_count = 1;
	w.node.listed[0] = (struct td_nvml_gpu){.index = 1};
	memset(w.node.listed[0].uuid, 2, 16);
	detach.detach.slot = 1;
	CHECK_EQ(say(&w, other, &detach), 0);
	other->slots = 0;
	w.foreign = 1;
	act = migrate();
	CHECK_EQ(act->state, TD_ACTION_REFUSED);
	CHECK(strstr(act->reason, "another daemon"));
	CHECK(!moves_told);
}

static void list_gpus(uint32_t count)
{
	struct td_nvml_gpu listed[4] = {0};

	for (uint32_t i = 0; i < count; i++) {
		listed[i] = (struct td_nvml_gpu){.index = i, .total_bytes = 64 * MIB};
		memset(listed[i].uuid, (int)i + 1, 16);
	}
	td_gpus_seen(&w.node, listed, count, w.now);
}

TEST(a_policy_that_moves_jobs_is_shown_gpus_that_have_none)
{
	begin_actions();
	list_gpus(3);
	(void)program(0, "mover", MIB);
	(void)settle(&w);
	CHECK_EQ(w.node.gpu_count, 1);
	planner.needs |= TD_HAS(MIGRATION);
	w.foreign = 2;
	(void)settle(&w);
	CHECK_EQ(w.node.gpu_count, 3);
	CHECK(w.node.gpu_views[1].capacity_bytes && !w.node.gpu_views[1].shut);
	CHECK(w.node.gpu_views[2].shut);
	w.foreign = -1;
	later(S);
	CHECK(!w.node.gpu_views[2].shut);
}

TEST(a_policy_that_need_not_move_jobs_is_shown_no_more_gpus_while_moves_are_off)
{
	begin_actions();
	list_gpus(3);
	(void)program(0, "mover", MIB);
	planner.uses |= TD_HAS(MIGRATION);
	w.node.options.moves = false;
	(void)settle(&w);
	CHECK_EQ(w.node.gpu_count, 1);
	w.node.options.moves = true;
	(void)settle(&w);
	CHECK_EQ(w.node.gpu_count, 3);
}

TEST(a_policy_sees_who_can_move_and_who_moves)
{
	struct td_msg movable = {.type = TD_MSG_TYPE_movable};

	begin_moves(MIB, MIB);
	CHECK(!w.node.views[0].migrates);
	CHECK_EQ(say(&w, MOVER, &movable), 0);
	(void)settle(&w);
	CHECK(w.node.views[0].migrates && !w.node.views[0].moves);
	planned[planned_count++] = (struct td_action){.kind = TD_ACTION_MIGRATE,
		.client = w.node.shown[0]->id,
		.gpu = 1,
		.why = TD_MOVE_OVERLOAD};
	(void)settle(&w);
	planned_count = 0;
	CHECK(!w.node.views[0].migrates && w.node.views[0].moves);
	CHECK_EQ(w.node.views[0].moves_to, 1);
	prepares();
	says_moved(TD_MOVE_DONE);
	CHECK_EQ(MOVER->process->moved.why, TD_MOVE_OVERLOAD);
	CHECK_EQ(MOVER->process->moved.from, 0);
	movable.movable.reasons = TD_UNMOVABLE(GRAPHS);
	CHECK_EQ(say(&w, MOVER, &movable), 0);
	(void)settle(&w);
	for (uint32_t c = 0; c < w.node.shown_count; c++)
		CHECK(!w.node.views[c].migrates);
}

/* It would seem to be busy for seconds, and be moved away again. */
TEST(a_program_that_comes_back_to_a_gpu_is_not_charged_anew_for_the_time_before)
{
	static struct td_meter_page meter;
	const struct td_client *client;

	memset(&meter, 0, sizeof(meter));
	begin_moves(MIB, MIB);
	MOVER->process->meter = &meter;
	CHECK_EQ(td_options_set(&w.node.options, "meter", "on", NULL), 0);
	atomic_store(&meter.used_ns[2], 100 * S);
	atomic_store(&meter.core_ns[2], 100 * S);
	(void)migrate();
	prepares();
	says_moved(TD_MOVE_DONE);
	for (unsigned i = 0; i < 3; i++) {
		w.now += 2 * TD_ACTIVITY_WINDOW_NS;
		atomic_fetch_add(&meter.used_ns[2], TD_ACTIVITY_WINDOW_NS / 5);
		(void)settle(&w);
	}
	client = td_container_of(MOVER->process->clients.prev, struct td_client, of_process);
	CHECK_EQ(client->slot, 2);
	CHECK_EQ(client->activity.used_ppm, 100000);
	CHECK_EQ(client->activity.core_ppm, 0);
	CHECK_EQ(client->activity.used_ns, 3 * (TD_ACTIVITY_WINDOW_NS / 5));
}

TEST(while_a_refusal_is_remembered_a_policy_is_told_that_it_cannot)
{
	struct td_msg movable = {.type = TD_MSG_TYPE_movable};

	begin_moves(40 * MIB, 40 * MIB);
	CHECK_EQ(say(&w, MOVER, &movable), 0);
	(void)migrate();
	prepares();
	CHECK(!w.node.views[0].migrates);
	later(TD_MOVE_REFUSAL_NS);
	later(1);
	CHECK(w.node.views[0].migrates);
}

/* Another daemon has come to it since the move was begun. */
TEST(a_mover_that_finds_no_place_there_stays_where_it_is)
{
	const struct td_act *act;
	struct td_msg attach = {.type = TD_MSG_TYPE_attach}, detach = {.type = TD_MSG_TYPE_detach};

	begin_moves(MIB, MIB);
	act = migrate();
	CHECK_EQ(act->state, TD_ACTION_ASKED);
	detach.detach.slot = 1;
	CHECK_EQ(say(&w, &w.fakes[1], &detach), 0);
	w.fakes[1].slots = 0;
	w.foreign = 1;
	attach.attach.slot = 2;
	attach.attach.total_bytes = 64 * MIB;
	memset(attach.attach.gpu, 2, 16);
	CHECK_EQ(say(&w, MOVER, &attach), 0);
	CHECK_EQ(act->state, TD_ACTION_REFUSED);
	CHECK(strstr(act->reason, "that one is taken"));
	CHECK_EQ(told.stage, TD_MOVE_CANCEL);
	(void)settle(&w);
	CHECK(!MOVER->process->foreign && !MOVER->process->moving.number && is_open(MOVER));
}

/* It will not take what it has not claimed yet when it is stopped. */
TEST(a_mover_that_is_stopped_gives_back_what_it_has_not_claimed)
{
	struct td_msg ask = {
		.type = TD_MSG_TYPE_ask, .ask = {.slot = 1, .ticket = 1, .bytes = 60 * MIB}};

	begin_moves(20 * MIB, MIB);
	(void)migrate();
	prepares();
	CHECK(MOVER->process->moving.goes);
	w.node.io.stop = fake_stop;
	MOVER->slot[2].ceiling.device_bytes = UINT64_MAX;
	CHECK_EQ(say(&w, &w.fakes[1], &ask), 0);
	MOVER->stopped = TD_STOP_SIGNAL;
	for (int i = 0; i < 40; i++)
		later(100 * S / 1000);
	CHECK_EQ(MOVER->process->stop.is, TD_STOP_SIGNAL);
	CHECK_EQ(MOVER->slot[2].ceiling.device_bytes, 0);
}

/* Its allocation waited for an answer, and made way for the move. */
TEST(a_mover_that_stays_asks_again)
{
	struct td_msg ask = {
		.type = TD_MSG_TYPE_ask, .ask = {.slot = 0, .ticket = 1, .bytes = 60 * MIB}};

	begin_moves(20 * MIB, MIB);
	(void)migrate();
	prepares();
	CHECK_EQ(say(&w, MOVER, &ask), 0);
	ask.ask.ticket = 2;
	CHECK_EQ(say(&w, MOVER, &ask), 0);
	CHECK_EQ(say(&w, MOVER, &ask), -EPROTO);
}

/*
 * While the move was prepared, the program itself began to use that GPU. So it keeps the client
 * that was made for the move.
 */
TEST(a_program_that_has_come_to_the_gpu_by_itself_is_answered_there)
{
	struct td_msg failed = {.type = TD_MSG_TYPE_moved};
	struct td_msg ask = {
		.type = TD_MSG_TYPE_ask, .ask = {.slot = 2, .ticket = 1, .bytes = 8 * MIB}};
	const struct td_act *act;

	begin_moves(MIB, MIB);
	act = migrate();
	fake_attach(&w, MOVER, 2, 1, 0);
	failed.moved.number = told.number;
	failed.moved.stage = TD_MOVE_FAILED;
	failed.moved.reasons = TD_UNMOVABLE(SEVERAL_GPUS);
	CHECK_EQ(say(&w, MOVER, &failed), 0);
	CHECK_EQ(act->state, TD_ACTION_REFUSED);
	(void)settle(&w);
	MOVER->slot[2].answer = -1;
	MOVER->slot[2].asked = ask.ask.bytes;
	CHECK_EQ(say(&w, MOVER, &ask), 0);
	(void)settle(&w);
	CHECK_EQ(MOVER->slot[2].answer, TD_ANSWER_OK);
	CHECK(is_open(MOVER));
}

/*
 * A daemon that was started anew meets a program that has just moved, before its old client leaves:
 * it takes the new one for that of a move that it orders meanwhile.
 */
TEST(a_program_whose_old_client_leaves_late_is_on_its_new_gpu)
{
	struct td_msg failed = {.type = TD_MSG_TYPE_moved};
	struct td_msg leaves = {.type = TD_MSG_TYPE_detach, .detach = {.slot = 0}};
	const struct td_act *act;
	struct td_client *client;

	begin_moves(MIB, MIB);
	act = migrate();
	fake_attach(&w, MOVER, 2, 1, 0);
	client = td_container_of(w.node.clients.prev, struct td_client, of_node);
	CHECK(client->aside);
	failed.moved.number = told.number;
	failed.moved.stage = TD_MOVE_FAILED;
	failed.moved.reasons = TD_UNMOVABLE(UNSEEN);
	CHECK_EQ(say(&w, MOVER, &failed), 0);
	CHECK_EQ(act->state, TD_ACTION_REFUSED);
	CHECK(client->aside);
	CHECK_EQ(say(&w, MOVER, &leaves), 0);
	CHECK(!client->aside);
	(void)settle(&w);
	CHECK(is_open(MOVER));
}
