/* Carries out the daemon's plans: closes, drains, moves memory, reports; see plans.h. */
#include "preload/agent/moves.h"
#include "preload/agent/plans_internal.h"
#include "preload/base/agent_calls.h"
#include "preload/base/backend.h"
#include "preload/base/page.h"

#include <errno.h>
#include <string.h>

#include "base/bounds.h"
#include "base/time.h"
#include "preload/base/settings.h"
#include "preload/context/context.h"
#include "preload/context/drain.h"
#include "preload/driver/driver.h"
#include "preload/gate/gate.h"
#include "preload/measure/steps.h"
#include "preload/link/client_internal.h"
#include "preload/link/host.h"
#include "proto/proto.h"
#include "proto/words.h"

#define NEVER              UINT64_MAX
#define EMPTY_PAUSE_NS     (20 * TD_NS_PER_US)
#define EMPTY_PAUSE_MAX_NS TD_NS_PER_MS
/*
 * USED is sent for a slot at most this often. Acknowledgements, questions, and memory that came
 * from other processes are reported at once.
 */
#define REPORT_EVERY_NS (5 * TD_NS_PER_MS)
/*
 * A move that failed is tried again after RETRY_NS. Where the limit would suffice but another
 * process has not yet freed the device's memory, the pause rises from ROOM_PAUSE_MIN_NS to
 * ROOM_PAUSE_MAX_NS.
 */
#define RETRY_NS          (100 * TD_NS_PER_MS)
#define ROOM_PAUSE_MIN_NS (2 * TD_NS_PER_MS)
#define ROOM_PAUSE_MAX_NS (64 * TD_NS_PER_MS)

static struct td_plan_slot plans[TD_SLOT_MAX];
static td_plans_send_fn send_msg;
static const struct td_backend *_Atomic backend;
static uint64_t drain_deadline_ns; /* from the last GRANT; 0: none has come */

static struct {
	enum td_closing stage;
	uint32_t word; /* the gate word that began this closing */
	uint64_t began_ns, deadline_ns, pause_ns, frozen_ns;
	uint64_t ticket;
} closing;

static uint64_t closings; /* number of closings so far; never reset */
/* If the daemon was lost while the gate was closed and drained, the gate word then; otherwise 0. */
static uint32_t left_behind;

void td_plans_init(td_plans_send_fn send)
{
	send_msg = send;
	td_plans_reset();
}

void td_plans_reset(void)
{
	left_behind = closing.stage == TD_CLOSING_DRAINED ? closing.word : 0;
	memset(plans, 0, sizeof(plans));
	memset(&closing, 0, sizeof(closing));
	for (unsigned i = 0; i < TD_SLOT_MAX; i++)
		td_client_set_keep(i, false);
	td_plans_idle_reset();
}

void td_plans_set_backend(const struct td_backend *b)
{
	backend = b;
}

struct td_plan_slot *td_plans_at(unsigned slot)
{
	return &plans[slot];
}

void td_plans_send(const struct td_msg *msg)
{
	send_msg(msg);
}

const struct td_backend *td_plans_backend(void)
{
	return backend;
}

enum td_closing td_plans_closing(void)
{
	return closing.stage;
}

void td_agent_stats(unsigned slot, struct td_memory_stats *ret)
{
	const struct td_backend *b = backend;

	memset(ret, 0, sizeof(*ret));
	if (b)
		b->stats(slot, ret);
}

/* -- messages -- */

/* Sends STATS, the figures that have no influence on limits, if one of them has changed. */
static void send_stats(unsigned slot, const struct td_memory_stats *stats)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_stats};
	struct td_step_memory step;

	td_steps_get_memory(slot, &step);
	msg.stats = (struct td_msg_stats){.slot = slot,
		.peak_bytes = stats->peak_bytes,
		.in_bytes = stats->in_bytes,
		.out_bytes = stats->out_bytes,
		.swap_ns = stats->move_ns,
		.step_peak_bytes = step.peak_bytes,
		.step_least_bytes = step.least_bytes,
		.by_allocator = step.by_allocator};
	if (plans[slot].has_stats && !memcmp(&plans[slot].stats, &msg.stats, sizeof(msg.stats)))
		return;
	plans[slot].has_stats = true;
	plans[slot].stats = msg.stats;
	send_msg(&msg);
}

