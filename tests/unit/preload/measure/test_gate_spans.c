/*
 * Time is charged once, to the program whose work took it: the arithmetic, and two threads whose
 * work runs side by side. The clock is the test's, so a busy machine makes no pause.
 */
#include "test.h"

#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "unit/preload/fake_gpu.h"
#include "preload/agent/agent.h"
#include "preload/agent/place.h"
#include "preload/base/page.h"
#include "preload/base/settings.h"
#include "preload/context/context.h"
#include "preload/gate/gate.h"
#include "preload/gate/pace.h"
#include "preload/gate/pacer.h"
#include "preload/measure/spans.h"

#define MS TD_NS_PER_MS

/*
 * Each reading of the clock takes this long, and each sleep its exact time; for the test's own
 * thread, beside which there is only the agent.
 */
#define LOOK_NS 1000

static _Atomic uint64_t clock_ns = 100000 * TD_NS_PER_S;

static bool is_test(void)
{
	return syscall(SYS_gettid) == getpid();
}

uint64_t td_time_now_ns(void)
{
	return is_test() ? atomic_fetch_add(&clock_ns, LOOK_NS) : atomic_load(&clock_ns);
}

void td_time_sleep_until_ns(uint64_t deadline_ns)
{
	uint64_t now_ns = atomic_load(&clock_ns);

	if (!is_test())
		nanosleep(&(struct timespec){0, 1000000}, NULL);
	else if (deadline_ns > now_ns)
		atomic_fetch_add(&clock_ns, deadline_ns - now_ns);
}

TEST(what_overlaps_counts_once)
{
	struct td_spans spans = {0};

	CHECK_EQ(td_spans_add(&spans, 100, 200), 100);
	CHECK_EQ(td_spans_add(&spans, 100, 200), 0);
	CHECK_EQ(td_spans_add(&spans, 150, 250), 50);
	CHECK_EQ(td_spans_add(&spans, 300, 400), 100);
	CHECK_EQ(td_spans_add(&spans, 50, 500), 50 + 50 + 100);
	CHECK_EQ(spans.count, 1);
	CHECK_EQ(td_spans_add(&spans, 10, 20), 10); /* long before, and not seen yet */
	CHECK_EQ(td_spans_add(&spans, 20, 20), 0);
}

TEST(the_sum_is_what_is_covered)
{
	static uint8_t covered[1000];
	struct td_spans spans = {0};
	uint64_t sum = 0, expected = 0;
	uint32_t seed = 5;

	for (unsigned i = 0; i < 300; i++) {
		/* Time goes on: nothing comes from before what is still remembered. */
		uint64_t from = i * 3 + (seed = seed * 1664525 + 1013904223) % 20,
			 to = from + seed / 7 % 30;

		sum += td_spans_add(&spans, from, to);
		for (uint64_t k = from; k < to; k++)
			covered[k] = 1;
	}
	for (unsigned k = 0; k < 1000; k++)
		expected += covered[k];
	CHECK_EQ(sum, expected);
}

TEST(what_is_forgotten_is_charged_again_rather_than_never)
{
	struct td_spans spans = {0};

	for (uint64_t i = 0; i < TD_SPANS + 1; i++)
		CHECK_EQ(td_spans_add(&spans, 100 * i, 100 * i + 10), 10);
	CHECK_EQ(spans.count, TD_SPANS);
	CHECK_EQ(td_spans_add(&spans, 0, 10), 10);
	CHECK_EQ(td_spans_add(&spans, 100 * TD_SPANS, 100 * TD_SPANS + 10), 0);
}

/* -- with a driver whose events know when they were reached -- */

static struct event {
	uint64_t at_ns;
} events[4096];
static unsigned event_count;
static uint64_t reached_ns; /* by the work that was submitted last */
static bool busy;           /* it has not ended */

static int query_event(void *event)
{
	(void)event;
	return busy ? TD_CUDA_ERROR_NOT_READY : 0;
}

