/*
 * Pacing by events; see pace.h. The arithmetic is in window.c.
 *
 * An event is recorded directly behind a submission, while the program is still in the call and its
 * stream certainly exists. Programmatic dependent launches are an exception, because an event
 * between two of them would keep them from overlapping. There the event is recorded before the next
 * submission, if that is on the same stream and not itself dependent; otherwise none is, and those
 * submissions are not counted. Nothing is ever recorded on a capturing stream.
 *
 * Under a duty, uncounted submissions would evade it. So dependent launches wait as others do
 * there, and an event follows each new kind and each MARK_NS of work. The following launch begins
 * when the one in front has ended, which the driver allows. This costs one overlap per millisecond
 * for programs under a duty.
 *
 * While the duty bounds the process, the time of work is measured from an event in front of it
 * where the stream had run dry, else from the mark before it. Overlapping work of several streams
 * or threads is counted once (clock.h).
 *
 * While a guaranteed job pauses, the duty does not count work that ends before the pause does, nor
 * work that fits the window. Other work waits for the duty or for the next pause. Every wait is
 * bounded: work on the GPU may itself wait for this thread.
 */
#include "preload/gate/pace.h"

#include <stddef.h>

#include "base/time.h"
#include "preload/base/futex.h"
#include "preload/base/page.h"
#include "preload/context/context.h"
#include "preload/driver/driver.h"
#include "preload/gate/clock.h"
#include "preload/gate/fresh.h"
#include "preload/gate/gate.h"
#include "preload/gate/meter.h"
#include "preload/gate/pacer.h"
#include "preload/gate/pause.h"
#include "proto/words.h"

#define WAIT_MIN_NS  (50 * TD_NS_PER_MS)
#define WAIT_WINDOWS 8 /* the longest wait, as a multiple of window_ns */
#define WAIT_USUAL   4 /* times the usual length of the work in flight */
#define WAIT_MAX_NS  (10 * TD_NS_PER_S)
/* Under a duty, work of MARK_NS lies between two marks; unknown work counts as NEW_NS. */
#define MARK_NS          (1 * TD_NS_PER_MS)
#define MARKS_PER_WINDOW 4
#define MARK_MIN_NS      (100 * TD_NS_PER_US) /* used where the window is short */
#define NEW_NS           (2 * TD_NS_PER_MS)
#define NEW_MAX_NS       (20 * TD_NS_PER_MS) /* the most, while it is in flight */
#define DUTY_WINDOW_NS   (20 * TD_NS_PER_MS)
/*
 * While held for another's moment alone, this is how often it checks whether the GPU has run dry.
 */
#define HOLD_LOOK_NS (500 * TD_NS_PER_US)
/* Other threads' work counts as ended after this many times its estimated time. */
#define DRY_TIMES 4
/* A known time is measured again after this long. */
#define RECHECK_NS (5 * TD_NS_PER_S)
/* After a longer pause the GPU may have been idle within the measured interval. */
#define GAP_NS (200 * TD_NS_PER_US)

struct td_pacer td_pacer = {
	.clocks = {[0 ... TD_SLOT_MAX - 1] = {.lock = PTHREAD_MUTEX_INITIALIZER}}};

static void recount(struct td_window *window)
{
	uint64_t now = td_window_in_flight_ns(window);

	atomic_fetch_add_explicit(
		&td_pacer.process_ns, now - window->counted_ns, memory_order_relaxed);
	window->counted_ns = now;
}

static void expect(struct td_window *window, struct td_window_mark *mark, uint64_t ns)
{
	atomic_fetch_add_explicit(
		&td_pacer.expected_ns, ns - mark->expected_ns, memory_order_relaxed);
	window->expected_ns += ns - mark->expected_ns;
	mark->expected_ns = ns;
}

/* Returns the average share of the GPU used since the last mark, weighted by time. */
static uint32_t average_ppm(const struct td_window *window, uint64_t sum)
{
	return window->unmarked_ns ? (uint32_t)(sum / window->unmarked_ns) : 0;
}

static void clear_unmarked(struct td_window *window)
{
	window->unmarked_ns = 0;
	window->unmarked_active = 0;
	window->unmarked_core = 0;
}

