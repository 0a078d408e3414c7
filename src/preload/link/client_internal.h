/* The agent's side of client.c: the requests that the program's threads leave. */
#pragma once

#include "preload/base/backend.h"
#include "preload/link/client.h"

/* The daemon answers (or does not, any more: then nobody waits for an answer). */
void td_client_connected(bool connected);
/* One is there, and does not answer yet: is not let run, as it seems. */
void td_client_set_silent(bool silent);

/* Is WANT to be sent? Taken. */
bool td_client_take_want(void);
/*
 * The daemon will be told that we are idle: the next thread at the gate tells it otherwise, even
 * under an old word.
 */
void td_client_forget_want(void);
/* Does any thread of this process wait at the gate because the gate is closed? */
bool td_client_has_waiters(void);

/* Does any thread wait for the daemon without a bound of its own: at the gate, or for an answer
 * to an allocation? */
bool td_client_is_waiting(void);

/* An allocation to send ASK for; false: none. Taken. */
bool td_client_take_need(
	unsigned slot, uint32_t *ret_ticket, uint64_t *ret_bytes, enum td_mobility *ret_mobility);
/* The daemon knows of so many crossed bytes (stats) when it answers. */
void td_client_told_with_need(unsigned slot, uint64_t crossed_bytes);
/* Does a thread wait for the daemon's answer to an allocation, or for what was granted to land? */
bool td_client_is_allocating(void);

/*
 * The slot has no context any more, so the daemon is not asked: who waits for its answer is
 * refused.
 */
void td_client_refuse(unsigned slot);
/* The bytes of one that was sent and is not answered yet; 0: none. */
uint64_t td_client_asked(unsigned slot);
/* The verdict on the ticket; the limit that came with it is set already. */
void td_client_answer(unsigned slot, uint32_t ticket, enum td_answer verdict);

/* The process may have so much unasked from now on. open: the gate is to be. */
void td_client_set_limit(unsigned slot, uint64_t device_bytes, uint64_t total_bytes, bool open);
/* quota, soft: of the whole job; 0: not known; UINT64_MAX: none. */
void td_client_set_capacity(
	unsigned slot, uint64_t capacity_bytes, uint64_t quota_bytes, uint64_t soft_bytes);
/* From now on (or no longer) an allocation may leave its bytes off the device. */
void td_client_set_defer(unsigned slot, bool may);
/* From now on (or no longer) what is freed may be kept. */
void td_client_set_keep(unsigned slot, bool may);
/* The backend's totals and, with them, what was granted and is not in them yet. */
void td_client_totals(unsigned slot, struct td_memory_stats *ret);
/*
 * Granted to allocations that are about to land on the device, from where their memory can be
 * moved, in bytes. They wait for nothing before they have.
 */
uint64_t td_client_landing(unsigned slot);
/*
 * Around a fill: where the limit is one of what is on the device, nothing is granted by it
 * meanwhile, as it is being used up.
 */
void td_client_fills(unsigned slot, bool begins);
/*
 * Within it: the fill may bring memory there up to this limit, or less where the daemon has taken
 * some back.
 */
uint64_t td_client_claim_fill(unsigned slot, uint64_t limit_bytes);
/*
 * So many bytes come to the slot from another one. False: the daemon has taken its promise back
 * meanwhile. They count as claimed until the next report.
 */
bool td_client_claim_move(unsigned slot, uint64_t device_bytes, uint64_t all_bytes);
/* With each report: of what was claimed, what was not used is free for others again. */
void td_client_claim_only_what_is_there(unsigned slot);
/*
 * Granted to allocations of other memory, which may wait at the gate before they have it: counted
 * as there already, as it cannot leave. In bytes.
 */
uint64_t td_client_staying(unsigned slot);

/* Takes what td_client_short left; 0: nothing. */
uint64_t td_client_take_short(unsigned slot);

/*
 * Have the slot's totals changed since the changes were taken? 0: no. Until they are taken, further
 * changes do not wake the agent.
 */
#define TD_MEMORY_CHANGED 1u
#define TD_MEMORY_AT_ONCE 2u
unsigned td_client_memory_changes(unsigned slot);
unsigned td_client_take_memory(unsigned slot);

void td_client_forked(void);
