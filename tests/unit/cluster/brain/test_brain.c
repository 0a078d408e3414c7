/* The brain: each event, and the orders that follow. The clock is a number. */
#include "test.h"

#include <errno.h>

#include "cluster/brain/brain.h"

#define S    1000000000ull
#define ROOM 64u

static struct td_brain *brain;
static struct td_brain_order orders[ROOM];
static uint32_t count;
static struct td_brain_place places[TD_GANG_MAX];

static void begin_with(const struct td_brain_policy *policy, uint32_t quota)
{
	struct td_brain_params params = td_brain_default;

	td_brain_free(brain);
	params.policy = policy;
	params.shape.nodes_max = 4;
	params.shape.node_gpus_max = 4;
	params.shape.jobs_max = 16;
	params.shape.kinds_max = 8;
	params.tenants[1] = (struct td_brain_tenant){"research", quota};
	params.tenant_count = 2;
	brain = td_brain_new(&params);
	CHECK(brain);
}

static void join(const char *name, uint32_t gpus, uint64_t now)
{
	struct td_brain_node node = {.gpus = gpus};

	strcpy(node.name, name);
	CHECK_EQ(td_brain_node_seen(brain, &node, now), 0);
}

static void begin(void)
{
	begin_with(&td_brain_tandem, 4);
	join("node1", 2, 0);
	join("node2", 2, 0);
	td_brain_lead(brain, 7);
}

static struct td_brain_request request_of(const char *id, uint32_t gpus, bool guaranteed)
{
	struct td_brain_request request = {
		.kind = "k", .tenant = "research", .gpus = gpus, .guaranteed = guaranteed};

	strcpy(request.id, id);
	return request;
}

static void submit(const char *id, uint32_t gpus, bool guaranteed, uint64_t now)
{
	const struct td_brain_request request = request_of(id, gpus, guaranteed);

	CHECK_EQ(td_brain_submit(brain, &request, now), 0);
}

static void step(uint64_t now)
{
	count = td_brain_step(brain, now, orders, ROOM);
}

static void expect(uint32_t at, enum td_brain_order_verb verb, const char *id, uint64_t epoch)
{
	CHECK(at < count);
	CHECK_EQ(orders[at].verb, verb);
	CHECK_STR(orders[at].id, id);
	CHECK_EQ(orders[at].epoch, epoch);
}

static uint32_t places_of(const char *id)
{
	return td_brain_places(brain, td_brain_find(brain, id), places);
}

static enum td_brain_why why(const char *id)
{
	return td_brain_why(brain, td_brain_find(brain, id));
}

TEST(a_cluster_may_have_as_many_nodes_and_gpus_as_the_bounds_say)
{
	static uint32_t gpus[TD_BRAIN_NODES_MAX + 1];
	struct td_brain_shape shape = {
		.nodes_max = TD_BRAIN_NODES_MAX, .node_gpus_max = TD_NODE_GPUS_MAX};

	CHECK_EQ(td_brain_shape_nodes(&shape, gpus), 0);
	CHECK_EQ(gpus[0], TD_NODE_GPUS_MAX);
	CHECK_EQ(gpus[TD_BRAIN_NODES_MAX - 1], TD_NODE_GPUS_MAX);
	CHECK_EQ(gpus[TD_BRAIN_NODES_MAX], 0);
	shape.nodes_max++;
	CHECK_EQ(td_brain_shape_nodes(&shape, gpus), -EINVAL);
	shape.nodes_max = 0;
	CHECK_EQ(td_brain_shape_nodes(&shape, gpus), -EINVAL);
	shape.nodes_max = 1;
	shape.node_gpus_max = TD_NODE_GPUS_MAX + 1;
	CHECK_EQ(td_brain_shape_nodes(&shape, gpus), -EINVAL);
	shape.node_gpus_max = 0;
	CHECK_EQ(td_brain_shape_nodes(&shape, gpus), -EINVAL);
	shape.node_gpus_max = 1;
	CHECK_EQ(td_brain_shape_nodes(&shape, gpus), 0);
	CHECK_EQ(gpus[0], 1);
	CHECK_EQ(gpus[1], TD_NODE_GPUS_MAX);
}