void td_plans_report_slot(unsigned slot, uint32_t seq)
{
	struct td_plan_slot *plan = &plans[slot];
	struct td_msg msg = {.type = TD_MSG_TYPE_used};
	struct td_memory_stats stats;

	(void)td_client_take_memory(slot);
	td_plans_decide_keep(slot);
	td_client_claim_only_what_is_there(slot);
	td_client_totals(slot, &stats);
	msg.used = (struct td_msg_used){.slot = slot,
		.acked_seq = seq,
		.device_bytes = stats.resident_bytes,
		.total_bytes = stats.demanded_bytes + stats.paged_bytes,
		.host_bytes = stats.host_bytes,
		.paged_bytes = stats.paged_bytes,
		.fixed_bytes = stats.fixed_bytes,
		.stranded_bytes = stats.stranded_bytes,
		.spilled_bytes = stats.spilled_bytes,
		.cached_bytes = stats.cached_bytes,
		.managed_bytes = stats.managed_bytes,
		.imported_bytes = stats.imported_bytes,
		.given_up_bytes = stats.given_up_bytes};
	plan->acknowledged_seq = seq;
	plan->dirty = plan->urgent = false;
	plan->crossed_bytes = stats.crossed_bytes;
	plan->reported_ns = td_time_now_ns();
	plan->reported_bytes = stats.demanded_bytes;
	if (!plan->has_used || memcmp(&plan->used, &msg.used, sizeof(msg.used)))
		send_msg(&msg);
	plan->has_used = true;
	plan->used = msg.used;
	send_stats(slot, &stats);
}

/*
 * A backend calls this after each part of a move, so that the daemon can pass the freed bytes on
 * meanwhile. The report acknowledges the plan: from now on no allocation is granted beyond its
 * limit, so resident memory only falls.
 */
void td_plans_progress(unsigned slot)
{
	td_plans_report_slot(slot, plans[slot].seq);
}

static uint64_t used_on_device(unsigned slot)
{
	uint64_t free_bytes, total;

	return td_plans_ask_device(slot, &free_bytes, &total) && total > free_bytes
		       ? total - free_bytes
		       : 0;
}

static void send_asks(unsigned slot)
{
	static const uint8_t kinds[] = {[TD_MOVABLE] = TD_ASKED_MOVES,
		[TD_FIXED] = TD_ASKED_STAYS,
		[TD_PAGING] = TD_ASKED_PAGES,
		[TD_PAGED] = TD_ASKED_UNIFIED};
	struct td_msg msg = {.type = TD_MSG_TYPE_ask};
	uint32_t ticket;
	uint64_t bytes;
	enum td_mobility mobility;

	if (!td_client_take_need(slot, &ticket, &bytes, &mobility))
		return;
	/* The daemon adds the request to the reported bytes: report them first. */
	td_plans_report_slot(slot, plans[slot].acknowledged_seq);
	td_client_told_with_need(slot, plans[slot].crossed_bytes);
	msg.ask.slot = slot;
	msg.ask.ticket = ticket;
	msg.ask.bytes = bytes;
	msg.ask.in_use_bytes = used_on_device(slot);
	msg.ask.kind = kinds[mobility];
	msg.ask.refuses = td_settings.host_refuses;
	send_msg(&msg);
}

static void send_want(void)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_want};

	msg.want.word = td_gate_word();
	if (td_client_take_want())
		send_msg(&msg);
}

