/* Tells the daemon of shared memory; see shares.h. */
#include "preload/ipc/shares.h"

#include <stdatomic.h>
#include <string.h>

#include "proto/proto.h"

static _Atomic uint64_t shared;     /* lower half: handles; upper half: how often they are open */
static _Atomic uint8_t unreachable; /* enum td_unreachable */
static _Atomic uint32_t denied[TD_DENIED_N];

/* Owned by the agent: the figures as last sent. */
static uint64_t told_shared;
static uint8_t told_unreachable;
static uint32_t told_denied[TD_DENIED_N];

void td_shares_set(uint32_t handles, uint32_t open)
{
	atomic_store_explicit(&shared, (uint64_t)open << 32 | handles, memory_order_relaxed);
}

void td_shares_set_unreachable(enum td_unreachable why)
{
	atomic_store_explicit(&unreachable, (uint8_t)why, memory_order_relaxed);
}

void td_shares_deny(enum td_denied why)
{
	atomic_fetch_add_explicit(&denied[why], 1, memory_order_relaxed);
}

static void tell_shared(void (*send)(const struct td_msg *msg))
{
	struct td_msg msg = {.type = TD_MSG_TYPE_shares};
	uint64_t now = atomic_load_explicit(&shared, memory_order_relaxed);

	msg.shares.unreachable = atomic_load_explicit(&unreachable, memory_order_relaxed);
	if (now == told_shared && msg.shares.unreachable == told_unreachable)
		return;
	told_shared = now;
	told_unreachable = msg.shares.unreachable;
	msg.shares.handles = (uint32_t)now;
	msg.shares.open = (uint32_t)(now >> 32);
	send(&msg);
}

void td_shares_step(void (*send)(const struct td_msg *msg))
{
	tell_shared(send);
	for (uint8_t why = 0; why < TD_DENIED_N; why++) {
		struct td_msg msg = {.type = TD_MSG_TYPE_denied};
		uint32_t now = atomic_load_explicit(&denied[why], memory_order_relaxed);

		if (now == told_denied[why])
			continue;
		msg.denied.why = why;
		msg.denied.count = now - told_denied[why];
		told_denied[why] = now;
		send(&msg);
	}
}

void td_shares_again(void)
{
	told_shared = 0;
	told_unreachable = TD_UNREACHABLE_NOT;
	memset(told_denied, 0, sizeof(told_denied));
}

void td_shares_forked(void)
{
	td_shares_again();
	atomic_store(&shared, 0);
	atomic_store(&unreachable, TD_UNREACHABLE_NOT);
	for (unsigned why = 0; why < TD_DENIED_N; why++)
		atomic_store(&denied[why], 0);
}
