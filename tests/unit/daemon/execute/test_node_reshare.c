/* Another share of the SMs for a running program (execute/reshare.h). */
#include "unit/daemon/action_world.h"

#include "proto/unmovable.h"

#define CLIENT (&w.fakes[0])

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

static void says_why_not(uint64_t reasons)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_movable};

	msg.movable.reasons = TD_UNMOVABLE(MPS);
	msg.movable.share_reasons = reasons;
	CHECK_EQ(say(&w, CLIENT, &msg), 0);
}

static void begin_shares(void)
{
	begin_actions();
	moves_told = 0;
	w.node.io.send = note_moves;
	(void)runs(0, "a");
	CLIENT->process->can = TD_CAN_MOVE | TD_CAN_SHARE;
	says_why_not(0);
}

static int ask_share(const char *share, struct td_act **ret_act, struct td_err *err)
{
	struct td_act *acts[TD_ACTS_MAX];
	uint32_t count = 0;
	int r = td_actions_order(&w.node, td_identity_local(1000), "a", TD_ACTION_SHARE, share,
		w.now, acts, &count, err);

	*ret_act = r ? NULL : acts[0];
	return r;
}

static struct td_act *share(const char *percent)
{
	struct td_act *act;

	CHECK_EQ(ask_share(percent, &act, NULL), 0);
	return act;
}

static void says(enum td_move_stage stage, uint32_t share_ppm, uint64_t reasons)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_moved};

	msg.moved.number = told.number;
	msg.moved.stage = (uint8_t)stage;
	msg.moved.sm_share_ppm = share_ppm;
	msg.moved.reasons = reasons;
	CHECK_EQ(say(&w, CLIENT, &msg), 0);
	(void)settle(&w);
}

static const struct td_client *client(void)
{
	return td_process_client(CLIENT->process);
}

TEST(a_program_that_can_gets_the_share_behind_a_closed_gate)
{
	const struct td_act *act;

	begin_shares();
	act = share("40%");
	CHECK_EQ(act->state, TD_ACTION_ASKED);
	CHECK(told.stage == TD_MOVE_PREPARE && told.sm_share_ppm == 400000);
	(void)settle(&w);
	CHECK(is_open(CLIENT));
	says(TD_MOVE_PREPARED, 0, 0);
	CHECK_EQ(told.stage, TD_MOVE_GO);
	CHECK(!is_open(CLIENT) && CLIENT->process->moving.goes);
	CHECK(!client()->aside);
	says(TD_MOVE_DONE, 400000, 0);
	CHECK_EQ(client()->sm_share_ppm, 400000);
	CHECK(is_open(CLIENT) && !CLIENT->process->moving.number);
	CHECK_EQ(CLIENT->process->reshares, 1);
	CHECK_EQ(CLIENT->process->moves, 0);
}

TEST(the_whole_gpu_is_no_share)
{
	begin_shares();
	(void)share("100%");
	says(TD_MOVE_PREPARED, 0, 0);
	says(TD_MOVE_DONE, TD_PPM, 0);
	CHECK_EQ(client()->sm_share_ppm, 0);
}

TEST(what_prevents_a_move_to_another_gpu_only_does_not_prevent_another_share)
{
	begin_shares();
	CHECK(CLIENT->process->unmovable && !CLIENT->process->unsharable);
	says_why_not(TD_UNMOVABLE(GRAPHS));
	CHECK_EQ(share("40%")->state, TD_ACTION_REFUSED);
	CHECK(strstr(act_of(CLIENT, TD_ACTION_SHARE)->reason, "it has graphs"));
	CHECK(!moves_told);
	CLIENT->process->can = TD_CAN_MOVE;
	says_why_not(0);
	CHECK_EQ(share("40%")->state, TD_ACTION_REFUSED);
}