static int make_event(void **ret, unsigned flags)
{
	(void)flags;
	*ret = &events[event_count++ % 4096];
	return 0;
}

static int record_event(void *event, void *stream)
{
	(void)stream;
	((struct event *)event)->at_ns = reached_ns;
	return 0;
}

static int elapsed(float *ret, void *from, void *to)
{
	*ret = (float)((double)((struct event *)to)->at_ns -
		       (double)((struct event *)from)->at_ns) /
	       1e6f;
	return 0;
}

/* The work begins and ends then. */
static void submit(struct td_marker *marker, void *stream, uint64_t from_ns, uint64_t to_ns)
{
	struct td_pace pace = {0};

	reached_ns = from_ns;
	while (!td_pace_may_submit(&pace, marker, stream, TD_SUBMIT_CALL | 8))
		pace.past = true;
	reached_ns = to_ns;
	td_pace_submitted(marker);
}

TEST(threads_whose_work_runs_side_by_side_pay_for_the_gpus_time_once)
{
	static struct td_marker a, b;
	static struct td_driver driver;

	uint64_t before, paid;

	driver = fake_driver;
	driver.event_create = make_event;
	driver.event_record = record_event;
	driver.event_elapsed_ms = elapsed;
	driver.event_query = query_event;
	td_driver_set(&driver);
	setenv("TANDEM_SOCKET", "/nonexistent", 1);
	td_settings_read();
	td_marker_init();
	CHECK_EQ(td_context_use(), 0);
	atomic_store(&td_gate.page.duty_ppm, 900000);
	td_gate_write(TD_WORD_DUTY);
	before = atomic_load(&td_meter.page.gpu_ns);
	for (uint64_t i = 1; i <= 200; i++) {
		submit(&a, (void *)0x100, i * MS, i * MS + MS / 2);
		submit(&b, (void *)0x200, i * MS, i * MS + MS / 2);
	}
	paid = atomic_load(&td_meter.page.gpu_ns) - before;
	/* Half a millisecond each, but for the first few. */
	CHECK(paid >= 98 * MS && paid <= 104 * MS);
	before = atomic_load(&td_meter.page.gpu_ns);
	for (uint64_t i = 201; i <= 400; i++) {
		submit(&a, (void *)0x100, i * MS, i * MS + MS / 2);
		submit(&b, (void *)0x200, i * MS + MS / 2, i * MS + MS);
	}
	paid = atomic_load(&td_meter.page.gpu_ns) - before;
	CHECK(paid >= 196 * MS && paid <= 202 * MS);
	td_pace_thread_ends(&a);
	td_pace_thread_ends(&b);
	td_gate_write(0);
}

/* The calls that a submission of known work takes, but for those that wait for the budget. */
static unsigned tries(struct td_marker *marker, uint64_t from_ns, uint64_t to_ns)
{
	struct td_pace pace = {0};
	unsigned n = 1;

	reached_ns = from_ns;
	while (!td_pace_may_submit(
		&pace, marker, (void *)0x300, td_submit_work(&events, 1, 1, 1))) {
		if (pace.wait_ns)
			td_time_sleep_until_ns(td_time_now_ns() + pace.wait_ns);
		else if (n++ == 50)
			break;
	}
	reached_ns = to_ns;
	td_pace_submitted(marker);
	return n;
}

/* The same where what is in flight ends only while it waits. */
static unsigned tries_while_busy(struct td_marker *marker, uint64_t from_ns, uint64_t to_ns)
{
	struct td_pace pace = {0};

	reached_ns = from_ns;
	if (td_pace_may_submit(&pace, marker, (void *)0x300, td_submit_work(&events, 1, 1, 1))) {
		reached_ns = to_ns;
		td_pace_submitted(marker);
		return 1;
	}
	busy = false;
	return 1 + tries(marker, from_ns, to_ns);
}