static void note_mark(struct td_window *window, struct td_window_mark *mark)
{
	uint64_t ns;

	td_window_marked(window);
	mark->alone = window->alone;
	mark->free = window->free;
	mark->word = window->word;
	mark->submitted_ns = window->submitted_ns;
	if (mark->alone)
		atomic_store_explicit(&td_pacer.let_through, mark->alone, memory_order_relaxed);
	ns = td_fresh_likely_ns(mark->hash);
	/* New work may be long, so it is estimated high. */
	if (!ns)
		ns = window->unmarked_ns > NEW_NS ? window->unmarked_ns : NEW_NS;
	mark->active_ppm = average_ppm(window, window->unmarked_active);
	mark->core_ppm = average_ppm(window, window->unmarked_core);
	clear_unmarked(window);
	expect(window, mark, ns);
}

/*
 * Forgets the work of another context: an event belongs to its context, so work in flight there is
 * no longer followed.
 */
static void start_over(struct td_window *window, uint64_t context)
{
	for (unsigned i = 0; i < TD_WINDOW_MARKS; i++) {
		td_context_event_destroy(window->context, window->marks[i].event);
		td_context_event_destroy(window->context, window->marks[i].start);
	}
	td_context_event_destroy(window->context, window->done_event);
	atomic_fetch_sub_explicit(&td_pacer.process_ns, window->counted_ns, memory_order_relaxed);
	atomic_fetch_sub_explicit(&td_pacer.expected_ns, window->expected_ns, memory_order_relaxed);
	td_pause_abandoned(window);
	td_window_reset(window);
	window->context = context;
	window->gpu = td_context_slot();
}

/* Returns the measured time of the work before the oldest mark; 0: not known. */
static uint64_t elapsed_ns(const struct td_driver *driver, const struct td_window *window,
	const struct td_window_mark *mark)
{
	double ns = -1;

	if (mark->started)
		ns = td_clock_between_ns(driver, mark->start, mark->event);
	else if (window->done_stream == mark->stream)
		ns = td_clock_between_ns(driver, window->done_event, mark->event);
	return ns > 0 ? (uint64_t)ns : 0;
}

/* Whether all other programs have been held since this was submitted. */
static bool was_alone(const struct td_window_mark *mark)
{
	return mark->alone &&
	       mark->alone == atomic_load_explicit(&td_gate.page.alone, memory_order_relaxed);
}

/* Tells the daemon that this work's time is a guess, or is not measured lately. */
static void note_guess(uint32_t hash)
{
	uint64_t now = td_time_now_ns();

	if (td_solo_is_sure(&td_pacer.solo, hash) &&
		now - atomic_load_explicit(&td_pacer.measured_ns, memory_order_relaxed) <
			RECHECK_NS)
		return;
	atomic_fetch_add_explicit(&td_meter.page.guesses, 1, memory_order_relaxed);
}

static uint64_t solo_ns(const struct td_window_mark *mark, uint64_t elapsed_ns, uint32_t rivals)
{
	enum td_interval kind = rivals == TD_RIVALS_YIELD ? TD_INTERVAL_CHECKED : TD_INTERVAL_UPPER;
	uint64_t ns;

	if (was_alone(mark))
		kind = TD_INTERVAL_ALONE;
	else if (!rivals && !mark->started)
		kind = TD_INTERVAL_EXACT;
	ns = td_solo_correct(&td_pacer.solo, mark->hash, elapsed_ns, kind);
	if (kind == TD_INTERVAL_ALONE)
		atomic_store_explicit(
			&td_pacer.measured_ns, td_time_now_ns(), memory_order_relaxed);
	else if (rivals)
		note_guess(mark->hash);
	return ns;
}

static uint64_t part_ns(uint64_t ns, uint32_t ppm)
{
	return (uint64_t)((double)ns * ppm / TD_PPM);
}

