/* The loop's deadlines: none is early or forgotten, with the timer and without it. */
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/time.h"
#include "daemon/server/loop/loop.h"
#include "test.h"

static struct td_loop loop;
static struct td_source bell;
static uint64_t due_ns, wait_ns;
static unsigned turns, rings, turns_max, early;

static void rung(struct td_source *source, uint32_t events)
{
	eventfd_t count;

	(void)events;
	CHECK_EQ(eventfd_read(source->fd, &count), 0);
	rings++;
}

/* Wants its next turn after wait_ns, and ends after turns_max turns. */
static uint64_t turn(void *arg, uint64_t now_ns)
{
	(void)arg;
	early += now_ns < due_ns;
	loop.stop = ++turns == turns_max;
	return due_ns = now_ns + wait_ns;
}

static void begin(void)
{
	CHECK_EQ(td_loop_init(&loop, turn, NULL), 0);
	due_ns = turns = rings = early = 0;
}

static void waits(uint64_t ns, unsigned times)
{
	wait_ns = ns;
	loop.stop = false;
	due_ns = turns = 0;
	turns_max = times;
	CHECK_EQ(td_loop_run(&loop), 0);
	CHECK_EQ(turns, times);
	CHECK_EQ(early, 0);
}

TEST(no_deadline_is_early_or_forgotten)
{
	for (int brief = 0; brief < 2; brief++) {
		begin();
		loop.has_no_brief_wait = !brief;
		waits(2 * TD_NS_PER_MS, 10);
		waits(25 * TD_NS_PER_MS, 3);
		waits(2 * TD_NS_PER_MS, 3);
		waits(0, 10);
		td_loop_deinit(&loop);
	}
}

/* Wants the same deadline again after each ring, and rings for itself. */
static uint64_t ringing_turn(void *arg, uint64_t now_ns)
{
	(void)arg;
	turns++;
	if (!due_ns)
		due_ns = now_ns + wait_ns;
	loop.stop = now_ns >= due_ns;
	if (rings < 3)
		CHECK_EQ(eventfd_write(bell.fd, 1), 0);
	return due_ns;
}

TEST(a_deadline_that_stays_is_kept_through_events)
{
	static const uint64_t ns[] = {5 * TD_NS_PER_MS, 60 * TD_NS_PER_MS};

	for (unsigned i = 0; i < 4; i++) {
		begin();
		loop.turn = ringing_turn;
		loop.has_no_brief_wait = i & 1;
		wait_ns = ns[i / 2];
		bell = (struct td_source){eventfd(0, EFD_NONBLOCK), rung, false};
		CHECK_EQ(td_loop_add(&loop, &bell), 0);
		CHECK_EQ(td_loop_run(&loop), 0);
		CHECK(td_time_now_ns() >= due_ns);
		/* A timer that nobody reads must not end waits again and again. */
		CHECK(turns <= rings + 2);
		td_loop_remove(&loop, &bell);
		close(bell.fd);
		td_loop_deinit(&loop);
	}
}
