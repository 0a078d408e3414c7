/* Besteffort work beside protected jobs: the SMs that these leave, and a duty that is divided. */
#include "unit/policy/nodes_world.h"

#include "policy/node/plans.h"
#include "policy/node/beside/sms.h"

TEST(what_online_jobs_need_while_they_run_is_not_offered)
{
	start("tandem", 2);
	struct td_client_view *service = add(1, 0, TD_CLASS_ONLINE, GIB);

	add(2, 0, TD_CLASS_BESTEFFORT, GIB)->sm_need_ppm = 900000;
	service->sm_activity_ppm = 100000;
	service->sm_need_ppm = 704000;
	CHECK_EQ(td_sms_left_ppm(&node.view, 0, TD_CLASS_ONLINE), 290000);
	CHECK_EQ(td_sms_left_ppm(&node.view, 1, TD_CLASS_ONLINE), 0);
	/* One whose need is not known counts as the whole GPU: the floor is left. */
	service->sm_need_ppm = 0;
	CHECK_EQ(td_sms_left_ppm(&node.view, 0, TD_CLASS_ONLINE), 100000);
}

TEST(guaranteed_jobs_count_where_they_are_asked_for)
{
	start("tandem", 1);
	add(1, 0, TD_CLASS_GUARANTEED, GIB)->sm_need_ppm = 500000;
	CHECK_EQ(td_sms_left_ppm(&node.view, 0, TD_CLASS_ONLINE), 0);
	CHECK_EQ(td_sms_left_ppm(&node.view, 0, TD_CLASS_GUARANTEED), 500000);
}

TEST(tandem_offers_them_under_mps)
{
	start("tandem", 1);
	add(1, 0, TD_CLASS_ONLINE, GIB)->sm_need_ppm = 600000;
	step();
	CHECK_EQ(node.verdicts[0].sm_share_ppm, 400000);
	CHECK(!node.verdicts[0].known);
	memset(node.verdicts, 0, sizeof(node.verdicts));
	node.gpus[0].mps = TD_MPS_OFF;
	step();
	CHECK_EQ(node.verdicts[0].sm_share_ppm, 0);
}

/* Weights 3 and 1 of two that have work. One without work gets what it would have with it. */
TEST(a_duty_is_divided_by_weight_among_those_who_have_work)
{
	start("tandem", 2);
	struct td_client_view *heavy = add(1, 0, TD_CLASS_BESTEFFORT, GIB);
	uint32_t expected[] = {300000, 100000, 80000, 0, 0};

	add(2, 0, TD_CLASS_BESTEFFORT, GIB);
	add(3, 0, TD_CLASS_BESTEFFORT, GIB)->wants = false;
	add(4, 1, TD_CLASS_BESTEFFORT, GIB);
	add(5, 0, TD_CLASS_ONLINE, GIB);
	heavy->weight = 3;
	for (uint32_t c = 0; c < 5; c++)
		node.grants[c] = (struct td_grant){.gate = TD_GATE_OPEN};
	td_plan_divide_duty(&node.view, 0, 400000, &node.plan);
	for (uint32_t c = 0; c < 5; c++)
		CHECK_EQ(node.grants[c].duty_ppm, expected[c]);
}

/* -- another share for work that runs -- */

static struct td_reshare reshare;

/* Returns the share that work with `has` gets when so much has been left since the last call. */
static uint32_t wants(struct td_client_view *work, uint32_t left, uint64_t after_ms)
{
	uint64_t wakeup = TD_NEVER;

	node.now += after_ms * MS;
	return td_sms_reshare(&reshare, work, left, node.now, &wakeup);
}

static struct td_client_view *start_work(uint32_t has)
{
	struct td_client_view *work;

	start("muxflow", 1);
	reshare = (struct td_reshare){0};
	work = add(1, 0, TD_CLASS_BESTEFFORT, GIB);
	work->reshares = true;
	work->sm_share_ppm = has;
	return work;
}

