/* Steps as the node hears of them, and what it does about them: whom it asks, what it believes, what the policies get to see. */
#include "test.h"

#include "fake_node.h"

#define MS 1000000ull

static struct world w;

static void begin(void)
{
	td_node_deinit(&w.node);
	world_init(&w);
}

static struct fake *program(unsigned i, const char *job, enum td_class class, uint64_t demanded)
{
	struct fake *f = &w.fakes[i];

	fake_hello(&w, f, job, TD_BACKEND_PLAIN, false);
	f->process->job->settings.class = class;
	fake_attach(&w, f, 0, 0, demanded);
	fake_want(&w, f);
	return f;
}

static void tell(struct fake *f, uint64_t steps, uint64_t step_ns, uint64_t began_ns, uint32_t unit)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_step};

	msg.step.steps = steps;
	msg.step.step_ns = msg.step.median_ns = step_ns;
	msg.step.began_ns = began_ns;
	msg.step.unit = unit;
	msg.step.sure_ppm = 1000000;
	CHECK_EQ(say(&w, f, &msg), 0);
}

TEST(steps_are_asked_of_protected_jobs_and_looked_for_until_they_are_told)
{
	world_init(&w);
	struct fake *a = program(0, "a", TD_CLASS_GUARANTEED, MIB),
		    *b = program(1, "b", TD_CLASS_BESTEFFORT, MIB);

	settle(&w);
	CHECK(a->word & TD_WORD_STEPS);
	CHECK(!(a->word & (TD_WORD_CLOSED | TD_WORD_ARMED | TD_WORD_WINDOW | TD_WORD_DUTY)));
	CHECK(a->pacing.steps);
	CHECK_EQ(b->word & TD_WORD_STEPS, 0);
	CHECK(!b->pacing.steps);
	tell(a, 5, 10 * MS, w.now, 77); /* found */
	settle(&w);
	CHECK(a->word & TD_WORD_STEPS);
	tell(a, 6, 10 * MS, w.now, 0); /* the program tells them */
	settle(&w);
	CHECK_EQ(a->word, 0);
	CHECK(a->pacing.steps);
	CHECK_EQ(td_node_set_job(&w.node, 1000, "a", "class", "besteffort", w.now, NULL), 0);
	settle(&w);
	CHECK(!a->pacing.steps);
	CHECK(within_capacity(&w));
	fake_dies(&w, a);
}

TEST(what_cannot_be_is_bounded)
{
	begin();
	struct fake *a = program(0, "a", TD_CLASS_GUARANTEED, MIB);
	const uint64_t day = 24 * 3600 * 1000 * MS;

	w.now += 50 * MS;
	tell(a, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT32_MAX);
	CHECK_EQ(a->process->steps.began_ns, w.now);
	CHECK_EQ(a->process->steps.step_ns, day + 50 * MS);
	CHECK_EQ(a->process->steps.median_ns, day + 50 * MS);
	settle(&w);
	tell(a, 1, 5 * MS, 3, 0); /* fewer than before, and long ago */
	CHECK_EQ(a->process->steps.count, 1);
	CHECK_EQ(a->process->steps.began_ns, 3);
	settle(&w);
}

TEST(explain_tells_of_steps_where_they_are_known)
{
	char text[256];

	begin();
	struct fake *a = program(0, "a", TD_CLASS_GUARANTEED, MIB);

	CHECK_STR(td_node_explain_steps(a->process, text, sizeof(text)), "");
	tell(a, 12, 10 * MS, w.now, 9);
	td_node_explain_steps(a->process, text, sizeof(text));
	CHECK(strstr(text, "12 so far, found in what it launches, 100% of them regular."));
	tell(a, 13, 10 * MS, w.now, 0);
	td_node_explain_steps(a->process, text, sizeof(text));
	CHECK(strstr(text, "13 so far, as the program says."));
	memset(text, 'x', sizeof(text));
	td_node_explain_steps(a->process, text, 20);
	CHECK(strlen(text) < 20);
	CHECK_EQ(text[20], 'x');
}
