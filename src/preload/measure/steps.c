/* Counting and timing steps; see steps.h. */
#include "preload/measure/steps.h"

#include <errno.h>
#include <string.h>

#include "base/time.h"
#include "preload/base/agent_calls.h"
#include "preload/base/backend.h"
#include "preload/base/lock.h"
#include "preload/base/page.h"
#include "preload/measure/period.h"
#include "proto/gate_page.h"

#define SURE_PPM 1000000u
#define RECENT   15
/* The agent is woken at most this often. Shorter steps are reported together. */
#define WAKE_EVERY_NS (2 * TD_NS_PER_MS)

static struct td_lock lock = TD_LOCK_INIT(TD_RANK_STEPS);

/* The state of steps. All of it is guarded by the lock. */
static struct {
	struct td_period period;
	bool told;             /* the program tells its steps by tandem_step() */
	struct td_steps steps; /* without the median */
	/* times of the last steps of the same unit; the oldest is replaced */
	uint64_t recent_ns[RECENT];
	uint32_t recent_count;
	uint64_t untaken_ns, woken_ns;
	uint32_t untaken;
	bool changed;
} self;

/*
 * For each GPU: memory use since the current step began, and in the last step. A change at the very
 * end of a step may count in either.
 */
static struct {
	_Atomic uint64_t backend_bytes, outside_bytes; /* current use */
	_Atomic uint64_t peak_bytes, least_bytes, last_peak_bytes, last_least_bytes;
	_Atomic uint64_t most_bytes; /* the most ever */
	_Atomic bool by_allocator, changed;
} memory[TD_SLOT_MAX];

void tandem_step(void) __attribute__((visibility("default")));

static void change_unit(uint32_t unit)
{
	self.steps.unit = unit;
	self.recent_count = 0;
	self.untaken = 0;
	self.untaken_ns = 0;
}

static uint64_t bytes_now(unsigned slot)
{
	return atomic_load_explicit(&memory[slot].backend_bytes, memory_order_relaxed) +
	       atomic_load_explicit(&memory[slot].outside_bytes, memory_order_relaxed);
}

static void raise_to(_Atomic uint64_t *most, uint64_t bytes)
{
	uint64_t seen = atomic_load_explicit(most, memory_order_relaxed);

	while (bytes > seen && !atomic_compare_exchange_weak(most, &seen, bytes))
		;
}

static void note_memory(unsigned slot)
{
	uint64_t bytes = bytes_now(slot), seen;

	raise_to(&memory[slot].peak_bytes, bytes);
	raise_to(&memory[slot].most_bytes, bytes);
	seen = atomic_load_explicit(&memory[slot].least_bytes, memory_order_relaxed);
	while (bytes < seen &&
		!atomic_compare_exchange_weak(&memory[slot].least_bytes, &seen, bytes))
		;
}

void td_steps_memory(unsigned slot, uint64_t bytes)
{
	atomic_store_explicit(&memory[slot].backend_bytes, bytes, memory_order_relaxed);
	note_memory(slot);
}

void td_steps_outside(unsigned slot, uint64_t bytes)
{
	atomic_store_explicit(&memory[slot].outside_bytes, bytes, memory_order_relaxed);
	note_memory(slot);
}

uint64_t td_steps_most(unsigned slot)
{
	return atomic_load_explicit(&memory[slot].most_bytes, memory_order_relaxed);
}

static void set_memory(unsigned slot, uint64_t peak_bytes, uint64_t least_bytes)
{
	if (atomic_exchange(&memory[slot].last_peak_bytes, peak_bytes) != peak_bytes)
		atomic_store(&memory[slot].changed, true);
	if (atomic_exchange(&memory[slot].last_least_bytes, least_bytes) != least_bytes)
		atomic_store(&memory[slot].changed, true);
}

void td_steps_used(unsigned slot, uint64_t peak_bytes, uint64_t least_bytes)
{
	atomic_store(&memory[slot].by_allocator, true);
	set_memory(slot, peak_bytes, least_bytes);
}

void td_steps_get_memory(unsigned slot, struct td_step_memory *ret)
{
	ret->peak_bytes = atomic_load(&memory[slot].last_peak_bytes);
	ret->least_bytes = atomic_load(&memory[slot].last_least_bytes);
	ret->by_allocator = atomic_load(&memory[slot].by_allocator);
}

