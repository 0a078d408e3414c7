/*
 * See moves.h. The agent owns all state here; the mover's preparation runs in a thread of its own.
 */
#include "preload/agent/moves.h"

#include <stdatomic.h>
#include <string.h>

#include "base/time.h"
#include "preload/agent/plans.h"
#include "preload/agent/plans_internal.h"
#include "preload/base/agent_calls.h"
#include "preload/base/thread.h"
#include "preload/context/context.h"
#include "preload/context/marker.h"
#include "proto/unmovable.h"

enum state {
	NONE,
	PREPARING,
	PREPARED,
};

static const struct td_mover *mover;

static struct {
	enum state state;
	uint64_t number;
	bool cancelled;
	/* The thread that prepares the move writes these fields before it sets `ended`. */
	uint8_t gpu[16];
	uint32_t share_ppm; /* 0: it is to go to another GPU */
	bool is_there;
	unsigned slot;
	uint64_t reasons;
} move;
static _Atomic bool ended;
static uint8_t cancelled_gpu[16]; /* target GPU of the last move that was cancelled */

static struct {
	bool is;
	uint64_t reasons, share_reasons;
} told;                  /* the last MOVABLE; is: one was sent */
static uint32_t has_ppm; /* the share that it has by a change; 0: as it was started */
/*
 * TD_UNMOVABLE bits HELD and SAVED: what the driver does with the process, as a daemon has said. A
 * later daemon is told them.
 */
static _Atomic uint64_t held;
static uint64_t seen, seen_share; /* the reasons before */

void td_moves_set_mover(const struct td_mover *m)
{
	mover = m;
}

static void *prepare_main(void *arg)
{
	(void)arg;
	td_marker_adopt_internal();
	move.is_there = mover->prepare(move.gpu, move.share_ppm, &move.slot, &move.reasons);
	atomic_store(&ended, true);
	td_agent_wake();
	return NULL;
}

static void say(void (*send)(const struct td_msg *msg), uint64_t number, enum td_move_stage stage,
	uint64_t reasons)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_moved};

	msg.moved.number = number;
	msg.moved.stage = (uint8_t)stage;
	msg.moved.reasons = reasons;
	msg.moved.to = move.slot;
	send(&msg);
	/* The daemon may take reasons of a failure as those that hold now. */
	if (stage == TD_MOVE_FAILED)
		told.is = false;
}

static void prepare(const struct td_msg_move *msg, void (*send)(const struct td_msg *msg))
{
	if (!mover || move.state != NONE) {
		say(send, msg->number, TD_MOVE_FAILED,
			mover ? TD_UNMOVABLE(BUSY) : TD_UNMOVABLE(LIBRARY));
		return;
	}
	memset(&move, 0, sizeof(move));
	move.number = msg->number;
	memcpy(move.gpu, msg->gpu, sizeof(move.gpu));
	move.share_ppm = msg->sm_share_ppm;
	atomic_store(&ended, false);
	move.state = PREPARING;
	if (!td_thread_start(prepare_main))
		return;
	move.state = NONE;
	say(send, msg->number, TD_MOVE_FAILED, TD_UNMOVABLE(BUSY));
}

/*
 * The moment of the move. Both GPUs' usage is reported before MOVED, so that the daemon never
 * misses the bytes.
 */
static void go(void (*send)(const struct td_msg *msg))
{
	struct td_moved_to to = {.reasons = TD_UNMOVABLE(BUSY)};
	uint64_t began_ns = td_time_now_ns();
	struct td_msg msg = {.type = TD_MSG_TYPE_moved};
	const struct td_plan_slot *plan = td_plans_at(move.slot);
	bool done = false;

	move.state = NONE;
	if (td_plans_is_still() && plan->attached && plan->known)
		done = mover->go(plan->device_bytes, &to);
	if (!done) {
		mover->cancel();
		say(send, move.number, TD_MOVE_FAILED, to.reasons);
		return;
	}
	td_plans_report_slot(move.slot, plan->acknowledged_seq);
	td_plans_report_slot(to.from, td_plans_at(to.from)->acknowledged_seq);
	if (to.sm_share_ppm)
		has_ppm = to.sm_share_ppm;
	msg.moved = (struct td_msg_moved){.number = move.number,
		.stage = TD_MOVE_DONE,
		.from = to.from,
		.to = move.slot,
		.bytes = to.bytes,
		.sm_share_ppm = to.sm_share_ppm,
		.pause_ns = td_time_now_ns() - began_ns};
	send(&msg);
}

