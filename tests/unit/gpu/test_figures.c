/* The ring of what a GPU did in the last minutes. */
#include "test.h"

#include "gpu/figures.h"

#define MS 1000000ull

static struct td_figures figures;

static void add(uint64_t time_ns, uint32_t utilisation_ppm, uint32_t mhz, uint64_t throttle)
{
	td_figures_add(&figures, &(struct td_figure){time_ns, throttle, utilisation_ppm, mhz});
}

TEST(nothing_is_known_of_a_stretch_without_samples)
{
	figures = (struct td_figures){0};
	CHECK_EQ(td_figures_mean(&figures, 0).samples, 0);
	add(100 * MS, 500000, 1000, 0);
	CHECK_EQ(td_figures_mean(&figures, 100 * MS).samples, 0);
	CHECK_EQ(td_figures_mean(&figures, 100 * MS).least_mhz, 0);
}

TEST(a_mean_is_over_the_samples_of_its_stretch)
{
	struct td_figures_mean mean;

	figures = (struct td_figures){0};
	add(100 * MS, 1000000, 900, 8);
	add(200 * MS, 200000, 1000, 1);
	add(300 * MS, 400000, 1200, 32);
	mean = td_figures_mean(&figures, 100 * MS);
	CHECK_EQ(mean.samples, 2);
	CHECK_EQ(mean.utilisation_ppm, 300000);
	CHECK_EQ(mean.sm_mhz, 1100);
	CHECK_EQ(mean.least_mhz, 1000);
	CHECK_EQ(mean.throttle, 33);
}

TEST(the_oldest_goes_when_there_are_too_many)
{
	struct td_figures_mean mean;

	figures = (struct td_figures){0};
	add(1, 1000000, 1, 1);
	for (uint32_t i = 0; i < TD_FIGURES_KEPT; i++)
		add(2 + i, 500000, 1000, 0);
	mean = td_figures_mean(&figures, 0);
	CHECK_EQ(mean.samples, TD_FIGURES_KEPT);
	CHECK_EQ(mean.least_mhz, 1000);
	CHECK_EQ(mean.throttle, 0);
}

TEST(a_sample_of_an_earlier_time_is_left_out)
{
	figures = (struct td_figures){0};
	add(200 * MS, 0, 1000, 0);
	add(100 * MS, 1000000, 1000, 0);
	add(200 * MS, 1000000, 1000, 0);
	CHECK_EQ(td_figures_mean(&figures, 0).samples, 2);
}
