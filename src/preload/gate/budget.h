/*
 * The duty: how much of a GPU's time this process's submissions may take (AntMan's GpuOpManager, 3.1.2, delays them likewise).
 *
 * Each GPU's budget is one moment, paid_until: at duty d, work of c ns of GPU time moves it on by c / d, and a submission may be made once it
 * has come. So the share is right on average whatever the length of the work; one that is longer than its share of a moment is paid for
 * afterwards. Idle time is worth at most BURST, or, to who has longer work than that, one piece of it: a program that works for the GPU now and then
 * pays with the time in between, not a second time. What idle time was worth is known once the piece is.
 *
 * What work costs is measured by events around it (pace.c). Such an interval is exact while one piece of work follows the other and the GPU is ours.
 * Else it holds time that is not the work's: time slices of other processes, or the way from the event to the launch where the stream had run
 * dry. Then it is corrected by the work's solo time: what it took in exact intervals, or else about the shortest that it took lately.
 *
 * Arithmetic on atomics only: no driver, no clock.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct td_budget {
	_Atomic uint64_t paid_until_ns;
	_Atomic uint64_t longest_ns;   /* piece of work, lately */
	_Atomic uint64_t forgotten_ns; /* of idle time, since the last piece was charged */
};

/* A process whose gate opens with a duty for the first time owes nothing. */
void td_budget_reset(struct td_budget *budget, uint64_t now_ns);

/* The duty changes: what is owed is the same GPU time as before, and no idle time is worth anything. Both 1 to 999999. */
void td_budget_change(
	struct td_budget *budget, uint32_t before_ppm, uint32_t after_ppm, uint64_t now_ns);

/* gpu_ns of GPU time were used that the duty does not count: only what has been saved up is spent, as if this piece were the first under the duty. */
void td_budget_spend(struct td_budget *budget, uint64_t gpu_ns, uint32_t duty_ppm, uint64_t now_ns);

/* gpu_ns of GPU time were used. duty_ppm: 1 to 999999. */
void td_budget_charge(struct td_budget *budget, uint64_t gpu_ns, uint32_t duty_ppm);

/* How long a submission has to wait, when work that will take in_flight_ns is under way; 0: not at all. */
uint64_t td_budget_wait_ns(
	struct td_budget *budget, uint64_t in_flight_ns, uint32_t duty_ppm, uint64_t now_ns);

/* Solo times by a hash of the work: sets of so many places, of which a new entry takes one that is free, or another's. */
#define TD_SOLO_SETS   128
#define TD_SOLO_WAYS   8
#define TD_SOLO_PLACES (TD_SOLO_SETS * TD_SOLO_WAYS)

struct td_solo {
	_Atomic uint64_t places[TD_SOLO_PLACES]; /* budget.c's; 0: none */
};

/* What is known of an interval. */
enum td_interval {
	TD_INTERVAL_EXACT, /* the work took that long, no less */
	TD_INTERVAL_ALONE, /* the same, in one of the moments that we have a GPU for ourselves (policy/node/alone.h): there are few */
	TD_INTERVAL_CHECKED, /* it holds time of others, and there are such moments */
	TD_INTERVAL_UPPER,   /* it holds time of others, or of the launch's way to the GPU */
};

/* Work with this hash took interval_ns, or at most that. Returns what it is to be charged. */
uint64_t td_solo_correct(
	struct td_solo *solo, uint32_t hash, uint64_t interval_ns, enum td_interval kind);

/* What it will take; 0: not known. */
uint64_t td_solo_expect(const struct td_solo *solo, uint32_t hash);

/* Is that by what it took exactly, or only by the shortest interval that there was? */
bool td_solo_is_sure(const struct td_solo *solo, uint32_t hash);

/* About the longest that pieces of work took lately, by their hash: what is to be over by a time is not to be taken for shorter. The same work may take longer with other data. */
struct td_lengths {
	_Atomic uint64_t places[TD_SOLO_PLACES]; /* budget.c's; 0: none */
};

/* It took interval_ns. sure: nobody else was served in between; else it may hold others' time, and counts for at most a quarter more than was known. */
void td_lengths_note(struct td_lengths *lengths, uint32_t hash, uint64_t interval_ns, bool sure);

/* 0: not known. */
uint64_t td_lengths_expect(const struct td_lengths *lengths, uint32_t hash);
