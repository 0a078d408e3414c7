/* Besteffort work beside protected jobs: the SMs that these leave, and a duty that is divided. */
#include "unit/policy/nodes_world.h"

#include "policy/node/plans.h"
#include "policy/node/sms.h"

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
