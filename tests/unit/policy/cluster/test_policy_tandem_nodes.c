/* Nodes that go and come, and jobs that ran before the scheduler did. */
#include "test.h"

#include <errno.h>
#include <stdlib.h>

#include "policy/cluster/tandem_cluster.h"

#define S    1000000000ull
#define JOBS 64u

static const double demands[] = {0.9};
static const uint32_t nodes[] = {2, 2}, quotas[] = {4};
static struct td_tandem_cluster cluster;
static void *memory;
static struct td_tandem_action actions[64];
static uint32_t count, gpus[TD_GANG_MAX];

static void begin(void)
{
	size_t bytes = td_tandem_cluster_bytes(2, 4, JOBS, 1);

	free(memory);
	memory = aligned_alloc(64, (bytes + 63) & ~(size_t)63);
	CHECK_EQ(td_tandem_cluster_init(&cluster, memory, bytes, &td_tandem_cluster_default, nodes,
			 2, 0, quotas, 1, JOBS, demands, 1),
		0);
}

static struct td_tandem_request request_of(uint32_t n, bool guaranteed)
{
	return (struct td_tandem_request){.gpus = n, .guaranteed = guaranteed};
}

static void submit(uint32_t job, uint32_t n, bool guaranteed, uint64_t now)
{
	const struct td_tandem_request request = request_of(n, guaranteed);

	CHECK_EQ(td_tandem_cluster_submit(&cluster, job, &request, now), 0);
}

static void step(uint64_t now)
{
	count = td_tandem_cluster_step(&cluster, now, actions, 64);
}

static bool is_on(uint32_t job, uint32_t node)
{
	uint32_t n = td_tandem_cluster_gpus(&cluster, job, gpus);

	for (uint32_t k = 0; k < n; k++)
		if (gpus[k] / 2 == node)
			return true;
	return false;
}

TEST(jobs_of_a_node_that_goes_start_elsewhere)
{
	uint32_t node;

	begin();
	submit(0, 2, true, 0);
	step(0);
	node = is_on(0, 1);
	CHECK_EQ(td_tandem_cluster_node_down(&cluster, node, S), 0);
	step(S);
	CHECK_EQ(count, 2);
	CHECK_EQ(actions[0].verb, TD_TANDEM_PREEMPT);
	CHECK_EQ(actions[1].verb, TD_TANDEM_START);
	CHECK(is_on(0, !node) && !is_on(0, node));
}

TEST(nobody_starts_on_a_node_that_is_not_there)
{
	begin();
	CHECK_EQ(td_tandem_cluster_node_down(&cluster, 0, 0), 0);
	CHECK_EQ(td_tandem_cluster_node_down(&cluster, 0, 0), 0); /* once more changes nothing */
	for (uint32_t id = 0; id < 6; id++)
		submit(id, 1, id % 2, 0);
	submit(10, 3, false, 0);
	for (uint64_t s = 0; s < 3600; s += 30) {
		step(s * S);
		for (uint32_t id = 0; id < 11; id++)
			CHECK(!is_on(id, 0));
	}
	CHECK_EQ(td_tandem_cluster_node_up(&cluster, 0), 0);
	CHECK_EQ(td_tandem_cluster_node_up(&cluster, 0), 0);
	CHECK_EQ(cluster.to_hold, 4);
	for (uint32_t id = 0; id < 6; id++)
		td_tandem_cluster_finish(&cluster, id, 3600 * S);
	step(3600 * S);
	CHECK_EQ(td_tandem_cluster_gpus(&cluster, 10, gpus), 3);
	CHECK_EQ(td_tandem_cluster_node_down(&cluster, 2, 0), -EINVAL);
	CHECK_EQ(td_tandem_cluster_node_up(&cluster, 2), -EINVAL);
}

TEST(who_runs_already_stays_where_it_is_with_what_it_has_had)
{
	const struct td_tandem_request guest = request_of(1, false), holder = request_of(2, true);
	static const uint32_t one[] = {3}, two[] = {0, 1}, twice[] = {2, 2}, none[] = {9};

	begin();
	CHECK_EQ(td_tandem_cluster_adopt(&cluster, 0, &guest, one, 5000 * S, 0), 0);
	CHECK_EQ(td_tandem_cluster_adopt(&cluster, 1, &holder, two, 0, 0), 0);
	step(0);
	CHECK_EQ(count, 0);
	CHECK_EQ(td_tandem_cluster_gpus(&cluster, 0, gpus), 1);
	CHECK_EQ(gpus[0], 3);
	CHECK_EQ(cluster.las.jobs[0].level, 4); /* 600, 1200, 2400 and 4800 s are over */
	CHECK_EQ(cluster.used[0], 2);
	CHECK_EQ(td_tandem_cluster_adopt(&cluster, 2, &holder, two, 0, 0), -EBUSY);
	CHECK_EQ(td_tandem_cluster_adopt(&cluster, 2, &holder, twice, 0, 0), -EBUSY);
	CHECK_EQ(td_tandem_cluster_adopt(&cluster, 2, &guest, none, 0, 0), -EBUSY);
	CHECK_EQ(td_tandem_cluster_adopt(&cluster, 0, &guest, one, 0, 0), -EINVAL);
	CHECK_EQ(cluster.las.waiting, 0);
	td_tandem_cluster_finish(&cluster, 0, S);
	td_tandem_cluster_finish(&cluster, 1, S);
	CHECK_EQ(cluster.unheld, 4);
}