static void pay(const struct td_window *window, uint64_t gpu_ns, uint32_t duty, uint32_t active_ppm,
	uint32_t core_ppm)
{
	td_budget_charge(&td_pacer.budgets[window->gpu], gpu_ns, duty);
	td_meter_pay(window->gpu, gpu_ns, part_ns(gpu_ns, active_ppm), part_ns(gpu_ns, core_ppm));
}

/* Records how long such work may take. Copies of about the same size share one number. */
static void note_length(const struct td_window_mark *mark, uint64_t elapsed_ns, uint32_t rivals)
{
	if (!td_fresh_has_name(mark->hash))
		td_fresh_note_unnamed(mark->hash, elapsed_ns / mark->submissions);
	if (mark->free || !rivals)
		td_lengths_note(&td_pacer.lengths, mark->hash, elapsed_ns,
			!rivals && mark->word == td_gate_word());
}

/*
 * While there is a duty: returns the work's time without others' time; 0: not known. The charge is
 * the part of its span that no thread has paid for, at most its time. Where the time is not known,
 * the charge is the part behind the latest end that this thread has seen.
 */
static uint64_t charge(const struct td_window *window, const struct td_driver *driver,
	const struct td_window_mark *mark, uint64_t elapsed_ns)
{
	uint32_t duty = atomic_load_explicit(&td_pacer.duty_ppm, memory_order_relaxed);
	uint32_t rivals = atomic_load_explicit(&td_gate.page.rivals, memory_order_relaxed);
	uint64_t ns = elapsed_ns, longest = 0, price, spent, fresh = 0;
	bool is_new = !td_fresh_likely_ns(mark->hash);
	double beyond;

	if (!duty || window->gpu < 0)
		return elapsed_ns;
	/* A copy's solo time is not known: it costs the time that it took. */
	if (ns && td_fresh_has_name(mark->hash))
		ns = solo_ns(mark, ns, rivals);
	/* The moment is used up, even without a measurement. */
	if (was_alone(mark))
		atomic_store_explicit(&td_meter.page.measured, mark->alone, memory_order_relaxed);
	/* With an idle device and no start event the interval says nothing. */
	if (elapsed_ns && (mark->started || mark->backlogged))
		note_length(mark, elapsed_ns, rivals);
	if (is_new)
		longest = td_lengths_expect(&td_pacer.lengths, mark->hash);
	/* If a new piece proved to be of the rare long kind, the next one must wait. */
	td_pause_note_long(is_new ? elapsed_ns : 0, td_time_now_ns());
	if (mark->free) {
		/*
		 * In a pause there is room for the next piece that is as short. A longer one is
		 * paid for in the normal way.
		 */
		spent = longest > ns ? longest : ns ? ns : NEW_NS;
		td_budget_spend(&td_pacer.budgets[window->gpu], spent, duty, td_time_now_ns());
		return ns;
	}
	price = ns ? ns : mark->submissions * window->estimate_ns;
	beyond = td_clock_between_ns(driver, window->done_event, mark->event);
	/* If other programs used the GPU, the measured span includes their time. */
	if (!rivals && td_clock_find_fresh(window->gpu, window->context, driver, mark->event,
			       elapsed_ns ? elapsed_ns : price, &fresh))
		price = fresh < price ? fresh : price;
	else if (beyond >= 0 && beyond < (double)price)
		price = (uint64_t)beyond;
	pay(window, price, duty, mark->active_ppm, mark->core_ppm);
	return ns;
}

/*
 * Removes completed marks. An event that cannot be queried, because its context is gone, counts as
 * complete.
 */
static void take_out(struct td_window *window, const struct td_driver *driver)
{
	struct td_window_mark *mark;
	void *reuse;

	while ((mark = td_window_oldest(window)) != NULL) {
		if (driver->event_query(mark->event) == TD_CUDA_ERROR_NOT_READY)
			break;
		expect(window, mark, 0);
		td_fresh_ended(mark);
		td_window_completed(
			window, charge(window, driver, mark, elapsed_ns(driver, window, mark)));
		reuse = window->done_event;
		if (window->gpu >= 0 &&
			atomic_load_explicit(&td_pacer.duty_ppm, memory_order_relaxed))
			reuse = td_clock_set(window->gpu, window->context, driver, reuse);
		window->done_event = mark->event;
		window->done_stream = mark->stream;
		mark->event = reuse;
	}
}

