/* The part of client.c that the agent calls: it takes the requests of the program's threads. */
#pragma once

#include "preload/base/backend.h"
#include "preload/link/client.h"

/* Tells whether there is a daemon that answers. If not, no thread waits for an answer. */
void td_client_connected(bool connected);
/* Tells whether the daemon is connected but does not answer (it may be stopped). */
void td_client_set_silent(bool silent);

/* Returns whether WANT is to be sent, and takes the request. */
bool td_client_take_want(void);
/*
 * The agent is about to tell the daemon that the process is idle. So the next thread at the gate
 * sends WANT again, even for the same word.
 */
void td_client_forget_want(void);
/* Returns whether a thread of this process waits because the gate is closed. */
bool td_client_has_waiters(void);

/*
 * Returns whether a thread waits for the daemon without a time limit of its own: at the gate, or
 * for the answer to an allocation.
 */
bool td_client_is_waiting(void);

/* Takes an allocation for which ASK is to be sent; false: there is none. */
bool td_client_take_need(
	unsigned slot, uint32_t *ret_ticket, uint64_t *ret_bytes, enum td_mobility *ret_mobility);
/* The ASK was sent when the daemon knew this many crossed bytes (td_memory_stats). */
void td_client_told_with_need(unsigned slot, uint64_t crossed_bytes);
/*
 * Returns whether a thread waits for the daemon's answer to an allocation, or is still making an
 * allocation that was granted.
 */
bool td_client_is_allocating(void);

/*
 * The last context of the slot has ended, so the daemon cannot be asked. Waiting threads are
 * refused memory that moves. The driver decides on other memory: that by handle needs no context.
 */
void td_client_without_context(unsigned slot);
/*
 * Called before the program moves to another GPU. Threads that wait for memory that can move are
 * woken with TD_NEED_MOVES, and ask again after the move.
 */
void td_client_let_move(void);
/* Returns the bytes of the ASK that waits for its answer; 0: none. */
uint64_t td_client_asked(unsigned slot);
/* Passes the verdict on an ASK to its thread. The limit of the same message is set already. */
void td_client_answer(unsigned slot, uint32_t ticket, enum td_answer verdict);

/* Sets how much the process may have without asking. open: the plan opens the gate. */
void td_client_set_limit(unsigned slot, uint64_t device_bytes, uint64_t total_bytes, bool open);
/* Sets limits. quota, soft: of the whole job, in bytes; 0: not known; UINT64_MAX: none. */
void td_client_set_capacity(
	unsigned slot, uint64_t capacity_bytes, uint64_t quota_bytes, uint64_t soft_bytes);
/* Sets whether an allocation may leave its bytes off the device. */
void td_client_set_defer(unsigned slot, bool may);
/* Sets whether memory that the program frees may be kept. */
void td_client_set_keep(unsigned slot, bool may);
/* Gets the backend's totals plus the granted bytes that they do not include yet. */
void td_client_totals(unsigned slot, struct td_memory_stats *ret);
/*
 * Returns the bytes of granted, movable allocations that are still being made. They wait for
 * nothing, so this falls to 0 soon.
 */
uint64_t td_client_landing(unsigned slot);
/*
 * Called before and after a fill. Meanwhile no allocation is granted by a limit of device memory,
 * since the fill is using that limit.
 */
void td_client_fills(unsigned slot, bool begins);
/*
 * Called within a fill. Returns the limit up to which it may bring memory: limit_bytes, or less if
 * the daemon has taken some back.
 */
uint64_t td_client_claim_fill(unsigned slot, uint64_t limit_bytes);
/*
 * Claims bytes that move to the slot from another GPU. False: the daemon has taken its promise
 * back. They count as claimed until the next report.
 */
bool td_client_claim_move(unsigned slot, uint64_t device_bytes, uint64_t all_bytes);
/*
 * Called with each report to the daemon. Memory that was claimed in advance and is not in use is
 * given back, so that other processes may have it.
 */
void td_client_claim_only_what_is_there(unsigned slot);
/*
 * Returns the bytes of granted allocations that cannot move. They may wait at the gate before they
 * are made, and count as allocated already.
 */
uint64_t td_client_staying(unsigned slot);

/* Takes the bytes noted by td_client_short; 0: none. */
uint64_t td_client_take_short(unsigned slot);

/*
 * Returns whether the slot's totals have changed since the changes were last taken; 0: no. Until
 * they are taken, further changes do not wake the agent.
 */
#define TD_MEMORY_CHANGED 1u
#define TD_MEMORY_AT_ONCE 2u
unsigned td_client_memory_changes(unsigned slot);
unsigned td_client_take_memory(unsigned slot);

void td_client_forked(void);
