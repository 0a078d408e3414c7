/* The process's part of the host memory; see host.h. */
#include "preload/link/host.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "base/bounds.h"
#include "base/time.h"
#include "preload/base/agent_calls.h"
#include "preload/base/futex.h"
#include "proto/proto.h"
#include "proto/words.h"

#define RECHECK_NS (200 * TD_NS_PER_MS)

static _Atomic uint64_t taken, granted = UINT64_MAX;
static _Atomic uint64_t expected; /* the total that threads are asking for */
/* number of questions so far; number of answered ones (a futex) */
static _Atomic uint32_t tickets, answered;
/* the last question that was answered with all that was wanted */
static _Atomic uint32_t satisfied;

/* Owned by the agent. */
static struct {
	bool limited, pressed;
	uint64_t asked_bytes;
	uint32_t asked_ticket, seq;
	struct {
		uint32_t ticket, seq;
		uint64_t wanted_bytes, used_bytes;
	} sent;
} self;

static bool fits(uint64_t before, uint64_t bytes, uint64_t own_limit)
{
	uint64_t limit = td_min_u64(own_limit, atomic_load(&granted));

	return before <= limit && bytes <= limit - before;
}

bool td_host_take(uint64_t bytes, uint64_t own_limit)
{
	uint64_t before = atomic_load(&taken);

	do {
		if (!fits(before, bytes, own_limit))
			return false;
	} while (!atomic_compare_exchange_weak(&taken, &before, before + bytes));
	/*
	 * Here `taken` is written, then `granted` is read. The agent does the opposite. So at least
	 * one of the two sees the other's write.
	 */
	if (fits(before, bytes, own_limit))
		return true;
	atomic_fetch_sub(&taken, bytes);
	return false;
}

void td_host_give(uint64_t bytes)
{
	atomic_fetch_sub(&taken, bytes);
}

uint64_t td_host_granted(void)
{
	return atomic_load(&granted);
}

static bool is_answered(uint32_t ticket)
{
	return (int32_t)(atomic_load(&answered) - ticket) >= 0;
}

/*
 * Waits until the question is answered or `bytes` are granted. Returns true if they are granted, or
 * if the answer gave all that was wanted. That may be less than `bytes` if another thread has freed
 * memory meanwhile.
 */
static bool ask(uint64_t bytes)
{
	uint32_t ticket = atomic_fetch_add(&tickets, 1) + 1, seen;

	td_agent_wake();
	/* The limit may be removed or the daemon may go meanwhile; then no answer comes. */
	while (atomic_load(&granted) < bytes && !is_answered(ticket)) {
		seen = atomic_load(&answered);
		if (!is_answered(ticket) && atomic_load(&granted) < bytes)
			td_futex_wait(&answered, seen, RECHECK_NS, false);
	}
	return atomic_load(&granted) >= bytes || (int32_t)(atomic_load(&satisfied) - ticket) >= 0;
}

bool td_host_reserve(uint64_t bytes)
{
	return atomic_load(&granted) >= bytes || ask(bytes);
}

bool td_host_take_asking(uint64_t bytes, uint64_t own_limit)
{
	uint64_t has = atomic_load(&taken);
	bool got = td_host_take(bytes, own_limit);

	if (got || has > own_limit || bytes > own_limit - has)
		return got;
	atomic_fetch_add(&expected, bytes);
	(void)ask(UINT64_MAX);
	got = td_host_take(bytes, own_limit);
	atomic_fetch_sub(&expected, bytes);
	return got;
}

uint64_t td_host_expected(void)
{
	uint64_t bytes = atomic_load(&expected);

	return bytes ? atomic_load(&taken) + bytes : 0;
}

bool td_host_ready(uint64_t bytes)
{
	if (atomic_load(&granted) >= bytes)
		return true;
	if (self.asked_bytes != bytes) {
		self.asked_bytes = bytes;
		self.asked_ticket = atomic_fetch_add(&tickets, 1) + 1;
	}
	return is_answered(self.asked_ticket);
}

bool td_host_is_asking(void)
{
	return !is_answered(atomic_load(&tickets));
}

bool td_host_is_bounded(void)
{
	return self.limited;
}

bool td_host_is_pressed(void)
{
	return self.pressed;
}

bool td_host_message(const struct td_msg_grant *msg)
{
	bool more = msg->host_bytes > atomic_load(&granted), limited = self.limited;

	self.limited = msg->host_bytes != UINT64_MAX;
	/*
	 * A daemon that sets a limit anew has forgotten the earlier request, so it is sent again.
	 */
	if (self.limited && !limited)
		memset(&self.sent, 0, sizeof(self.sent));
	self.pressed = msg->others_wait;
	self.seq = msg->seq;
	atomic_store(&granted, msg->host_bytes);
	if (msg->verdict == TD_ANSWER_OK)
		atomic_store(&satisfied, msg->ticket);
	if (msg->verdict != TD_ANSWER_NONE)
		atomic_store(&answered, msg->ticket);
	td_futex_wake_all(&answered, false);
	return more;
}

static void send_wanted(void (*send)(const struct td_msg *msg), uint32_t ticket, uint64_t bytes)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_ask};

	if (ticket == self.sent.ticket && bytes == self.sent.wanted_bytes)
		return;
	self.sent.ticket = msg.ask.ticket = ticket;
	self.sent.wanted_bytes = msg.ask.bytes = bytes;
	msg.ask.slot = TD_SLOT_HOST;
	msg.ask.kind = TD_ASKED_HOST;
	send(&msg);
}

static void send_used(void (*send)(const struct td_msg *msg), uint64_t bytes)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_used};

	if (self.seq == self.sent.seq && bytes == self.sent.used_bytes)
		return;
	self.sent.seq = msg.used.acked_seq = self.seq;
	self.sent.used_bytes = msg.used.host_bytes = bytes;
	msg.used.slot = TD_SLOT_HOST;
	send(&msg);
}

void td_host_step(void (*send)(const struct td_msg *msg), uint64_t (*wanted)(void))
{
	uint32_t ticket = atomic_load(&tickets);

	if (!self.limited)
		return;
	/*
	 * The ticket was read before wanted(), so `wanted` covers every question up to that ticket.
	 * It is sent first, since a request cannot be withdrawn.
	 */
	send_wanted(send, ticket, wanted());
	send_used(send, atomic_load(&taken));
}

void td_host_anew(void)
{
	self.limited = self.pressed = false;
	self.asked_bytes = self.seq = 0;
	memset(&self.sent, 0, sizeof(self.sent));
	atomic_store(&granted, UINT64_MAX);
	atomic_store(&satisfied, atomic_load(&tickets));
	atomic_store(&answered, atomic_load(&tickets));
	td_futex_wake_all(&answered, false);
}

void td_host_forked(void)
{
	atomic_store(&taken, 0);
	atomic_store(&expected, 0);
	td_host_anew();
}