static void cancel(void)
{
	if (move.state == PREPARED) {
		move.state = NONE;
		mover->cancel();
	}
	move.cancelled = move.state == PREPARING;
}

static uint64_t reasons(uint64_t *ret_share)
{
	uint64_t by_driver = atomic_load(&held);

	/* Looking for reasons may call the driver, which would block. */
	if (!by_driver) {
		seen_share = TD_UNMOVABLE(LIBRARY);
		seen = mover ? mover->reasons(&seen_share) : TD_UNMOVABLE(LIBRARY);
	}
	*ret_share = seen_share | by_driver;
	return seen | by_driver;
}

static void look(void (*send)(const struct td_msg *msg))
{
	struct td_msg msg = {.type = TD_MSG_TYPE_movable};

	msg.movable.reasons = reasons(&msg.movable.share_reasons);
	if (told.is && told.reasons == msg.movable.reasons &&
		told.share_reasons == msg.movable.share_reasons)
		return;
	told.is = true;
	told.reasons = msg.movable.reasons;
	told.share_reasons = msg.movable.share_reasons;
	send(&msg);
}

static void look_anew(void (*send)(const struct td_msg *msg))
{
	told.is = false;
	look(send);
}

bool td_moves_is_held(void)
{
	return atomic_load_explicit(&held, memory_order_relaxed) != 0;
}

static void set_held(enum td_move_stage stage)
{
	uint64_t share;

	(void)reasons(&share); /* the last moment at which they can be looked for */
	atomic_store(&held, stage == TD_MOVE_HOLD    ? TD_UNMOVABLE(HELD)
			    : stage == TD_MOVE_SAVED ? TD_UNMOVABLE(HELD) | TD_UNMOVABLE(SAVED)
						     : 0);
}

bool td_moves_is_cancelled(const uint8_t gpu[16])
{
	return !memcmp(cancelled_gpu, gpu, sizeof(cancelled_gpu));
}

void td_moves_asked(
	const struct td_msg_move *msg, void (*send)(const struct td_msg *msg), uint64_t now_ns)
{
	bool is_ours = move.state != NONE && msg->number == move.number;

	(void)now_ns;
	if (msg->stage == TD_MOVE_PREPARE)
		memset(cancelled_gpu, 0, sizeof(cancelled_gpu));
	else if (msg->stage == TD_MOVE_CANCEL && !msg->sm_share_ppm)
		memcpy(cancelled_gpu, msg->gpu, sizeof(cancelled_gpu));
	if (msg->stage == TD_MOVE_LOOK)
		look_anew(send);
	else if (msg->stage >= TD_MOVE_HOLD && msg->stage <= TD_MOVE_FREE)
		set_held((enum td_move_stage)msg->stage);
	else if (msg->stage == TD_MOVE_PUT && mover)
		mover->put(msg->gpu);
	else if (msg->stage == TD_MOVE_PREPARE)
		prepare(msg, send);
	else if (msg->stage == TD_MOVE_CANCEL && is_ours)
		cancel();
	else if (msg->stage == TD_MOVE_GO && is_ours && move.state == PREPARED)
		go(send);
	else if (msg->stage == TD_MOVE_GO)
		say(send, msg->number, TD_MOVE_FAILED, TD_UNMOVABLE(BUSY));
}

/* Handles the end of a preparation. The daemon may have cancelled it or be gone by now. */
static void settle(void (*send)(const struct td_msg *msg))
{
	move.state = move.is_there ? PREPARED : NONE;
	if (move.cancelled)
		cancel();
	else if (send)
		say(send, move.number, move.is_there ? TD_MOVE_PREPARED : TD_MOVE_FAILED,
			move.reasons);
	move.cancelled = false;
}

void td_moves_step(void (*send)(const struct td_msg *msg), bool looks)
{
	if (move.state == PREPARING && atomic_load(&ended))
		settle(send);
	/* A policy can move a program that has just come only once it has been told of. */
	if (((looks || (!told.is && td_context_gpu_count())) && td_plans_backend()) ||
		(td_moves_is_held() && !told.is))
		look(send);
}

void td_moves_lost(void)
{
	if (mover)
		cancel();
}

void td_moves_again(void)
{
	told.is = false;
}

uint32_t td_moves_share_ppm(void)
{
	return has_ppm;
}

void td_moves_forget_share(void)
{
	has_ppm = 0;
}

void td_moves_forked(void)
{
	memset(&move, 0, sizeof(move));
	atomic_store(&ended, false);
	atomic_store(&held, 0);
	told.is = false;
	has_ppm = 0;
}