TEST(a_job_is_placed_runs_and_ends)
{
	begin();
	submit("1", 1, false, 0);
	step(0);
	CHECK_EQ(count, 1);
	expect(0, TD_ORDER_PLACE, "1", 1);
	CHECK_EQ(orders[0].revision, 7);
	CHECK(orders[0].guest);
	CHECK_EQ(places_of("1"), 1);
	td_brain_ran(brain, "1", 1, S);
	step(S);
	CHECK_EQ(count, 0);
	td_brain_ended(brain, "1", 2 * S);
	CHECK_EQ(td_brain_find(brain, "1"), TD_NO_NAME);
	CHECK_EQ(places_of("1"), 0);
}

TEST(nothing_is_ordered_without_a_leader)
{
	begin();
	td_brain_lead(brain, 0);
	submit("1", 1, false, 0);
	step(0);
	CHECK_EQ(count, 0);
	CHECK_EQ(why("1"), TD_WHY_NO_LEADER);
	td_brain_lead(brain, 8);
	step(S);
	expect(0, TD_ORDER_PLACE, "1", 1);
	CHECK_EQ(orders[0].revision, 8);
}

TEST(an_order_is_repeated_until_it_is_confirmed)
{
	begin();
	submit("1", 1, false, 0);
	step(0);
	td_brain_done(brain, &orders[0]);
	step(S);
	CHECK_EQ(count, 0);
	step(10 * S);
	CHECK_EQ(count, 1);
	expect(0, TD_ORDER_PLACE, "1", 1);
	submit("1", 1, false, 11 * S); /* told again: nothing new */
	td_brain_ran(brain, "1", 1, 11 * S);
	step(30 * S);
	CHECK_EQ(count, 0);
}

TEST(a_job_that_does_not_start_in_time_waits_again)
{
	begin();
	submit("1", 4, false, 0);
	step(0);
	expect(0, TD_ORDER_PLACE, "1", 1);
	for (uint64_t s = 10; s < 120; s += 10) {
		join("node1", 2, s * S);
		join("node2", 2, s * S);
		step(s * S);
		expect(0, TD_ORDER_PLACE, "1", 1);
	}
	step(120 * S);
	expect(0, TD_ORDER_REQUEUE, "1", 1);
	CHECK_EQ(orders[0].why, TD_WHY_NOT_STARTED);
	expect(1, TD_ORDER_PLACE, "1", 2);
}

TEST(jobs_of_a_node_that_goes_wait_and_start_elsewhere_with_a_higher_epoch)
{
	begin();
	submit("1", 1, true, 0);
	step(0);
	CHECK_EQ(places_of("1"), 1);
	td_brain_ran(brain, "1", 1, 0);
	td_brain_node_left(brain, places[0].node, S);
	step(S);
	CHECK_EQ(count, 2);
	expect(0, TD_ORDER_REQUEUE, "1", 1);
	CHECK_EQ(orders[0].why, TD_WHY_NODE_LOST);
	expect(1, TD_ORDER_PLACE, "1", 2);
	td_brain_ran(brain, "1", 1, 2 * S); /* what is left of the first one */
	step(2 * S);
	expect(0, TD_ORDER_REQUEUE, "1", 1);
	td_brain_ran(brain, "1", 2, 3 * S);
	step(20 * S);
	CHECK_EQ(count, 0);
	CHECK_EQ(td_brain_gpus_up(brain), 2);
}

TEST(a_node_that_is_silent_is_gone)
{
	begin();
	submit("1", 4, true, 0);
	step(0);
	td_brain_ran(brain, "1", 1, 0);
	join("node1", 2, 29 * S);
	step(31 * S);
	expect(0, TD_ORDER_REQUEUE, "1", 1);
	CHECK_EQ(count, 1);
	CHECK_EQ(td_brain_gpus_up(brain), 2);
	CHECK_EQ(why("1"), TD_WHY_TOO_LARGE);
	join("node2", 2, 40 * S);
	join("node1", 2, 40 * S);
	td_brain_done(brain, &orders[0]);
	step(40 * S);
	expect(0, TD_ORDER_PLACE, "1", 2);
}

