/* The policies that run training beside a service: mudi, gslice and gpulets, on a node of rows. */
#include "unit/policy/service_curves.h"

TEST(mudi_tunes_batch_and_share_within_25_steps_of_the_task)
{
	start("mudi", 1);
	struct td_client_view *service = add_service(),
			      *task = add(2, 0, TD_CLASS_BESTEFFORT, 4 * GIB);
	int shadows = 0;

	step();
	for (int i = 0; i < 60; i++) {
		finish_step(task, 300 * MS - grant_of(service)->batch * MS / 2);
		step();
		CHECK(is_open(task) && grant_of(service)->batch >= 16);
		CHECK(grant_of(service)->sm_share_ppm + grant_of(task)->sm_share_ppm <= TD_PPM);
		shadows += count_actions(TD_ACTION_SHARE, service) > 0;
		service->sm_share_ppm = grant_of(service)->sm_share_ppm; /* it took over */
	}
	/* The largest batch that holds: (b - 1) / 1000 + P99 <= 0.2 s. */
	CHECK(grant_of(service)->batch >= 140 && grant_of(service)->batch <= 175);
	CHECK(grant_of(service)->sm_share_ppm >= 300000 &&
		grant_of(service)->sm_share_ppm <= 450000);
	CHECK(shadows <= 2);
	service->rate_per_s =
		1600; /* by more than half: tuned anew, smaller batches hold no longer */
	step();
	finish_step(task, 100 * MS);
	step();
	CHECK(grant_of(service)->batch != 0);
}

TEST(mudi_pauses_training_when_the_objective_cannot_be_held_and_resumes_once)
{
	start("mudi", 1);
	struct td_client_view *service = add_service(),
			      *task = add(2, 0, TD_CLASS_BESTEFFORT, 4 * GIB);

	step();
	CHECK(is_open(task));
	service->objective_ns = 10 * MS;
	step();
	CHECK(!is_open(task) && is_open(service) && !grant_of(service)->sm_share_ppm);
	CHECK_EQ(count_actions(TD_ACTION_PAUSE, task), 1);
	step();
	CHECK_EQ(count_actions(TD_ACTION_PAUSE, task), 1);
	service->objective_ns = 200 * MS;
	step();
	CHECK(is_open(task));
	CHECK_EQ(count_actions(TD_ACTION_RESUME, task), 1);
	step();
	CHECK(!count_actions(TD_ACTION_RESUME, NULL) && !count_actions(TD_ACTION_PAUSE, NULL));
}

TEST(mudi_tunes_the_batch_alone_where_a_service_keeps_its_share)
{
	start("mudi", 1);
	struct td_client_view *service = add_service(),
			      *task = add(2, 0, TD_CLASS_BESTEFFORT, 4 * GIB);
	uint32_t batch = 0;

	node.view.has &= ~TD_HAS(SHADOW);
	service->has &= ~TD_HAS(SHADOW);
	service->sm_share_ppm = 600000;
	task->sm_share_ppm = 400000;
	for (int i = 0; i < 60; i++) {
		step();
		CHECK(is_open(task));
		CHECK(!count_actions(TD_ACTION_SHARE, NULL));
		batch = grant_of(service)->batch;
		finish_step(task, 300 * MS - batch * MS / 2);
	}
	CHECK(batch >= 140 && batch <= 175);
	/* More than the service leaves: paused, and so is training that came after it. */
	task->sm_share_ppm = 410000;
	step();
	CHECK(!is_open(task) && is_open(service));
	task->sm_share_ppm = 0;
	step();
	CHECK(!is_open(task));
	task->sm_share_ppm = 300000;
	struct td_client_view *second = add(3, 0, TD_CLASS_BESTEFFORT, GIB);

	second->sm_share_ppm = 400000;
	step();
	CHECK(is_open(task) && !is_open(second));
	second->sm_share_ppm = 100000;
	step();
	CHECK(is_open(task) && is_open(second));
	/* A service without a share could take any part of the GPU. */
	service->sm_share_ppm = 0;
	step();
	CHECK(!is_open(task) && !is_open(second) && is_open(service));
}

