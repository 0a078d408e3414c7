/* The daemon's messages to besteffort programs in the pauses of a guaranteed job. */
#include "test.h"

#include "unit/daemon/fake_node.h"

#define MS 1000000ull

static struct world w;

static struct fake *program(unsigned i, const char *job, enum td_class class)
{
	struct fake *f = &w.fakes[i];

	fake_hello(&w, f, job, TD_BACKEND_PLAIN, false);
	f->process->job->settings.class = class;
	fake_attach(&w, f, 0, 0, MIB);
	fake_want(&w, f);
	return f;
}

static void say_idle(struct fake *f)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_idle};

	msg.idle.since_ns = w.now;
	CHECK_EQ(say(&w, f, &msg), 0);
	settle(&w);
}

static void work(struct fake *f, uint64_t ns)
{
	fake_want(&w, f);
	settle(&w);
	w.now += ns;
}

/*
 * Begins with a guaranteed job with a slack of 1 % and cycles of 150 ms, in the fourth of its
 * pauses of 100 ms.
 */
static struct fake *begin(struct fake **ret_b, struct fake **ret_c)
{
	struct fake *a;

	world_init(&w);
	a = program(0, "a", TD_CLASS_GUARANTEED);
	CHECK_EQ(td_node_set_job(&w.node, td_identity_local(1000), "a", "slack", "1%", w.now, NULL),
		0);
	*ret_b = program(1, "b", TD_CLASS_BESTEFFORT);
	*ret_c = program(2, "c", TD_CLASS_BESTEFFORT);
	for (int i = 0; i < 3; i++) {
		work(a, 50 * MS);
		say_idle(a);
		w.now += 100 * MS;
	}
	work(a, 50 * MS);
	return a;
}

static uint32_t duty_of(const struct fake *f)
{
	return f->word & TD_WORD_DUTY ? f->pacing.duty_ppm : 0;
}

TEST(in_a_pause_they_are_told_its_end_and_share_window_and_floor)
{
	struct fake *b, *c, *a = begin(&b, &c);
	uint64_t began;

	CHECK_EQ(duty_of(b), 1000); /* half of the floor, a fifth of the slack */
	CHECK_EQ(b->pacing.pause_until_ns, 0);
	began = w.now;
	say_idle(a);
	CHECK_EQ(duty_of(b), 1000);
	CHECK(b->pacing.pause_until_ns > began + 99 * MS &&
		b->pacing.pause_until_ns < began + 100 * MS);
	CHECK_EQ(b->pacing.sharers, 2);
	CHECK_EQ(b->pacing.pause_until_ns, c->pacing.pause_until_ns);
	/* A quarter of 1 % of 150 ms, for both. */
	CHECK(b->window_ns >= 187000 && b->window_ns <= 188000);
	say_idle(c);
	CHECK_EQ(b->pacing.sharers, 1);
	CHECK(b->window_ns >= 374000 && b->window_ns <= 376000);
	/* At the latest when what was told is not so any more the daemon looks again. */
	CHECK_EQ(settle(&w), began + 100 * MS);
	w.now = began + 100 * MS;
	settle(&w);
	CHECK(duty_of(b) && b->pacing.pause_until_ns && b->pacing.pause_until_ns <= w.now);
	w.now = began + 125 * MS;
	settle(&w);
	CHECK_EQ(duty_of(b), 0); /* longer by a quarter than any before: it lasts */
	CHECK_EQ(b->pacing.pause_until_ns, 0);
	work(a, MS);
	CHECK(duty_of(b));
	CHECK_EQ(b->pacing.pause_until_ns, 0);
}

TEST(one_with_a_cap_of_its_own_has_all_of_a_pause_up_to_that)
{
	struct fake *b, *c, *a = begin(&b, &c);

	CHECK_EQ(td_node_set_job(&w.node, td_identity_local(1000), "c", "duty", "30%", w.now, NULL),
		0);
	settle(&w);
	CHECK_EQ(duty_of(c), 1000);
	say_idle(a);
	CHECK_EQ(duty_of(c), 300000);
	CHECK_EQ(c->pacing.pause_until_ns, 0);
	settle(&w);
	CHECK(strstr(explained(&w, b),
		"A guaranteed job leaves the GPU idle now. Work that this program finishes in that "
		"pause is not counted; its other work gets at most 0.1% of the GPU's time."));
}

TEST(of_a_job_whose_steps_are_known_they_are_told_what_is_too_long_for_one_and_how_rare_that_is)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_step};
	struct fake *b, *c, *a = begin(&b, &c);

	CHECK_EQ(b->pacing.long_ns, 0);
	msg.step.steps = 1;
	msg.step.step_ns = msg.step.median_ns = 400 * MS;
	msg.step.began_ns = w.now;
	msg.step.sure_ppm = 1000000;
	CHECK_EQ(say(&w, a, &msg), 0);
	settle(&w);
	CHECK(b->pacing.long_ns >= 4 * MS && b->pacing.long_ns < 4 * MS + 10); /* 1 % */
	CHECK_EQ(b->pacing.long_every_ns, 2 * 128 * 400 * MS);                 /* for each of two */
	CHECK_EQ(c->pacing.long_every_ns, 2 * 128 * 400 * MS);
}
