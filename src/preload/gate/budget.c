/* The arithmetic of the duty (the largest share of a GPU's time); see budget.h. */
#include "preload/gate/budget.h"

#include <stdatomic.h>
#include <stddef.h>

#include "base/bounds.h"
#include "base/time.h"
#include "proto/words.h"

/*
 * BURST_NS is the most GPU time that idle time can save up. AHEAD_NS is how far ahead work may be
 * submitted, so that the GPU never waits for the host.
 */
#define BURST_NS (20 * TD_NS_PER_MS)
#define AHEAD_NS (10 * TD_NS_PER_MS)

/*
 * Layout of an entry of td_solo.places: a tag of the hash, how often the work was seen (at most
 * TIMES_MAX), whether it was measured exactly, and its time in ns.
 */
#define NS_BITS     39
#define NS_MASK     ((1ull << NS_BITS) - 1)
#define SURE        (1ull << NS_BITS)
#define TIMES_SHIFT 40
#define TIMES_MAX   7ull
#define TAG_SHIFT   43

/*
 * Layout of an entry of td_lengths.places: a tag of the hash and a length in ns. A shorter interval
 * lowers the length by one part in SHORTER_SHARE of the difference.
 */
#define LENGTH_MASK   ((1ull << TAG_SHIFT) - 1)
#define SHORTER_SHARE 256
#define UNSURE_SHARE  4

/*
 * The first run of some work includes what is done only once, such as loading code. It is charged
 * at most this much.
 */
#define FIRST_MAX_NS (5 * TD_NS_PER_MS)

/*
 * The first few inexact intervals are charged at half. Where two programs take turns, the other
 * half belonged to the other program. And a program that has one long piece of work now and then
 * would otherwise pay for the second piece before its length is known.
 */

/*
 * The estimate follows shorter intervals quickly and longer ones slowly. Intervals that may include
 * other programs' time count very little, and not at all if this work will be measured while the
 * others are held (policy/node/alone.h). Of the first few intervals the shortest counts.
 */
#define FALL_SHARE  4
#define ALONE_SHARE 4
#define RISE_SHARE  16
#define CREEP_SHARE 256
/*
 * An interval counts at most OUTLIER times the known time. A longer one looks exact, but the thread
 * may have lost its processor between two submissions.
 */
#define OUTLIER 3

/*
 * Work up to SHORT_NS is short and may save up BURST_NS. Each shorter piece lowers the remembered
 * longest piece by one part in FORGET_SHARE.
 */
#define SHORT_NS     (5 * TD_NS_PER_MS)
#define FORGET_SHARE 64
#define SAVED_MAX_NS (5 * TD_NS_PER_S)

static uint64_t stretch(uint64_t gpu_ns, uint32_t duty_ppm)
{
	return (uint64_t)((double)gpu_ns * TD_PPM / (duty_ppm ? duty_ppm : 1));
}

void td_budget_reset(struct td_budget *budget, uint64_t now_ns)
{
	atomic_store_explicit(&budget->paid_until_ns, now_ns, memory_order_relaxed);
	atomic_store_explicit(&budget->forgotten_ns, 0, memory_order_relaxed);
}

void td_budget_change(
	struct td_budget *budget, uint32_t before_ppm, uint32_t after_ppm, uint64_t now_ns)
{
	uint64_t paid = atomic_load_explicit(&budget->paid_until_ns, memory_order_relaxed);
	double owed = paid > now_ns ? (double)(paid - now_ns) * before_ppm / after_ppm : 0;

	td_budget_reset(budget, now_ns + (uint64_t)owed);
}

/* If two threads run this at once, one of the two pieces may be lost. */
static void note_length(struct td_budget *budget, uint64_t gpu_ns)
{
	uint64_t longest = atomic_load_explicit(&budget->longest_ns, memory_order_relaxed);

	if (gpu_ns < longest)
		gpu_ns = longest - (longest - gpu_ns) / FORGET_SHARE;
	atomic_store_explicit(&budget->longest_ns, gpu_ns, memory_order_relaxed);
}

