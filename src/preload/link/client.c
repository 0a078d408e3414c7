/*
 * Requests of the program's threads; see client.h. Threads write words and wake the agent. Only the
 * agent uses the connection, so no thread can write to a descriptor that the program has reused.
 */
#include "preload/link/client.h"

#include <errno.h>

#include "base/parse.h"
#include "base/time.h"
#include "preload/base/agent_calls.h"
#include "preload/base/backend.h"
#include "preload/base/futex.h"
#include "preload/base/lock.h"
#include "preload/base/page.h"
#include "preload/base/settings.h"
#include "preload/context/context.h"
#include "preload/link/client_internal.h"
#include "preload/link/client_ledger.h"

#define RECHECK_NS (200 * TD_NS_PER_MS)
/*
 * A daemon that is connected but silent is waited for at most this long. After that the process
 * goes on without it.
 */
#define SILENT_MAX_NS (60 * TD_NS_PER_S)

/* Answers besides the daemon's verdicts: the daemon has gone; the program is about to move. */
#define ALONE UINT32_MAX
#define MOVES (UINT32_MAX - 1)

#define LEDGER                                                                                     \
	{                                                                                          \
		.need_lock = TD_LOCK_INIT(TD_RANK_NEED), .lock = TD_LOCK_INIT(TD_RANK_LEDGER)      \
	}

struct ledger td_ledgers[TD_SLOT_MAX] = {LEDGER, LEDGER, LEDGER, LEDGER, LEDGER, LEDGER, LEDGER,
	LEDGER, LEDGER, LEDGER, LEDGER, LEDGER, LEDGER, LEDGER, LEDGER, LEDGER};
static _Atomic bool connected;
/* Since when the daemon is silent (monotonic ns); 0: it is not. */
static _Atomic uint64_t silent_since_ns;
static _Atomic uint32_t links; /* futex; changes with `connected` and the silence */
/*
 * The gate word for which a thread last woke the agent, plus one (0: none). Each word wakes it
 * once.
 */
static _Atomic uint64_t want_asked;
/*
 * want_told: the daemon knows, or will be told, that the process wants the GPU. want_open: the
 * agent has to send WANT.
 */
static _Atomic bool want_told, want_open;
static _Atomic uint32_t waiters;

/* -- the gate -- */

void td_client_want(uint32_t word)
{
	uint64_t key = (uint64_t)word + 1;

	if (!atomic_load_explicit(&connected, memory_order_relaxed) ||
		atomic_load(&want_asked) == key || atomic_exchange(&want_asked, key) == key)
		return;
	/*
	 * If the daemon arms the gate, it believes that the process is idle. So it must be told
	 * again that the process wants the GPU.
	 */
	if (!atomic_exchange(&want_told, true) || word & TD_WORD_ARMED)
		atomic_store(&want_open, true);
	td_agent_wake();
}

bool td_client_take_want(void)
{
	return atomic_exchange(&want_open, false);
}

void td_client_forget_want(void)
{
	atomic_store(&want_told, false);
	atomic_store(&want_asked, 0);
}

void td_client_waits(bool begins)
{
	atomic_fetch_add(&waiters, begins ? 1u : -1u);
}

bool td_client_has_waiters(void)
{
	return atomic_load(&waiters) != 0;
}

/* -- memory -- */

static struct ledger *ledger_of(unsigned slot)
{
	return slot < TD_SLOT_MAX ? &td_ledgers[slot] : NULL;
}

static struct promises promises_of(struct ledger *ledger)
{
	struct promises p;

	td_lock_take(&ledger->lock);
	p = (struct promises){ledger->landing_bytes, ledger->staying_bytes, ledger->deferred_bytes,
		ledger->paged_bytes, ledger->changes};
	td_lock_drop(&ledger->lock);
	return p;
}

/*
 * Gets the backend's stats together with the promises. The counter of changes makes sure that bytes
 * that settle meanwhile are counted exactly once.
 */
struct promises td_ledger_totals(unsigned slot, struct td_memory_stats *ret)
{
	struct promises before, after;

