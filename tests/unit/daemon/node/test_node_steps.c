/*
 * Steps as the node learns of them: which programs it asks, which figures it believes, and what the
 * policies see.
 */
#include "test.h"

#include "unit/daemon/fake_node.h"

#define MS 1000000ull

static struct world w;

static void begin(void)
{
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
	CHECK_EQ(td_node_set_job(
			 &w.node, td_identity_local(1000), "a", "class", "besteffort", w.now, NULL),
		0);
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
	begin();
	struct fake *a = program(0, "a", TD_CLASS_GUARANTEED, MIB);

	CHECK(!strstr(explained(&w, a), "step"));
	tell(a, 12, 10 * MS, w.now, 9);
	CHECK(strstr(explained(&w, a), "12 steps were found in its launches; 100% are regular."));
	tell(a, 13, 10 * MS, w.now, 0);
	CHECK(strstr(explained(&w, a),
		"The program has reported 13 steps. Their median time is 10.0 ms."));
}

TEST(memory_within_a_step_is_shown_with_its_source_and_bounded)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_used}, stats = {.type = TD_MSG_TYPE_stats};

	begin();
	struct fake *a = program(0, "a", TD_CLASS_GUARANTEED, 32 * MIB);

	tell(a, 12, 10 * MS, w.now, 0);
	CHECK(!strstr(explained(&w, a), "uses"));
	msg.used.total_bytes = msg.used.device_bytes = stats.stats.peak_bytes = 32 * MIB;
	msg.used.host_bytes = 2 * MIB;
	msg.used.cached_bytes = 4 * MIB;
	stats.stats.step_peak_bytes = 20 * MIB;
	stats.stats.step_least_bytes = 8 * MIB;
	CHECK_EQ(say(&w, a, &msg), 0);
	CHECK_EQ(say(&w, a, &stats), 0);
	CHECK(strstr(explained(&w, a),
		"A step uses 20.0 MiB at most and 8.0 MiB at least, by its allocations. 4.0 MiB "
		"is cached and unused, 2.0 MiB is on the host."));
	stats.stats.by_allocator = 1;
	stats.stats.step_peak_bytes = UINT64_MAX;
	stats.stats.step_least_bytes = UINT64_MAX - 1;
	CHECK_EQ(say(&w, a, &stats), 0);
	CHECK(strstr(explained(&w, a),
		"32.0 MiB at most and 32.0 MiB at least, as its allocator reports"));
}

/* -- antman in the daemon -- */

static void begin_antman(void)
{
	begin();
	CHECK_EQ(td_options_set(&w.node.options, "policy", "antman", NULL), 0);
	td_node_options_changed(&w.node, w.now, "policy=antman");
}

static bool is_open(const struct fake *f)
{
	return !(f->word & TD_WORD_CLOSED);
}

/* Makes `n` steps of `f`, each beginning when the last one ends. */
static void run_steps(struct fake *f, unsigned n, uint64_t step_ns)
{
	while (n--) {
		w.now += step_ns;
		tell(f, f->process->steps.count + 1, step_ns, w.now, 0);
		settle(&w);
	}
}

TEST(antman_holds_besteffort_work_to_a_duty_that_grows_and_is_cut)
{
	begin_antman();
	struct fake *b = program(0, "b", TD_CLASS_BESTEFFORT, 8 * MIB);

	settle(&w);
	CHECK_EQ(b->pacing.duty_ppm, 0);
	struct fake *a = program(1, "a", TD_CLASS_GUARANTEED, 8 * MIB);

	settle(&w);
	CHECK(is_open(a) && is_open(b));
	CHECK_EQ(a->pacing.duty_ppm, 0);
	CHECK_EQ(b->pacing.duty_ppm, 40000);
	CHECK(b->word & TD_WORD_DUTY);
	run_steps(a, 60, 100 * MS);
	CHECK(b->pacing.duty_ppm > 200000);
	/* it wakes by itself when a step takes too long */
	CHECK_EQ(td_node_step(&w.node, w.now), w.now + 105 * MS + 1);
	w.now += 105 * MS + 1;
	settle(&w);
	CHECK_EQ(b->pacing.duty_ppm, 40000);
	fake_dies(&w, a);
	settle(&w);
	CHECK_EQ(b->pacing.duty_ppm, 0);
	CHECK(is_open(b));
}

