/*
 * How long a turn lasts among equals: as long as its holder, and those that wait, have used the GPU before.
 *
 * Purpose. A hand-over costs h. Turns so short that this is a share s of the time are good for who wants the GPU for a moment, and waste that share for ever where
 * everybody computes for hours; with long turns it is the other way round. So a turn is as long as the holder had used the GPU lately when it began, or as the one of those waiting that has
 * used it least, whichever is less; but not shorter than a short turn, h (1 - s) / s, nor longer than a long one, where s is next to nothing. Two that are always busy double
 * their turns, each at the same pace; one that wants little ends any turn after a short one, whenever it comes; and who comes under a new name each time has short turns each time.
 *
 * Use is time with the GPU, busy or while others wait for it; being idle takes back as much. So nobody becomes a small user by a moment's idleness, but only by not
 * using the GPU for as long as it has. And there is nothing to gain by being one but that: time is in proportion to the weights, see below.
 *
 * Each hand-over is to be paid for by a short turn's use, whoever's. What one that leaves at once does not pay is owed on its GPU, and the next turn ends no sooner, but by
 * being idle, than that has been paid as well. So however often small users come, hand-overs take no more than s, as long as no more is owed than `quantum`: with five of them where that is 3.3 short
 * turns they take 1.5 s (docs/decisions/0010).
 *
 * Turns that a small user cuts short are made up for: a holder that has had more time than the next one, by weight, has a turn that is shorter by as much, but not shorter than a
 * short one, and pays nothing that others owe.
 *
 * Invariants
 *  - a turn, by weight, is between the short and the long one and what is owed. While one waits that has used the GPU for u at most, it is at most u long, or what is owed and a short
 *    turn; and that is at most what the options `quantum` and `quantum.long` say;
 *  - hand-overs x short turn <= use + owed, on each GPU, unless more were owed than `quantum`;
 *  - of those that always want a GPU nobody counts as more than a long turn ahead of another by weight; who comes, or comes back, is as far as the first of them;
 *  - use is never more than a long turn: who is idle for that long starts anew.
 *
 * Pure: time comes with the view.
 */
#pragma once

#include "policy/policy.h"

struct td_lock;
struct td_lock_group;

/* Of one group. */
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

/* Once they are gathered: the weights on their GPUs. */
void td_use_weigh(struct td_lock *lock, const struct td_view *view);

/* Once their bounds are known: where they stand who come to want a GPU; and nobody further behind than a long turn. */
void td_use_compare(struct td_lock *lock);

/* Once the queue is there: of each that waits, and those behind it, the least use. */
void td_use_press(struct td_lock *lock, bool by_class);

/* It is let in now. */
void td_use_begin(struct td_lock *lock, struct td_lock_group *group);
