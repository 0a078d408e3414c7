/*
 * Accounts for memory that several holders share: each was told a bound, and the bounds together
 * must not exceed a limit. Pure.
 *
 * A holder may use up to its bound without asking. Each telling of a bound has a number (seq). A
 * lower bound holds only once the holder has acknowledged it; until then it may not have read it.
 * So a holder is charged the most that it may have: the highest bound since the newest one that it
 * acknowledged, or what it uses if that is more.
 *
 *   tell(b)      told = b; believed = max(believed, b); seq is new
 *   used(u, a)   used = u; acked = a; believed = told if a is the newest seq
 *   charge       max(believed, used)
 *
 * Invariants. Debug builds assert them at each call, and td_quota_check at the end of each step:
 *   1 No telling raises the charges of an account above its limit. Only use beyond the bound, or a
 *     lowered limit, can make them exceed it.
 *   2 A holder that keeps to its bound uses no more than its charge.
 *   3 Only an acknowledgement of the newest bound lowers `believed`, or a ceiling above which the
 *     holder takes nothing without asking.
 *   4 A report of used bytes never raises `told`.
 *   5 Each telling has a higher number than all before, and each request gets one verdict.
 *   6 The account's sum is the sum of its holders' charges.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The value of `told` or `limit` for no bound. Nothing is charged for a bound of this value. */
#define TD_UNBOUNDED UINT64_MAX

/* All sizes are in bytes. A zeroed holding was told nothing and uses nothing. */
struct td_holding {
	uint64_t told;       /* the last bound; TD_UNBOUNDED if there is none */
	uint64_t believed;   /* the highest bound that the holder may still go by */
	uint64_t used;       /* the bytes in use by the holder's last report */
	uint32_t seq, acked; /* the number of the last bound, and of the last acknowledged one */
};

struct td_account {
	uint64_t limit;   /* TD_UNBOUNDED if there is no limit */
	uint64_t charged; /* the sum of all holders' charges */
};

static inline uint64_t td_holding_charge(const struct td_holding *h)
{
	return h->believed > h->used ? h->believed : h->used;
}

/* Returns whether the holder has acknowledged its newest bound. */
static inline bool td_holding_is_heard(const struct td_holding *h)
{
	return h->acked == h->seq;
}

/* Tells the holder a new bound. seq must be higher than all before. */
void td_holding_tell(struct td_holding *h, uint64_t bytes, uint32_t seq);
void td_holding_used(struct td_holding *h, uint64_t bytes, uint32_t acked);
/*
 * A ceiling (gate_page.h) has been written: from now on the holder takes nothing above it without
 * asking. claimed_bytes is what it had claimed below the ceiling by then.
 */
void td_holding_take_back(struct td_holding *h, uint64_t claimed_bytes);

/* Counts one more holder. */
static inline void td_account_add(struct td_account *account, const struct td_holding *h)
{
	account->charged += td_holding_charge(h);
}

/* Returns the part of the limit that is charged to nobody; TD_UNBOUNDED where there is no limit. */
uint64_t td_account_left(const struct td_account *account);
/*
 * Returns the most that the holder can be told so that the charges stay within the limit. If they
 * exceed it, the result is less than the holder's charge.
 */
uint64_t td_account_room(const struct td_account *account, const struct td_holding *h);

/* These do the same as td_holding_*() for a holder that the account counts, and update its sum. */
void td_account_tell(
	struct td_account *account, struct td_holding *h, uint64_t bytes, uint32_t seq);
void td_account_used(
	struct td_account *account, struct td_holding *h, uint64_t bytes, uint32_t acked);
