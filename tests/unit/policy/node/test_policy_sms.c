/* The SMs that protected jobs leave for besteffort work beside them. */
#include "unit/policy/nodes_world.h"

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