static void take_grant(const struct td_msg_grant *msg)
{
	struct td_plan_slot *plan;

	if (msg->slot >= TD_SLOT_MAX || !plans[msg->slot].attached)
		return;
	plan = &plans[msg->slot];
	plan->known = true;
	plan->acknowledged = plan->ready = false;
	plan->seq = msg->seq;
	plan->gate = msg->gate;
	if (msg->others_wait && !plan->others_wait)
		td_plans_idle_look();
	plan->others_wait = msg->others_wait;
	plan->device_bytes = msg->device_bytes;
	plan->total_bytes = msg->total_bytes;
	drain_deadline_ns = msg->drain_deadline_ns;
	plan->retry_ns = plan->pause_ns = 0;
	/* From here on no allocation is granted beyond this limit. */
	td_client_set_limit(
		msg->slot, msg->device_bytes, msg->total_bytes, msg->gate == TD_GATE_OPEN);
	td_plans_decide_keep(msg->slot);
	if (msg->verdict != TD_ANSWER_NONE)
		td_client_answer(msg->slot, msg->ticket, (enum td_answer)msg->verdict);
}

void td_plans_message(const struct td_msg *msg)
{
	if (msg->type != TD_MSG_TYPE_grant)
		return;
	if (msg->grant.slot == TD_SLOT_HOST)
		td_plans_host_message(&msg->grant);
	else
		take_grant(&msg->grant);
}

void td_plans_attached(unsigned slot, bool attached)
{
	plans[slot] = (struct td_plan_slot){.attached = attached};
	td_client_set_defer(slot, attached && closing.stage == TD_CLOSING_DRAINED);
	if (attached)
		td_plans_report_slot(slot, 0);
}

void td_plans_report(void)
{
	for (unsigned i = 0; i < TD_SLOT_MAX; i++)
		if (plans[i].attached)
			td_plans_report_slot(i, plans[i].acknowledged_seq);
}

/* -- closing -- */

static void drained(uint64_t now_ns)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_drained};

	closing.stage = TD_CLOSING_DRAINED;
	for (unsigned i = 0; i < TD_SLOT_MAX; i++) {
		if (plans[i].known && plans[i].seq > msg.drained.seq)
			msg.drained.seq = plans[i].seq;
		td_client_set_defer(i, true);
		td_plans_decide_keep(i);
	}
	msg.drained.word = closing.word;
	msg.drained.launches = td_marker_launches();
	msg.drained.frozen_ns = closing.frozen_ns;
	msg.drained.drained_ns = now_ns;
	send_msg(&msg);
}

static void stuck(uint64_t now_ns)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_stuck};

	closing.stage = TD_CLOSING_STUCK;
	for (unsigned i = 0; i < TD_SLOT_MAX; i++)
		if (plans[i].known && plans[i].seq > msg.stuck.seq)
			msg.stuck.seq = plans[i].seq;
	msg.stuck.waited_ns = now_ns - closing.began_ns;
	send_msg(&msg);
}

static void begin_closing(uint32_t word, uint64_t now_ns)
{
	memset(&closing, 0, sizeof(closing));
	closings++;
	closing.stage = TD_CLOSING_EMPTYING;
	closing.word = word;
	closing.began_ns = now_ns;
	closing.deadline_ns =
		now_ns + (drain_deadline_ns ? drain_deadline_ns : td_settings.drain_deadline_ns);
	closing.pause_ns = EMPTY_PAUSE_NS;
	td_gate_barrier();
}

/*
 * Waits until no thread is inside a submitting call. The closed word has been seen and a
 * process-wide barrier made, so no further thread can enter.
 */
static uint64_t empty(uint64_t now_ns)
{
	if (td_marker_any_active()) {
		uint64_t next_ns = now_ns + closing.pause_ns;

		if (closing.pause_ns < EMPTY_PAUSE_MAX_NS)
			closing.pause_ns *= 2;
		return next_ns;
	}
	/*
	 * If nothing was ever submitted, or all of it has ended, the drain thread need not be
	 * woken. It has ended where the driver holds the process, which must not be asked then.
	 */
	closing.ticket = 0;
	if (td_marker_launches() && td_context_gpu_count() && !td_moves_is_held() &&
		!td_drain_is_idle()) {
		closing.ticket = td_drain_begin();
		/* The drain thread could not be started: try again. */
		if (!closing.ticket)
			return now_ns + EMPTY_PAUSE_MAX_NS;
	}
	closing.frozen_ns = now_ns;
	closing.stage = TD_CLOSING_DRAINING;
	return now_ns;
}

