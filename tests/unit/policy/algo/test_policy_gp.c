/*
 * The Gaussian process against closed forms and a dense solve, and Mudi's search on bumpy
 * objectives.
 */
#include "test.h"

#include <errno.h>
#include <math.h>

#include "policy/algo/fit/batch_tuner.h"
#include "policy/algo/fit/gp.h"
#include "policy_random.h"

static int near(double a, double b, double within)
{
	return fabs(a - b) <= within;
}

static void add(struct td_gp *gp, double x, double y)
{
	const double point[TD_GP_DIMENSIONS] = {x};

	CHECK_EQ(td_gp_add(gp, point, y), 0);
}

static void predict(const struct td_gp *gp, double x, double *mean, double *variance)
{
	const double point[TD_GP_DIMENSIONS] = {x};

	td_gp_predict(gp, point, mean, variance);
}

TEST(two_samples_give_the_closed_form)
{
	struct td_gp gp = {.kernel = {.length = 1, .noise = 0.1}};
	double mean, variance, c = exp(-0.5), k = exp(-0.125);

	add(&gp, 0, 1);
	add(&gp, 1, 3);
	/* Targets -1 and 1 after scaling: K = [1.1 c; c 1.1], halfway k = (k, k): mean 2. */
	predict(&gp, 0.5, &mean, &variance);
	CHECK(near(mean, 2, 1e-12));
	/* 1 - k' K^-1 k = 1 - 2 k^2 / (1.1 + c) */
	CHECK(near(variance, 1 - 2 * k * k / (1.1 + c), 1e-12));
	predict(&gp, 0, &mean, &variance);
	/* k = (1, c), alpha = (-1, 1) / (1.1 - c) */
	CHECK(near(mean, 2 + (c - 1) / (1.1 - c), 1e-12));
}

/* Gauss elimination on the dense matrix. */
static void dense(const double *x, const double *y, int n, double length, double noise, double at,
	double *mean, double *variance)
{
	double a[40][42], my = 0, sd = 0;

	for (int i = 0; i < n; i++)
		my += y[i] / n;
	for (int i = 0; i < n; i++)
		sd += (y[i] - my) * (y[i] - my) / n;
	sd = sqrt(sd);
	for (int i = 0; i < n; i++) {
		for (int j = 0; j < n; j++)
			a[i][j] = exp(-pow(x[i] - x[j], 2) / 2 / length / length) +
				  (i == j ? noise : 0);
		a[i][n] = (y[i] - my) / sd;
		a[i][n + 1] = exp(-pow(x[i] - at, 2) / 2 / length / length);
	}
	for (int p = 0; p < n; p++)
		for (int i = 0; i < n; i++)
			for (int j = n + 1; i != p && j >= p; j--)
				a[i][j] -= a[p][j] * a[i][p] / a[p][p];
	*mean = my;
	*variance = 1;
	for (int i = 0; i < n; i++) {
		double k = exp(-pow(x[i] - at, 2) / 2 / length / length);

		*mean += sd * k * a[i][n] / a[i][i];
		*variance -= k * a[i][n + 1] / a[i][i];
	}
	*variance *= sd * sd;
}

TEST(the_incremental_factor_agrees_with_a_dense_solve)
{
	uint64_t seed = 41;

	for (int run = 0; run < 50; run++) {
		struct td_gp gp = {.kernel = {.length = 0.3 + random_unit(&seed), .noise = 1e-2}};
		double x[40], y[40];
		int n = 2 + (int)random_below(&seed, 39);

		for (int i = 0; i < n; i++) {
			x[i] = 10 * random_unit(&seed);
			y[i] = 5 + 100 * random_unit(&seed);
			add(&gp, x[i], y[i]);
		}
		for (int i = 0; i < 20; i++) {
			double at = 12 * random_unit(&seed) - 1, m, v, want_m, want_v;

			predict(&gp, at, &m, &v);
			dense(x, y, n, gp.kernel.length, 1e-2, at, &want_m, &want_v);
			CHECK(near(m, want_m, 1e-6) && near(v, want_v, 1e-6));
		}
	}
}

TEST(the_mean_at_a_sample_is_its_target_and_the_variance_only_falls)
{
	struct td_gp gp = {.kernel = {.length = 1, .noise = 1e-8}};
	double before = 1, mean, variance;

	for (int i = 0; i < 6; i++) {
		add(&gp, i * 1.5, i % 2 ? 4 : 7);
		predict(&gp, 3.2, &mean, &variance);
		CHECK(variance / (gp.deviation * gp.deviation) <= before + 1e-9 && variance >= 0);
		before = variance / (gp.deviation * gp.deviation);
	}
	for (int i = 0; i < 6; i++) {
		predict(&gp, i * 1.5, &mean, &variance);
		CHECK(near(mean, i % 2 ? 4 : 7, 1e-4) && variance < 1e-4);
	}
}