/*
 * New work is at least as long as it has been in flight. The estimate is capped so that other work
 * can still come in: the new work may wait for it.
 */
static void expect_longer(struct td_window *window, uint64_t now_ns)
{
	struct td_window_mark *mark = td_window_oldest(window);
	uint64_t age;

	if (!mark || td_fresh_likely_ns(mark->hash) || !mark->submitted_ns)
		return;
	age = now_ns > mark->submitted_ns ? now_ns - mark->submitted_ns : 0;
	age = age < NEW_MAX_NS ? age : NEW_MAX_NS;
	if (age > mark->expected_ns)
		expect(window, mark, age);
}

/*
 * The driver refuses to query an event, and breaks the capture, while any thread captures in global
 * mode. A thread in relaxed mode may query.
 */
static void reap(struct td_window *window, const struct td_driver *driver)
{
	int before = td_window_oldest(window) ? td_context_relax() : -1;

	take_out(window, driver);
	td_context_unrelax(before);
	recount(window);
	if (!atomic_load_explicit(&td_pacer.duty_ppm, memory_order_relaxed))
		return;
	if (window->in_flight)
		expect_longer(window, td_time_now_ns());
	else
		td_pause_dry(window, td_time_now_ns());
}

/* Charges the unmarked work at its estimate and no longer follows it. */
static void stop_following(struct td_window *window)
{
	uint32_t duty = atomic_load_explicit(&td_pacer.duty_ppm, memory_order_relaxed);
	struct td_window_mark *mark = td_window_next_mark(window);

	if (duty && window->gpu >= 0 && !window->free)
		pay(window, window->unmarked_ns, duty, average_ppm(window, window->unmarked_active),
			average_ppm(window, window->unmarked_core));
	clear_unmarked(window);
	/* The start event was recorded before work that is dropped. */
	if (mark)
		mark->started = false;
	td_window_forget_unmarked(window);
}

static void record(struct td_window *window, const struct td_driver *driver)
{
	struct td_window_mark *mark = td_window_next_mark(window);

	if (!mark || td_context_is_capturing(window->last_stream))
		return;
	if (!mark->event && driver->event_create(&mark->event, 0)) {
		mark->event = NULL;
		stop_following(window); /* work without an event is not waited for */
		return;
	}
	if (driver->event_record(mark->event, window->last_stream))
		stop_following(window);
	else
		note_mark(window, mark);
}

/* Records an event in front of work that does not directly follow other work of this process. */
static void record_start(struct td_window *window, const struct td_driver *driver, void *stream)
{
	struct td_window_mark *mark = td_window_next_mark(window);

	if (!mark || window->unmarked || (window->in_flight && stream == window->last_stream) ||
		td_context_is_capturing(stream))
		return;
	if (!mark->start && driver->event_create(&mark->start, 0))
		mark->start = NULL;
	mark->started = mark->start && !driver->event_record(mark->start, stream);
}

static void begin_piece(struct td_window *window, const struct td_driver *driver, void *stream,
	uint32_t word, bool is_free)
{
	uint32_t alone = atomic_load_explicit(&td_gate.page.alone, memory_order_relaxed);

	record_start(window, driver, stream);
	if (!window->unmarked) {
		window->free = is_free;
		window->word = word;
	}
	if (!window->unmarked || window->alone != alone)
		window->alone = window->unmarked ? 0 : alone;
}

/* A duty limits work in flight too, since unmeasured work is only estimated. */
static uint64_t window_ns(uint32_t word)
{
	uint64_t ns = atomic_load_explicit(&td_gate.page.window_ns, memory_order_relaxed);

	return word & TD_WORD_WINDOW ? ns : DUTY_WINDOW_NS;
}

static void record_late(struct td_window *window, const struct td_driver *driver, void *stream,
	uint32_t kind, uint64_t window_ns)
{
	if (stream != window->last_stream)
		stop_following(window);
	else if (!(kind & TD_SUBMIT_DEPENDENT) && td_window_mark_due(window, window_ns))
		record(window, driver);
}