TEST(one_piece_that_seemed_long_does_not_have_the_short_ones_wait_for_what_has_no_mark)
{
	static struct td_marker slot;
	uint64_t now = 10000 * MS;
	unsigned most = 0;

	td_gate_write(TD_WORD_DUTY);
	for (unsigned i = 0; i < 200; i++) {
		uint64_t ns = i == 100 ? 60 * MS : MS / 5;
		unsigned n;

		if (i > 100) {
			slot.window.estimate_ns = 15 * MS;
			/* a pause of its own within what has no mark */
			if (slot.window.unmarked >= TD_WINDOW_MIN)
				slot.window.submitted_ns = 0;
		}
		n = tries(&slot, now, now + ns);
		now += ns;
		most = i > 100 && n > most ? n : most;
	}
	CHECK(most >= 2 && most < 10);
	td_pace_thread_ends(&slot);
	td_gate_write(0);
}

/* -- moments alone (policy/node/alone.h), as the page tells of them -- */

/* Once: may it be submitted now? If so, it is. */
static bool try(struct td_marker *marker, uint64_t from_ns, uint64_t to_ns)
{
	/* a kind of its own for each thread */
	uint32_t work = td_submit_work(marker, 1, 1, 1);
	struct td_pace pace = {0};

	reached_ns = from_ns;
	if (!td_pace_may_submit(&pace, marker, (void *)0x300, work))
		return false;
	reached_ns = to_ns;
	td_pace_submitted(marker);
	return true;
}

TEST(who_is_held_submits_nothing_and_says_when_it_is_dry)
{
	static struct td_marker slot;
	uint64_t now = 50000 * MS;

	td_gate_write(TD_WORD_DUTY);
	CHECK(tries(&slot, now, now + MS) < 50);
	slot.window.submitted_ns = 0; /* that was a while ago */
	CHECK(!atomic_load(&td_meter.page.dry));
	busy = true;
	atomic_store(&td_gate.page.hold, 5);
	CHECK(!try(&slot, now, now + MS));
	CHECK(!atomic_load(&td_meter.page.dry));
	busy = false;
	CHECK(!try(&slot, now, now + MS));
	CHECK_EQ(atomic_load(&td_meter.page.dry), 5);
	atomic_store(&td_gate.page.hold, 0);
	CHECK(tries(&slot, now, now + MS) < 50);
	td_pace_thread_ends(&slot);
	td_gate_write(0);
}

TEST(in_a_moment_alone_one_piece_is_measured_before_its_time_and_paid_for_after_it)
{
	static struct td_marker slot;
	uint64_t now = 60000 * MS, before;
	uint32_t guesses = atomic_load(&td_meter.page.guesses);

	td_pace_forked(); /* nothing is owed */
	atomic_store(&td_gate.page.duty_ppm, 100000);
	atomic_store(&td_gate.page.rivals, TD_RIVALS_YIELD);
	td_gate_write(TD_WORD_DUTY);
	CHECK(try(&slot, now, now + 90 * MS));
	now += 90 * MS;
	while (try(&slot, now, now + 90 * MS))
		now += 90 * MS;
	CHECK(atomic_load(&td_meter.page.guesses) > guesses);
	before = atomic_load(&td_meter.page.gpu_ns);
	atomic_store(&td_gate.page.alone, 6);
	CHECK(try(&slot, now, now + 40 * MS));
	CHECK(atomic_load(&td_meter.page.measured) != 6);
	CHECK(!try(&slot, now, now + 40 * MS));
	CHECK_EQ(atomic_load(&td_meter.page.measured), 6);
	CHECK_EQ(atomic_load(&td_meter.page.gpu_ns) - before, 40 * MS);
	guesses = atomic_load(&td_meter.page.guesses);
	/* Another moment; from then on it costs that, whatever it seems to take. */
	atomic_store(&td_gate.page.alone, 7);
	now += 40 * MS;
	CHECK(try(&slot, now, now + 90 * MS));
	atomic_store(&td_gate.page.alone, 0);
	before = atomic_load(&td_meter.page.gpu_ns);
	CHECK(!try(&slot, now, now + 90 * MS));
	CHECK_EQ(atomic_load(&td_meter.page.gpu_ns) - before, 40 * MS);
	CHECK_EQ(atomic_load(&td_meter.page.guesses), guesses);
	CHECK_EQ(atomic_load(&td_meter.page.measured), 6); /* it was over before */
	atomic_store(&td_gate.page.rivals, 0);
	td_gate_write(0);
}