TEST(mudi_tries_only_batches_that_were_measured)
{
	start("mudi", 1);
	struct td_client_view *service = add_service(),
			      *task = add(2, 0, TD_CLASS_BESTEFFORT, 4 * GIB);
	const struct td_mudi_service few = {
		&lines[0], &lines[1], &lines[2], &lines[3], 2, 24, 0, NULL, 0};
	const struct td_profile profile = {.service = &few};

	service->profile = &profile;
	service->rate_per_s = 500;
	for (int i = 0; i < 40; i++) {
		step();
		CHECK(grant_of(service)->batch >= 2 && grant_of(service)->batch <= 24);
		finish_step(task, 300 * MS - grant_of(service)->batch * MS);
	}
	CHECK(grant_of(service)->batch >= 20);
}

TEST(mudi_tries_no_batch_that_the_service_cannot_run)
{
	start("mudi", 1);
	struct td_client_view *service = add_service(),
			      *task = add(2, 0, TD_CLASS_BESTEFFORT, 4 * GIB);

	service->batch_max = 40;
	service->rate_per_s = 600;
	for (int i = 0; i < 40; i++) {
		step();
		CHECK(grant_of(service)->batch >= 16 && grant_of(service)->batch <= 40);
		finish_step(task, 300 * MS - grant_of(service)->batch * MS / 2);
	}
	CHECK(grant_of(service)->batch >= 36);
}

/* Lets it tune to the end, and a P99's window pass. Returns the batch. */
static uint32_t settle(struct td_client_view *service, struct td_client_view *task)
{
	for (int i = 0; i < 60; i++) {
		step();
		finish_step(task, 300 * MS - grant_of(service)->batch * MS / 2);
	}
	step();
	return grant_of(service)->batch;
}

TEST(a_miss_is_taken_back_after_a_calm_time_which_each_miss_doubles)
{
	start("mudi", 1);
	struct td_client_view *service = add_service(),
			      *task = add(2, 0, TD_CLASS_BESTEFFORT, 4 * GIB);
	uint32_t before = settle(service, task), after;
	uint64_t missed_ns;

	CHECK_EQ(node.plan.next_wakeup_ns, TD_NEVER);
	for (uint64_t calm_s = 60; calm_s <= 240; calm_s *= 2) {
		node.now += 11000 * MS;
		service->p99_ns = 210 * MS;
		step();
		missed_ns = node.now;
		service->p99_ns = 50 * MS;
		CHECK_EQ(node.plan.next_wakeup_ns, missed_ns + calm_s * 1000 * MS);
		after = settle(service, task);
		CHECK(node.now < node.plan.next_wakeup_ns);
		/* Nine tenths of the objective hold smaller batches only. */
		CHECK(after <= before - 10);
		node.now = node.plan.next_wakeup_ns - 1;
		step();
		CHECK_EQ(grant_of(service)->batch, after);
		node.now++;
		step();
		CHECK(settle(service, task) >= before - 2);
		CHECK_EQ(node.plan.next_wakeup_ns, TD_NEVER);
	}
}

/* The wake-up for it would be in the past for ever, and the daemon's loop would not sleep. */
TEST(a_miss_is_forgotten_with_its_service)
{
	start("mudi", 1);
	struct td_client_view *service = add_service(),
			      *task = add(2, 0, TD_CLASS_BESTEFFORT, 4 * GIB);

	(void)settle(service, task);
	node.now += 11000 * MS;
	service->p99_ns = 210 * MS;
	step();
	CHECK(node.plan.next_wakeup_ns != TD_NEVER);
	*service = *task;
	node.view.client_count = 1;
	step();
	CHECK_EQ(node.plan.next_wakeup_ns, TD_NEVER);
	node.now += 7200000 * MS;
	step();
	CHECK_EQ(node.plan.next_wakeup_ns, TD_NEVER);
}

TEST(mudi_runs_three_tasks_beside_a_service_and_none_beside_an_unknown_one)
{
	start("mudi", 1);
	struct td_client_view *service = add_service(), *tasks[4];

	for (uint32_t i = 0; i < 4; i++)
		tasks[i] = add(2 + i, 0, TD_CLASS_BESTEFFORT, GIB);
	step();
	CHECK(is_open(tasks[0]) && is_open(tasks[1]) && is_open(tasks[2]) && !is_open(tasks[3]));
	service->profile = NULL;
	step();
	for (uint32_t i = 0; i < 4; i++)
		CHECK(!is_open(tasks[i]));
}