TEST(what_the_library_refuses_a_second_instance_does)
{
	const struct td_act *act;
	struct fake *s;

	begin_shares();
	s = supervised("a", 1);
	act = share("40%");
	says(TD_MOVE_FAILED, 0, TD_UNMOVABLE(CAPTURE));
	CHECK_EQ(act->kind, TD_ACTION_START_SHADOW);
	CHECK(s->orders == 1 && s->order.kind == TD_ORDER_SHADOW &&
		s->order.sm_share_ppm == 400000 && s->order.number == act->number);
	CHECK(is_open(CLIENT) && !CLIENT->process->moving.number);
	/* The next request waits for the first. */
	says_why_not(TD_UNMOVABLE(GRAPHS));
	act = share("50%");
	CHECK(act->state == TD_ACTION_REFUSED && strstr(act->reason, "already being started"));
	CHECK_EQ(s->orders, 1);
}

TEST(a_program_that_does_not_get_ready_keeps_its_share)
{
	const struct td_act *act;

	begin_shares();
	act = share("40%");
	later(61 * S);
	CHECK_EQ(act->state, TD_ACTION_TIMED_OUT);
	CHECK(told.stage == TD_MOVE_CANCEL && told.sm_share_ppm == 400000);
	CHECK(!CLIENT->process->moving.number && is_open(CLIENT));
	/* It has changed all the same, and says so late. */
	says(TD_MOVE_DONE, 400000, 0);
	CHECK_EQ(client()->sm_share_ppm, 400000);
}

/* It can use no open gate meanwhile, and must find none in the middle of its switch. */
TEST(a_program_that_is_stopped_in_the_switch_finds_its_gate_closed)
{
	const struct td_act *act;

	begin_shares();
	w.node.io.stop = fake_stop;
	act = share("40%");
	says(TD_MOVE_PREPARED, 0, 0);
	CHECK_EQ(told.stage, TD_MOVE_GO);
	CLIENT->stopped = TD_STOP_SIGNAL;
	for (int i = 0; i < 9; i++) {
		later(10 * S);
		CHECK_EQ(act->state, TD_ACTION_RUNNING);
	}
	CHECK_EQ(told.stage, TD_MOVE_GO);
	CHECK(!is_open(CLIENT));
	CLIENT->stopped = TD_STOP_NONE;
	says(TD_MOVE_DONE, 400000, 0);
	CHECK_EQ(client()->sm_share_ppm, 400000);
	CHECK(is_open(CLIENT));
}

TEST(a_program_that_runs_and_does_not_say_that_it_has_switched_is_let_go)
{
	const struct td_act *act;

	begin_shares();
	w.node.io.stop = fake_stop;
	act = share("40%");
	says(TD_MOVE_PREPARED, 0, 0);
	later(31 * S);
	CHECK_EQ(act->state, TD_ACTION_TIMED_OUT);
	CHECK(is_open(CLIENT));
}

/* Its next share waits for many times the pause. */
TEST(a_pause_that_is_longer_than_the_switch_is_not_believed)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_moved};

	begin_shares();
	(void)share("40%");
	says(TD_MOVE_PREPARED, 0, 0);
	w.now += S / 5;
	msg.moved.number = told.number;
	msg.moved.stage = TD_MOVE_DONE;
	msg.moved.sm_share_ppm = 400000;
	msg.moved.pause_ns = UINT64_MAX;
	CHECK_EQ(say(&w, CLIENT, &msg), 0);
	CHECK_EQ(CLIENT->process->reshare_pause_ns, S / 5);
}

TEST(a_program_that_leaves_the_gpu_meanwhile_can_come_back)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_detach};

	begin_shares();
	(void)share("40%");
	CLIENT->slot[0].demanded = CLIENT->slot[0].resident = 0;
	CHECK_EQ(say(&w, CLIENT, &msg), 0);
	CLIENT->slots = 0;
	(void)settle(&w);
	CHECK(!CLIENT->process->moving.number);
}

TEST(a_wrong_share_is_quoted)
{
	struct td_err err = {0};
	struct td_act *act;

	begin_shares();
	CHECK_EQ(ask_share("0%", &act, &err), -ERANGE);
	CHECK(strstr(err.msg, "\"0%\"") && !moves_told);
}