TEST(a_moment_alone_lets_nothing_through_that_cannot_be_measured)
{
	static struct td_marker slot;
	uint64_t now = 70000 * MS;
	unsigned through = 0;

	atomic_store(&td_gate.page.duty_ppm, 110000);
	td_gate_write(TD_WORD_DUTY);
	busy = true;
	for (unsigned i = 0; i < 3 * TD_WINDOW_MARKS; i++) {
		atomic_store(&td_gate.page.alone, 100 + i);
		through += try(&slot, now, now + 90 * MS);
		slot.window.estimate_ns = 1;
	}
	busy = false;
	atomic_store(&td_gate.page.alone, 0);
	CHECK_EQ(through, TD_WINDOW_MARKS);
	td_pace_thread_ends(&slot);
	td_gate_write(0);
}

/*
 * A pause within a mark would be taken for work, or the work in front of it be guessed. Here the
 * window is full, because work beside others seems long.
 */
TEST(short_pieces_wait_between_marks_and_not_within_one)
{
	static struct td_marker slot;
	uint64_t now = 80000 * MS, before;
	unsigned within = 0, between = 0;

	atomic_store(&td_gate.page.duty_ppm, 800000);
	td_gate_write(TD_WORD_DUTY);
	for (unsigned i = 0; i < 20; i++, now += MS / 5)
		(void)tries(&slot, now, now + MS / 5);
	before = atomic_load(&td_meter.page.gpu_ns);
	for (unsigned i = 0; i < 200; i++, now += MS / 5) {
		bool first = !slot.window.unmarked;
		unsigned n;

		slot.window.estimate_ns = 7 * MS;
		busy = true;
		n = tries_while_busy(&slot, now, now + MS / 5);
		between += n > 1 && first;
		within += n > 1 && !first;
	}
	busy = false;
	CHECK(between > 20);
	CHECK_EQ(within, 0);
	(void)tries(&slot, now, now + MS / 5);
	/* each of them has been measured */
	CHECK(atomic_load(&td_meter.page.gpu_ns) - before >= 38 * MS);
	CHECK(atomic_load(&td_meter.page.gpu_ns) - before <= 42 * MS);
	td_pace_thread_ends(&slot);
	td_gate_write(0);
}

/* The guess must be counted so that it is known when a moment becomes possible. */
TEST(work_beside_others_is_guessed_also_while_nobody_is_alone_for_it)
{
	static struct td_marker slot;
	uint64_t now = 90000 * MS;
	uint32_t guesses = atomic_load(&td_meter.page.guesses);

	td_pace_forked(); /* nothing is owed */
	atomic_store(&td_gate.page.duty_ppm, 200000);
	atomic_store(&td_gate.page.rivals, TD_RIVALS);
	td_gate_write(TD_WORD_DUTY);
	CHECK(try(&slot, now, now + MS));
	(void)try(&slot, now + MS, now + 2 * MS);
	CHECK(atomic_load(&td_meter.page.guesses) > guesses);
	atomic_store(&td_gate.page.rivals, 0);
	td_gate_write(0);
}

/*
 * While the work in front of it does not end, a thread has at most TD_WINDOW_MARKS events in
 * flight.
 */
