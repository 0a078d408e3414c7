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

/* How much one group has used its GPUs. */
struct td_use {
	uint64_t used_ns; /* time with the GPU lately, less idle time since */
	uint64_t had_ns;  /* time with the GPU in all, by weight; see td_use_compare() */
	uint64_t used_before_ns, had_before_ns; /* used_ns and had_ns when its turn began */
	/* Other groups were closed so that it could be admitted. */
	bool displaces;
	bool wanted; /* whether it wanted the GPU at the last step */
};

struct td_turn {
	uint64_t ns; /* length of the turn from when its memory is there */
	enum td_turn_reason reason;
};

struct td_turn_bounds {
	bool fixed;                 /* all turns are short_ns long */
	uint64_t short_ns, long_ns; /* turns of the lightest group on the GPUs */
	uint64_t most_ns; /* bound of a short turn of any weight, and of the debt that it pays */
};

/* Returns the holder's turn while `head` is the first group that waits for it. */
struct td_turn td_turn(const struct td_lock *lock, const struct td_lock_group *holder,
	const struct td_lock_group *head, uint64_t now_ns);

/* Call before the groups are gathered anew. Counts the time since the last step as use. */
void td_use_pass(struct td_lock *lock, uint64_t now_ns);

/* Call once the groups are gathered. Sets lightest and heaviest of each group. */
void td_use_weigh(struct td_lock *lock, const struct td_view *view);

/*
 * Call once the bounds of turns are known. Gives a group that begins to want a GPU the greatest
 * had_ns there, and raises that of others to at most a long turn below it.
 */
void td_use_compare(struct td_lock *lock);

/* Call once the queue is built. Sets pressing_ns of each waiting group. */
void td_use_press(struct td_lock *lock, bool by_class);

/* Notes that the group is admitted now and its turn begins. */
void td_use_begin(struct td_lock *lock, struct td_lock_group *group);
