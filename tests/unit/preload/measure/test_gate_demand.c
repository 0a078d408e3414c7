/* A kernel's demand on a GPU, and the learning of its time: arithmetic. */
#include "test.h"

#include "preload/measure/demand.h"

#define PPM 1000000u

TEST(a_grid_smaller_than_the_gpu_is_active_on_as_many_sms_as_it_has_blocks)
{
	struct td_demand demand = td_demand_of(27, 8, 108);

	CHECK_EQ(demand.active_ppm, 250000);
	CHECK_EQ(demand.core_ppm, 27ull * PPM / (8 * 108));
}

TEST(a_grid_that_reaches_every_sm_is_active_on_all_of_them)
{
	CHECK_EQ(td_demand_of(108, 8, 108).active_ppm, PPM);
	CHECK_EQ(td_demand_of(108, 8, 108).core_ppm, PPM / 8);
	CHECK_EQ(td_demand_of(8 * 108, 8, 108).core_ppm, PPM);
}

TEST(the_last_wave_leaves_sms_idle)
{
	/* One full wave, then 54 blocks on 54 of 108 SMs. */
	struct td_demand demand = td_demand_of(8 * 108 + 54, 8, 108);

	CHECK_EQ(demand.active_ppm, 750000);
	CHECK_EQ(demand.core_ppm, PPM);
}

TEST(what_is_not_known_counts_as_the_whole_gpu)
{
	CHECK_EQ(td_demand_of(1, 0, 108).active_ppm, PPM);
	CHECK_EQ(td_demand_of(1, 8, 0).core_ppm, PPM);
	CHECK_EQ(td_demand_of(0, 8, 108).active_ppm, PPM);
	CHECK_EQ(td_demand_of(UINT64_MAX, UINT32_MAX, UINT32_MAX).core_ppm, PPM);
}

TEST(every_part_of_a_shape_makes_another_key)
{
	struct td_shape shape = {(void *)16, {1, 2, 3}, {4, 5, 6}, 7}, other;
	uint64_t key = td_shape_key((void *)8, &shape);

	CHECK_EQ(td_shape_key((void *)8, &shape), key);
	CHECK(td_shape_key((void *)24, &shape) != key);
	for (unsigned i = 0; i < 3; i++) {
		other = shape;
		other.grid[i]++;
		CHECK(td_shape_key((void *)8, &other) != key);
		other = shape;
		other.block[i]++;
		CHECK(td_shape_key((void *)8, &other) != key);
	}
	other = shape;
	other.shared_bytes++;
	CHECK(td_shape_key((void *)8, &other) != key);
	other = shape;
	other.function = (void *)32;
	CHECK(td_shape_key((void *)8, &other) != key);
}

TEST(the_number_of_blocks_saturates)
{
	struct td_shape shape = {NULL, {1u << 31, 65535, 65535}, {1, 1, 1}, 0};

	CHECK_EQ(td_shape_blocks(&shape), (1ull << 31) * 65535 * 65535);
	shape.grid[1] = shape.grid[2] = UINT32_MAX;
	CHECK_EQ(td_shape_blocks(&shape), UINT64_MAX);
}

static uint64_t known(uint64_t ns, enum td_sample_kind kind)
{
	uint64_t solo = 0;

	for (unsigned i = 0; i < TD_SOLO_FIRST; i++) {
		CHECK(!td_solo_is_known(solo));
		solo = td_solo_learn(solo, ns, kind);
	}
	CHECK(td_solo_is_known(solo));
	CHECK_EQ(td_solo_ns(solo), ns);
	return solo;
}

TEST(of_the_first_intervals_the_shortest_counts)
{
	static const uint64_t samples[] = {9000, 2200, 2000, 7000};
	uint64_t solo = 0;

	for (unsigned i = 0; i < 4; i++)
		solo = td_solo_learn(solo, samples[i], TD_SAMPLE_EXACT);
	CHECK(td_solo_is_known(solo));
	CHECK_EQ(td_solo_ns(solo), 2000);
}