TEST(gslice_grows_the_partition_while_the_objective_is_missed)
{
	start("gslice", 1);
	struct td_client_view *service = add_service(), *task = add(2, 0, TD_CLASS_BESTEFFORT, GIB);

	service->p99_ns = 300 * MS;
	step();
	CHECK_EQ(grant_of(service)->sm_share_ppm, 500000);
	CHECK_EQ(grant_of(task)->sm_share_ppm, 500000);
	CHECK_EQ(node.plan.next_wakeup_ns, node.now + 1000 * MS);
	for (int i = 0; i < 4; i++) {
		node.now += 1000 * MS;
		step();
	}
	CHECK_EQ(grant_of(service)->sm_share_ppm, 700000);
	service->p99_ns = 100 * MS;
	node.now += 1000 * MS;
	step();
	CHECK_EQ(grant_of(service)->sm_share_ppm, 650000);
	service->p99_ns = 190 * MS;
	node.now += 1000 * MS;
	step();
	CHECK_EQ(grant_of(service)->sm_share_ppm, 650000);
}

TEST(gpulets_take_the_smallest_size_that_holds_and_all_if_none_does)
{
	start("gpulets", 1);
	struct td_client_view *service = add_service(), *task = add(2, 0, TD_CLASS_BESTEFFORT, GIB);

	service->batch = 32;
	service->objective_ns = 57 * MS; /* 31 ms to fill leave 26: 25 at 40 %, 45 at 20 % */
	step();
	CHECK_EQ(grant_of(service)->sm_share_ppm, 400000);
	CHECK_EQ(grant_of(task)->sm_share_ppm, 600000);
	service->objective_ns = 40 * MS;
	step();
	CHECK(!is_open(task) && is_open(service));
}

TEST(a_shadow_is_no_second_service_and_does_not_disturb_the_tuning)
{
	start("mudi", 1);
	struct td_client_view *service = add_service(),
			      *task = add(2, 0, TD_CLASS_BESTEFFORT, 4 * GIB);
	uint32_t batch, share;

	for (int i = 0; i < 40; i++) {
		step();
		finish_step(task, 300 * MS - grant_of(service)->batch * MS / 2);
	}
	step();
	batch = grant_of(service)->batch;
	share = grant_of(service)->sm_share_ppm;
	service->sm_share_ppm = 900000;
	struct td_client_view *shadow = add(1, 0, TD_CLASS_ONLINE, 4 * GIB);

	shadow->sm_share_ppm = share;
	shadow->stands_by = true;
	for (int i = 0; i < 2; i++) {
		step();
		CHECK(is_open(task) && is_open(service) && is_open(shadow));
		CHECK_EQ(grant_of(i ? shadow : service)->batch, batch);
		CHECK(!count_actions(TD_ACTION_SHARE, i ? service : shadow));
		CHECK_EQ(count_actions(TD_ACTION_SHARE, i ? shadow : service), !i);
		/* It takes over: it is of the same job, so the tuning goes on. */
		shadow->profile = service->profile;
		shadow->objective_ns = service->objective_ns;
		shadow->rate_per_s = service->rate_per_s;
		shadow->stands_by = false;
		service->stands_by = true;
	}
	CHECK_EQ(grant_of(shadow)->sm_share_ppm, share);
}

/* Steps for so long, a quarter of a second at a time, without any step of training. */
static void wait_for(uint64_t ns)
{
	for (uint64_t end = node.now + ns; node.now < end; node.now += 250 * MS)
		step();
}

TEST(a_share_grows_at_once_and_shrinks_after_seconds_but_never_below_what_was_measured)
{
	start("mudi", 1);
	struct td_client_view *service = add_service(),
			      *task = add(2, 0, TD_CLASS_BESTEFFORT, 4 * GIB);
	uint32_t first;

	service->rate_per_s = 400;
	(void)settle(service, task);
	first = grant_of(service)->sm_share_ppm;
	CHECK_EQ(first % 10000, 0);
	service->rate_per_s = 800;
	step();
	step();
	CHECK(grant_of(service)->sm_share_ppm > first || grant_of(service)->batch > 0);
	first = grant_of(service)->sm_share_ppm;
	service->rate_per_s = 0;
	wait_for(4000 * MS);
	CHECK_EQ(grant_of(service)->sm_share_ppm, first);
	wait_for(12000 * MS);
	(void)settle(service, task);
	CHECK(grant_of(service)->sm_share_ppm < first);
	CHECK_EQ(grant_of(service)->sm_share_ppm, 100000);
	CHECK_EQ(count_actions(TD_ACTION_SHARE, service), 0);
}
