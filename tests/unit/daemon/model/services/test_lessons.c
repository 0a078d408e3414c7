/* Measurements of a service beside training, on a clock of the test's. */
#include <string.h>

#include "test.h"

#include "daemon/model/services/lessons.h"

#define MS 1000000ull
#define S  (1000 * MS)

static struct td_service_page page;
static struct td_lessons lessons;
static struct td_study study;
static struct td_study_of of;
static uint64_t now;

static void start(void)
{
	memset(&page, 0, sizeof(page));
	lessons = (struct td_lessons){0};
	study = (struct td_study){0};
	memset(&of, 0, sizeof(of));
	of.layers[1] = 7;
	of.batch = 8;
	of.share_ppm = 400000;
	now = 1000 * S;
}

static uint64_t look(void)
{
	return td_lessons_look(&lessons, &study, &page, &of, "api", "GPU", now);
}

static void pass(uint64_t ns, uint32_t batches, uint64_t batch_ns)
{
	atomic_fetch_add(&page.batches[td_histogram_bucket(batch_ns) / 2], batches);
	now += ns;
	(void)look();
}

static bool is_near(uint64_t value, uint64_t expected)
{
	return value <= expected + expected / 12 && value + expected / 12 >= expected;
}

TEST(the_time_of_nine_of_ten_batches_is_a_lesson)
{
	struct td_lesson lesson;

	start();
	CHECK_EQ(look(), now + TD_STUDY_SETTLE_NS);
	pass(TD_STUDY_SETTLE_NS, 1000, 500 * MS); /* of before: they do not count */
	pass(S, 45, 20 * MS);
	pass(S, 5, 90 * MS);
	CHECK_EQ(lessons.count, 0);
	pass(S, 0, 0);
	CHECK(td_lessons_take(&lessons, &lesson));
	CHECK(is_near(lesson.latency_ns, 20 * MS));
	CHECK(lesson.batch == 8 && lesson.share_ppm == 400000 && lesson.layers[1] == 7);
	CHECK(!strcmp(lesson.service, "api") && !strcmp(lesson.gpu, "GPU"));
	CHECK(!td_lessons_take(&lessons, &lesson));
}

TEST(too_few_batches_or_nobody_beside_it_teach_nothing)
{
	start();
	(void)look();
	pass(S, 0, 0);
	pass(10 * S, TD_STUDY_BATCHES - 1, 20 * MS);
	CHECK_EQ(lessons.count, 0);
	pass(S, 1, 20 * MS);
	CHECK_EQ(lessons.count, 1);
	start();
	of.layers[1] = 0;
	CHECK_EQ(look(), UINT64_MAX);
	pass(S, 0, 0);
	pass(10 * S, 1000, 20 * MS);
	CHECK_EQ(lessons.count, 0);
}

TEST(another_batch_or_share_begins_a_new_study)
{
	start();
	(void)look();
	pass(S, 0, 0);
	pass(2 * S, 1000, 20 * MS);
	of.batch = 9;
	pass(2 * S, 1000, 20 * MS);
	pass(S, 0, 0);
	CHECK_EQ(lessons.count, 0);
	pass(3 * S, 1000, 30 * MS);
	CHECK_EQ(lessons.count, 1);
	CHECK_EQ(lessons.waiting[0].batch, 9);
	CHECK(is_near(lessons.waiting[0].latency_ns, 30 * MS));
}

TEST(lessons_are_due_when_the_company_parts_or_after_a_while)
{
	start();
	CHECK_EQ(td_lessons_due_ns(&lessons, now), UINT64_MAX);
	(void)look();
	pass(S, 0, 0);
	pass(3 * S, 100, 20 * MS);
	CHECK_EQ(td_lessons_due_ns(&lessons, now), now + TD_LESSONS_WAIT_NS);
	/* Another share is no other company. */
	of.share_ppm = 500000;
	pass(S, 0, 0);
	CHECK_EQ(td_lessons_due_ns(&lessons, now), now - S + TD_LESSONS_WAIT_NS);
	of.layers[1] = 0;
	pass(S, 0, 0);
	CHECK_EQ(td_lessons_due_ns(&lessons, now), now);
	start();
	(void)look();
	pass(S, 0, 0);
	pass(3 * S, 100, 20 * MS);
	td_lessons_part(&lessons, &study); /* the service has ended */
	CHECK_EQ(td_lessons_due_ns(&lessons, now), now);
}

TEST(a_newer_lesson_replaces_the_one_of_the_same_and_the_oldest_goes_first)
{
	struct td_lesson lesson;

	start();
	(void)look();
	pass(S, 0, 0);
	pass(3 * S, 100, 20 * MS);
	pass(TD_STUDY_AGAIN_NS - S, 100, 40 * MS);
	CHECK(lessons.count == 1 && is_near(lessons.waiting[0].latency_ns, 20 * MS));
	pass(S, 0, 0);
	CHECK(lessons.count == 1 && is_near(lessons.waiting[0].latency_ns, 40 * MS));
	for (uint32_t i = 0; i < TD_LESSONS_MAX; i++) {
		of.batch = 100 + i;
		pass(S, 0, 0);
		pass(S, 0, 0);
		pass(3 * S, 100, 20 * MS);
	}
	CHECK_EQ(lessons.count, TD_LESSONS_MAX);
	CHECK(td_lessons_take(&lessons, &lesson));
	CHECK_EQ(lesson.batch, 100);
}

TEST(counts_that_have_fallen_are_none)
{
	start();
	atomic_store(&page.batches[9], 5000);
	(void)look();
	pass(S, 0, 0);
	atomic_store(&page.batches[9], 17);
	pass(3 * S, TD_STUDY_BATCHES - 1, 20 * MS);
	CHECK_EQ(lessons.count, 0);
}
