/*
 * See meter.h; the arithmetic is demand.c's.
 *
 * The kinds are in a table of fixed size without locks. A kind is claimed by exchanging its key for
 * TD_KEY_BUSY. A thread that meets such an exchange may charge one launch by the figures of another
 * kind, which is of no consequence. Where a set of the table is full, the next one is replaced.
 */
#include "preload/gate/meter.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "base/bounds.h"
#include "base/time.h"
#include "preload/base/page.h"
#include "preload/context/context.h"
#include "preload/driver/driver.h"
#include "preload/gate/clock.h"
#include "preload/gate/gate.h"

#define SETS 256u
#define WAYS 4u
/* A thread writes its metered time to the page after this time or number of launches. */
#define FLUSH_NS       (200 * (int64_t)TD_NS_PER_US)
#define FLUSH_LAUNCHES 64u
/* Number of launches between two checks of a sample whose events have not completed. */
#define PAUSE_MIN 1u
#define PAUSE_MAX 128u
/* For work longer than this an event query at each launch costs next to nothing. */
#define LONG_NS (500 * TD_NS_PER_US)
#define PPM     1000000u

struct kind {
	_Atomic uint64_t key;      /* identifies the kind of launch (demand.h); 0: free */
	_Atomic uint64_t solo;     /* time without other programs, in td_solo_learn's encoding */
	_Atomic uint64_t early_ns; /* charged for samples before the time was known */
	_Atomic uint32_t active_ppm, core_ppm;
	_Atomic uint32_t chance; /* probability that a launch is timed, from td_sample_chance */
	_Atomic uint32_t owed;   /* launches not charged yet, because the time is not known */
	_Atomic uint32_t gpu;    /* slot of the GPU */
} __attribute__((aligned(64)));

static struct kind kinds[SETS * WAYS];
static _Atomic uint32_t next_way; /* the entry of a full set that is replaced next */

static struct td_demand ask_demand(const struct td_driver *driver, const struct td_shape *shape)
{
	uint64_t threads = (uint64_t)shape->block[0] * shape->block[1] * shape->block[2];
	int sms = 0, blocks = 0;

	if (!threads || threads > INT32_MAX || driver->ctx_get_sms(&sms) ||
		driver->occupancy(
			&blocks, (void *)shape->function, (int)threads, shape->shared_bytes) ||
		sms <= 0 || blocks <= 0)
		return td_demand_of(0, 0, 0);
	return td_demand_of(td_shape_blocks(shape), (uint32_t)blocks, (uint32_t)sms);
}

/* Takes a table entry for a kind. Returns NULL if another thread is taking it. */
static struct kind *claim(struct kind *kind, uint64_t before, uint64_t key,
	const struct td_driver *driver, const struct td_shape *shape)
{
	int gpu = td_context_slot();
	struct td_demand demand;

	if (gpu < 0 || !atomic_compare_exchange_strong(&kind->key, &before, TD_KEY_BUSY))
		return NULL;
	demand = ask_demand(driver, shape);
	atomic_store(&kind->solo, 0);
	atomic_store(&kind->active_ppm, demand.active_ppm);
	atomic_store(&kind->core_ppm, demand.core_ppm);
	atomic_store(&kind->chance, UINT32_MAX);
	atomic_store(&kind->owed, 0);
	atomic_store(&kind->early_ns, 0);
	atomic_store(&kind->gpu, (uint32_t)gpu);
	atomic_store_explicit(&kind->key, key, memory_order_release);
	return kind;
}

static struct kind *find(uint64_t key, const struct td_driver *driver, const struct td_shape *shape)
{
	struct kind *set = &kinds[(key >> 32) % SETS * WAYS], *place = NULL;
	uint64_t before = 0;

	for (unsigned i = 0; i < WAYS; i++) {
		uint64_t seen = atomic_load_explicit(&set[i].key, memory_order_acquire);

		if (seen == key)
			return &set[i];
		if (!seen && !place)
			place = &set[i];
	}
	if (!place) {
		place = &set[atomic_fetch_add_explicit(&next_way, 1, memory_order_relaxed) % WAYS];
		before = atomic_load_explicit(&place->key, memory_order_relaxed);
		if (before == TD_KEY_BUSY)
			return NULL;
	}
	return claim(place, before, key, driver, shape);
}