TEST(a_slack_that_was_asked_for_is_heeded)
{
	begin_antman();
	struct fake *b = program(0, "b", TD_CLASS_BESTEFFORT, 8 * MIB),
		    *a = program(1, "a", TD_CLASS_GUARANTEED, 8 * MIB);

	CHECK_EQ(td_node_set_job(&w.node, td_identity_local(1000), "a", "slack", "1%", w.now, NULL),
		0);
	settle(&w);
	CHECK_EQ(b->pacing.duty_ppm, 2000);
	run_steps(a, 60, 100 * MS);
	CHECK_EQ(td_node_step(&w.node, w.now), w.now + 101 * MS + 1);
}

TEST(antman_takes_the_memory_of_a_besteffort_job_that_runs_only_as_a_whole_and_gives_it_back)
{
	begin_antman();
	struct fake *b = &w.fakes[0], *c;

	fake_hello(&w, b, "b", TD_BACKEND_SWAP, false);
	fake_attach(&w, b, 0, 0, 40 * MIB);
	fake_want(&w, b);
	c = program(1, "c", TD_CLASS_BESTEFFORT, 4 * MIB);
	settle(&w);
	CHECK(is_open(b) && is_open(c));
	struct fake *a = program(2, "a", TD_CLASS_GUARANTEED, 48 * MIB);

	settle(&w);
	CHECK(is_open(a) && !is_open(b) && is_open(c));
	CHECK_EQ(a->slot[0].limit >= 48 * MIB, true);
	CHECK(b->slot[0].resident <= 12 * MIB);
	CHECK(within_capacity(&w));
	fake_dies(&w, a);
	settle(&w);
	CHECK(is_open(b) && is_open(c));
	CHECK_EQ(b->slot[0].resident, 40 * MIB);
}

/*
 * Memory that is on the host by the guaranteed job's own soft limit is no reason to take anything
 * from others.
 */
TEST(antman_does_not_hold_others_for_what_a_soft_limit_keeps_on_the_host)
{
	begin_antman();
	struct fake *b = program(0, "b", TD_CLASS_BESTEFFORT, 8 * MIB), *a = &w.fakes[1];

	fake_hello(&w, a, "a", TD_BACKEND_SWAP, false);
	a->process->job->settings.class = TD_CLASS_GUARANTEED;
	a->spills = true;
	CHECK_EQ(td_node_set_job(
			 &w.node, td_identity_local(1000), "a", "mem-soft", "24m", w.now, NULL),
		0);
	fake_attach(&w, a, 0, 0, 40 * MIB);
	fake_want(&w, a);
	settle(&w);
	CHECK(is_open(a) && is_open(b));
	CHECK(a->slot[0].resident <= 24 * MIB);
	run_steps(a, 100, 100 * MS);
	CHECK(b->pacing.duty_ppm > 200000);
}

TEST(antman_leaves_a_job_that_can_run_with_less_running_with_less)
{
	begin_antman();
	struct fake *b = &w.fakes[0];

	fake_hello(&w, b, "b", TD_BACKEND_SWAP, false);
	b->spills = true;
	fake_attach(&w, b, 0, 0, 40 * MIB);
	fake_want(&w, b);
	settle(&w);
	struct fake *a = program(2, "a", TD_CLASS_GUARANTEED, 48 * MIB);

	settle(&w);
	w.now += 2000 * MS;
	settle(&w);
	CHECK(is_open(a) && is_open(b));
	CHECK(a->slot[0].limit >= 48 * MIB);
	CHECK(b->slot[0].resident <= 16 * MIB);
	CHECK(within_capacity(&w));
	run_steps(a, 60, 100 * MS);
	w.now += 2000 * MS;
	settle(&w);
	CHECK(is_open(b) && b->slot[0].resident >= 14 * MIB);
	fake_dies(&w, a);
	settle(&w);
	w.now += 2000 * MS;
	settle(&w);
	CHECK(is_open(b));
	CHECK_EQ(b->slot[0].resident, 40 * MIB);
}
