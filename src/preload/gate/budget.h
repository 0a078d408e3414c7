/*
 * The duty: how much of a GPU's time this process's submissions may take. AntMan's GpuOpManager
 * (3.1.2) delays submissions in the same way.
 *
 * Each GPU's budget is one moment, paid_until. At duty d, work of c ns of GPU time moves it on by c
 * / d, and the next submission may be made when it has come. The share is right on average for work
 * of any length; work longer than its share is paid for afterwards. Idle time saves up at most
 * BURST_NS, or one piece of work where the process has longer pieces: a program that uses the GPU
 * now and then pays with the time between. The value of idle time is settled once the length of the
 * piece is known.
 *
 * The cost of work is measured by events around it (pace.c). Such an interval is exact while one
 * piece of work follows the other and the GPU is ours. Otherwise it also holds time slices of other
 * processes, or the time from the event to the launch where the stream had run dry. Such an
 * interval is corrected by the work's solo time: the time in exact intervals, or about the shortest
 * time seen lately.
 *
 * This file is arithmetic on atomics only: no driver, no clock.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct td_budget {
	_Atomic uint64_t paid_until_ns;
	_Atomic uint64_t longest_ns;   /* longest piece of work seen lately */
	_Atomic uint64_t forgotten_ns; /* idle time dropped since the last piece was charged */
};

/* Called when the gate first opens with a duty: the process owes nothing then. */
void td_budget_reset(struct td_budget *budget, uint64_t now_ns);

/* Changes the duty (1 to 999999). The GPU time owed stays the same, and saved idle time is lost. */
void td_budget_change(
	struct td_budget *budget, uint32_t before_ppm, uint32_t after_ppm, uint64_t now_ns);

/*
 * Charges gpu_ns of GPU time that the duty does not count. Only saved idle time is spent, as if
 * this piece were the first under the duty.
 */
void td_budget_spend(struct td_budget *budget, uint64_t gpu_ns, uint32_t duty_ppm, uint64_t now_ns);

/* Charges gpu_ns of GPU time. duty_ppm: 1 to 999999. */
void td_budget_charge(struct td_budget *budget, uint64_t gpu_ns, uint32_t duty_ppm);

/*
 * Returns how long a submission has to wait while work of in_flight_ns is in flight; 0: not at all.
 */
uint64_t td_budget_wait_ns(
	struct td_budget *budget, uint64_t in_flight_ns, uint32_t duty_ppm, uint64_t now_ns);

/*
 * Solo times are kept by a hash of the work, in sets of TD_SOLO_WAYS places. A new entry takes a
 * free place of its set or replaces another entry.
 */
#define TD_SOLO_SETS   128
#define TD_SOLO_WAYS   8
#define TD_SOLO_PLACES (TD_SOLO_SETS * TD_SOLO_WAYS)

struct td_solo {
	_Atomic uint64_t places[TD_SOLO_PLACES]; /* entries, packed as budget.c says; 0: free */
};

/* Says how precisely an interval between two events measures the work. */
enum td_interval {
	TD_INTERVAL_EXACT, /* the work took exactly that long */
	/*
	 * The work was measured while all other programs were held (policy/node/alone.h). Such
	 * measurements are rare.
	 */
	TD_INTERVAL_ALONE,
	/* includes other programs' time; the work also gets intervals of kind ALONE */
	TD_INTERVAL_CHECKED,
	TD_INTERVAL_UPPER, /* includes other programs' time, or the launch's way to the GPU */
};

/*
 * Records that the work with this hash took interval_ns, or less. Returns the time to charge for
 * it.
 */
uint64_t td_solo_correct(
	struct td_solo *solo, uint32_t hash, uint64_t interval_ns, enum td_interval kind);

/* Returns the expected time of the work; 0: not known. */
uint64_t td_solo_expect(const struct td_solo *solo, uint32_t hash);

/*
 * Returns whether the expected time comes from exact intervals. If not, it is only the shortest
 * interval seen.
 */
bool td_solo_is_sure(const struct td_solo *solo, uint32_t hash);

/*
 * About the longest time that pieces of work took lately, by their hash. Work that must end by a
 * time is not estimated shorter than this, because the same kernel may take longer with other data.
 */
struct td_lengths {
	_Atomic uint64_t places[TD_SOLO_PLACES]; /* entries, packed as budget.c says; 0: free */
};

/*
 * Records that the work took interval_ns. sure: no other process used the GPU meanwhile. Otherwise
 * the interval may include others' time and raises the known length by at most a quarter.
 */
void td_lengths_note(struct td_lengths *lengths, uint32_t hash, uint64_t interval_ns, bool sure);

/* Returns 0 if the length is not known. */
uint64_t td_lengths_expect(const struct td_lengths *lengths, uint32_t hash);