/* -- the page -- */

static uint64_t take(int64_t *pending, int64_t unit)
{
	int64_t whole = *pending / unit;

	if (whole <= 0)
		return 0;
	*pending -= whole * unit;
	return (uint64_t)whole;
}

static void add(_Atomic uint64_t *counter, uint64_t more)
{
	if (more)
		atomic_fetch_add_explicit(counter, more, memory_order_relaxed);
}

void td_meter_pay(int gpu, uint64_t gpu_ns, uint64_t active_ns, uint64_t core_ns)
{
	struct td_meter_page *page = &td_meter.page;

	add(&page->gpu_ns, gpu_ns);
	if (gpu < 0 || gpu >= TD_SLOT_MAX)
		return;
	add(&page->used_ns[gpu], gpu_ns);
	add(&page->active_ns[gpu], active_ns);
	add(&page->core_ns[gpu], core_ns);
}

static void flush(struct td_meter_thread *meter)
{
	uint64_t gpu_ns = take(&meter->gpu_ns, 1), active_ns = take(&meter->active_ns_ppm, PPM),
		 core_ns = take(&meter->core_ns_ppm, PPM);

	td_meter_pay((int)meter->gpu, gpu_ns, active_ns, core_ns);
	meter->launches = 0;
}

static void charge(
	struct td_meter_thread *meter, int64_t ns, uint32_t active_ppm, uint32_t core_ppm)
{
	meter->gpu_ns += ns;
	meter->active_ns_ppm += ns * active_ppm;
	meter->core_ns_ppm += ns * core_ppm;
}

/* -- samples -- */

static void start_over(struct td_meter_thread *meter, uint64_t context)
{
	for (unsigned i = 0; i < TD_METER_SAMPLES; i++) {
		td_context_event_destroy(meter->context, meter->samples[i].start);
		td_context_event_destroy(meter->context, meter->samples[i].end);
		meter->samples[i] = (struct td_meter_sample){0};
	}
	meter->count = 0;
	meter->context = context;
}

/*
 * Settles the account when a kind's time becomes known. Until then, samples were charged their own
 * intervals: the excess is given back. Launches that were not charged are charged now.
 */
static void settle(struct td_meter_thread *meter, struct kind *kind,
	const struct td_meter_sample *sample, uint64_t before, uint64_t solo, uint64_t ns)
{
	uint64_t early = atomic_load_explicit(&kind->early_ns, memory_order_relaxed) + ns;
	uint32_t owed = atomic_exchange_explicit(&kind->owed, 0, memory_order_relaxed);
	int64_t due = (int64_t)(owed * td_solo_ns(solo));

	if (!td_solo_is_known(before) && early > TD_SOLO_FIRST * td_solo_clip(solo, UINT64_MAX))
		due -= (int64_t)(early - TD_SOLO_FIRST * td_solo_ns(solo));
	charge(meter, due, sample->active_ppm, sample->core_ppm);
}

/*
 * Returns the time to charge for the sample. ns: its interval (whole_ns) without the gap between
 * the start event and the launch.
 */
static uint64_t learn(struct td_meter_thread *meter, const struct td_meter_sample *sample,
	uint64_t ns, uint64_t whole_ns, enum td_sample_kind certainty)
{
	struct kind *kind = &kinds[sample->kind];
	uint64_t before, solo;

	if (atomic_load_explicit(&kind->key, memory_order_acquire) != sample->key)
		return ns;
	before = atomic_load_explicit(&kind->solo, memory_order_relaxed);
	solo = td_solo_learn(before, ns, certainty);
	atomic_store_explicit(&kind->solo, solo, memory_order_relaxed);
	atomic_store_explicit(
		&kind->chance, td_sample_chance(td_solo_ns(solo)), memory_order_relaxed);
	if (!td_solo_is_known(solo)) {
		atomic_fetch_add_explicit(&kind->early_ns, ns, memory_order_relaxed);
		return ns;
	}
	settle(meter, kind, sample, before, solo, ns);
	if (!td_solo_is_known(before))
		return ns;
	/* If other programs used the GPU, the interval may be longer than the work. */
	if (certainty == TD_SAMPLE_SHARED && ns > td_solo_ns(solo))
		return td_solo_ns(solo);
	/* Part of the kernel may lie within the gap. */
	if (certainty == TD_SAMPLE_DRY)
		ns = td_min_u64(td_max_u64(ns, td_solo_ns(solo)), whole_ns);
	return td_solo_clip(solo, ns);
}

