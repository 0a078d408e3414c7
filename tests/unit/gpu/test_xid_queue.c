/* Several Xids of a GPU between two looks (gpu/xid_queue.h). */
#include "test.h"

#include "gpu/xid_queue.h"

#define MS 1000000ull
#define S  1000000000ull

static struct td_xid_queue queue;
static uint64_t now;

static void start(void)
{
	queue = (struct td_xid_queue){.count = 0};
	now = 5 * S;
}

static uint32_t shown(void)
{
	return td_xid_queue_show(&queue, now).xid;
}

TEST(one_error_is_shown_and_stays)
{
	start();
	CHECK_EQ(shown(), 0);
	td_xid_queue_event(&queue, 31, now);
	CHECK_EQ(shown(), 31);
	now += 3600 * S;
	CHECK_EQ(shown(), 31);
	CHECK_EQ(td_xid_queue_show(&queue, now).ns, 5 * S);
}

TEST(errors_of_one_moment_are_shown_one_after_the_other)
{
	uint64_t first, second;

	start();
	td_xid_queue_event(&queue, 13, now);
	td_xid_queue_event(&queue, 31, now);
	td_xid_queue_event(&queue, 48, now);
	td_xid_queue_line(&queue, 13, 101, now);
	td_xid_queue_line(&queue, 31, 102, now);
	first = td_xid_queue_show(&queue, now).ns;
	CHECK_EQ(td_xid_queue_show(&queue, now).pid, 101);
	now += TD_XID_SHOWN_NS - 1;
	CHECK_EQ(shown(), 13);
	now++;
	CHECK_EQ(shown(), 31);
	second = td_xid_queue_show(&queue, now).ns;
	CHECK(second > first); /* a new time: it is another error */
	CHECK_EQ(td_xid_queue_show(&queue, now).pid, 102);
	CHECK_EQ(shown(), 31);
	now += TD_XID_SHOWN_NS;
	CHECK_EQ(shown(), 48);
}

TEST(an_error_waits_for_its_line_while_that_may_come)
{
	start();
	td_xid_queue_event(&queue, 31, now);
	td_xid_queue_event(&queue, 31, now);
	now += 900 * MS;
	CHECK_EQ(td_xid_queue_show(&queue, now).ns, 5 * S);
	td_xid_queue_line(&queue, 31, 7, now); /* of the first one */
	CHECK_EQ(td_xid_queue_show(&queue, now).ns, 5 * S + 1);
	CHECK_EQ(td_xid_queue_show(&queue, now).pid, 0);
	/* The second one's never comes. */
	td_xid_queue_event(&queue, 48, now);
	now = 6 * S + TD_XID_SHOWN_NS + 2;
	CHECK_EQ(shown(), 48);
}

TEST(a_line_may_come_first_and_is_forgotten_after_a_second)
{
	start();
	td_xid_queue_line(&queue, 31, 7, now);
	td_xid_queue_line(&queue, 31, 8, now);
	now += 10 * MS;
	td_xid_queue_event(&queue, 13, now);
	CHECK_EQ(td_xid_queue_show(&queue, now).pid, 0);
	td_xid_queue_event(&queue, 31, now);
	td_xid_queue_line(&queue, 13, 9, now);
	now += TD_XID_SHOWN_NS;
	CHECK_EQ(td_xid_queue_show(&queue, now).pid, 7);
	now += 2 * S;
	td_xid_queue_event(&queue, 31, now);
	CHECK_EQ(td_xid_queue_show(&queue, now).pid, 0);
}

TEST(a_line_is_of_the_event_of_the_same_look)
{
	start();
	td_xid_queue_event(&queue, 31, now); /* its line never comes */
	CHECK_EQ(td_xid_queue_show(&queue, now).pid, 0);
	now += 500 * MS;
	td_xid_queue_line(&queue, 31, 7, now);
	td_xid_queue_event(&queue, 31, now);
	CHECK_EQ(td_xid_queue_show(&queue, now).pid, 0);
	now += 501 * MS;
	CHECK_EQ(td_xid_queue_show(&queue, now).pid, 7);
}

TEST(many_are_bounded)
{
	start();
	for (int i = 0; i < 100; i++) {
		td_xid_queue_line(&queue, 45, 7, now);
		td_xid_queue_event(&queue, 31, now);
		td_xid_queue_line(&queue, 44, 0, now);
		td_xid_queue_event(&queue, 0, now);
	}
	CHECK_EQ(queue.count, TD_XID_QUEUE_MAX);
	CHECK_EQ(queue.line_count, TD_XID_QUEUE_MAX);
	for (int i = 0; i < 100; i++, now += 2 * S)
		CHECK_EQ(shown(), 31);
	CHECK_EQ(queue.count, 1);
}

TEST(a_flood_of_a_programs_errors_does_not_hide_one_of_the_gpu)
{
	int others = 0;

	start();
	for (int i = 0; i < 100; i++)
		td_xid_queue_event(&queue, i % 2 ? 13 : 31, now);
	td_xid_queue_event(&queue, 79, now);
	for (int i = 0; i < 100; i++)
		td_xid_queue_event(&queue, i % 2 ? 13 : 31, now);
	CHECK_EQ(queue.count, TD_XID_QUEUE_MAX);
	while (shown() != 79 && others++ < 100)
		now += 2 * S;
	CHECK_EQ(shown(), 79);
	/* Errors of other numbers than any before have no room if all of them differ. */
	start();
	for (uint32_t xid = 1; xid <= TD_XID_QUEUE_MAX + 5; xid++)
		td_xid_queue_event(&queue, xid, now);
	CHECK_EQ(queue.count, TD_XID_QUEUE_MAX);
	CHECK_EQ(shown(), 1);
}