	do {
		before = promises_of(&td_ledgers[slot]);
		td_agent_stats(slot, ret);
		after = promises_of(&td_ledgers[slot]);
	} while (before.changes != after.changes);
	ret->demanded_bytes += after.landing_bytes + after.staying_bytes + after.deferred_bytes;
	ret->resident_bytes += after.landing_bytes + after.staying_bytes;
	ret->fixed_bytes += after.staying_bytes;
	ret->host_bytes += after.deferred_bytes;
	ret->paged_bytes += after.paged_bytes;
	ret->cached_bytes = atomic_load(&td_ledgers[slot].cached_bytes);
	if (ret->cached_bytes > ret->demanded_bytes)
		ret->cached_bytes = ret->demanded_bytes;
	if (ret->peak_bytes < ret->demanded_bytes)
		ret->peak_bytes = ret->demanded_bytes;
	return after;
}

bool td_client_is_allocating(void)
{
	for (unsigned i = 0; i < TD_SLOT_MAX; i++) {
		struct promises p = promises_of(&td_ledgers[i]);

		if (atomic_load(&td_ledgers[i].need) != NEED_NONE || p.landing_bytes ||
			p.staying_bytes)
			return true;
	}
	return false;
}

bool td_client_is_waiting(void)
{
	for (unsigned i = 0; i < TD_SLOT_MAX; i++)
		if (td_client_asked(i))
			return true;
	return td_client_has_waiters();
}

static uint64_t *device_part(struct ledger *ledger, enum td_mobility mobility)
{
	return mobility == TD_MOVABLE ? &ledger->landing_bytes : &ledger->staying_bytes;
}

static uint64_t *promised(struct ledger *ledger, int need, enum td_mobility mobility)
{
	if (need == TD_NEED_DEVICE)
		return device_part(ledger, mobility);
	return need == TD_NEED_HOST && mobility == TD_PAGED ? &ledger->paged_bytes
							    : &ledger->deferred_bytes;
}

/*
 * Returns the memory that was imported, or that was exported and given up, since the daemon's last
 * answer. The limit may fall because of it (docs/decisions/0009).
 */
static uint64_t unheeded_bytes(struct ledger *ledger, const struct td_memory_stats *stats)
{
	uint64_t heeded = atomic_load(&ledger->heeded_bytes);

	return stats->crossed_bytes > heeded ? stats->crossed_bytes - heeded : 0;
}

static bool fits(uint64_t has, uint64_t bytes, uint64_t most)
{
	return has <= most && bytes <= most - has;
}

/*
 * Returns whether the limits allow these bytes. The caller holds need_lock, and only its holder, or
 * the agent for it, makes promises. So the process's memory can only shrink meanwhile, except by a
 * fill; during a fill, all memory counts as on the device.
 */
static bool limit_covers(
	struct ledger *ledger, unsigned slot, uint64_t bytes, enum td_mobility mobility)
{
	struct td_memory_stats stats;
	uint64_t crossed, device, all;
	bool covers;

	td_ledger_lock_totals(ledger, slot, &stats);
	crossed = unheeded_bytes(ledger, &stats);
	device = ledger->fills ? stats.demanded_bytes : stats.resident_bytes;
	all = stats.demanded_bytes + stats.paged_bytes;
	covers = fits(all + crossed, bytes, ledger->total_bytes) &&
		 fits(device + crossed, bytes, ledger->device_bytes) &&
		 td_ledger_claim(slot, device + bytes, all + bytes);
	if (covers) {
		*device_part(ledger, mobility) += bytes;
		ledger->changes++;
	}
	td_lock_drop(&ledger->lock);
	return covers;
}