/* Takes over the duty from the gate page. Returns it in ppm; 0: none. */
static uint32_t note_duty(uint32_t word)
{
	uint32_t now = word & TD_WORD_DUTY
			       ? atomic_load_explicit(&td_gate.page.duty_ppm, memory_order_relaxed)
			       : 0;
	uint32_t before = atomic_load_explicit(&td_pacer.duty_ppm, memory_order_relaxed);

	if (now >= TD_PPM)
		now = 0;
	if (now == before || !atomic_compare_exchange_strong(&td_pacer.duty_ppm, &before, now) ||
		!now)
		return now;
	before = atomic_exchange(&td_pacer.last_duty_ppm, now);
	for (unsigned i = 0; before != now && i < TD_SLOT_MAX; i++)
		td_budget_change(&td_pacer.budgets[i], before, now, td_time_now_ns());
	return now;
}

/* Returns 0 if the submission may go now. */
static uint64_t wait_for_budget_ns(const struct td_window *window, uint32_t duty)
{
	return window->gpu < 0
		       ? 0
		       : td_budget_wait_ns(&td_pacer.budgets[window->gpu],
				 atomic_load_explicit(&td_pacer.expected_ns, memory_order_relaxed),
				 duty, td_time_now_ns());
}

/*
 * Whether dependent launches may overlap, without an event of tandem between them. Under a duty
 * their time must be known, so events are recorded now and then.
 */
static bool leaves_overlap(uint32_t duty)
{
	return !duty && atomic_load_explicit(&td_pacer.dependent_seen, memory_order_relaxed);
}

/*
 * Records an event behind work that has no mark yet, so that its end is measured. Under a duty
 * short work has few marks, and one length estimated too high would delay the program in full.
 */
static void end_unmarked(struct td_window *window, const struct td_driver *driver, void *stream)
{
	if (!window->unmarked || td_window_oldest(window))
		return;
	if (stream == window->last_stream)
		record(window, driver);
	else
		stop_following(window);
	recount(window);
}

/*
 * Returns true if the work that other threads have submitted has probably ended. Such a thread
 * looks only when it submits the next time. So its work counts as ended after DRY_TIMES its
 * estimated time.
 */
static bool are_others_dry(uint64_t now_ns)
{
	uint64_t expected = atomic_load_explicit(&td_pacer.expected_ns, memory_order_relaxed);

	return now_ns >= atomic_load_explicit(&td_pacer.submitted_ns, memory_order_relaxed) +
				 DRY_TIMES * expected;
}

static uint64_t mark_ns(uint64_t window_ns)
{
	uint64_t ns = window_ns / MARKS_PER_WINDOW;

	if (ns >= MARK_NS)
		return MARK_NS;
	return ns > MARK_MIN_NS ? ns : MARK_MIN_NS;
}

/*
 * Returns the longest time that this work may take. Too short a value would delay other programs.
 */
static uint64_t longest_ns(uint32_t work)
{
	uint32_t hash = td_window_hash(work);
	uint64_t ns = td_fresh_likely_ns(hash),
		 longest = td_lengths_expect(&td_pacer.lengths, hash);

	ns = longest > ns ? longest : ns;
	return ns ? ns : NEW_NS;
}

/*
 * Returns true if the work belongs to the current mark (at most mark_ns of work). Such work is
 * submitted without a pause of ours, which would spoil the measured interval. A pause of the
 * program ends the mark, and longer work gets a mark of its own.
 */
static bool is_within_mark(struct td_window *window, const struct td_driver *driver,
	const void *stream, uint32_t work, uint64_t window_ns)
{
	if (!window->unmarked || !window->unmarked_ns || !td_window_next_mark(window) ||
		stream != window->last_stream || td_time_now_ns() > window->submitted_ns + GAP_NS)
		return false;
	if (window->unmarked_ns + longest_ns(work) <= mark_ns(window_ns))
		return true;
	record(window, driver);
	recount(window);
	return false;
}

/*
 * Returns true while another process has its moment alone: this process then submits nothing. Tells
 * the daemon once none of its work is in flight.
 */