TEST(what_runs_is_adopted_and_not_ordered_again)
{
	struct td_brain_request request = request_of("9", 2, true);
	const struct td_brain_place there[] = {{"node1", 0}, {"node1", 1}}, lost[] = {{"x", 0}};
	uint32_t at;

	begin();
	td_brain_lead(brain, 0);
	request.epoch = 5;
	CHECK_EQ(td_brain_adopt(brain, &request, false, there, 0), 0);
	submit("10", 2, true, 0);
	td_brain_lead(brain, 9);
	td_brain_ran(brain, "9", 5, 0);
	step(0);
	CHECK_EQ(count, 1);
	expect(0, TD_ORDER_PLACE, "10", 1);
	CHECK_EQ(places_of("10"), 2);
	CHECK_STR(places[0].node, "node2");
	/* Where the policy cannot put it, it is known and left alone. */
	strcpy(request.id, "11");
	CHECK_EQ(td_brain_adopt(brain, &request, false, there, 0), 1);
	step(S);
	CHECK_EQ(count, 0);
	at = td_brain_find(brain, "11");
	CHECK_EQ(td_brain_job(brain, at)->phase, TD_BRAIN_RUNNING);
	strcpy(request.id, "12");
	request.gpus = 1;
	CHECK_EQ(td_brain_adopt(brain, &request, false, lost, 0), -ENOENT);
	/* The next placement has a higher number. */
	td_brain_lost(brain, "9", 5, TD_WHY_EVICTED, S);
	step(S);
	expect(0, TD_ORDER_REQUEUE, "9", 5);
	expect(1, TD_ORDER_PLACE, "9", 6);
}

TEST(what_runs_and_is_not_known_is_stopped)
{
	begin();
	td_brain_ran(brain, "77", 3, 0);
	td_brain_ran(brain, "77", 3, 0);
	step(0);
	CHECK_EQ(count, 1);
	expect(0, TD_ORDER_STOP, "77", 3);
	submit("1", 1, false, 0);
	step(0);
	td_brain_cancelled(brain, "1", S);
	step(S);
	CHECK_EQ(count, 1);
	expect(0, TD_ORDER_STOP, "1", 1);
}

TEST(a_placement_of_an_earlier_leader_is_taken_back)
{
	begin();
	submit("1", 1, true, 0);
	step(0);
	td_brain_ran(brain, "1", 4, S);
	step(S);
	expect(0, TD_ORDER_REQUEUE, "1", 4);
	expect(1, TD_ORDER_PLACE, "1", 5);
}

TEST(a_gang_starts_whole_or_waits)
{
	begin();
	submit("1", 1, true, 0);
	step(0);
	td_brain_ran(brain, "1", 1, 0);
	submit("2", 4, true, 0);
	step(0);
	CHECK_EQ(count, 0);
	CHECK_EQ(why("2"), TD_WHY_QUOTA);
	td_brain_ended(brain, "1", S);
	step(S);
	expect(0, TD_ORDER_PLACE, "2", 1);
	CHECK_EQ(places_of("2"), 4);
}

TEST(a_gang_of_one_node_is_on_one_node)
{
	struct td_brain_request request = request_of("2", 2, true);

	begin();
	for (int guaranteed = 0; guaranteed < 2; guaranteed++) {
		begin();
		submit("1", 1, true, 0);
		step(0);
		CHECK_EQ(places_of("1"), 1);
		request.same_node = true;
		request.guaranteed = guaranteed;
		CHECK_EQ(td_brain_submit(brain, &request, 0), 0);
		step(0);
		expect(0, TD_ORDER_PLACE, "2", 1);
		CHECK_EQ(places_of("2"), 2);
		CHECK_STR(places[0].node, places[1].node);
	}
	strcpy(request.id, "3");
	request.gpus = 3;
	CHECK_EQ(td_brain_submit(brain, &request, 0), 0);
	step(S);
	CHECK_EQ(why("3"), TD_WHY_NODE_TOO_SMALL);
}