/* Returns a limit of the job, as the daemon or else the process's own environment gives it. */
static uint64_t limit_of(_Atomic uint64_t *told, const char *text, unsigned slot)
{
	uint64_t bytes = atomic_load(told), unknown = 0;
	struct td_gpu_info gpu;

	if (bytes)
		return bytes;
	if (!*text)
		bytes = UINT64_MAX;
	else if (!td_context_gpu(slot, &gpu))
		return UINT64_MAX; /* not known until its GPU is known */
	else if (td_parse_size(text, gpu.total_bytes, &bytes, NULL))
		bytes = UINT64_MAX;
	/* The daemon may have told it meanwhile. */
	return atomic_compare_exchange_strong(told, &unknown, bytes) ? bytes : unknown;
}

static uint64_t quota_of(struct ledger *ledger, unsigned slot)
{
	return limit_of(&ledger->quota_bytes, td_settings.mem, slot);
}

bool td_client_has_limit(unsigned slot)
{
	struct ledger *ledger = ledger_of(slot);

	return ledger && quota_of(ledger, slot) != UINT64_MAX;
}

/*
 * Returns whether the job's limit allows these bytes, if this process alone uses it. The caller
 * holds need_lock.
 */
static bool quota_covers(struct ledger *ledger, unsigned slot, uint64_t bytes)
{
	uint64_t quota = quota_of(ledger, slot), has;
	struct td_memory_stats stats;

	if (quota == UINT64_MAX)
		return true;
	(void)td_ledger_totals(slot, &stats);
	has = stats.demanded_bytes + stats.paged_bytes;
	return has <= quota && bytes <= quota - has;
}

/* Makes a promise: the bytes count from now on, although the allocation is still being made. */
static void promise(struct ledger *ledger, uint64_t bytes, int need, enum td_mobility mobility)
{
	td_lock_take(&ledger->lock);
	*promised(ledger, need, mobility) += bytes;
	ledger->changes++;
	td_lock_drop(&ledger->lock);
}

/*
 * Waits for the daemon's answer, or until there is no daemon. The agent makes the promise together
 * with the answer. Otherwise a report in between would tell the daemon that the bytes are not
 * wanted.
 */
static uint32_t ask(struct ledger *ledger, uint64_t bytes, enum td_mobility mobility)
{
	uint32_t state;

	ledger->ticket++;
	ledger->need_bytes = bytes;
	ledger->need_mobility = mobility;
	atomic_store(&ledger->need, NEED_ASKED);
	td_agent_wake();
	while ((state = atomic_load(&ledger->need)) != NEED_ANSWERED) {
		if (!atomic_load(&connected) && state == NEED_ASKED &&
			atomic_compare_exchange_strong(&ledger->need, &state, NEED_NONE))
			return ALONE;
		td_futex_wait(&ledger->need, state, RECHECK_NS, false);
	}
	state = ledger->granted;
	atomic_store(&ledger->need, NEED_NONE);
	return state;
}

/*
 * Decides without a daemon. If the gate is closed, the bytes stay off the device until this process
 * runs on its own, because others may be using the device.
 */
static int alone(struct ledger *ledger, unsigned slot, uint64_t bytes, enum td_mobility mobility)
{
	uint64_t soft = limit_of(&ledger->soft_bytes, td_settings.mem_soft, slot);
	struct td_memory_stats stats;

	if (td_gate_word() & TD_WORD_CLOSED)
		return TD_NEED_LATER;
	if (mobility != TD_MOVABLE || soft == UINT64_MAX)
		return TD_NEED_DEVICE;
	(void)td_ledger_totals(slot, &stats);
	return stats.resident_bytes <= soft && bytes <= soft - stats.resident_bytes ? TD_NEED_DEVICE
										    : TD_NEED_HOST;
}

static int go_alone(struct ledger *ledger, unsigned slot, uint64_t bytes, enum td_mobility mobility)
{
	int r = alone(ledger, slot, bytes, mobility);

	promise(ledger, bytes, r, mobility);
	/* A daemon that has come meanwhile does not know these bytes. */
	td_client_memory_changed(slot);
	return r;
}

static int granted(uint32_t verdict)
{
	switch (verdict) {
	case TD_ANSWER_OK: return TD_NEED_DEVICE;
	case TD_ANSWER_LATER: return TD_NEED_LATER;
	case TD_ANSWER_HOST: return TD_NEED_HOST;
	case MOVES: return TD_NEED_MOVES;
	default: return TD_NEED_REFUSED;
	}
}