static bool is_held(struct td_window *window, const struct td_driver *driver, void *stream)
{
	uint32_t hold = atomic_load_explicit(&td_gate.page.hold, memory_order_relaxed);
	uint64_t now = td_time_now_ns();

	if (!hold || !td_hold_lasts(&td_pacer.held, hold, now))
		return false;
	end_unmarked(window, driver, stream);
	if (!window->in_flight && are_others_dry(now))
		atomic_store_explicit(&td_meter.page.dry, hold, memory_order_relaxed);
	return true;
}

/* Whether the process has an unused moment alone, and an event to measure with. */
static bool may_be_measured(struct td_window *window)
{
	uint32_t alone = atomic_load_explicit(&td_gate.page.alone, memory_order_relaxed);

	return alone &&
	       alone != atomic_load_explicit(&td_pacer.let_through, memory_order_relaxed) &&
	       td_window_next_mark(window);
}

/*
 * Returns how long the duty delays the submission; 0: not at all. In a moment alone a piece passes
 * early and is paid for afterwards.
 */
static uint64_t duty_wait_ns(struct td_pace *pace, struct td_window *window,
	const struct td_driver *driver, void *stream, uint32_t word, uint32_t work)
{
	uint32_t duty = atomic_load_explicit(&td_pacer.duty_ppm, memory_order_relaxed);
	uint64_t wait = wait_for_budget_ns(window, duty), now = td_time_now_ns(),
		 ns = longest_ns(work), fresh;

	if (is_held(window, driver, stream))
		return HOLD_LOOK_NS;
	if (may_be_measured(window))
		return 0;
	fresh = td_fresh_wait_ns(td_window_hash(work), now);
	if (fresh) {
		end_unmarked(window, driver, stream);
		return fresh;
	}
	pace->free = td_pause_is_free(window, word, ns, now);
	if (pace->free)
		return 0;
	wait = td_pause_wait_long_ns(ns, wait, now);
	if (atomic_load_explicit(&td_gate.page.pause_until_ns, memory_order_relaxed)) {
		/* The work may be submitted once the work in flight has ended. */
		end_unmarked(window, driver, stream);
		wait = td_pause_wait_ns(window, wait, now);
	}
	/* Until our work has ended, all other programs are held, so look often. */
	return wait > HOLD_LOOK_NS &&
			       atomic_load_explicit(&td_gate.page.alone, memory_order_relaxed)
		       ? HOLD_LOOK_NS
		       : wait;
}

bool td_pace_may_submit(struct td_pace *pace, struct td_marker *marker, void *stream, uint32_t kind)
{
	const struct td_driver *driver = td_driver();
	struct td_window *window = &marker->window;
	uint32_t word = td_gate_word(), duty = note_duty(word);
	uint32_t work = td_submit_as_work(kind);
	uint64_t context;
	bool within;

	if (kind & TD_SUBMIT_DEPENDENT)
		atomic_store_explicit(&td_pacer.dependent_seen, true, memory_order_relaxed);
	context = td_context_serial();
	if (!driver || !context)
		return true;
	if (context != window->context)
		start_over(window, context);
	pace->window_ns = window_ns(word);
	reap(window, driver);
	if (leaves_overlap(duty))
		record_late(window, driver, stream, kind, pace->window_ns);
	within = duty && is_within_mark(window, driver, stream, work, pace->window_ns);
	pace->free = false;
	pace->wait_ns =
		duty && !within ? duty_wait_ns(pace, window, driver, stream, word, work) : 0;
	if (pace->wait_ns)
		return false;
	if (!pace->past && !within && !pace->free && (duty || !(kind & TD_SUBMIT_DEPENDENT)) &&
		!td_window_may_submit(window,
			atomic_load_explicit(&td_pacer.process_ns, memory_order_relaxed),
			pace->window_ns)) {
		if (duty)
			end_unmarked(window, driver, stream);
		return false;
	}
	if (duty && window->unmarked && !within)
		stop_following(window);
	if (!duty && !window->unmarked)
		window->free = true;
	if (duty && !within && !pace->free)
		td_pause_note_long(longest_ns(work), td_time_now_ns());
	if (duty)
		begin_piece(window, driver, stream, word, pace->free);
	window->last_stream = stream;
	window->work = work;
	window->active_ppm = window->core_ppm = 0; /* valid until the meter sets the real shares */
	window->submitted_ns = duty ? td_time_now_ns() : 0;
	if (duty)
		atomic_store_explicit(
			&td_pacer.submitted_ns, window->submitted_ns, memory_order_relaxed);
	return true;
}

