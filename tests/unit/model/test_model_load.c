/* The figures that NVML would show, on a fake clock. */
#include "test.h"

#include "base/time.h"
#include "model/gpu_spec.h"
#include "model/load.h"

#define MS TD_NS_PER_MS

/* Idle is 30 + 50 * 0.1 = 35 degrees, full load 80. */
static const struct td_gpu_spec spec = {
	.clock_mhz = 2000,
	.base_clock_mhz = 1000,
	.idle_clock_mhz = 300,
	.idle_power_mw = 10000,
	.max_power_mw = 100000,
};

TEST(an_idle_gpu_shows_idle_figures)
{
	struct td_load load;

	td_load_init(&load, &spec, 100 * MS, 0, 5000 * MS);
	td_load_update(&load, 0, 6000 * MS);
	CHECK_EQ(td_load_utilisation_percent(&load), 0);
	CHECK_EQ(td_load_power_mw(&load), 10000);
	CHECK_EQ(td_load_temperature_celsius(&load), 35);
	CHECK_EQ(td_load_clock_mhz(&load), 300);
}

TEST(utilisation_is_that_of_the_last_whole_window)
{
	struct td_load load;

	td_load_init(&load, &spec, 100 * MS, 0, 0);
	td_load_update(&load, 25 * MS, 50 * MS);
	CHECK_EQ(td_load_utilisation_percent(&load), 0); /* the window is not over */
	td_load_update(&load, 75 * MS, 100 * MS);
	CHECK_EQ(td_load_utilisation_percent(&load), 75);
	CHECK_EQ(td_load_power_mw(&load), 77500);
	td_load_update(&load, 75 * MS, 199 * MS);
	CHECK_EQ(td_load_utilisation_percent(&load), 75);
	td_load_update(&load, 75 * MS, 200 * MS);
	CHECK_EQ(td_load_utilisation_percent(&load), 0);
}

TEST(a_late_update_is_spread_over_the_windows_it_spans)
{
	struct td_load load;

	td_load_init(&load, &spec, 100 * MS, 0, 0);
	td_load_update(&load, 60 * MS, 60 * MS);
	td_load_update(&load, 90 * MS, 120 * MS); /* half of 60 ms: 20 fall into the first window */
	CHECK_EQ(td_load_utilisation_percent(&load), 80);
	td_load_update(&load, 310 * MS, 1000 * MS); /* a quarter, over many windows */
	CHECK_EQ(td_load_utilisation_percent(&load), 25);
}

TEST(temperature_follows_load_with_its_time_constant)
{
	struct td_load load;

	td_load_init(&load, &spec, 100 * MS, 0, 0);
	td_load_update(&load, 30000 * MS, 30000 * MS);
	CHECK_EQ(td_load_temperature_celsius(&load), 63); /* 80 - 45/e = 63.4 */
	td_load_update(&load, 600000 * MS, 600000 * MS);
	CHECK_EQ(td_load_temperature_celsius(&load), 80);
	td_load_update(&load, 600000 * MS, 1200000 * MS);
	CHECK_EQ(td_load_temperature_celsius(&load), 35);
}

TEST(how_often_it_is_updated_does_not_change_the_temperature)
{
	struct td_load often, rarely;

	td_load_init(&often, &spec, 100 * MS, 0, 0);
	td_load_init(&rarely, &spec, 100 * MS, 0, 0);
	for (unsigned i = 1; i <= 1000; i++)
		td_load_update(&often, i * 5 * MS, i * 10 * MS);
	td_load_update(&rarely, 5000 * MS, 10000 * MS);
	CHECK(often.temperature - rarely.temperature < 1e-9);
	CHECK(rarely.temperature - often.temperature < 1e-9);
}

TEST(clock_is_full_under_load_and_comes_down_in_heat)
{
	struct td_load load;

	td_load_init(&load, &spec, 100 * MS, 0, 0);
	td_load_update(&load, 100 * MS, 100 * MS);
	CHECK_EQ(td_load_clock_mhz(&load), 2000);
	load.temperature = 84; /* half-way from slow-down to base */
	CHECK_EQ(td_load_clock_mhz(&load), 1500);
	load.temperature = 99;
	CHECK_EQ(td_load_clock_mhz(&load), 1000);
}

TEST(time_that_does_not_move_changes_nothing)
{
	struct td_load load;

	td_load_init(&load, &spec, 100 * MS, 0, 0);
	td_load_update(&load, 0, 0);
	td_load_update(&load, 100 * MS, 100 * MS);
	td_load_update(&load, 100 * MS, 100 * MS);
	td_load_update(&load, 100 * MS, 50 * MS);
	CHECK_EQ(td_load_utilisation_percent(&load), 100);
}
