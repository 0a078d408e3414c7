/* Queues by attained service: order, levels, ageing, victims. */
#include "test.h"

#include <stdlib.h>

#include "policy/cluster/las.h"

#define S    1000000000ull
#define JOBS 64u

static struct td_las las;
static void *memory;
static const struct td_las_params params = {
	.quantum_ns = 100 * S, .factor = 2, .age = 10, .age_max_ns = 2000 * S};

static void begin(const struct td_las_params *with)
{
	free(memory);
	memory = aligned_alloc(64, (td_las_bytes(JOBS) + 63) & ~(size_t)63);
	td_las_init(&las, memory, with, 2, JOBS);
}

TEST(jobs_of_a_level_go_in_the_order_of_their_arrival)
{
	begin(&params);
	td_las_submit(&las, 5, 0, 1, 0);
	td_las_submit(&las, 3, 0, 1, S);
	CHECK_EQ(td_las_first(&las, 0), 5);
	CHECK_EQ(td_las_next(&las, 5), 3);
	CHECK_EQ(td_las_next(&las, 3), TD_LAS_NONE);
	CHECK_EQ(td_las_first(&las, 1), TD_LAS_NONE);
}

TEST(a_job_goes_down_by_its_gpu_time)
{
	begin(&params);
	td_las_submit(&las, 0, 0, 1, 0);
	td_las_submit(&las, 1, 0, 4, 0);
	td_las_start(&las, 0, 0);
	td_las_start(&las, 1, 0);
	td_las_advance(&las, 30 * S);
	CHECK_EQ(las.jobs[0].level, 0);
	CHECK_EQ(las.jobs[1].level, 1); /* 120 s of GPU time */
	td_las_advance(&las, 101 * S);
	CHECK_EQ(las.jobs[0].level, 1);
	CHECK_EQ(las.jobs[1].level, 3); /* 404 s */
}

TEST(a_late_look_goes_down_several_levels)
{
	begin(&params);
	td_las_submit(&las, 0, 0, 1, 0);
	td_las_start(&las, 0, 0);
	td_las_advance(&las, 10000 * S);
	CHECK_EQ(las.jobs[0].level, 7);
}

TEST(who_is_stopped_waits_behind_its_level_and_before_deeper_ones)
{
	begin(&params);
	for (uint32_t id = 0; id < 3; id++) {
		td_las_submit(&las, id, 0, 1, 0);
		td_las_start(&las, id, 0);
	}
	td_las_stop(&las, 2, 50 * S);
	td_las_advance(&las, 150 * S);
	td_las_stop(&las, 0, 150 * S);
	td_las_submit(&las, 4, 0, 1, 160 * S);
	CHECK_EQ(td_las_first(&las, 0), 2);
	CHECK_EQ(td_las_next(&las, 2), 4);
	CHECK_EQ(td_las_next(&las, 4), 0);
	CHECK(td_las_before(&las, 2, 4) && td_las_before(&las, 4, 0));
}

TEST(waiting_counts_as_no_service)
{
	begin(&params);
	td_las_submit(&las, 0, 0, 1, 0);
	td_las_advance(&las, 90 * S);
	td_las_start(&las, 0, 90 * S);
	td_las_stop(&las, 0, 150 * S);
	td_las_start(&las, 0, 300 * S);
	td_las_advance(&las, 330 * S);
	CHECK_EQ(las.jobs[0].level, 0);
	td_las_advance(&las, 341 * S);
	CHECK_EQ(las.jobs[0].level, 1);
}

/* At level 1 the patience is 10 x 100 s x 2, which is the most, too. */
TEST(who_has_waited_for_long_begins_again_before_all_others)
{
	begin(&params);
	td_las_submit(&las, 0, 0, 1, 0);
	td_las_start(&las, 0, 0);
	td_las_advance(&las, 150 * S);
	td_las_stop(&las, 0, 150 * S);
	td_las_submit(&las, 1, 0, 1, 200 * S);
	td_las_advance(&las, 2149 * S);
	CHECK_EQ(td_las_first(&las, 0), 1);
	td_las_advance(&las, 2150 * S);
	CHECK_EQ(td_las_first(&las, 0), 0);
	CHECK_EQ(td_las_next(&las, 0), 1);
	CHECK_EQ(las.jobs[0].level, 0);
}

TEST(nobody_ages_where_age_is_0)
{
	struct td_las_params never = params;

	never.age = 0;
	begin(&never);
	td_las_submit(&las, 0, 0, 1, 0);
	td_las_start(&las, 0, 0);
	td_las_advance(&las, 150 * S);
	td_las_stop(&las, 0, 150 * S);
	td_las_advance(&las, 1000000 * S);
	CHECK_EQ(las.jobs[0].level, 1);
}

static void check_lists(void)
{
	uint32_t waiting = 0, running = 0;

	for (uint32_t q = 0; q < las.queue_count; q++)
		for (uint32_t k = 0; k < TD_LAS_LEVELS; k++)
			for (int runs = 0; runs < 2; runs++) {
				uint32_t id = runs ? las.queues[q].running[k].first
						   : las.queues[q].waiting[k].first;

				for (; id != TD_LAS_NONE; id = las.jobs[id].next) {
					CHECK(las.jobs[id].there && las.jobs[id].runs == runs);
					CHECK_EQ(las.jobs[id].level, k);
					CHECK_EQ(las.jobs[id].queue, q);
					CHECK(!runs || las.heap[las.jobs[id].at] == id);
					*(runs ? &running : &waiting) += 1;
				}
			}
	CHECK_EQ(waiting, las.waiting);
	CHECK_EQ(running, las.running);
	for (uint32_t at = 1; at < las.running; at++)
		CHECK(las.jobs[las.heap[(at - 1) / 2]].falls_ns <= las.jobs[las.heap[at]].falls_ns);
}

TEST(random_events_keep_every_job_in_its_list)
{
	uint64_t seed = 9, now = 0;

	begin(&params);
	for (int event = 0; event < 20000; event++) {
		uint32_t id, what;

		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		id = (uint32_t)(seed >> 40) % JOBS;
		what = (uint32_t)(seed >> 33) % 5;
		now += (seed >> 50) % 100 * S;
		if (!las.jobs[id].there)
			td_las_submit(&las, id, id % 2, 1 + id % 7, now);
		else if (what == 0)
			td_las_remove(&las, id);
		else if (what < 3 && las.jobs[id].runs)
			td_las_stop(&las, id, now);
		else if (!las.jobs[id].runs)
			td_las_start(&las, id, now);
		td_las_advance(&las, now);
		check_lists();
	}
	for (uint32_t id = 0; id < JOBS; id++)
		td_las_remove(&las, id);
	CHECK_EQ(las.waiting + las.running, 0);
}