void td_pace_sleep(struct td_pace *pace, const struct td_marker *marker, uint32_t word)
{
	uint64_t now_ns = td_time_now_ns(), most = WAIT_WINDOWS * pace->window_ns,
		 usual = WAIT_USUAL * td_window_in_flight_ns(&marker->window);

	if (pace->wait_ns) {
		/* A change of the word ends the wait too. */
		td_futex_wait(&td_gate.page.word, word,
			pace->wait_ns < WAIT_MIN_NS ? pace->wait_ns : WAIT_MIN_NS, true);
		return;
	}
	/* Work in flight is waited for up to its usual time. */
	if (most < usual)
		most = usual < WAIT_MAX_NS ? usual : WAIT_MAX_NS;
	if (!pace->deadline_ns)
		pace->deadline_ns = now_ns + (most > WAIT_MIN_NS ? most : WAIT_MIN_NS);
	pace->past = now_ns >= pace->deadline_ns;
	if (!pace->past)
		td_time_sleep_until_ns(
			now_ns + td_window_pause_ns(&marker->window, pace->window_ns));
}

/*
 * Returns whether to record an event behind this launch, under a duty. Work never measured gets one
 * of its own, so that its length is known early. Other work gets one for each mark_ns of estimated
 * time.
 */
static bool duty_mark_due(struct td_window *window, uint64_t window_ns)
{
	uint32_t hash = td_window_hash(window->work);
	uint64_t ns = td_fresh_likely_ns(hash);

	/* If no mark is left, the work is paid for here. */
	window->unmarked_ns += ns ? ns : NEW_NS;
	window->unmarked_active += (ns ? ns : NEW_NS) * window->active_ppm;
	window->unmarked_core += (ns ? ns : NEW_NS) * window->core_ppm;
	td_pause_submitted(window, ns ? ns : NEW_NS, window->submitted_ns);
	td_fresh_submitted(hash, window->submitted_ns);
	return !td_solo_expect(&td_pacer.solo, hash) || window->unmarked_ns >= mark_ns(window_ns);
}

void td_pace_submitted(struct td_marker *marker)
{
	const struct td_driver *driver = td_driver();
	struct td_window *window = &marker->window;
	bool due;

	if (!window->context)
		return;
	td_window_submitted(window, window->last_stream, window->work);
	if (atomic_load_explicit(&td_pacer.duty_ppm, memory_order_relaxed))
		due = duty_mark_due(window, window_ns(td_gate_word()));
	else
		due = td_window_mark_due(window, window_ns(td_gate_word()));
	if (due && !leaves_overlap(atomic_load_explicit(&td_pacer.duty_ppm, memory_order_relaxed)))
		record(window, driver);
	recount(window);
}

void td_pace_thread_ends(struct td_marker *marker)
{
	struct td_window *window = &marker->window;

	for (unsigned i = 0; i < TD_WINDOW_MARKS; i++)
		expect(window, &window->marks[i], 0);
	atomic_fetch_sub_explicit(&td_pacer.process_ns, window->counted_ns, memory_order_relaxed);
	window->counted_ns = 0;
	td_pause_abandoned(window);
	td_meter_thread_ends(marker);
}

void td_pace_forked(void)
{
	atomic_store(&td_pacer.process_ns, 0);
	atomic_store(&td_pacer.expected_ns, 0);
	atomic_store(&td_pacer.duty_ppm, 0);
	atomic_store(&td_pacer.last_duty_ppm, 0);
	atomic_store(&td_pacer.held, 0);
	atomic_store(&td_pacer.let_through, 0);
	td_fresh_forked();
	td_meter_forked();
	td_pause_forked();
	td_clock_forked();
}