TEST(a_copy_that_finds_no_mark_left_is_paid_for)
{
	static struct td_marker slot;
	unsigned let_in = 0;

	td_pace_forked();
	atomic_store(&td_gate.page.duty_ppm, 100000);
	td_gate_write(TD_WORD_DUTY);
	atomic_store(&td_pacer.unnamed_ns[0], 10 * TD_NS_PER_US);
	busy = true;
	for (; let_in < 2000; let_in++) {
		struct td_pace pace = {0};

		if (!td_pace_may_submit(&pace, &slot, (void *)0x100, TD_SUBMIT_CALL | 8))
			break;
		td_pace_submitted(&slot);
		slot.window.estimate_ns =
			10 * TD_NS_PER_US; /* nor is it the window that keeps it */
	}
	/*
	 * 10 ms ahead, and at most 20 that were saved: a tenth of that in pieces of 10 us, and the
	 * time of that loop.
	 */
	printf("# %u\n", let_in);
	CHECK(let_in > TD_WINDOW_MARKS && let_in < 1500);
	busy = false;
	atomic_store(&td_pacer.unnamed_ns[0], 0);
	td_pace_forked();
	td_gate_write(0);
}

TEST(another_duty_forgives_no_debt)
{
	static struct td_marker slot;
	struct td_pace pace = {0};
	uint64_t now = 100000 * MS;

	td_pace_forked();
	atomic_store(&td_gate.page.duty_ppm, 100000);
	td_gate_write(TD_WORD_DUTY);
	submit(&slot, (void *)0x100, now, now + 60000 * MS);
	CHECK(!td_pace_may_submit(&pace, &slot, (void *)0x100, TD_SUBMIT_CALL | 8));
	atomic_store(&td_gate.page.duty_ppm, 200000);
	td_gate_write(TD_WORD_DUTY);
	CHECK(!td_pace_may_submit(&pace, &slot, (void *)0x100, TD_SUBMIT_CALL | 8));
	CHECK(pace.wait_ns > 100000 * MS && pace.wait_ns <= 300000 * MS);
	td_pace_forked();
	td_gate_write(0);
}

/* It would wait as long again for nothing. */
TEST(a_rare_piece_that_the_window_keeps_back_has_not_been_let_in)
{
	static struct td_marker slot;
	uint64_t now = 200000 * MS;

	td_pace_forked();
	atomic_store(&td_gate.page.duty_ppm, 900000);
	atomic_store(&td_gate.page.window_ns, MS);
	td_gate_write(TD_WORD_DUTY | TD_WORD_WINDOW);
	CHECK(try(&slot, now, now + 3 * MS)); /* its length is known then */
	CHECK(try(&slot, now, now + 3 * MS));
	busy = true;
	CHECK(try(&slot, now, now + 3 * MS));
	atomic_store(&td_gate.page.long_ns, MS);
	atomic_store(&td_gate.page.long_every_ns, 3600 * 1000 * MS);
	CHECK(!try(&slot, now, now + 3 * MS));
	busy = false;
	CHECK(try(&slot, now, now + 3 * MS));
	CHECK(!try(&slot, now, now + 3 * MS));
	atomic_store(&td_gate.page.long_ns, 0);
	td_pace_forked();
	td_gate_write(0);
}

/*
 * This holds while only its running is known. It may wait for later work, and gets that within a
 * bounded time.
 */