TEST(a_share_shrinks_soon_and_grows_late)
{
	struct td_client_view *work = start_work(400000);

	CHECK_EQ(wants(work, 270000, 0), 0);
	CHECK_EQ(wants(work, 270000, 299), 0);
	CHECK_EQ(wants(work, 270000, 1), 200000);
	CHECK_EQ(wants(work, 800000, 0), 0);
	CHECK_EQ(wants(work, 800000, 1999), 0);
	CHECK_EQ(wants(work, 800000, 1), 800000);
}

TEST(a_share_grows_by_the_least_that_was_left_meanwhile)
{
	struct td_client_view *work = start_work(200000);

	CHECK_EQ(wants(work, 900000, 0), 0);
	CHECK_EQ(wants(work, 530000, 1000), 0);
	CHECK_EQ(wants(work, 900000, 1000), 500000);
}

TEST(a_difference_that_is_not_worth_a_pause_or_does_not_last_changes_nothing)
{
	struct td_client_view *work = start_work(400000);

	CHECK_EQ(wants(work, 360000, 0) | wants(work, 490000, 10000), 0);
	CHECK_EQ(wants(work, 360000, 10000), 0);
	for (int i = 0; i < 100; i++)
		CHECK_EQ(wants(work, i % 2 ? 200000 : 400000, 200), 0);
	for (int i = 0; i < 100; i++)
		CHECK_EQ(wants(work, i % 2 ? 900000 : 400000, 1500), 0);
}

TEST(a_share_that_has_changed_grows_after_twenty_pauses)
{
	struct td_client_view *work = start_work(400000);

	work->reshared_ns = node.now;
	work->reshare_pause_ns = 500 * MS;
	CHECK_EQ(wants(work, 800000, 0) | wants(work, 800000, 9999), 0);
	CHECK_EQ(wants(work, 800000, 1), 800000);
	work->reshare_pause_ns = TD_NEVER;
	CHECK_EQ(wants(work, 800000, 1000000), 0);
}

/* The machine stalled while the share changed: others are protected all the same. */
TEST(a_long_pause_does_not_keep_a_share_large)
{
	struct td_client_view *work = start_work(400000);

	work->reshared_ns = node.now;
	work->reshare_pause_ns = 3000 * MS;
	CHECK_EQ(wants(work, 200000, 0) | wants(work, 200000, 999), 0);
	CHECK_EQ(wants(work, 200000, 1), 200000);
}

TEST(work_whose_share_cannot_change_keeps_it)
{
	struct td_client_view *work = start_work(400000);

	work->reshares = false;
	CHECK_EQ(wants(work, 200000, 0) | wants(work, 200000, 10000), 0);
}

/* When the online work has gone, the whole GPU is left. */
TEST(muxflow_changes_the_share_of_work_that_runs)
{
	struct td_client_view *work, *service;

	work = start_work(0);
	service = add(2, 0, TD_CLASS_ONLINE, GIB);
	service->sm_need_ppm = 600000;
	/* It runs once the GPU is known to be healthy. */
	for (int i = 0; i < 2000 && !count_actions(TD_ACTION_SHARE, work); i++) {
		step();
		node.now += 10 * MS;
	}
	CHECK_EQ(count_actions(TD_ACTION_SHARE, work), 1);
	CHECK_EQ(node.plan.actions[node.plan.action_count - 1].sm_share_ppm, 400000);
	CHECK_EQ(grant_of(work)->sm_share_ppm, 400000);
	work->sm_share_ppm = 400000;
	step();
	CHECK_EQ(count_actions(TD_ACTION_SHARE, work), 0);
	node.view.client_count = 1;
	step();
	CHECK(node.plan.next_wakeup_ns <= node.now + 2000 * MS);
	node.now += 2000 * MS;
	step();
	CHECK_EQ(node.plan.actions[0].kind, TD_ACTION_SHARE);
	CHECK_EQ(node.plan.actions[0].sm_share_ppm, TD_PPM);
}