TEST(a_tenant_has_no_more_than_its_quota)
{
	char text[256];

	begin_with(&td_brain_tandem, 1);
	join("node1", 4, 0);
	td_brain_lead(brain, 1);
	submit("1", 1, true, 0);
	submit("2", 1, true, 0);
	submit("3", 2, true, 0);
	step(0);
	CHECK_EQ(count, 1);
	CHECK_EQ(why("2"), TD_WHY_QUOTA);
	CHECK_STR(td_brain_explain(brain, td_brain_find(brain, "2"), text, sizeof(text)),
		"the quota of its tenant is in use");
	CHECK_EQ(why("3"), TD_WHY_OVER_QUOTA);
	td_brain_ended(brain, "3", S); /* one that the policy never had */
	td_brain_ended(brain, "1", S);
	step(S);
	expect(0, TD_ORDER_PLACE, "2", 1);
}

TEST(a_job_starts_opportunistically_and_is_upgraded)
{
	struct td_brain_request request = request_of("2", 1, true);

	begin_with(&td_brain_antman, 1);
	join("node1", 2, 0);
	td_brain_lead(brain, 1);
	submit("1", 1, true, 0);
	request.automatic = true;
	CHECK_EQ(td_brain_submit(brain, &request, 0), 0);
	step(0);
	CHECK_EQ(count, 2);
	expect(0, TD_ORDER_PLACE, "1", 1);
	CHECK(!orders[0].guest);
	expect(1, TD_ORDER_PLACE, "2", 1);
	CHECK(orders[1].guest);
	td_brain_ran(brain, "1", 1, S);
	td_brain_ran(brain, "2", 1, S);
	td_brain_ended(brain, "1", 2 * S);
	step(2 * S);
	CHECK_EQ(count, 1);
	expect(0, TD_ORDER_UPGRADE, "2", 1);
	CHECK(!orders[0].guest);
	step(12 * S);
	expect(0, TD_ORDER_UPGRADE, "2", 1); /* until it is done */
	td_brain_done(brain, &orders[0]);
	step(29 * S);
	CHECK_EQ(count, 0);
}

TEST(both_policies_lose_nodes_and_adopt)
{
	static const struct td_brain_policy *const all[] = {&td_brain_tandem, &td_brain_antman};
	struct td_brain_request request = request_of("1", 1, true);
	const struct td_brain_place there[] = {{"node1", 1}};

	for (int p = 0; p < 2; p++) {
		begin_with(all[p], 8);
		join("node1", 2, 0);
		request.epoch = 2;
		CHECK_EQ(td_brain_adopt(brain, &request, false, there, 0), 0);
		td_brain_lead(brain, 1);
		step(0);
		CHECK_EQ(count, 0);
		CHECK_EQ(places_of("1"), 1);
		CHECK_EQ(places[0].gpu, 1);
		td_brain_node_left(brain, "node1", S);
		step(S);
		CHECK_EQ(count, 1);
		expect(0, TD_ORDER_REQUEUE, "1", 2);
		CHECK_EQ(why("1"), TD_WHY_TOO_LARGE);
		join("node3", 1, S);
		step(2 * S);
		expect(0, TD_ORDER_PLACE, "1", 3);
	}
}

TEST(nothing_starts_on_a_node_that_is_closed)
{
	struct td_brain_node node = {.name = "node1", .gpus = 2};

	begin_with(&td_brain_tandem, 8);
	CHECK_EQ(td_brain_node_seen(brain, &node, 0), 0);
	td_brain_lead(brain, 1);
	submit("1", 1, true, 0);
	step(0);
	td_brain_ran(brain, "1", 1, 0);
	node.closed = true;
	CHECK_EQ(td_brain_node_seen(brain, &node, S), 0);
	submit("2", 1, true, S);
	step(S);
	CHECK_EQ(count, 0);
	td_brain_ended(brain, "1", 2 * S);
	step(2 * S);
	CHECK_EQ(count, 0);
	CHECK_EQ(td_brain_gpus_up(brain), 0);
	node.closed = false;
	CHECK_EQ(td_brain_node_seen(brain, &node, 3 * S), 0);
	step(3 * S);
	expect(0, TD_ORDER_PLACE, "2", 1);
}

static void seen(const char *name, uint32_t gpus, bool closed, uint64_t now)
{
	struct td_brain_node node = {.gpus = gpus, .closed = closed};

	strcpy(node.name, name);
	CHECK_EQ(td_brain_node_seen(brain, &node, now), 0);
}