/*
 * Waits for a silent daemon, if the job has a limit: other processes of the job may have what this
 * one would take by the limit alone. The wait is limited, and ends without a refusal, because most
 * jobs are one process. A daemon that has gone is not waited for.
 */
static void await_answers(struct ledger *ledger, unsigned slot)
{
	for (;;) {
		uint32_t seen = atomic_load(&links);
		uint64_t since_ns = atomic_load(&silent_since_ns);

		if (!since_ns || atomic_load(&connected) ||
			td_time_now_ns() >= since_ns + SILENT_MAX_NS ||
			quota_of(ledger, slot) == UINT64_MAX)
			return;
		td_futex_wait(&links, seen, RECHECK_NS, false);
	}
}

int td_client_need(unsigned slot, uint64_t bytes, enum td_mobility mobility)
{
	struct ledger *ledger = ledger_of(slot);
	uint32_t answer;
	int r = TD_NEED_DEVICE;

	if (!ledger)
		return TD_NEED_DEVICE;
	td_lock_take(&ledger->need_lock);
	await_answers(ledger, slot);
	/* A daemon that knows the limit refuses by itself and records it. */
	if (!(atomic_load(&connected) && atomic_load(&ledger->quota_told)) &&
		!quota_covers(ledger, slot, bytes))
		r = TD_NEED_REFUSED;
	else if (!atomic_load(&connected))
		r = go_alone(ledger, slot, bytes, mobility);
	else if (!limit_covers(ledger, slot, bytes, mobility)) {
		answer = ask(ledger, bytes, mobility);
		if (answer == ALONE)
			r = quota_covers(ledger, slot, bytes)
				    ? go_alone(ledger, slot, bytes, mobility)
				    : TD_NEED_REFUSED;
		else
			r = granted(answer);
	}
	td_lock_drop(&ledger->need_lock);
	return r;
}

static void take_off(uint64_t *bytes, uint64_t n)
{
	*bytes -= n < *bytes ? n : *bytes;
}

void td_client_settled(unsigned slot, uint64_t bytes, int need, enum td_mobility mobility)
{
	struct ledger *ledger = ledger_of(slot);

	if (!ledger)
		return;
	td_lock_take(&ledger->lock);
	take_off(promised(ledger, need, mobility), bytes);
	ledger->changes++;
	td_lock_drop(&ledger->lock);
	td_client_memory_changed(slot);
}

void td_client_short(unsigned slot, uint64_t missing_bytes)
{
	struct ledger *ledger = ledger_of(slot);

	if (!ledger)
		return;
	atomic_store(&ledger->short_bytes, missing_bytes);
	td_agent_wake();
}

uint64_t td_client_take_short(unsigned slot)
{
	return atomic_exchange(&td_ledgers[slot].short_bytes, 0);
}

uint64_t td_client_excess(unsigned slot)
{
	struct ledger *ledger = ledger_of(slot);
	struct td_memory_stats stats;
	uint64_t limit;

	if (!ledger || !atomic_load(&connected))
		return 0;
	td_lock_take(&ledger->lock);
	limit = ledger->open ? ledger->device_bytes : UINT64_MAX;
	td_lock_drop(&ledger->lock);
	if (limit == UINT64_MAX)
		return 0;
	(void)td_ledger_totals(slot, &stats);
	return stats.resident_bytes > limit ? stats.resident_bytes - limit : 0;
}

void td_client_set_cached(unsigned slot, uint64_t bytes)
{
	struct ledger *ledger = ledger_of(slot);

	if (ledger && atomic_exchange(&ledger->cached_bytes, bytes) != bytes)
		td_client_memory_changed(slot);
}

bool td_client_is_alone(void)
{
	return !atomic_load(&connected);
}

bool td_client_may_defer(unsigned slot)
{
	const struct ledger *ledger = ledger_of(slot);

	return ledger && atomic_load(&ledger->may_defer);
}

