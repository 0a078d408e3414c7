/*
 * The length of a turn among equals: as long as its holder, and those that wait, have used the GPU
 * before.
 *
 * Purpose. A hand-over costs h. Turns so short that this is a share s of the time suit programs
 * that want the GPU for a moment, and waste that share for ever where all compute for hours; long
 * turns are the reverse. So a turn is as long as the holder had used the GPU lately when it began,
 * or as the least use among those waiting, whichever is less. It is not shorter than a short turn,
 * h (1 - s) / s, nor longer than a long one, for which s is next to nothing. Two programs that are
 * always busy double their turns at the same pace. A program that wants little ends any turn after
 * a short one, whenever it comes. One that comes under a new name each time has short turns each
 * time.
 *
 * Use is time with the GPU, busy or while others wait for it; idle time takes back as much. So a
 * program does not become a small user by a moment's idleness, but only by leaving the GPU alone
 * for as long as it has used it. Being a small user gains nothing but that, because time is in
 * proportion to the weights, see below.
 *
 * Each hand-over has to be paid for by a short turn's use, by any group. Where a group leaves at
 * once, the unpaid part is owed on its GPU, and the next turn ends, unless by idleness, only after
 * that debt is paid as well. So however often small users come, hand-overs take no more than s, as
 * long as the debt is at most `quantum`. Five small users where `quantum` is 3.3 short turns take
 * 1.5 s (docs/decisions/0010).
 *
 * Turns that a small user cuts short are made up for: a holder that has had more time than the next
 * one, by weight, has a turn that is shorter by as much, but not shorter than a short one, and pays
 * no debt of others.
 *
 * Invariants
 * - a turn, by weight, is between the short and the long one and the debt. While a group waits that
 *   has used the GPU for u at most, it is at most u long, or the debt and a short turn. That is at
 *   most what the options `quantum` and `quantum.long` say;
 * - hand-overs x short turn <= use + debt, on each GPU, unless the debt exceeded `quantum`;
 * - of the groups that always want a GPU none counts as more than a long turn ahead of another by
 *   weight; a group that comes, or comes back, is level with the first of them;
 * - use is never more than a long turn: a group that is idle for that long starts anew.
 *
 * Pure: time comes with the view.
 */
#pragma once

#include "policy/policy.h"

struct td_lock;
struct td_lock_group;

/* The use of one group. */
struct td_use {
	uint64_t used_ns; /* with the GPU lately, less what it was idle since */
	uint64_t had_ns;  /* with the GPU in all, by weight: its place among those that want it */
	uint64_t used_before_ns, had_before_ns; /* the two when its turn began */
	bool displaces;                         /* others are, or were, closed for it to come in */
	bool wanted;                            /* at the last step */
};

struct td_turn {
	uint64_t ns; /* from when its memory is there */
	enum td_turn_reason reason;
};

struct td_turn_bounds {
	bool fixed;                 /* all turns are short_ns long, whoever waits */
	uint64_t short_ns, long_ns; /* of the lightest on its GPUs */
	uint64_t most_ns; /* of a short turn, whatever its weight, and what it is to pay for */
};

/* The holder's turn while `head` is the first to wait for it. */
struct td_turn td_turn(const struct td_lock *lock, const struct td_lock_group *holder,
	const struct td_lock_group *head, uint64_t now_ns);

/* Before the groups are gathered anew: what they have been doing since the last step. */
void td_use_pass(struct td_lock *lock, uint64_t now_ns);

/* Call once the groups are gathered: sets the weights on their GPUs. */
void td_use_weigh(struct td_lock *lock, const struct td_view *view);

/*
 * Call once the bounds of turns are known. Sets groups that come to want a GPU level with the
 * others, and nobody further behind than a long turn.
 */
void td_use_compare(struct td_lock *lock);

/* Call once the queue is known: sets the least use of each waiting group and those behind it. */
void td_use_press(struct td_lock *lock, bool by_class);

/* Notes that the group is admitted now. */
void td_use_begin(struct td_lock *lock, struct td_lock_group *group);
