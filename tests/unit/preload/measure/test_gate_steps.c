/*
 * Counting steps: reported by the program from any thread, found otherwise, and taken over by the
 * agent.
 */
#include "test.h"

#include <pthread.h>

#include "base/time.h"
#include "preload/base/page.h"
#include "preload/measure/period.h"
#include "preload/measure/steps.h"

/* The library exports this function; the header looks it up. */
void tandem_step(void);

#define THREADS 4
#define EACH    200000u

/* How often the agent was woken. */
static unsigned wakes;
void __wrap_td_agent_wake(void);

void __wrap_td_agent_wake(void)
{
	wakes++;
}

TEST(the_end_of_a_step_wakes_the_agent_where_the_page_asks_for_it)
{
	td_steps_forked();
	tandem_step();
	CHECK_EQ(wakes, 0);
	atomic_store(&td_gate.page.steps, 1);
	tandem_step();
	CHECK_EQ(wakes, 1);
	td_steps_forked();
	atomic_store(&td_gate.page.steps, 0);
	tandem_step();
	CHECK_EQ(wakes, 1);
}

TEST(nothing_is_told_before_the_first)
{
	struct td_steps steps;

	td_steps_forked();
	CHECK(!td_steps_take(&steps));
	td_steps_again();
	CHECK(!td_steps_take(&steps));
	CHECK_EQ(steps.count, 0);
}

TEST(the_first_has_no_time_and_the_next_ones_have)
{
	struct td_steps steps;

	td_steps_forked();
	tandem_step();
	CHECK(td_steps_take(&steps));
	CHECK_EQ(steps.count, 1);
	CHECK_EQ(steps.median_ns, 0);
	CHECK(steps.began_ns != 0);
	CHECK_EQ(steps.unit, 0);
	CHECK_EQ(steps.sure_ppm, 1000000);
	for (int i = 0; i < 40; i++)
		tandem_step();
	CHECK(td_steps_take(&steps));
	CHECK_EQ(steps.count, 41);
	CHECK(steps.median_ns && steps.step_ns);
	CHECK(!td_steps_take(&steps));
	CHECK_EQ(steps.count, 41);
}

TEST(memory_is_told_of_whole_steps)
{
	struct td_step_memory memory;

	td_steps_forked();
	td_steps_memory(1, 50);
	td_steps_memory(1, 10);
	tandem_step(); /* nobody knows when it had begun */
	td_steps_get_memory(1, &memory);
	CHECK_EQ(memory.peak_bytes, 0);
	td_steps_memory(1, 30);
	td_steps_memory(1, 20);
	td_steps_get_memory(1, &memory);
	CHECK_EQ(memory.peak_bytes, 0); /* it is not over */
	tandem_step();
	td_steps_get_memory(1, &memory);
	CHECK_EQ(memory.peak_bytes, 30);
	CHECK_EQ(memory.least_bytes, 10);
	CHECK(td_steps_memory_is_new(1) && !td_steps_memory_is_new(1));
	CHECK(!memory.by_allocator);
	tandem_step(); /* as it was at the end of the last one */
	td_steps_get_memory(1, &memory);
	CHECK_EQ(memory.peak_bytes, 20);
	CHECK_EQ(memory.least_bytes, 20);
	td_steps_get_memory(0, &memory);
	CHECK_EQ(memory.peak_bytes, 0);
}

TEST(what_the_backend_has_not_counts_beside_it)
{
	struct td_step_memory memory;

	td_steps_forked();
	td_steps_memory(1, 20);
	tandem_step();
	td_steps_outside(1, 5);
	td_steps_memory(1, 30);
	td_steps_outside(1, 1);
	td_steps_memory(1, 2);
	tandem_step();
	td_steps_get_memory(1, &memory);
	CHECK_EQ(memory.peak_bytes, 35);
	CHECK_EQ(memory.least_bytes, 3);
}

TEST(what_an_allocator_says_goes_before)
{
	struct td_step_memory memory;

	td_steps_used(1, 12, 7);
	tandem_step();
	td_steps_get_memory(1, &memory);
	CHECK_EQ(memory.peak_bytes, 12);
	CHECK_EQ(memory.least_bytes, 7);
	CHECK(memory.by_allocator);
	td_steps_forked();
	td_steps_get_memory(1, &memory);
	CHECK(!memory.by_allocator && !memory.peak_bytes);
	for (int i = 0; i < 41; i++)
		tandem_step();
}

TEST(a_new_daemon_is_told_all)
{
	struct td_steps steps;

	td_steps_again();
	CHECK(td_steps_take(&steps));
	CHECK_EQ(steps.count, 41);
	CHECK(steps.step_ns);
}

/* A program that launches the same for ever, far enough apart to be steps. */
static void launch(unsigned times)
{
	while (times--) {
		td_time_sleep_until_ns(td_time_now_ns() + 2 * TD_PERIOD_MIN_NS);
		td_steps_call(7);
	}
}

TEST(once_the_program_tells_them_none_is_guessed)
{
	struct td_steps steps;

	launch(20);
	CHECK(!td_steps_take(&steps));
	CHECK_EQ(steps.count, 41);
	CHECK_EQ(steps.unit, 0);
}

TEST(else_they_are_found_until_it_does)
{
	struct td_steps steps = {0};
	unsigned launched = 0;

	td_steps_forked();
	/* Where others have the processors they are not far enough alike at once. */
	while (steps.count <= 10 && launched < 4000) {
		launch(40);
		launched += 40;
		(void)td_steps_take(&steps);
	}
	CHECK(steps.count > 10 && steps.count <= launched);
	CHECK_EQ(steps.unit, 7);
	CHECK(steps.median_ns >= 2 * TD_PERIOD_MIN_NS);
	tandem_step();
	CHECK(td_steps_take(&steps));
	CHECK_EQ(steps.unit, 0);
	CHECK_EQ(steps.median_ns, 0);
}

static void *tell(void *arg)
{
	for (unsigned i = 0; i < EACH; i++) {
		tandem_step();
		td_steps_call(i);
	}
	return arg;
}

TEST(steps_of_all_threads_count)
{
	pthread_t threads[THREADS];
	struct td_steps steps;

	td_steps_forked();
	for (unsigned i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, tell, NULL), 0);
	for (unsigned i = 0; i < 1000; i++)
		(void)td_steps_take(&steps);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	(void)td_steps_take(&steps);
	CHECK_EQ(steps.count, THREADS * EACH);
}

TEST(the_child_of_a_fork_has_made_none)
{
	struct td_steps steps;

	td_steps_forked();
	CHECK(!td_steps_take(&steps));
	CHECK_EQ(steps.count, 0);
}