bool td_client_may_keep(unsigned slot)
{
	const struct ledger *ledger = ledger_of(slot);

	return ledger && atomic_load(&ledger->may_keep);
}

void td_client_memory_changed(unsigned slot)
{
	struct ledger *ledger = ledger_of(slot);

	if (ledger && !atomic_fetch_or(&ledger->memory_changed, TD_MEMORY_CHANGED))
		td_agent_wake();
}

void td_client_memory_changed_now(unsigned slot)
{
	const unsigned both = TD_MEMORY_CHANGED | TD_MEMORY_AT_ONCE;
	struct ledger *ledger = ledger_of(slot);

	if (ledger && atomic_fetch_or(&ledger->memory_changed, both) != both)
		td_agent_wake();
}

uint64_t td_client_visible(unsigned slot)
{
	struct ledger *ledger = ledger_of(slot);
	uint64_t capacity = td_client_capacity(slot);
	uint64_t quota = ledger ? quota_of(ledger, slot) : UINT64_MAX;

	return quota < capacity ? quota : capacity;
}

uint64_t td_client_others(unsigned slot)
{
	_Static_assert(sizeof(td_gate.page.others_bytes) / sizeof(uint64_t) == TD_SLOT_MAX,
		"one per slot");

	return slot < TD_SLOT_MAX ? atomic_load(&td_gate.page.others_bytes[slot]) : 0;
}

uint64_t td_client_capacity(unsigned slot)
{
	const struct ledger *ledger = ledger_of(slot);
	uint64_t capacity = ledger ? atomic_load(&ledger->capacity_bytes) : 0;
	struct td_gpu_info gpu;

	if (!capacity && td_context_gpu(slot, &gpu))
		capacity = gpu.total_bytes;
	return capacity;
}

/* -- the agent's side -- */

static void answered(struct ledger *ledger, uint32_t answer)
{
	ledger->granted = answer;
	atomic_store(&ledger->need, NEED_ANSWERED);
	td_futex_wake_all(&ledger->need, false);
}

static void link_changed(void)
{
	atomic_fetch_add(&links, 1);
	td_futex_wake_all(&links, false);
}

void td_client_set_silent(bool silent)
{
	uint64_t never = 0;

	if (!silent)
		atomic_store(&silent_since_ns, 0);
	else
		(void)atomic_compare_exchange_strong(&silent_since_ns, &never, td_time_now_ns());
	link_changed();
}

void td_client_connected(bool now)
{
	atomic_store(&connected, now);
	link_changed();
	td_client_forget_want();
	atomic_store(&want_open, false);
	for (unsigned i = 0; i < TD_SLOT_MAX; i++) {
		td_client_set_limit(i, 0, 0, false);
		atomic_store(&td_ledgers[i].heeded_bytes, 0);
		if (now)
			continue;
		if (atomic_load(&td_ledgers[i].need) == NEED_SENT)
			answered(&td_ledgers[i], ALONE);
		td_futex_wake_all(&td_ledgers[i].need, false);
	}
}

bool td_client_take_need(
	unsigned slot, uint32_t *ret_ticket, uint64_t *ret_bytes, enum td_mobility *ret_mobility)
{
	struct ledger *ledger = &td_ledgers[slot];
	uint32_t state = NEED_ASKED;

	if (!atomic_compare_exchange_strong(&ledger->need, &state, NEED_SENT))
		return false;
	*ret_ticket = ledger->ticket;
	*ret_bytes = ledger->need_bytes;
	*ret_mobility = ledger->need_mobility;
	return true;
}

void td_client_told_with_need(unsigned slot, uint64_t crossed_bytes)
{
	td_ledgers[slot].need_crossed_bytes = crossed_bytes;
}

void td_client_without_context(unsigned slot)
{
	struct ledger *ledger = &td_ledgers[slot];
	uint32_t state = NEED_ASKED;

	if (atomic_compare_exchange_strong(&ledger->need, &state, NEED_SENT) || state == NEED_SENT)
		answered(ledger, ledger->need_mobility == TD_MOVABLE ? TD_ANSWER_NO : ALONE);
}

