/* The status of a scheduler: what is written, and what people see. */
#include "test.h"

#include "base/text.h"
#include "cluster/sched/status.h"

TEST(a_brain_is_written_and_shown)
{
	struct td_brain_params params = td_brain_default;
	struct td_brain_node node = {.name = "node1", .gpus = 1};
	struct td_brain_request request = {
		.id = "7", .tenant = "lab", .gpus = 1, .kind = "k", .guaranteed = true};
	struct td_brain_order orders[8];
	struct td_text rows = {0}, shown = {0};
	struct td_brain *brain;

	params.shape.nodes_max = params.shape.node_gpus_max = 2;
	params.shape.jobs_max = params.shape.kinds_max = 4;
	params.tenants[1] = (struct td_brain_tenant){"lab", 1};
	params.tenant_count = 2;
	brain = td_brain_new(&params);
	CHECK(brain);
	CHECK_EQ(td_brain_node_seen(brain, &node, 0), 0);
	td_brain_lead(brain, 3);
	CHECK_EQ(td_brain_submit(brain, &request, 0), 0);
	strcpy(request.id, "8");
	CHECK_EQ(td_brain_submit(brain, &request, 0), 0);
	CHECK_EQ(td_brain_step(brain, 0, orders, 8), 1);
	td_status_write(brain, "a\tb", 3, &rows);
	CHECK_STR(rows.text, "leader\ta?b\t3\nnode\tnode1\t1\tup\ntenant\t\t0\t\n"
			     "tenant\tlab\t1\t1\n"
			     "job\t7\tlab\tplaced\t1\theld\tnode1:0\t\n"
			     "job\t8\tlab\twaits\t1\t\t\tthe quota of its tenant is in use\n");
	td_status_show(rows.text, true, &shown);
	CHECK(strstr(shown.text, "{\"leaders\": [\n  {\"name\": \"a?b\", \"revision\": 3}],"));
	CHECK(strstr(shown.text, "{\"name\": \"\", \"used\": 0, \"quota\": null}"));
	CHECK(strstr(shown.text, "\"why\": \"the quota of its tenant is in use\"}]"));
	td_text_clear(&shown);
	td_status_show(rows.text, false, &shown);
	CHECK(strstr(shown.text, "LEADER"));
	CHECK(strstr(shown.text, "(others)"));
	CHECK(!strstr(shown.text, "MORE"));
	td_text_deinit(&rows);
	td_text_deinit(&shown);
	td_brain_free(brain);
}

TEST(rows_that_are_cut_off_are_shown_as_they_are)
{
	struct td_text shown = {0};

	td_status_show("job\t1\nnode\nother\tx\nmore\tmany", true, &shown);
	CHECK(strstr(
		shown.text, "{\"id\": \"1\", \"tenant\": \"\", \"phase\": \"\", \"gpus\": null"));
	CHECK(strstr(shown.text, "{\"jobs\": null}"));
	td_text_deinit(&shown);
}