/* Returns the most GPU time that idle time can save up. */
static uint64_t burst_ns(struct td_budget *budget, uint32_t duty_ppm)
{
	uint64_t longest = atomic_load_explicit(&budget->longest_ns, memory_order_relaxed), saved;

	if (longest <= SHORT_NS)
		return BURST_NS;
	saved = stretch(longest - SHORT_NS, duty_ppm);
	if (saved > SAVED_MAX_NS)
		saved = SAVED_MAX_NS;
	return saved > BURST_NS ? saved : BURST_NS;
}

/*
 * A piece longer than all before it would have allowed a larger burst. Returns the idle time that
 * should have been saved for it.
 */
static uint64_t kept_after_all(
	struct td_budget *budget, uint64_t burst_before_ns, uint32_t duty_ppm)
{
	uint64_t forgotten =
			 atomic_exchange_explicit(&budget->forgotten_ns, 0, memory_order_relaxed),
		 burst = burst_ns(budget, duty_ppm),
		 more = burst > burst_before_ns ? burst - burst_before_ns : 0;

	return forgotten < more ? forgotten : more;
}

void td_budget_charge(struct td_budget *budget, uint64_t gpu_ns, uint32_t duty_ppm)
{
	uint64_t burst = burst_ns(budget, duty_ppm), price = stretch(gpu_ns, duty_ppm);

	note_length(budget, gpu_ns);
	price -= kept_after_all(budget, burst, duty_ppm);
	atomic_fetch_add_explicit(&budget->paid_until_ns, price, memory_order_relaxed);
}

void td_budget_spend(struct td_budget *budget, uint64_t gpu_ns, uint32_t duty_ppm, uint64_t now_ns)
{
	uint64_t until = now_ns + stretch(gpu_ns, duty_ppm),
		 paid = atomic_load_explicit(&budget->paid_until_ns, memory_order_relaxed);

	note_length(budget, gpu_ns);
	atomic_store_explicit(&budget->forgotten_ns, 0, memory_order_relaxed);
	while (paid < until && !atomic_compare_exchange_weak_explicit(&budget->paid_until_ns, &paid,
				       until, memory_order_relaxed, memory_order_relaxed))
		;
}

uint64_t td_budget_wait_ns(
	struct td_budget *budget, uint64_t in_flight_ns, uint32_t duty_ppm, uint64_t now_ns)
{
	uint64_t paid = atomic_load_explicit(&budget->paid_until_ns, memory_order_relaxed),
		 until = paid + stretch(in_flight_ns, duty_ppm), burst = burst_ns(budget, duty_ppm);

	if (until > now_ns + AHEAD_NS)
		return until - now_ns - AHEAD_NS;
	/*
	 * Idle time beyond the burst is forgotten. If another thread has just charged, the next
	 * call forgets it.
	 */
	if (until + burst < now_ns &&
		atomic_compare_exchange_strong_explicit(&budget->paid_until_ns, &paid,
			paid + (now_ns - burst - until), memory_order_relaxed,
			memory_order_relaxed))
		atomic_fetch_add_explicit(
			&budget->forgotten_ns, now_ns - burst - until, memory_order_relaxed);
	return 0;
}

static uint64_t tag_of(uint32_t hash)
{
	return hash / TD_SOLO_SETS & (UINT64_MAX >> TAG_SHIFT);
}

/*
 * Returns the entry that has the work; otherwise a free one; otherwise the one that it may replace.
 * Two threads may enter the same work twice. Either entry is good.
 */
static _Atomic uint64_t *find_place(_Atomic uint64_t *places, uint32_t hash)
{
	_Atomic uint64_t *set = &places[hash % TD_SOLO_SETS * TD_SOLO_WAYS], *free = NULL;
	uint64_t tag = tag_of(hash);

	for (unsigned i = 0; i < TD_SOLO_WAYS; i++) {
		uint64_t seen = atomic_load_explicit(&set[i], memory_order_relaxed);

		if (!seen)
			free = free ? free : &set[i];
		else if (seen >> TAG_SHIFT == tag)
			return &set[i];
	}
	return free ? free : &set[tag % TD_SOLO_WAYS];
}

