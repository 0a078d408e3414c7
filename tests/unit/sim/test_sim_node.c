/* A node under the daemon's policies in virtual time, against sums that can be done by hand. */
#include "test.h"

#include <errno.h>
#include <math.h>

#include "base/time.h"
#include "sim/engine/node.h"

static struct td_node_sim sim;
static struct td_node_job jobs[2];
static struct td_node_result result;

static void begin(const char *policy, double quantum_s, double gib)
{
	sim = (struct td_node_sim){.policy = td_policy_find(policy),
		.options = {.enabled = quantum_s > 0,
			.quantum_ns = (uint64_t)(quantum_s * 1e9),
			.quantum_min_ns = TD_NS_PER_S,
			.swap_share_ppm = TD_PPM / 10},
		.capacity_bytes = 16ull << 30,
		.handover_ns = 2 * TD_NS_PER_S,
		.overlap = 1.25,
		.thrash = 8,
		.managed_cost = 1,
		.pages_itself = true};
	for (int i = 0; i < 2; i++)
		jobs[i] = (struct td_node_job){
			.host_s = 100, .gpu_s = 300, .bytes = (uint64_t)(gib * 0x1p30)};
	CHECK(sim.policy);
}

static bool near(double a, double b, double within)
{
	return fabs(a - b) <= within;
}

TEST(one_job_takes_its_own_time)
{
	begin("nvshare", 30, 12);
	CHECK_EQ(td_node_simulate(&sim, jobs, 1, &result), 0);
	CHECK(!result.stuck && near(result.end_s, 400, 0.1));
}

TEST(with_the_lock_off_two_that_fit_overlap_and_two_that_do_not_thrash)
{
	begin("nvshare", 0, 7);
	CHECK_EQ(td_node_simulate(&sim, jobs, 2, &result), 0);
	CHECK(near(result.end_s, 100 + 600 / 1.25, 0.1));
	begin("nvshare", 0, 12);
	CHECK_EQ(td_node_simulate(&sim, jobs, 2, &result), 0);
	CHECK(near(result.end_s, 100 + 600 * 8, 0.1));
}

TEST(turns_cost_a_hand_over_each)
{
	begin("nvshare", 30, 12);
	CHECK_EQ(td_node_simulate(&sim, jobs, 2, &result), 0);
	CHECK(!result.stuck);
	/* About 21 turns of 30 s for 600 s of work and 2 s lost in each. */
	CHECK(result.handovers >= 18 && result.handovers <= 24);
	CHECK(near(result.end_s, 100 + 600 + 2. * result.handovers, 3));
}

TEST(two_that_fit_take_turns_for_nothing_under_nvshare_and_overlap_under_tandem)
{
	begin("nvshare", 30, 7);
	CHECK_EQ(td_node_simulate(&sim, jobs, 2, &result), 0);
	CHECK(near(result.end_s, 700, 1));
	begin("tandem", 30, 7);
	CHECK_EQ(td_node_simulate(&sim, jobs, 2, &result), 0);
	CHECK(near(result.end_s, 100 + 600 / 1.25, 0.1));
}

TEST(under_tandem_swapping_costs_a_tenth_of_the_time)
{
	begin("tandem", 30, 12);
	sim.pages_itself = false;
	CHECK_EQ(td_node_simulate(&sim, jobs, 2, &result), 0);
	CHECK(!result.stuck);
	CHECK(2. * result.handovers <= 0.12 * (result.end_s - 100));
	CHECK(near(result.end_s, 100 + 600 + 2. * result.handovers, 3));
}

/* Turns of 9, then longer and longer ones up to 99 hand-overs' time: nine or so instead of 33. */
TEST(under_tandem_turns_grow_until_swapping_costs_a_hundredth)
{
	begin("tandem", 30, 12);
	sim.pages_itself = false;
	sim.options.swap_share_long_ppm = TD_PPM / 100;
	sim.options.quantum_long_ns = 300 * TD_NS_PER_S;
	CHECK_EQ(td_node_simulate(&sim, jobs, 2, &result), 0);
	CHECK(!result.stuck && result.handovers >= 3 && result.handovers <= 12);
	CHECK(near(result.end_s, 100 + 600 + 2. * result.handovers, 3));
	for (int i = 0; i < 2; i++)
		jobs[i].gpu_s = 10000;
	CHECK_EQ(td_node_simulate(&sim, jobs, 2, &result), 0);
	CHECK(2. * result.handovers <= 0.0125 * result.end_s);
}

TEST(a_quantum_shorter_than_the_paging_in_is_thrashing)
{
	begin("nvshare", 1, 12);
	CHECK_EQ(td_node_simulate(&sim, jobs, 2, &result), 0);
	CHECK(!result.stuck && result.end_s > 100 + 600 * 6);
}

TEST(too_many_jobs_are_refused)
{
	begin("nvshare", 30, 12);
	CHECK_EQ(td_node_simulate(&sim, jobs, TD_NODE_JOBS_MAX + 1, &result), -EINVAL);
	CHECK_EQ(td_node_simulate(&sim, jobs, 0, &result), -EINVAL);
}