static bool has_rivals(void)
{
	return atomic_load_explicit(&td_gate.page.rivals, memory_order_relaxed);
}

static void complete(struct td_meter_thread *meter, const struct td_driver *driver,
	const struct td_meter_sample *sample)
{
	bool shared = sample->shared || has_rivals();
	double elapsed = td_clock_between_ns(driver, sample->start, sample->end);
	uint64_t ns, whole_ns;

	if (elapsed < 0)
		return;
	ns = whole_ns = (uint64_t)elapsed;
	if (sample->dry && !shared)
		ns = ns > sample->gap_ns ? ns - sample->gap_ns : 1;
	ns = learn(meter, sample, ns, whole_ns,
		shared        ? TD_SAMPLE_SHARED
		: sample->dry ? TD_SAMPLE_DRY
			      : TD_SAMPLE_EXACT);
	charge(meter, (int64_t)ns - (int64_t)sample->charged_ns, sample->active_ppm,
		sample->core_ppm);
}

/* Charges completed samples. An event that cannot be queried counts as complete. */
static void reap(struct td_meter_thread *meter, const struct td_driver *driver)
{
	int before = td_context_relax();
	bool reaped = false;

	while (meter->count) {
		struct td_meter_sample *oldest = &meter->samples[meter->head];

		if (driver->event_query(oldest->end) == TD_CUDA_ERROR_NOT_READY)
			break;
		complete(meter, driver, oldest);
		meter->head = (meter->head + 1) % TD_METER_SAMPLES;
		meter->count--;
		reaped = true;
	}
	td_context_unrelax(before);
	meter->pause = reaped || !meter->pause ? PAUSE_MIN : 2 * meter->pause;
	if (meter->pause > PAUSE_MAX)
		meter->pause = PAUSE_MAX;
	meter->wait = meter->pause;
}

static void look(struct td_meter_thread *meter, const struct td_driver *driver)
{
	uint64_t context = td_context_serial();

	if (context != meter->context)
		start_over(meter, context);
	reap(meter, driver);
}

static bool has_events(const struct td_driver *driver, struct td_meter_sample *sample)
{
	if (!sample->start && driver->event_create(&sample->start, 0))
		sample->start = NULL;
	if (!sample->end && driver->event_create(&sample->end, 0))
		sample->end = NULL;
	return sample->start && sample->end;
}

/* Returns true if an event was recorded before the coming launch. */
static bool start_sample(struct td_meter_thread *meter, const struct td_driver *driver,
	struct kind *kind, uint64_t key, void *stream)
{
	struct td_meter_sample *sample;
	uint64_t context = td_context_serial();

	if (!context || td_context_is_capturing(stream))
		return false;
	if (context != meter->context)
		start_over(meter, context);
	if (meter->count == TD_METER_SAMPLES)
		return false;
	sample = &meter->samples[(meter->head + meter->count) % TD_METER_SAMPLES];
	if (!has_events(driver, sample) || driver->event_record(sample->start, stream))
		return false;
	sample->key = key;
	sample->shared = has_rivals();
	sample->kind = (uint32_t)(kind - kinds);
	sample->active_ppm = atomic_load_explicit(&kind->active_ppm, memory_order_relaxed);
	sample->core_ppm = atomic_load_explicit(&kind->core_ppm, memory_order_relaxed);
	meter->stream = stream;
	meter->started_ns = td_time_now_ns();
	return true;
}

static struct td_meter_sample *sample_under_way(struct td_meter_thread *meter)
{
	return &meter->samples[(meter->head + meter->count) % TD_METER_SAMPLES];
}

/* -- a launch -- */