bool td_steps_memory_is_new(unsigned slot)
{
	return atomic_load(&memory[slot].changed) && atomic_exchange(&memory[slot].changed, false);
}

/* known: the beginning of the step that ends is known. */
static void end_step_memory(bool known)
{
	for (unsigned slot = 0; slot < TD_SLOT_MAX; slot++) {
		uint64_t now = bytes_now(slot);
		uint64_t peak = atomic_exchange(&memory[slot].peak_bytes, now);
		uint64_t least = atomic_exchange(&memory[slot].least_bytes, now);

		if (known && !atomic_load(&memory[slot].by_allocator))
			set_memory(slot, peak, least);
	}
}

/*
 * Ends a step of the program. step_ns 0: it is not known when the step began, so its duration is
 * not known either.
 */
static void end_step(uint64_t step_ns, uint64_t now_ns)
{
	self.steps.count++;
	self.steps.began_ns = now_ns;
	self.changed = true;
	end_step_memory(step_ns != 0);
	if (!step_ns)
		return;
	self.recent_ns[self.recent_count++ % RECENT] = step_ns;
	self.untaken_ns += step_ns;
	self.untaken++;
}

/* Returns whether it is time to wake the agent. */
static bool is_wake_due(uint64_t now_ns)
{
	if (!td_gate_wants_steps() || now_ns - self.woken_ns < WAKE_EVERY_NS)
		return false;
	self.woken_ns = now_ns;
	return true;
}

void tandem_step(void)
{
	uint64_t now_ns = td_time_now_ns();
	int saved = errno;
	bool wake;

	if (td_gate_disabled())
		return;
	td_lock_take(&lock);
	if (!self.told)
		change_unit(0);
	self.steps.sure_ppm = SURE_PPM;
	end_step(self.told && now_ns > self.steps.began_ns ? now_ns - self.steps.began_ns : 0,
		now_ns);
	self.told = true;
	wake = is_wake_due(now_ns);
	td_lock_drop(&lock);
	if (wake)
		td_agent_wake();
	errno = saved;
}

void td_steps_call(uint32_t signature)
{
	uint64_t now_ns = td_time_now_ns();
	struct td_period_step step;
	enum td_period_verdict verdict;
	bool wake = false;

	if (!td_lock_try(&lock))
		return;
	if (self.told) {
		td_lock_drop(&lock);
		return;
	}
	verdict = td_period_event(&self.period, signature, now_ns, &step);
	if (verdict != TD_PERIOD_NOTHING) {
		if (step.unit != self.steps.unit)
			change_unit(step.unit);
		self.steps.sure_ppm = step.sure_ppm;
		self.steps.began_ns = now_ns;
		self.changed = true;
	}
	if (verdict == TD_PERIOD_STEP)
		end_step(step.step_ns, now_ns);
	if (verdict != TD_PERIOD_NOTHING)
		wake = is_wake_due(now_ns);
	td_lock_drop(&lock);
	if (wake)
		td_agent_wake();
}

static uint64_t median_ns(void)
{
	uint32_t n = self.recent_count < RECENT ? self.recent_count : RECENT;
	uint64_t sorted[RECENT];

	for (uint32_t i = 0; i < n; i++) {
		uint32_t k = i;

		for (; k && sorted[k - 1] > self.recent_ns[i]; k--)
			sorted[k] = sorted[k - 1];
		sorted[k] = self.recent_ns[i];
	}
	return n ? sorted[n / 2] : 0;
}

bool td_steps_take(struct td_steps *ret)
{
	bool changed;

	td_lock_take(&lock);
	changed = self.changed;
	self.changed = false;
	if (changed && self.untaken)
		self.steps.step_ns = self.untaken_ns / self.untaken;
	self.untaken = 0;
	self.untaken_ns = 0;
	*ret = self.steps;
	ret->median_ns = median_ns();
	td_lock_drop(&lock);
	return changed;
}

void td_steps_again(void)
{
	td_lock_take(&lock);
	self.changed |= self.steps.began_ns != 0;
	td_lock_drop(&lock);
}

void td_steps_forked(void)
{
	td_lock_reset(&lock);
	memset(&self, 0, sizeof(self));
	memset(memory, 0, sizeof(memory));
}