TEST(what_is_not_finite_or_does_not_fit_is_refused)
{
	struct td_gp gp = {.kernel = {.length = 1, .noise = 1e-3}};
	const double bad[TD_GP_DIMENSIONS] = {NAN, 0}, good[TD_GP_DIMENSIONS] = {1, 0};

	CHECK_EQ(td_gp_add(&gp, bad, 1), -EINVAL);
	CHECK_EQ(td_gp_add(&gp, good, INFINITY), -EINVAL);
	for (int i = 0; i < TD_GP_SAMPLES_MAX; i++)
		CHECK_EQ(td_gp_add(&gp, good, 1), 0); /* all at one place: the noise carries it */
	CHECK_EQ(td_gp_add(&gp, good, 1), -ENOSPC);
}

TEST(the_length_of_the_greatest_likelihood_is_taken)
{
	const double lengths[] = {0.05, 1, 20};
	struct td_gp gp = {.kernel = {.length = 20, .noise = 1e-3}};

	for (int i = 0; i < 30; i++)
		add(&gp, i * 0.25, sin(i * 0.25));
	td_gp_choose_length(&gp, lengths, 3);
	CHECK(near(gp.kernel.length, 1, 0));
}

TEST(beta_is_the_papers_and_never_negative)
{
	CHECK(near(td_gp_beta(497, 1), 2 * log(497), 1e-12));
	CHECK(near(td_gp_beta(497, 10), 2 * log(4.97), 1e-12));
	CHECK(near(td_gp_beta(497, 23), 0, 0));
	CHECK(near(td_gp_beta(6, 3), 0, 0));
}

/*
 * Iteration time over the batch: it falls with the batch's overhead, rises with its pressure, and
 * has a bump of the copy engine.
 */
static double iteration_s(int kind, uint32_t batch)
{
	double l = log2(batch);

	switch (kind) {
	case 0: return 0.2 + 0.6 / batch + 0.0004 * batch;
	case 1: return 0.3 + 0.05 * (l - 7) * (l - 7) / 9;
	case 2: return 0.25 + 0.02 * l;
	case 3: return 0.3 - 0.01 * l + 0.03 * exp(-(l - 7) * (l - 7));
	default: return 0.25 + 0.03 * sin(1.7 * l) + 0.004 * l;
	}
}

TEST(the_search_finds_the_best_batch_within_25_iterations)
{
	uint32_t batches[497];
	double sum = 0;
	int runs = 0;

	for (uint32_t i = 0; i < 497; i++)
		batches[i] = 16 + i;
	for (int kind = 0; kind < 5; kind++)
		for (uint64_t seed = 1; seed <= 4; seed++) {
			static struct td_batch_tuner tuner;
			uint64_t state = seed * 7919;
			double best = INFINITY;
			int asked = 0;

			for (uint32_t i = 0; i < 497; i++)
				best = fmin(best, iteration_s(kind, batches[i]));
			CHECK_EQ(td_batch_tuner_init(&tuner, batches, 497, 0.5, 25), 0);
			while (!tuner.converged && asked < 100) {
				double t = iteration_s(kind, td_batch_tuner_propose(&tuner));

				td_batch_tuner_observe(
					&tuner, t * (1 + 0.005 * random_normal(&state)));
				asked++;
			}
			CHECK(asked <= 25);
			CHECK(iteration_s(kind, td_batch_tuner_propose(&tuner)) < best * 1.03);
			sum += asked;
			runs++;
		}
	printf("# %.1f iterations on average\n", sum / runs);
}

TEST(without_a_candidate_there_is_no_batch)
{
	static struct td_batch_tuner tuner;
	uint32_t batch = 0;

	CHECK_EQ(td_batch_tuner_init(&tuner, &batch, 0, 0.5, 25), 1);
	CHECK_EQ(td_batch_tuner_propose(&tuner), 0);
	td_batch_tuner_observe(&tuner, 1);
	CHECK_EQ(td_batch_tuner_init(&tuner, &batch, 1, 0.5, 25), -EINVAL);
	batch = 8;
	CHECK_EQ(td_batch_tuner_init(&tuner, &batch, 1, 0.5, 0), -EINVAL);
	CHECK_EQ(td_batch_tuner_init(&tuner, &batch, 1, 0.5, 25), 0);
	CHECK_EQ(td_batch_tuner_propose(&tuner), 8);
	td_batch_tuner_observe(&tuner, NAN);
	CHECK_EQ(tuner.gp.count, 0);
}