/* A thread that was stopped behind its launch takes the kernel's time for its own. */
TEST(a_gap_that_was_too_long_counts_only_among_its_like)
{
	uint64_t solo = td_solo_learn(0, 1, TD_SAMPLE_DRY);

	solo = td_solo_learn(solo, 2200, TD_SAMPLE_EXACT);
	solo = td_solo_learn(solo, 2, TD_SAMPLE_DRY);
	solo = td_solo_learn(solo, 2000, TD_SAMPLE_EXACT);
	CHECK(td_solo_is_known(solo));
	CHECK_EQ(td_solo_ns(solo), 2000);
	solo = td_solo_learn(0, 1, TD_SAMPLE_DRY);
	CHECK_EQ(td_solo_ns(td_solo_learn(solo, 9000, TD_SAMPLE_SHARED)), 9000);
	CHECK_EQ(td_solo_ns(td_solo_learn(solo, 9000, TD_SAMPLE_DRY)), 1);
}

TEST(an_exact_interval_replaces_what_was_only_likely)
{
	uint64_t solo = known(5000, TD_SAMPLE_DRY);

	CHECK_EQ(td_solo_ns(td_solo_learn(solo, 3000, TD_SAMPLE_EXACT)), 3000);
	CHECK_EQ(td_solo_ns(td_solo_learn(solo, 9000, TD_SAMPLE_EXACT)), 9000);
}

TEST(exact_intervals_are_followed_up_and_down_alike)
{
	uint64_t solo = known(4000, TD_SAMPLE_EXACT);

	solo = td_solo_learn(solo, 8000, TD_SAMPLE_EXACT);
	CHECK_EQ(td_solo_ns(solo), 5000);
	solo = td_solo_learn(solo, 1000, TD_SAMPLE_EXACT);
	CHECK_EQ(td_solo_ns(solo), 4000);
}

TEST(a_delay_moves_an_exact_time_by_a_bounded_part)
{
	uint64_t solo = known(4000, TD_SAMPLE_EXACT);

	CHECK_EQ(td_solo_clip(solo, 1000000), 12000);
	CHECK_EQ(td_solo_clip(solo, 11000), 11000);
	CHECK_EQ(td_solo_ns(td_solo_learn(solo, 1000000, TD_SAMPLE_EXACT)), 6000);
}

TEST(an_exact_time_outlasts_a_few_dry_streams_but_not_many)
{
	uint64_t solo = known(4000, TD_SAMPLE_EXACT);

	for (unsigned i = 0; i < 8; i++)
		solo = td_solo_learn(solo, 9000, TD_SAMPLE_DRY);
	CHECK_EQ(td_solo_ns(solo), 4000);
	for (unsigned i = 0; i < 64; i++)
		solo = td_solo_learn(solo, 9000, TD_SAMPLE_DRY);
	CHECK(td_solo_ns(solo) > 8900 && td_solo_ns(solo) <= 9000);
}

TEST(beside_other_programs_a_time_that_is_known_does_not_grow)
{
	uint64_t solo = known(6400, TD_SAMPLE_EXACT);

	solo = td_solo_learn(solo, 1000000, TD_SAMPLE_SHARED);
	CHECK_EQ(td_solo_ns(solo), 6400);
	solo = td_solo_learn(solo, 2400, TD_SAMPLE_SHARED);
	CHECK_EQ(td_solo_ns(solo), 5400);
}

TEST(beside_other_programs_a_time_that_is_likely_grows_slowly_and_falls_at_once)
{
	uint64_t solo = known(6400, TD_SAMPLE_SHARED);

	solo = td_solo_learn(solo, 1000000, TD_SAMPLE_SHARED);
	CHECK_EQ(td_solo_ns(solo), 6500);
	solo = td_solo_learn(solo, 2500, TD_SAMPLE_SHARED);
	CHECK_EQ(td_solo_ns(solo), 2500);
}

TEST(no_time_is_ever_learnt_as_none)
{
	CHECK_EQ(td_solo_ns(td_solo_learn(0, 0, TD_SAMPLE_DRY)), 1);
	CHECK(td_solo_ns(td_solo_learn(0, UINT64_MAX, TD_SAMPLE_EXACT)) > 0);
}

TEST(long_kernels_are_all_timed_and_short_ones_rarely)
{
	uint64_t state = 1;
	unsigned drawn = 0;

	CHECK_EQ(td_sample_chance(10000000), UINT32_MAX);
	for (unsigned i = 0; i < 1000000; i++) {
		state = td_sample_draw(state);
		drawn += (uint32_t)(state >> 32) <= td_sample_chance(0);
	}
	CHECK(drawn > 900 && drawn < 1100);
}
