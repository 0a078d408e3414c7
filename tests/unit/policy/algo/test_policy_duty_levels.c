/* Steps of several lengths in turn: duty_units.h. */
#include "test.h"

#include "unit/policy/algo/duty_world.h"

#define PERIOD 50

struct levels {
	double late, given; /* parts of the steps; mean duty */
	uint32_t cuts;      /* within a level: from one step to the next of the same length */
	double least;       /* the duty at a period's end, of those after the settling */
};

/* A job that has one length for a period, then the other. */
static struct levels alternate(const struct job *kinds, unsigned count, int settle, int periods)
{
	struct levels levels = {.least = 1};
	struct job jobs[4];

	memcpy(jobs, kinds, count * sizeof(*jobs));
	begin(10000);
	for (int p = 0; p < settle + periods; p++) {
		for (int i = 0; i < PERIOD; i++) {
			struct seen seen = live(&jobs[p % (int)count], 0, 1, 10000);

			if (p < settle)
				continue;
			levels.late += (double)seen.late / periods / PERIOD;
			levels.given += out.duty_ppm / 1e6 / periods / PERIOD;
			levels.cuts += i && seen.cuts;
		}
		if (p >= settle && out.duty_ppm / 1e6 < levels.least)
			levels.least = out.duty_ppm / 1e6;
	}
	return levels;
}

/*
 * Each length bears another duty: 0.35 and 0.15 by its slack, of which half is left. The longer one
 * has no more than the shorter, because each first step of the shorter is made with the longer
 * one's duty.
 */
TEST(each_of_two_lengths_has_a_duty_of_its_own_that_the_other_does_not_cost_it)
{
	double mean = 0;

	for (uint64_t s = 1; s <= 20; s++) {
		const struct job kinds[] = {{400, 0.3, 0.2, 0.002, s}, {260, 0.1, 0.2, 0.002, s}};
		struct levels l = alternate(kinds, 2, 40, 60);

		mean += l.given / 20;
		if (l.late > 0.01 || l.given < 0.05 || l.cuts > 20)
			test_fail(__FILE__, __LINE__,
				"seed %d: %.2f %% late, duty %.3f, at least %.3f, %u cuts", (int)s,
				100 * l.late, l.given, l.least, l.cuts);
	}
	printf("# mean duty %.3f\n", mean);
	CHECK(mean > 0.09);
}

TEST(so_has_each_of_four)
{
	for (uint64_t s = 1; s <= 10; s++) {
		const struct job kinds[] = {{100, 0.3, 0.2, 0.001, s}, {130, 0.3, 0.2, 0.001, s},
			{300, 0.3, 0.2, 0.001, s}, {900, 0.3, 0.2, 0.001, s}};
		struct levels l = alternate(kinds, 4, 80, 80);

		if (l.late > 0.01 || l.given < 0.2 || l.cuts > 40)
			test_fail(__FILE__, __LINE__, "seed %d: %.2f %% late, duty %.3f, %u cuts",
				(int)s, 100 * l.late, l.given, l.cuts);
	}
}

/*
 * A step that besteffort work has made as long as those of a known level does not belong to it;
 * otherwise the harm would be borne for ever.
 */
TEST(besteffort_work_that_makes_steps_as_long_as_another_level_is_found_out)
{
	struct job job = {260, 0.3, 0.2, 0, 3}, long_job = job;

	long_job.alone_ms = 400;
	begin(10000);
	(void)live(&job, 400, 1, 10000);
	(void)live(&long_job, 400, 1, 10000);
	(void)live(&job, 400, 1, 10000);
	uint32_t reached = out.duty_ppm;

	CHECK(reached > 200000);
	/* From now on the duty costs a half of a step: 260 becomes 390 and more. */
	job.bears = 0;
	job.slows = 0.54 / (reached / 1e6);
	uint32_t late = 0;

	for (int i = 0; i < 400; i++)
		late += live_through(&job) > 263 * MS;
	printf("# %u of 400 late, duty %.4f\n", late, out.duty_ppm / 1e6);
	CHECK(late <= 12);
}