static uint64_t step_closing(uint32_t word, uint64_t now_ns)
{
	uint64_t next_ns = NEVER;

	left_behind = 0;
	if (!(word & TD_WORD_CLOSED)) {
		closing.stage = TD_CLOSING_NONE;
		return NEVER;
	}
	if (closing.stage == TD_CLOSING_NONE || closing.word != word)
		begin_closing(word, now_ns);
	if (closing.stage == TD_CLOSING_EMPTYING)
		next_ns = empty(now_ns);
	if (closing.stage == TD_CLOSING_DRAINING && td_drain_is_done(closing.ticket))
		drained(now_ns);
	if (closing.stage != TD_CLOSING_EMPTYING && closing.stage != TD_CLOSING_DRAINING)
		return NEVER;
	if (now_ns >= closing.deadline_ns) {
		stuck(now_ns);
		return NEVER;
	}
	return td_min_u64(next_ns, closing.deadline_ns);
}

uint64_t td_plans_closings(void)
{
	return closings;
}

bool td_plans_is_still(void)
{
	uint32_t word = td_gate_word();

	return word & TD_WORD_CLOSED &&
	       word == (closing.stage == TD_CLOSING_DRAINED ? closing.word : left_behind);
}

/*
 * Tells whether the device cannot reach some of the program's memory. It first ends the deferral of
 * mappings, so that new memory is mapped at once and no more is added meanwhile.
 */
static bool is_anything_away(void)
{
	struct td_memory_stats stats;

	for (unsigned i = 0; backend && backend->reach && i < TD_SLOT_MAX; i++) {
		td_client_set_defer(i, false);
		td_client_totals(i, &stats);
		if (stats.host_bytes > stats.spilled_bytes)
			return true;
	}
	return false;
}

bool td_plans_was_waiting(uint32_t word)
{
	if (!(word & TD_WORD_CLOSED))
		return false;
	return closing.stage == TD_CLOSING_DRAINED || closing.stage == TD_CLOSING_NONE ||
	       is_anything_away();
}

/* -- memory -- */

static int shrink(unsigned slot, uint64_t limit_bytes, void (*note)(unsigned))
{
	return backend ? td_plans_move(slot, limit_bytes, backend->shrink, note) : 0;
}

static int fill(unsigned slot, uint64_t limit_bytes, void (*note)(unsigned))
{
	return backend ? td_plans_move(slot, limit_bytes, backend->fill, note) : 0;
}

/* Returns 0 if the device can reach all of the slot's memory. */
static int reach(unsigned slot, uint64_t limit_bytes, void (*note)(unsigned))
{
	return backend && backend->reach ? td_plans_move(slot, limit_bytes, backend->reach, note)
					 : 1;
}

/*
 * Sends FAILED: a context has failed, so none of this process's memory on that GPU can be moved any
 * more. The program is to see its error instead of waiting for memory.
 */
static void send_failed(unsigned slot)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_failed};
	struct td_memory_stats stats;

	td_agent_stats(slot, &stats);
	msg.failed.slot = slot;
	msg.failed.result = stats.failed;
	send_msg(&msg);
}

static void do_closed(unsigned slot, struct td_plan_slot *plan, uint64_t now_ns)
{
	uint32_t seq = plan->seq;
	int r;

	/*
	 * An allocation granted before this limit came is still being made, and counts too. The
	 * agent is woken when it is done.
	 */
	if (closing.stage != TD_CLOSING_DRAINED || td_client_landing(slot))
		return;
	td_client_set_defer(slot, true);
	/*
	 * Memory that leaves the device needs host memory. The agent waits for the daemon's grant
	 * of it, which wakes it. Then it uses as much as was granted.
	 */
	if (!td_host_ready(td_plans_host_bytes()))
		return;
	r = shrink(slot, plan->device_bytes, td_plans_progress);
	/*
	 * Not all could leave the device. The limit still holds for new allocations, so the report
	 * acknowledges the plan, and the move is tried again.
	 */
	if (r && r != -ENOTRECOVERABLE) {
		plan->retry_ns = now_ns + RETRY_NS;
		td_plans_report_slot(slot, seq);
		return;
	}
	plan->acknowledged = true;
	td_plans_report_slot(slot, seq);
	if (r)
		send_failed(slot);
}

