/*
 * Gaussian process regression with a lower confidence bound, for Mudi's search of the batch size.
 *
 * Purpose. Mudi (5.3.1) minimises the training task's iteration time over the service's batch size
 * without a model of it: every configuration tried yields one noisy sample. A Gaussian process over
 * the samples predicts mean and variance everywhere, and the next one to try minimises (Eq. 3)
 *
 *   A(x) = mu(x) - beta_n^(1/2) sqrt(var(x)),   beta_n = 2 log(|R| / n^2)
 *
 * beta_n as printed is negative from n = 3 on for six candidates. Here it is clamped at 0, and R is
 * every integer batch that can hold the objective. Once beta_n is 0 the search exploits.
 *
 * Method. Squared-exponential kernel s^2 exp(-|x - x'|^2 / 2 l^2) plus noise. The covariance matrix
 * is held as its Cholesky factor, which grows by one row with each sample (O(n^2), no refactoring):
 * L l = k(x),  d = sqrt(k(x, x) + noise - l.l). Targets are shifted by their mean and scaled by
 * their deviation, which changes only the weights alpha = K^-1 y, solved again in O(n^2) per
 * sample. The length may be chosen by the marginal likelihood among given ones.
 *
 * Invariants
 * - the factor after n additions equals that of the whole matrix, up to rounding;
 * - the variance is in [0, prior], and never rises with a sample;
 * - with little noise, the mean at a sample is its target;
 * - a sample that is not finite or has no room is refused, and nothing changes.
 */
#pragma once

#include <stdint.h>

#define TD_GP_SAMPLES_MAX 64
#define TD_GP_DIMENSIONS  2

struct td_gp_kernel {
	double length; /* length scale of the kernel, in units of x; more than 0 */
	double noise;  /* variance of the noise relative to the targets' variance; more than 0 */
};

/* A zeroed struct with a kernel has no samples. */
struct td_gp {
	struct td_gp_kernel kernel;
	uint32_t count;
	double x[TD_GP_SAMPLES_MAX][TD_GP_DIMENSIONS];
	double y[TD_GP_SAMPLES_MAX];
	double mean, deviation;
	double alpha[TD_GP_SAMPLES_MAX];
	/* Lower triangle, row by row. */
	double factor[TD_GP_SAMPLES_MAX * (TD_GP_SAMPLES_MAX + 1) / 2];
};

/* Adds a sample. Returns 0; -ENOSPC: full; -EINVAL: a number is not finite. */
int td_gp_add(struct td_gp *gp, const double *x, double y);

/* Writes mean and variance at x, in the targets' unit (and its square). */
void td_gp_predict(const struct td_gp *gp, const double *x, double *ret_mean, double *ret_variance);

/* Returns the log marginal likelihood of the scaled targets. */
double td_gp_log_likelihood(const struct td_gp *gp);

/* Sets the length with the greatest likelihood, the first one among equals. Takes O(count n^3). */
void td_gp_choose_length(struct td_gp *gp, const double *lengths, uint32_t count);

/* Returns beta_n of Eq. 3, clamped at 0. */
double td_gp_beta(uint32_t candidates, uint32_t iteration);

/*
 * Returns the index of the candidate (x of TD_GP_DIMENSIONS each) with the smallest bound, the
 * first among equals. count > 0.
 */
uint32_t td_gp_least_bound(
	const struct td_gp *gp, const double *candidates, uint32_t count, double beta);