/* Returns the entry of the work, or 0 if there is none. */
static uint64_t entry_of(const _Atomic uint64_t *places, uint32_t hash)
{
	uint64_t seen = atomic_load_explicit(
		find_place((_Atomic uint64_t *)places, hash), memory_order_relaxed);

	return seen >> TAG_SHIFT == tag_of(hash) ? seen : 0;
}

static uint64_t place_of(const struct td_solo *solo, uint32_t hash)
{
	return entry_of(solo->places, hash);
}

uint64_t td_solo_expect(const struct td_solo *solo, uint32_t hash)
{
	return place_of(solo, hash) & NS_MASK;
}

bool td_solo_is_sure(const struct td_solo *solo, uint32_t hash)
{
	return place_of(solo, hash) & SURE;
}

uint64_t td_lengths_expect(const struct td_lengths *lengths, uint32_t hash)
{
	return entry_of(lengths->places, hash) & LENGTH_MASK;
}

void td_lengths_note(struct td_lengths *lengths, uint32_t hash, uint64_t interval_ns, bool sure)
{
	uint64_t before = td_lengths_expect(lengths, hash), ns = interval_ns;

	if (before && ns < before)
		ns = before - (before - ns) / SHORTER_SHARE;
	else if (before && !sure && ns - before > before / UNSURE_SHARE)
		ns = before + before / UNSURE_SHARE;
	if (ns <= LENGTH_MASK)
		atomic_store_explicit(find_place(lengths->places, hash),
			tag_of(hash) << TAG_SHIFT | ns, memory_order_relaxed);
}

/* Returns the new estimate after an interval that was longer than expected. */
static uint64_t rise(uint64_t ns, uint64_t interval_ns, enum td_interval kind, bool sure)
{
	uint64_t more = interval_ns - ns;

	switch (kind) {
	case TD_INTERVAL_EXACT: return ns + td_min_u64(more, ns) / RISE_SHARE;
	case TD_INTERVAL_ALONE: return ns + td_min_u64(more, ns) / ALONE_SHARE;
	case TD_INTERVAL_CHECKED:
	case TD_INTERVAL_UPPER: break;
	}
	if (sure && kind == TD_INTERVAL_CHECKED)
		return ns;
	return ns + td_min_u64(more / RISE_SHARE, ns / CREEP_SHARE);
}

uint64_t td_solo_correct(
	struct td_solo *solo, uint32_t hash, uint64_t interval_ns, enum td_interval kind)
{
	uint64_t seen = place_of(solo, hash), ns = seen & NS_MASK,
		 times = seen >> TIMES_SHIFT & TIMES_MAX;
	bool sure = seen & SURE, exact = kind <= TD_INTERVAL_ALONE;

	if (interval_ns > NS_MASK)
		return interval_ns;
	if (!ns)
		ns = interval_ns;
	else if (times < TIMES_MAX || (exact && !sure))
		ns = td_min_u64(ns, interval_ns);
	else if (interval_ns < ns)
		ns -= (ns - interval_ns) / FALL_SHARE;
	else
		ns = rise(ns, interval_ns, kind, sure);
	sure |= exact;
	if (!times && !sure)
		interval_ns = td_min_u64(interval_ns, FIRST_MAX_NS);
	else if (times < TIMES_MAX && !sure)
		interval_ns /= 2;
	times += times < TIMES_MAX;
	atomic_store_explicit(find_place(solo->places, hash),
		tag_of(hash) << TAG_SHIFT | times << TIMES_SHIFT | (sure ? SURE : 0) | ns,
		memory_order_relaxed);
	return td_min_u64(interval_ns, exact ? OUTLIER * ns : ns);
}
