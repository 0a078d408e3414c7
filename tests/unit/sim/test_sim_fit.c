/* The fit finds the numbers behind the observations, and unobserved numbers stay at their prior. */
#include "test.h"

#include <errno.h>
#include <math.h>

#include "sim/base/fit.h"
#include "sim/base/random.h"

#define JOBS 8u

static struct td_numbers truth[JOBS], numbers[JOBS];
static struct td_observation observations[JOBS * JOBS];

static uint32_t observe(uint64_t seed, double noise, bool (*use)(uint32_t, uint32_t))
{
	uint32_t count = 0;

	for (uint32_t j = 0; j < JOBS; j++) {
		truth[j] = (struct td_numbers){0.2 + td_random_unit(&seed),
			0.2 + td_random_unit(&seed), 0.1 + 0.4 * td_random_unit(&seed)};
		numbers[j] = (struct td_numbers){0.5, 0.5, 0.2};
	}
	for (uint32_t v = 0; v < JOBS; v++)
		for (uint32_t a = 0; a < JOBS; a++)
			if (use(v, a))
				observations[count++] = (struct td_observation){v, a,
					td_pair_speed(&truth[v], &truth[a]) *
						exp(noise * td_random_normal(&seed))};
	return count;
}

static bool all(uint32_t v, uint32_t a)
{
	(void)v;
	(void)a;
	return true;
}

/*
 * Returns half of them, without a pattern: if even jobs met only odd ones, g and p would fall
 * apart.
 */
static bool half(uint32_t v, uint32_t a)
{
	uint64_t seed = v * JOBS + a;

	return td_random_bits(&seed) % 2;
}

/* Job 0 has been seen beside jobs 1 and 2 only, in both directions. */
static bool probed(uint32_t v, uint32_t a)
{
	return (v && a) || v + a == 1 || v + a == 2;
}

static double worst_error(void)
{
	double worst = 0;

	for (uint32_t v = 0; v < JOBS; v++)
		for (uint32_t a = 0; a < JOBS; a++)
			worst = fmax(worst, fabs(td_pair_speed(&numbers[v], &numbers[a]) /
							    td_pair_speed(&truth[v], &truth[a]) -
						    1));
	return worst;
}

TEST(pairs_that_the_model_made_are_fitted)
{
	uint32_t count = observe(1, 0, all);

	CHECK_EQ(td_fit_pairs(observations, count, JOBS, NULL, NULL, &td_fit_default, numbers), 0);
	CHECK(worst_error() < 0.02);
}

TEST(half_of_the_pairs_predict_the_others)
{
	uint32_t count = observe(2, 0, half);

	CHECK_EQ(td_fit_pairs(observations, count, JOBS, NULL, NULL, &td_fit_default, numbers), 0);
	CHECK(worst_error() < 0.05);
}

TEST(an_outlier_does_not_spoil_the_rest)
{
	uint32_t count = observe(3, 0, all);

	observations[13].speed /= 3;
	CHECK_EQ(td_fit_pairs(observations, count, JOBS, NULL, NULL, &td_fit_default, numbers), 0);
	CHECK(worst_error() < 0.08);
}

TEST(two_probes_place_a_new_job_and_leave_the_others)
{
	bool free_jobs[JOBS] = {true};
	uint32_t count = observe(4, 0, probed);

	memcpy(numbers + 1, truth + 1, sizeof(truth) - sizeof(truth[0]));
	CHECK_EQ(td_fit_pairs(observations, count, JOBS, free_jobs, NULL, &td_fit_default, numbers),
		0);
	CHECK(worst_error() < 0.1);
	CHECK(!memcmp(numbers + 1, truth + 1, sizeof(truth) - sizeof(truth[0])));
}

TEST(a_job_that_is_in_no_pair_stays_at_its_prior)
{
	uint32_t count = observe(5, 0, all), kept = 0;

	for (uint32_t i = 0; i < count; i++)
		if (observations[i].victim != 7 && observations[i].other != 7)
			observations[kept++] = observations[i];
	CHECK_EQ(td_fit_pairs(observations, kept, JOBS, NULL, NULL, &td_fit_default, numbers), 0);
	CHECK(fabs(numbers[7].g - 0.5) < 1e-6 && fabs(numbers[7].p - 0.5) < 1e-6);
}

TEST(what_cannot_be_fitted_is_refused)
{
	uint32_t count = observe(6, 0, all);

	observations[3].speed = 0;
	CHECK_EQ(td_fit_pairs(observations, count, JOBS, NULL, NULL, &td_fit_default, numbers),
		-EINVAL);
	observations[3] = (struct td_observation){JOBS, 0, 0.5};
	CHECK_EQ(td_fit_pairs(observations, count, JOBS, NULL, NULL, &td_fit_default, numbers),
		-EINVAL);
	observations[3] = (struct td_observation){1, 0, 0.5};
	numbers[2].p = 0;
	CHECK_EQ(td_fit_pairs(observations, count, JOBS, NULL, NULL, &td_fit_default, numbers),
		-EINVAL);
}