/*
 * Sends SHORTAGE: the limit allows the memory but the device is full. The daemon knows whether
 * another process is still giving memory back.
 */
static void send_shortage(unsigned slot, uint64_t missing_bytes)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_shortage};
	uint64_t total;

	msg.shortage.slot = slot;
	msg.shortage.seq = plans[slot].seq;
	msg.shortage.missing_bytes = missing_bytes;
	if (missing_bytes && td_plans_ask_device(slot, &msg.shortage.free_bytes, &total))
		send_msg(&msg);
}

static void room_is_short(unsigned slot, struct td_plan_slot *plan,
	const struct td_memory_stats *stats, uint64_t now_ns)
{
	uint64_t missing;

	plan->pause_ns = plan->pause_ns ? 2 * plan->pause_ns : ROOM_PAUSE_MIN_NS;
	if (plan->pause_ns > ROOM_PAUSE_MAX_NS)
		plan->pause_ns = ROOM_PAUSE_MAX_NS;
	plan->retry_ns = now_ns + plan->pause_ns;
	/* At most the limit's bytes can be missing on the device. */
	missing = (stats->demanded_bytes < plan->device_bytes ? stats->demanded_bytes
							      : plan->device_bytes);
	missing = missing > stats->resident_bytes ? missing - stats->resident_bytes : 0;
	send_shortage(slot, missing);
}

/*
 * Moves memory beyond the limit to the host, and memory back to the device where there is room.
 * This is possible only while the device is drained, that is, while none of the program's work runs
 * there. Otherwise nothing is moved, and the caller's result `found` is returned.
 */
static int spill(unsigned slot, const struct td_plan_slot *plan, int found)
{
	return closing.stage == TD_CLOSING_DRAINED
		       ? reach(slot, plan->device_bytes, td_plans_progress)
		       : found;
}

/*
 * Returns up to how many bytes the slot may be filled. Room is left for allocations that are
 * granted but not yet made, and for those that threads wait for, if the limit is too low for
 * everything.
 */
static uint64_t fill_to(unsigned slot, const struct td_plan_slot *plan)
{
	uint64_t taken = td_client_landing(slot),
		 limit = td_client_claim_fill(slot, plan->device_bytes);
	struct td_memory_stats stats;

	td_agent_stats(slot, &stats);
	if (stats.demanded_bytes > plan->device_bytes)
		taken += td_client_asked(slot);
	return limit > taken ? limit - taken : 0;
}

static int fill_open(unsigned slot, const struct td_plan_slot *plan)
{
	int r;

	td_client_fills(slot, true);
	r = fill(slot, fill_to(slot, plan), td_plans_progress);
	td_client_fills(slot, false);
	return r;
}

bool td_plans_spills(unsigned slot)
{
	struct td_memory_stats stats;

	if (plans[slot].gate != TD_GATE_OPEN || !backend || !backend->reach)
		return false;
	td_client_totals(slot, &stats);
	return stats.demanded_bytes > plans[slot].device_bytes;
}

static void do_open(unsigned slot, struct td_plan_slot *plan, uint64_t now_ns)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_ready};
	bool spills = td_plans_spills(slot);
	struct td_memory_stats stats;
	int r;

	/* Allocations in progress end first, and the host memory has to be granted. */
	if (spills && closing.stage == TD_CLOSING_DRAINED &&
		(td_client_landing(slot) || !td_host_ready(td_plans_host_bytes())))
		return;
	/*
	 * Deferral ends before the fill, so that the fill maps every allocation made until now, and
	 * later ones map themselves.
	 */
	td_client_set_defer(slot, false);
	r = fill_open(slot, plan);
	if (spills && (r == 0 || r == 1))
		r = spill(slot, plan, r);
	td_plans_report_slot(slot, plan->seq);
	if (r == -ENOTRECOVERABLE) {
		plan->acknowledged = true;
		send_failed(slot);
		return;
	}
	if (r < 0) {
		plan->retry_ns = now_ns + RETRY_NS;
		return;
	}
	if (r) {
		td_agent_stats(slot, &stats);
		/*
		 * If the limit is too low, the daemon will send a higher one, so nothing is left to
		 * do. Otherwise the agent tries again.
		 */
		plan->acknowledged = stats.demanded_bytes > plan->device_bytes && !spills;
		if (!plan->acknowledged)
			room_is_short(slot, plan, &stats, now_ns);
		return;
	}
	td_plans_host_give_back(slot);
	plan->acknowledged = true;
	plan->ready = true;
	msg.ready.slot = slot;
	msg.ready.seq = plan->seq;
	send_msg(&msg);
}