static bool is_due(struct td_meter_thread *meter, const struct kind *kind, uint64_t solo_ns)
{
	if (!meter->draw)
		meter->draw = (uintptr_t)meter | 1;
	meter->draw = td_sample_draw(meter->draw);
	return !solo_ns || (uint32_t)(meter->draw >> 32) <=
				   atomic_load_explicit(&kind->chance, memory_order_relaxed);
}

static void meter_launch(struct td_meter_thread *meter, const struct td_driver *driver,
	struct kind *kind, uint64_t key, void *stream)
{
	uint64_t solo = atomic_load_explicit(&kind->solo, memory_order_relaxed);
	uint64_t ns = td_solo_is_known(solo) ? td_solo_ns(solo) : 0;
	bool sampled;
	uint32_t gpu = atomic_load_explicit(&kind->gpu, memory_order_relaxed);

	if (gpu != meter->gpu)
		flush(meter);
	meter->gpu = gpu;
	if (meter->count && (ns >= LONG_NS || !meter->wait || !meter->wait--))
		look(meter, driver);
	sampled = meter->count < TD_METER_SAMPLES && is_due(meter, kind, ns) &&
		  start_sample(meter, driver, kind, key, stream);
	if (sampled) {
		sample_under_way(meter)->charged_ns = ns;
		meter->sampling = true;
	}
	if (ns)
		charge(meter, (int64_t)ns,
			atomic_load_explicit(&kind->active_ppm, memory_order_relaxed),
			atomic_load_explicit(&kind->core_ppm, memory_order_relaxed));
	else if (!sampled)
		atomic_fetch_add_explicit(&kind->owed, 1, memory_order_relaxed);
	if (++meter->launches >= FLUSH_LAUNCHES || meter->gpu_ns >= FLUSH_NS)
		flush(meter);
}

static bool has_duty(void)
{
	return td_gate_word() & TD_WORD_DUTY &&
	       atomic_load_explicit(&td_gate.page.duty_ppm, memory_order_relaxed);
}

void td_meter_launch(
	struct td_marker *slot, void *stream, uint32_t kind, const struct td_shape *shape)
{
	const struct td_driver *driver = td_driver();
	int saved = errno;
	struct kind *found;
	void *context;
	uint64_t key;

	if (!driver || driver->ctx_get_current(&context) || !context)
		return;
	key = td_shape_key(context, shape);
	found = find(key, driver, shape);
	if (found && has_duty()) {
		slot->window.active_ppm =
			atomic_load_explicit(&found->active_ppm, memory_order_relaxed);
		slot->window.core_ppm =
			atomic_load_explicit(&found->core_ppm, memory_order_relaxed);
	} else if (found) {
		meter_launch(&slot->meter, driver, found, key, td_submit_stream(stream, kind));
	}
	errno = saved;
}

/*
 * Called after the launch. If the start event has not completed yet, the stream was busy until the
 * launch.
 */
void td_meter_launched(struct td_marker *slot)
{
	const struct td_driver *driver = td_driver();
	struct td_meter_thread *meter = &slot->meter;
	struct td_meter_sample *sample = sample_under_way(meter);
	int before;

	if (!meter->sampling)
		return;
	meter->sampling = false;
	sample->gap_ns = td_time_now_ns() - meter->started_ns;
	if (driver->event_record(sample->end, meter->stream))
		return;
	before = td_context_relax();
	sample->dry = driver->event_query(sample->start) != TD_CUDA_ERROR_NOT_READY;
	td_context_unrelax(before);
	if (!meter->count++)
		meter->wait = meter->pause = PAUSE_MIN;
}

void td_meter_forget(void)
{
	for (unsigned i = 0; i < SETS * WAYS; i++)
		if (atomic_load_explicit(&kinds[i].key, memory_order_relaxed) != TD_KEY_BUSY)
			atomic_store_explicit(&kinds[i].key, 0, memory_order_relaxed);
}

/* Called at the thread's end: its open samples are dropped. */
void td_meter_thread_ends(struct td_marker *slot)
{
	struct td_meter_thread *meter = &slot->meter;

	flush(meter);
	meter->count = 0;
	meter->gpu_ns = meter->active_ns_ppm = meter->core_ns_ppm = 0;
}

void td_meter_forked(void)
{
	for (unsigned i = 0; i < SETS * WAYS; i++)
		atomic_store(&kinds[i].key, 0);
}
