/* An online program whose requests are not known: its bursts, or what its metrics say. */
#include "daemon/model/bursts.h"
#include "unit/daemon/node_world.h"

#define MS 1000000ull
#define S  (1000 * MS)

static struct td_meter_page meter;
static struct td_bursts_seen seen;

static struct fake *online(void)
{
	struct fake *f;

	begin();
	f = program(0, "api", MIB);
	memset(&meter, 0, sizeof(meter));
	f->process->meter = &meter;
	CHECK_EQ(td_node_set_job(
			 &w.node, td_identity_local(1000), "api", "class", "online", w.now, NULL),
		0);
	fake_want(&w, f);
	settle(&w);
	return f;
}

static void burst(uint64_t every_ns, uint64_t length_ns)
{
	atomic_store(&meter.burst_began_ns, w.now);
	atomic_store(&meter.burst_every_ns, every_ns);
	atomic_store(&meter.burst_ns, length_ns);
}

static void hear(struct td_supervisor **supervisor, const char *job, bool known)
{
	struct td_msg_supervise say = {.pid = 1, .epoch = 1};
	struct td_msg_figures msg = {.name = "api",
		.known = known,
		.has_tail = 1,
		.rate_milli = 20000,
		.p99_ns = 7 * MS,
		.objective_ns = 50 * MS,
		.source = "latency",
		.why = "it does not answer"};

	strcpy(say.job, job);
	CHECK_EQ(td_supervisors_say(
			 &w.node, supervisor, &w, 77, td_identity_local(1000), &say, w.now, NULL),
		0);
	td_supervisors_figures(&w.node, *supervisor, &msg, w.now);
	settle(&w);
}

TEST(bursts_are_wanted_of_online_programs_that_tell_nothing)
{
	struct fake *f = online();

	CHECK(f->process->pacing.steps & TD_WANTED_BURSTS && f->word & TD_WORD_STEPS);
	CHECK_EQ(td_node_set_job(&w.node, td_identity_local(1000), "api", "class", "besteffort",
			 w.now, NULL),
		0);
	settle(&w);
	CHECK(!(f->process->pacing.steps & TD_WANTED_BURSTS));
}

TEST(bursts_become_rarer_while_none_comes)
{
	struct fake *f = online();

	CHECK(!td_bursts_of(f->process, w.now, &seen));
	CHECK(strstr(explained(&w, f), "no bursts of work were seen"));
	burst(50 * MS, 10 * MS);
	CHECK(td_bursts_of(f->process, w.now, &seen));
	CHECK(seen.per_s > 19.9 && seen.per_s < 20.1 && seen.length_ns == 10 * MS);
	CHECK(strstr(explained(&w, f), "in 20 bursts per second; from the first to the last call "
				       "of a burst it takes 10.0 ms."));
	CHECK(td_bursts_of(f->process, w.now + 10 * S, &seen));
	CHECK(seen.per_s < 0.11);
	/* The program may write anything. */
	burst(UINT64_MAX, UINT64_MAX);
	CHECK(td_bursts_of(f->process, 0, &seen));
	burst(1, UINT64_MAX);
	CHECK(td_bursts_of(f->process, w.now, &seen) && seen.length_ns == 1);
}

TEST(figures_of_the_supervisor_are_those_of_its_job)
{
	struct fake *f = online();
	struct td_supervisor *supervisor = NULL;

	burst(50 * MS, 10 * MS);
	hear(&supervisor, "api", true);
	CHECK(td_service_is_known(f->process->service));
	CHECK_EQ(w.node.views[0].p99_ns, 7 * MS);
	CHECK_EQ(w.node.views[0].objective_ns, 50 * MS);
	CHECK(w.node.views[0].has & TD_HAS(SERVICE) && !(w.node.views[0].has & TD_HAS(BATCH)));
	CHECK(strstr(explained(&w, f), "those of its metrics (latency)"));
	CHECK(!td_bursts_of(f->process, w.now, &seen));
	hear(&supervisor, "api", false);
	CHECK_EQ(w.node.views[0].p99_ns, 0);
	CHECK(!(w.node.views[0].has & TD_HAS(SERVICE)));
	CHECK(strstr(explained(&w, f), "cannot be used: it does not answer."));
	CHECK(td_bursts_of(f->process, w.now, &seen));
	td_supervisors_gone(&w.node, supervisor);
}

TEST(figures_of_another_job_are_not)
{
	struct fake *f = online();
	struct td_supervisor *supervisor = NULL;

	hear(&supervisor, "other", true);
	CHECK(!f->process->service);
	td_supervisors_gone(&w.node, supervisor);
}

TEST(figures_that_stop_coming_are_forgotten)
{
	struct fake *f = online();
	struct td_supervisor *supervisor = NULL;

	hear(&supervisor, "api", true);
	w.now += TD_SERVICE_OUTDATED_NS + 1;
	settle(&w);
	CHECK_EQ(w.node.views[0].p99_ns, 0);
	CHECK(!td_service_is_known(f->process->service));
	td_supervisors_gone(&w.node, supervisor);
}