TEST(what_is_new_and_in_flight_counts_for_as_long_as_it_has_been)
{
	static struct td_marker slot;
	struct td_pace pace = {0};
	uint64_t now = 300000 * MS;
	struct td_window_mark *mark;

	td_pace_forked();
	atomic_store(&td_gate.page.duty_ppm, 10000);
	td_gate_write(TD_WORD_DUTY);
	busy = true;
	CHECK(try(&slot, now, now + 3 * MS));
	mark = td_window_oldest(&slot.window);
	CHECK_EQ(mark->expected_ns, 2 * MS);
	mark->submitted_ns -= 10 * MS;
	CHECK(!td_pace_may_submit(&pace, &slot, (void *)0x300, td_submit_work(&slot, 1, 1, 1)));
	CHECK(mark->expected_ns >= 10 * MS && mark->expected_ns <= 20 * MS);
	mark->submitted_ns -= 3600 * 1000 * MS;
	atomic_store(&td_pacer.new_next_ns, 0);
	CHECK(!td_pace_may_submit(&pace, &slot, (void *)0x300, td_submit_work(&slot, 1, 1, 1)));
	CHECK_EQ(mark->expected_ns, 20 * MS);
	CHECK(pace.wait_ns > 1000 * MS && pace.wait_ns < 2000 * MS);
	busy = false;
	CHECK(!td_pace_may_submit(&pace, &slot, (void *)0x300, td_submit_work(&slot, 1, 1, 1)));
	CHECK_EQ(slot.window.expected_ns, 0);
	/* Known work counts with its known time. */
	atomic_store(&td_gate.page.duty_ppm, 900000);
	td_gate_write(TD_WORD_DUTY);
	busy = true;
	td_pace_forked();
	CHECK(try(&slot, now, now + 3 * MS));
	mark = td_window_oldest(&slot.window);
	mark->submitted_ns -= 3600 * 1000 * MS;
	(void)td_pace_may_submit(&pace, &slot, (void *)0x300, td_submit_work(&slot, 1, 1, 1));
	CHECK_EQ(mark->expected_ns, 3 * MS);
	busy = false;
	td_pace_forked();
	td_gate_write(0);
}

/* One piece at a time over all threads; the wait grows a little each time while nothing ends. */
TEST(what_is_new_comes_one_at_a_time)
{
	static struct td_marker a, b, c;
	uint64_t now = 400000 * MS, before;

	td_pace_forked();
	atomic_store(&td_gate.page.duty_ppm, 900000);
	td_gate_write(TD_WORD_DUTY);
	busy = true;
	CHECK(try(&a, now, now + 3 * MS));
	CHECK(!try(&b, now, now + 3 * MS));
	before = td_pacer.new_next_ns;
	CHECK(before >= td_pacer.new_since_ns + 50 * MS);
	/* Its time has come. */
	td_pacer.new_since_ns -= 100 * MS;
	td_pacer.new_next_ns = 0;
	CHECK(try(&b, now, now + 3 * MS));
	CHECK(td_pacer.new_next_ns >= td_pacer.new_since_ns + 500 * MS);
	CHECK(!try(&c, now, now + 3 * MS));
	/* One that came since has ended. */
	busy = false;
	CHECK(try(&a, now, now + 3 * MS));
	CHECK_EQ(td_pacer.new_since_ns, 0);
	td_pace_forked();
	td_gate_write(0);
}

/* Otherwise it would be counted as short work, and its length would never be known. */
TEST(long_work_behind_short_is_asked_for_by_itself)
{
	static struct td_marker slot;
	uint32_t little = td_submit_work(&slot, 1, 1, 1), much = td_submit_work(&slot, 2, 2, 2);
	uint64_t at = 500000 * MS;

	td_pace_forked();
	atomic_store(&td_gate.page.duty_ppm, 900000);
	atomic_store(&td_gate.page.window_ns, 4 * MS);
	td_gate_write(TD_WORD_DUTY | TD_WORD_WINDOW);
	for (unsigned i = 0; i < 6; i++) { /* both are known then */
		struct td_pace pace = {0};

		reached_ns = at;
		while (!td_pace_may_submit(&pace, &slot, (void *)0x300, i & 1 ? much : little))
			pace.past = true;
		at += i & 1 ? 20 * MS : MS / 50;
		reached_ns = at;
		td_pace_submitted(&slot);
	}
	td_pace_forked(); /* nothing is owed */
	td_gate_write(TD_WORD_DUTY | TD_WORD_WINDOW);
	atomic_store(&td_gate.page.pause_until_ns, td_time_now_ns() + 5 * MS);
	for (unsigned i = 0; i < 2; i++) {
		struct td_pace pace = {0};

		CHECK_EQ(td_pace_may_submit(&pace, &slot, (void *)0x300, i ? much : little), !i);
		if (!i)
			td_pace_submitted(&slot);
	}
	atomic_store(&td_gate.page.pause_until_ns, 0);
	atomic_store(&td_gate.page.window_ns, 0);
	td_pace_forked();
	td_gate_write(0);
}