/* One GPU with a guest, whose node is closed: the guest stays, and no job comes beside it. */
static void stay_alone(const struct td_brain_policy *policy)
{
	begin_with(policy, 4);
	join("node1", 1, 0);
	td_brain_lead(brain, 7);
	submit("1", 1, false, S);
	step(S);
	expect(0, TD_ORDER_PLACE, "1", 1);
	td_brain_ran(brain, "1", 1, S);
	seen("node1", 1, true, 2 * S);
	submit("2", 1, false, 2 * S);
	submit("3", 1, true, 2 * S);
	for (uint64_t k = 2; k < 300; k++) {
		seen("node1", 1, true, k * S);
		step(k * S);
		CHECK_EQ(count, 0);
	}
	td_brain_ended(brain, "1", 300 * S);
	step(300 * S);
	CHECK_EQ(count, 0);
	CHECK_EQ(td_brain_gpus_up(brain), 0);
	seen("node1", 1, false, 301 * S);
	step(301 * S);
	CHECK(count >= 1);
}

TEST(no_job_comes_beside_those_of_a_closed_node)
{
	stay_alone(&td_brain_tandem);
	stay_alone(&td_brain_antman);
}

TEST(a_gpu_that_its_node_judges_full_gets_no_guests)
{
	struct td_brain_verdict verdict = {.load_ppm = TD_BRAIN_LOAD_UNKNOWN};

	begin_with(&td_brain_tandem, 4);
	join("node1", 1, 0);
	td_brain_lead(brain, 7);
	td_brain_node_judged(brain, "node1", true, &verdict, 1);
	submit("1", 1, false, S);
	step(S);
	CHECK_EQ(count, 0);
	submit("2", 1, true, 2 * S);
	step(2 * S);
	expect(0, TD_ORDER_PLACE, "2", 1);
	td_brain_ended(brain, "2", 3 * S);
	verdict.accepts = true;
	td_brain_node_judged(brain, "node1", true, &verdict, 1);
	step(3 * S);
	expect(0, TD_ORDER_PLACE, "1", 1);
	CHECK(orders[0].guest);
}

/* A broken GPU, one that is not listed, and one whose daemon is away; then nobody judges. */
TEST(a_gpu_that_cannot_serve_gets_no_jobs)
{
	struct td_brain_verdict broken[2] = {{true, true, 0}, {true, false, 0}};

	begin_with(&td_brain_tandem, 4);
	join("node1", 2, 0);
	td_brain_lead(brain, 7);
	td_brain_node_judged(brain, "node1", true, broken, 1);
	submit("1", 1, true, S);
	step(S);
	CHECK_EQ(count, 0);
	broken[0].broken = false;
	td_brain_node_judged(brain, "node1", false, broken, 2);
	step(2 * S);
	CHECK_EQ(count, 0);
	td_brain_node_judged(brain, "nobody", true, broken, 2);
	td_brain_node_judged(brain, "node1", true, NULL, 0);
	step(3 * S);
	expect(0, TD_ORDER_PLACE, "1", 1);
}

/* Two nodes, of which the second one is in pool 1 and the first one is not. */
static void stay_in_the_pool(const struct td_brain_policy *policy)
{
	struct td_brain_node first = {.name = "node1", .gpus = 1, .not_in = 1u << 1};
	struct td_brain_request request = request_of("1", 1, true);

	begin_with(policy, 4);
	CHECK_EQ(td_brain_node_seen(brain, &first, 0), 0);
	join("node2", 1, 0);
	td_brain_lead(brain, 7);
	request.pool = 1;
	CHECK_EQ(td_brain_submit(brain, &request, S), 0);
	step(S);
	expect(0, TD_ORDER_PLACE, "1", 1);
	CHECK_EQ(places_of("1"), 1);
	CHECK_STR(places[0].node, "node2");
	strcpy(request.id, "2");
	CHECK_EQ(td_brain_submit(brain, &request, 2 * S), 0);
	step(2 * S);
	CHECK_EQ(count, 0);
	CHECK_EQ(td_brain_why(brain, td_brain_find(brain, "2")), TD_WHY_PLACE);
	/* One that may run anywhere goes by, and a pool without nodes says so. */
	submit("3", 1, true, 3 * S);
	request.pool = 2;
	strcpy(request.id, "4");
	CHECK_EQ(td_brain_submit(brain, &request, 3 * S), 0);
	step(3 * S);
	expect(0, TD_ORDER_PLACE, "3", 1);
	CHECK_EQ(places_of("3"), 1);
	CHECK_STR(places[0].node, "node1");
	first.not_in = 3u << 1;
	CHECK_EQ(td_brain_node_seen(brain, &first, 4 * S), 0);
	strcpy(first.name, "node2");
	first.not_in = 1u << 2;
	CHECK_EQ(td_brain_node_seen(brain, &first, 4 * S), 0);
	CHECK_EQ(td_brain_why(brain, td_brain_find(brain, "4")), TD_WHY_NO_NODE);
	/* The first node comes into the pool and is free. */
	strcpy(first.name, "node1");
	first.not_in = 1u << 2;
	CHECK_EQ(td_brain_node_seen(brain, &first, 5 * S), 0);
	td_brain_ended(brain, "3", 5 * S);
	step(5 * S);
	expect(0, TD_ORDER_PLACE, "2", 1);
}

