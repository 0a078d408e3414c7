/* The effect of a protected program's pause on the duty. */
#include "test.h"

#include "base/time.h"
#include "preload/base/page.h"
#include "preload/gate/gate.h"
#include "preload/gate/pause.h"

#define MS TD_NS_PER_MS

static struct td_window a, b;

/* A pause with a window of 1 ms that is relied on for 100 ms from 1000 ms on. */
static void begin(void)
{
	td_pause_forked();
	td_window_reset(&a);
	td_window_reset(&b);
	atomic_store(&td_gate.page.pause_until_ns, 1100 * MS);
	atomic_store(&td_gate.page.window_ns, MS);
	atomic_store(&td_gate.page.sharers, 1);
}

static bool is_free(const struct td_window *w, uint64_t ns, uint64_t at_ns)
{
	return td_pause_is_free(w, TD_WORD_WINDOW | TD_WORD_DUTY, ns, at_ns);
}

static void submit(struct td_window *w, uint64_t ns, uint64_t at_ns)
{
	td_pause_submitted(w, ns, at_ns);
	w->expected_ns += ns;
}

TEST(what_will_be_over_when_the_pause_is_is_free)
{
	begin();
	CHECK(is_free(&a, 100 * MS, 1000 * MS));
	CHECK(!is_free(&a, 101 * MS, 1000 * MS));
	CHECK(is_free(&a, 50 * MS, 1050 * MS));
	CHECK(!is_free(&a, 50 * MS, 1051 * MS));
}

TEST(where_it_may_end_at_any_moment_the_window_is_free)
{
	begin();
	CHECK(is_free(&a, MS, 1200 * MS));
	CHECK(!is_free(&a, MS + 1, 1200 * MS));
	submit(&a, MS / 2, 1200 * MS);
	CHECK(is_free(&a, MS / 2, 1200 * MS));
	CHECK(!is_free(&a, MS / 2 + 1, 1200 * MS));
}

TEST(a_long_one_waits_for_what_is_in_flight)
{
	begin();
	submit(&a, 20 * MS, 1000 * MS);
	CHECK(!is_free(&a, 20 * MS, 1000 * MS));
	CHECK(td_pause_wait_ns(&a, 5000 * MS, 1000 * MS) <= MS); /* and looks again soon */
	a.expected_ns = 0;
	td_pause_dry(&a, 1020 * MS);
	CHECK(is_free(&a, 20 * MS, 1020 * MS));
	CHECK_EQ(td_pause_wait_ns(&a, 5000 * MS, 1020 * MS), 5000 * MS);
}

TEST(several_programs_share_what_is_left_of_it)
{
	begin();
	atomic_store(&td_gate.page.sharers, 4);
	CHECK(is_free(&a, 25 * MS, 1000 * MS));
	CHECK(!is_free(&a, 26 * MS, 1000 * MS));
}

/* Another thread looks at what it has in flight when it comes back. */
TEST(what_other_threads_have_in_flight_counts_for_as_long_as_it_takes)
{
	begin();
	submit(&b, 30 * MS, 1000 * MS);
	CHECK(!is_free(&a, 20 * MS, 1000 * MS));
	CHECK(is_free(&a, 20 * MS, 1030 * MS));
	submit(&a, 20 * MS, 1030 * MS);
	/* The duty knows when its own work ends, whatever was expected. */
	CHECK(!is_free(&a, 20 * MS, 1055 * MS));
}

TEST(no_pause_leaves_all_to_the_duty_and_no_window_leaves_it_nothing)
{
	begin();
	CHECK(td_pause_is_free(&a, TD_WORD_DUTY, 5000 * MS, 1000 * MS));
	atomic_store(&td_gate.page.pause_until_ns, 0);
	CHECK(!is_free(&a, 1, 1000 * MS));
}

TEST(the_child_of_a_fork_has_submitted_nothing_long)
{
	begin();
	atomic_store(&td_gate.page.long_ns, 4 * MS);
	atomic_store(&td_gate.page.long_every_ns, 50000 * MS);
	td_pause_note_long(5 * MS, 1000 * MS);
	CHECK_EQ(td_pause_wait_long_ns(5 * MS, 0, 1500 * MS), 49500 * MS);
	td_pause_forked();
	CHECK_EQ(td_pause_wait_long_ns(5 * MS, 0, 1500 * MS), 0);
	atomic_store(&td_gate.page.long_ns, 0);
}

TEST(what_makes_a_step_too_long_by_itself_comes_rarely)
{
	begin();
	atomic_store(&td_gate.page.long_ns, 4 * MS);
	atomic_store(&td_gate.page.long_every_ns, 50000 * MS);
	/* The first may come when the duty lets it. */
	CHECK_EQ(td_pause_wait_long_ns(5 * MS, 7 * MS, 1000 * MS), 7 * MS);
	td_pause_note_long(4 * MS, 1000 * MS); /* is none */
	CHECK_EQ(td_pause_wait_long_ns(5 * MS, 0, 1000 * MS), 0);
	td_pause_note_long(5 * MS, 1000 * MS);
	CHECK_EQ(td_pause_wait_long_ns(5 * MS, 0, 1500 * MS), 49500 * MS);
	CHECK_EQ(td_pause_wait_long_ns(5 * MS, 60000 * MS, 1500 * MS), 60000 * MS);
	CHECK_EQ(td_pause_wait_long_ns(4 * MS, 0, 1500 * MS), 0);
	CHECK_EQ(td_pause_wait_long_ns(5 * MS, 0, 51000 * MS), 0);
	atomic_store(&td_gate.page.long_ns, 0);
	CHECK_EQ(td_pause_wait_long_ns(5 * MS, 0, 1500 * MS), 0);
}