void td_client_let_move(void)
{
	for (unsigned i = 0; i < TD_SLOT_MAX; i++) {
		struct ledger *ledger = &td_ledgers[i];
		uint32_t state = atomic_load(&ledger->need);

		if ((state != NEED_ASKED && state != NEED_SENT) ||
			ledger->need_mobility != TD_MOVABLE ||
			!atomic_compare_exchange_strong(&ledger->need, &state, NEED_SENT))
			continue;
		/* The report tells the daemon that the bytes are not wanted there now. */
		td_client_memory_changed(i);
		answered(ledger, MOVES);
	}
}

uint64_t td_client_asked(unsigned slot)
{
	return atomic_load(&td_ledgers[slot].need) == NEED_SENT ? td_ledgers[slot].need_bytes : 0;
}

void td_client_answer(unsigned slot, uint32_t ticket, enum td_answer verdict)
{
	struct ledger *ledger = &td_ledgers[slot];
	int need = granted(verdict);

	if (atomic_load(&ledger->need) != NEED_SENT || ledger->ticket != ticket)
		return;
	atomic_store(&ledger->heeded_bytes, ledger->need_crossed_bytes);
	if (!td_ledger_claim_answer(ledger, slot, need)) {
		ledger->ticket++;
		atomic_store(&ledger->need, NEED_ASKED);
		return;
	}
	if (need != TD_NEED_REFUSED)
		promise(ledger, ledger->need_bytes, need, ledger->need_mobility);
	answered(ledger, verdict);
}

void td_client_set_limit(unsigned slot, uint64_t device_bytes, uint64_t total_bytes, bool open)
{
	struct ledger *ledger = &td_ledgers[slot];

	td_lock_take(&ledger->lock);
	ledger->device_bytes = device_bytes;
	ledger->total_bytes = total_bytes;
	ledger->open = open;
	td_lock_drop(&ledger->lock);
}

void td_client_set_capacity(
	unsigned slot, uint64_t capacity_bytes, uint64_t quota_bytes, uint64_t soft_bytes)
{
	if (slot >= TD_SLOT_MAX)
		return;
	atomic_store(&td_ledgers[slot].capacity_bytes, capacity_bytes);
	atomic_store(&td_ledgers[slot].quota_bytes, quota_bytes);
	atomic_store(&td_ledgers[slot].soft_bytes, soft_bytes);
	atomic_store(&td_ledgers[slot].quota_told, quota_bytes != 0);
}

void td_client_set_defer(unsigned slot, bool may)
{
	atomic_store(&td_ledgers[slot].may_defer, may);
}

void td_client_set_keep(unsigned slot, bool may)
{
	atomic_store(&td_ledgers[slot].may_keep, may);
}

void td_client_totals(unsigned slot, struct td_memory_stats *ret)
{
	(void)td_ledger_totals(slot, ret);
}

uint64_t td_client_landing(unsigned slot)
{
	return promises_of(&td_ledgers[slot]).landing_bytes;
}

void td_client_fills(unsigned slot, bool begins)
{
	struct ledger *ledger = &td_ledgers[slot];

	td_lock_take(&ledger->lock);
	ledger->fills = begins;
	ledger->changes++;
	td_lock_drop(&ledger->lock);
}

uint64_t td_client_staying(unsigned slot)
{
	return promises_of(&td_ledgers[slot]).staying_bytes;
}

unsigned td_client_memory_changes(unsigned slot)
{
	return atomic_load(&td_ledgers[slot].memory_changed);
}

unsigned td_client_take_memory(unsigned slot)
{
	return atomic_exchange(&td_ledgers[slot].memory_changed, 0);
}

void td_client_forked(void)
{
	for (unsigned i = 0; i < TD_SLOT_MAX; i++)
		td_ledgers[i] = (struct ledger)LEDGER;
	atomic_store(&connected, false);
	atomic_store(&silent_since_ns, 0);
	td_client_forget_want();
	atomic_store(&want_open, false);
	atomic_store(&waiters, 0);
}
