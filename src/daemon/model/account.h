/*
 * The account of memory that several holders share: who was told how much, and who may have how
 * much by that. Pure.
 *
 * A holder may use up to the bytes that it was told without asking, and each telling has a number.
 * A lower bound holds once the holder has acknowledged it: until then it may not have read it. So a
 * holder is charged the most that it may have: the highest bound since the one that it acknowledged
 * as the newest, or what it uses if that is more.
 *
 *   tell(b)      told = b; believed = max(believed, b); seq is new
 *   used(u, a)   used = u; acked = a; believed = told if a is the newest seq
 *   charge       max(believed, used)
 *
 * Invariants. Debug builds assert them at each call, and td_quota_check at the end of each step:
 *   1 No telling raises the charges of an account above its limit. Only what is used beyond it
 *     does, or a lower limit.
 *   2 A holder that keeps to its bound uses no more than its charge.
 *   3 Only an acknowledgement of the newest bound lowers what a holder believes, or a ceiling above
 *     which it takes nothing without asking.
 *   4 What is used never raises what is told.
 *   5 Each telling has a newer number than all before, and each question one verdict.
 *   6 The account's sum is the sum of its holders' charges.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Told: there is no bound. Nothing is charged for that. */
#define TD_UNBOUNDED UINT64_MAX

/* All in bytes. Zeros: it was told of nothing and uses nothing. */
struct td_holding {
	uint64_t told;       /* last; or TD_UNBOUNDED */
	uint64_t believed;   /* the most that it may still take for its bound */
	uint64_t used;       /* as it has said last */
	uint32_t seq, acked; /* of the last telling; of the one that it has acknowledged last */
};

struct td_account {
	uint64_t limit;   /* TD_UNBOUNDED: none */
	uint64_t charged; /* all holders together */
};

static inline uint64_t td_holding_charge(const struct td_holding *h)
{
	return h->believed > h->used ? h->believed : h->used;
}

/* Has it said what it has by its newest bound? */
static inline bool td_holding_is_heard(const struct td_holding *h)
{
	return h->acked == h->seq;
}

/* seq: newer than all before. */
void td_holding_tell(struct td_holding *h, uint64_t bytes, uint32_t seq);
void td_holding_used(struct td_holding *h, uint64_t bytes, uint32_t acked);
/*
 * A ceiling holds from now on: the holder uses nothing beyond it without asking, and has claimed so
 * much below it.
 */
void td_holding_take_back(struct td_holding *h, uint64_t claimed_bytes);

/* Counts one more holder. */
void td_account_add(struct td_account *account, const struct td_holding *h);
/* Returns the part of the limit that is charged to nobody; TD_UNBOUNDED where there is no limit. */
uint64_t td_account_left(const struct td_account *account);
/*
 * The most that the holder can be told for the charges to be within the limit; less than its charge
 * if they are beyond it.
 */
uint64_t td_account_room(const struct td_account *account, const struct td_holding *h);

/* td_holding_* of a holder that the account counts. */
void td_account_tell(
	struct td_account *account, struct td_holding *h, uint64_t bytes, uint32_t seq);
void td_account_used(
	struct td_account *account, struct td_holding *h, uint64_t bytes, uint32_t acked);