TEST(a_job_runs_only_on_the_nodes_of_its_pool)
{
	stay_in_the_pool(&td_brain_tandem);
	stay_in_the_pool(&td_brain_antman);
}

TEST(a_job_that_nobody_could_start_again_is_not_stopped_for_others)
{
	struct td_brain_request request = request_of("1", 1, true);

	request.stays = true;
	begin_with(&td_brain_tandem, 1);
	join("node1", 1, 0);
	td_brain_lead(brain, 7);
	CHECK_EQ(td_brain_submit(brain, &request, 0), 0);
	step(0);
	td_brain_ran(brain, "1", 1, 0);
	submit("2", 1, true, S);
	for (uint64_t s = 20; s < 7000; s += 20) {
		join("node1", 1, s * S);
		step(s * S);
		CHECK_EQ(count, 0);
	}
}

TEST(a_gang_of_antman_is_on_one_node_as_guests_too)
{
	const uint32_t loads[] = {100000, 0, 200000};
	struct td_brain_node node = {.gpus = 3, .load_ppm = loads};
	struct td_brain_request request = request_of("1", 2, false);

	request.same_node = true;
	begin_with(&td_brain_antman, 4);
	td_brain_lead(brain, 7);
	for (int k = 0; k < 2; k++) {
		snprintf(node.name, sizeof(node.name), "n%d", k);
		CHECK_EQ(td_brain_node_seen(brain, &node, 0), 0);
	}
	CHECK_EQ(td_brain_submit(brain, &request, 0), 0);
	step(0);
	CHECK_EQ(places_of("1"), 2);
	CHECK_STR(places[0].node, places[1].node);
	CHECK_EQ(places[0].gpu, 1);
	CHECK_EQ(places[1].gpu, 0);
	strcpy(request.id, "2");
	request.gpus = 4; /* no node has as many */
	CHECK_EQ(td_brain_submit(brain, &request, 0), 0);
	step(S);
	CHECK_EQ(places_of("2"), 0);
}

TEST(bad_events_are_refused)
{
	struct td_brain_request request = request_of("1", 0, true);
	struct td_brain_node node = {.name = "n", .gpus = 5};

	begin();
	CHECK_EQ(td_brain_submit(brain, &request, 0), -EINVAL);
	request.gpus = TD_GANG_MAX + 1;
	CHECK_EQ(td_brain_submit(brain, &request, 0), -EINVAL);
	CHECK_EQ(td_brain_node_seen(brain, &node, 0), -EINVAL);
	node.gpus = 1;
	*node.name = 0;
	CHECK_EQ(td_brain_node_seen(brain, &node, 0), -EINVAL);
	request.gpus = 1;
	for (int k = 0; k < 16; k++) {
		snprintf(request.id, sizeof(request.id), "j%d", k);
		CHECK_EQ(td_brain_submit(brain, &request, 0), 0);
	}
	strcpy(request.id, "more");
	CHECK_EQ(td_brain_submit(brain, &request, 0), -ENOSPC);
	td_brain_ended(brain, "nobody", 0);
	td_brain_lost(brain, "nobody", 1, TD_WHY_EVICTED, 0);
	td_brain_node_left(brain, "nobody", 0);
}
