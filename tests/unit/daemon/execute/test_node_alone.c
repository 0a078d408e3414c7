/*
 * Exclusive moments on the node (daemon/execute/alone.c): which programs are held, let through, or
 * left out.
 */
#include "unit/daemon/node_world.h"

static struct td_meter_page meters[FAKES_MAX];

static struct fake *with_duty(unsigned i, const char *name, const char *duty)
{
	struct fake *f = plain_program(i, name, 1 * MIB);

	memset(&meters[i], 0, sizeof(meters[i]));
	f->process->meter = &meters[i];
	if (duty)
		CHECK_EQ(td_node_set_job(
				 &w.node, td_identity_local(1000), name, "duty", duty, w.now, NULL),
			0);
	fake_want(&w, f);
	return f;
}

static void pass_ms(unsigned ms)
{
	for (unsigned i = 0; i < ms; i++) {
		w.now += 1000000;
		(void)td_node_step(&w.node, w.now);
	}
}

static void guess(const struct fake *f)
{
	atomic_fetch_add(&meters[f - w.fakes].guesses, 1);
}

TEST(one_is_alone_when_the_other_is_dry_and_both_go_on_when_it_has_measured)
{
	struct fake *a, *b;
	uint32_t word;

	begin();
	a = with_duty(0, "a", "30%");
	b = with_duty(1, "b", "60%");
	settle(&w);
	CHECK(is_open(a) && is_open(b));
	CHECK_EQ(a->pacing.rivals, TD_RIVALS_YIELD);
	pass_ms(100);
	CHECK(!a->pacing.hold && !b->pacing.hold);
	word = b->word;
	guess(a);
	pass_ms(30);
	CHECK(!a->pacing.hold && b->pacing.hold && !a->pacing.alone);
	CHECK(b->word != word); /* who is about to sleep hears of it */
	atomic_store(&meters[1].dry, b->pacing.hold);
	pass_ms(2);
	CHECK_EQ(a->pacing.alone, b->pacing.hold);
	atomic_store(&meters[0].measured, a->pacing.alone);
	pass_ms(2);
	CHECK(!a->pacing.alone && !b->pacing.hold && is_open(a) && is_open(b));
}

TEST(nobody_is_held_beside_one_who_may_not_be)
{
	static const char *const why[] = {"no duty", "online", "another GPU"};

	for (unsigned i = 0; i < 3; i++) {
		struct fake *a, *b;

		begin();
		a = with_duty(0, "a", "30%");
		b = with_duty(1, "b", strcmp(why[i], "no duty") ? "60%" : NULL);
		if (!strcmp(why[i], "online"))
			b->process->job->settings.class = TD_CLASS_ONLINE;
		if (!strcmp(why[i], "another GPU"))
			fake_attach(&w, b, 1, 1, 1 * MIB);
		settle(&w);
		for (unsigned n = 0; n < 20; n++) {
			guess(a);
			guess(b);
			pass_ms(20);
			CHECK(!a->pacing.hold && !b->pacing.hold && !a->pacing.alone &&
				!b->pacing.alone);
		}
		CHECK(a->pacing.rivals <= TD_RIVALS);
	}
}

TEST(who_is_held_goes_on_when_the_other_is_gone)
{
	struct fake *a, *b;

	begin();
	a = with_duty(0, "a", "30%");
	b = with_duty(1, "b", "60%");
	settle(&w);
	guess(a);
	pass_ms(30);
	CHECK(b->pacing.hold);
	fake_dies(&w, a);
	pass_ms(2);
	CHECK(!b->pacing.hold && !b->pacing.alone && !b->pacing.rivals && is_open(b));
}

/* One counter numbers the moments of all GPUs, and goes on from that of an earlier daemon. */
TEST(a_moment_has_a_number_that_no_other_had)
{
	struct fake *a, *b;
	uint32_t first;

	begin();
	a = with_duty(0, "a", "30%");
	b = with_duty(1, "b", "60%");
	settle(&w);
	guess(a);
	pass_ms(30);
	first = b->pacing.hold;
	CHECK(first > 1000); /* no daemon before had so many by then */
	fake_dies(&w, a);
	pass_ms(2);
	begin();
	w.now += 60000000000;
	for (unsigned i = 0; i < 4; i++) {
		struct fake *f = &w.fakes[i];

		fake_hello(&w, f, "abcd", TD_BACKEND_PLAIN, false);
		fake_attach(&w, f, 0, (uint8_t)(i / 2), MIB);
		memset(&meters[i], 0, sizeof(meters[i]));
		f->process->meter = &meters[i];
		fake_want(&w, f);
	}
	CHECK_EQ(td_node_set_job(
			 &w.node, td_identity_local(1000), "abcd", "duty", "40%", w.now, NULL),
		0);
	settle(&w);
	guess(&w.fakes[0]);
	guess(&w.fakes[2]);
	pass_ms(30);
	CHECK(w.fakes[1].pacing.hold > first && w.fakes[3].pacing.hold > first);
	CHECK(w.fakes[1].pacing.hold != w.fakes[3].pacing.hold);
}

/* The others are not told to count on it, but to take what they see beside it with care. */
TEST(beside_one_that_is_stopped_nobody_counts_on_moments)
{
	struct fake *a, *b;

	begin();
	a = with_duty(0, "a", "30%");
	b = with_duty(1, "b", "60%");
	settle(&w);
	CHECK_EQ(a->pacing.rivals, TD_RIVALS_YIELD);
	for (unsigned i = 0; i < 600; i++) {
		guess(a);
		pass_ms(10);
	}
	CHECK_EQ(a->pacing.rivals, TD_RIVALS);
	CHECK(is_open(b));
}