/* After a free the rest may fit the limit. The daemon sends no new one, so fill again. */
static void look_again(unsigned slot, struct td_plan_slot *plan)
{
	struct td_memory_stats stats;

	if (!plan->known || !plan->acknowledged || plan->ready || plan->gate == TD_GATE_CLOSED)
		return;
	td_client_totals(slot, &stats);
	if (!stats.failed && stats.demanded_bytes <= plan->device_bytes)
		plan->acknowledged = false;
}

/*
 * Notes that the program's threads have changed memory. Taking a change makes the next one wake the
 * agent again. So changes that only have to be reported are not taken until the report: a program
 * that allocates all the time wakes the agent once per report.
 */
static void note_changes(unsigned slot, struct td_plan_slot *plan)
{
	bool done = plan->acknowledged && (plan->ready || plan->gate == TD_GATE_CLOSED);
	unsigned changed =
		plan->known && !done ? td_client_take_memory(slot) : td_client_memory_changes(slot);

	plan->dirty |= changed != 0;
	plan->urgent |= (changed & TD_MEMORY_AT_ONCE) != 0;
}

static uint64_t step_memory(uint64_t now_ns)
{
	uint64_t next_ns = NEVER;

	for (unsigned i = 0; i < TD_SLOT_MAX; i++) {
		struct td_plan_slot *plan = &plans[i];

		if (!plan->attached)
			continue;
		note_changes(i, plan);
		look_again(i, plan);
		if (plan->known && !plan->acknowledged && now_ns >= plan->retry_ns) {
			if (plan->gate == TD_GATE_CLOSED)
				do_closed(i, plan, now_ns);
			else
				do_open(i, plan, now_ns);
		}
		if (plan->known && !plan->acknowledged && plan->retry_ns)
			next_ns = td_min_u64(next_ns, plan->retry_ns);
		next_ns = td_min_u64(next_ns, td_plans_host_again(i, now_ns));
		send_asks(i);
		send_shortage(i, td_client_take_short(i));
		if (plan->urgent || (plan->dirty && now_ns >= plan->reported_ns + REPORT_EVERY_NS))
			td_plans_report_slot(i, plan->acknowledged_seq);
		if (plan->dirty)
			next_ns = td_min_u64(next_ns, plan->reported_ns + REPORT_EVERY_NS);
	}
	return next_ns;
}

bool td_plans_fill_alone(void)
{
	unsigned count = td_context_gpu_count();
	bool all = true;

	for (unsigned i = 0; i < count; i++) {
		int r;

		td_client_set_defer(i, false);
		r = fill(i, UINT64_MAX, td_client_memory_changed);
		if (r && r != -ENOTRECOVERABLE)
			r = reach(i, UINT64_MAX, td_client_memory_changed);
		/* A failed context does not count: the program is to see its error. */
		if (r && r != -ENOTRECOVERABLE)
			all = false;
	}
	return all;
}

void td_plans_close(uint64_t now_ns)
{
	send_want();
	(void)step_closing(td_gate_word(), now_ns);
}

uint64_t td_plans_step(uint64_t now_ns)
{
	uint32_t word = td_gate_word();
	uint64_t next_ns;

	send_want();
	next_ns = step_closing(word, now_ns);
	next_ns = td_min_u64(next_ns, step_memory(now_ns));
	td_plans_host_step();
	return td_min_u64(next_ns, td_plans_idle_step(word, now_ns));
}
