/*
 * The grants of the policy tandem for besteffort work beside a guaranteed job: of its time, its
 * pauses and, in those, of the memory.
 */
#include "unit/policy/nodes_world.h"

/* Before any step is known, and where none ever is: while it has work. */
TEST(tandem_protects_a_job_without_steps_by_the_floor_while_it_has_work)
{
	start("tandem", 1);
	struct td_client_view *a = add(1, 0, TD_CLASS_BESTEFFORT, GIB),
			      *job = add(2, 0, TD_CLASS_GUARANTEED, GIB);

	step();
	CHECK(is_open(a) && is_open(job));
	CHECK_EQ(grant_of(a)->duty_ppm, 20000);
	CHECK(!grant_of(job)->duty_ppm);
	job->slack_ppm = 10000;
	step();
	CHECK_EQ(grant_of(a)->duty_ppm, 2000);
	job->wants = false;
	step();
	CHECK(is_open(a) && grant_of(a)->pause_until_ns == UINT64_MAX);
	job->wants = true;
	job->paused = true;
	step();
	CHECK(is_open(a) && !grant_of(a)->duty_ppm);
	job->paused = false;
	step();
	CHECK_EQ(grant_of(a)->duty_ppm, 2000);
	/* what comes late begins there, too */
	finish_step(job, 100 * MS);
	step();
	CHECK_EQ(grant_of(a)->duty_ppm, 2000);
}

/* A notebook that sits on the GPU of a training. */
TEST(tandem_lets_a_job_without_steps_that_is_idle_hold_up_nobody)
{
	start("tandem", 1);
	struct td_client_view *notebook = add(1, 0, TD_CLASS_GUARANTEED, GIB),
			      *a = add(2, 0, TD_CLASS_BESTEFFORT, GIB),
			      *job = add(3, 0, TD_CLASS_GUARANTEED, GIB);
	uint32_t reached;

	notebook->wants = false;
	for (int i = 0; i < 100; i++) {
		finish_step(job, 100 * MS);
		step();
	}
	reached = grant_of(a)->duty_ppm;
	CHECK(reached > 300000);
	notebook->wants = true;
	for (int i = 0; i < 100; i++) {
		finish_step(job, 100 * MS);
		step();
		CHECK_EQ(grant_of(a)->duty_ppm, 20000);
	}
	notebook->wants = false;
	for (int i = 0; i < 40; i++) {
		finish_step(job, 100 * MS);
		step();
	}
	CHECK(grant_of(a)->duty_ppm >= reached);
	job->wants = false;
	step();
	CHECK_EQ(grant_of(a)->pause_until_ns, UINT64_MAX);
}

/*
 * Neither the end of the pause nor the kernels are known: work that the duty does not count comes
 * one at a time (pause.h).
 */
TEST(tandem_relies_on_a_first_pause_for_one_piece_of_work_at_a_time_and_after_a_minute_for_all)
{
	start("tandem", 1);
	struct td_client_view *a = add(1, 0, TD_CLASS_BESTEFFORT, GIB),
			      *job = add(2, 0, TD_CLASS_GUARANTEED, GIB);

	step();
	job->wants = false;
	step();
	CHECK_EQ(grant_of(a)->duty_ppm, 20000);
	CHECK_EQ(grant_of(a)->pause_until_ns, UINT64_MAX);
	CHECK(node.plan.next_wakeup_ns <= node.now + 60000 * MS);
	node.now += 60000 * MS;
	step();
	CHECK(!grant_of(a)->duty_ppm && !grant_of(a)->pause_until_ns);
	job->wants = true;
	step();
	node.now += 10 * MS;
	job->wants = false;
	step();
	/* It may be over at any moment up to the length of the first one. */
	CHECK_EQ(grant_of(a)->duty_ppm, 20000);
	CHECK(grant_of(a)->pause_until_ns < UINT64_MAX);
}

/* One process of it trains, another loads data. */
TEST(tandem_goes_by_a_jobs_steps_where_not_all_of_its_processes_tell_of_any)
{
	start("tandem", 1);
	struct td_client_view *loader = add(1, 0, TD_CLASS_GUARANTEED, GIB),
			      *a = add(2, 0, TD_CLASS_BESTEFFORT, GIB),
			      *job = add(1, 0, TD_CLASS_GUARANTEED, GIB);

	CHECK(loader->wants && job->wants);
	for (int i = 0; i < 100; i++) {
		finish_step(job, 100 * MS);
		step();
	}
	CHECK(grant_of(a)->duty_ppm > 300000);
}

/*
 * Both do not fit together. It pauses for pause_ns of each 200 ms; returns for how many of its
 * pauses the other is admitted.
 */
static uint32_t pauses_used(uint64_t handover_ns, uint64_t pause_ns, enum td_class class)
{
	uint32_t used = 0;

	start("tandem", 1);
	node.gpus[0].handover_ns = handover_ns;
	struct td_client_view *job = add(1, 0, class, 24 * GIB);

	step();
	struct td_client_view *a = add(2, 0, TD_CLASS_BESTEFFORT, 20 * GIB);

	step();
	for (uint32_t i = 0; i < 60; i++) {
		bool opened = false;

		job->wants = false;
		job->idle_since_ns = node.now;
		for (uint64_t t = 0; t < pause_ns; t += MS) {
			step();
			opened |= is_open(a);
			node.now += MS;
		}
		job->wants = true;
		job->wants_since_ns = node.now;
		for (uint64_t t = pause_ns; t < 200 * MS; t += MS) {
			step();
			node.now += MS;
		}
		used += i >= 20 && opened;
	}
	return used;
}

TEST(tandem_exchanges_memory_in_a_guaranteed_jobs_pauses_where_its_slack_pays_for_that)
{
	/* 5 % of 200 ms */
	CHECK_EQ(pauses_used(9 * MS, 70 * MS, TD_CLASS_GUARANTEED), 40);
	CHECK_EQ(pauses_used(11 * MS, 70 * MS, TD_CLASS_GUARANTEED), 0);
	CHECK_EQ(pauses_used(60 * MS, 70 * MS, TD_CLASS_GUARANTEED), 0);
	/* who has none is waited for as long as it costs */
	CHECK_EQ(pauses_used(60 * MS, 70 * MS, TD_CLASS_BESTEFFORT), 40);
}

TEST(tandem_exchanges_memory_in_a_long_pause_of_a_guaranteed_job_whatever_its_slack)
{
	start("tandem", 1);
	node.gpus[0].handover_ns = 60 * MS;
	struct td_client_view *job = add(1, 0, TD_CLASS_GUARANTEED, 24 * GIB), *a;

	job->slack_ppm = 10000;
	step();
	a = add(2, 0, TD_CLASS_BESTEFFORT, 20 * GIB);
	job->wants = false;
	job->idle_since_ns = node.now;
	step();
	CHECK(is_open(job) && !is_open(a));
	CHECK_EQ(node.plan.next_wakeup_ns, node.now + 6000 * MS);
	node.now += 6000 * MS;
	step();
	step();
	CHECK(!is_open(job) && is_open(a));
}
