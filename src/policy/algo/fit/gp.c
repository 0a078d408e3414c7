/* Gaussian process by incremental Cholesky; see gp.h. */
#include "policy/algo/fit/gp.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>

static double *row(struct td_gp *gp, uint32_t i)
{
	return gp->factor + i * (i + 1) / 2;
}

static const double *const_row(const struct td_gp *gp, uint32_t i)
{
	return gp->factor + i * (i + 1) / 2;
}

static double covariance(const struct td_gp *gp, const double *a, const double *b)
{
	double square = 0;

	for (uint32_t d = 0; d < TD_GP_DIMENSIONS; d++)
		square += (a[d] - b[d]) * (a[d] - b[d]);
	return exp(-square / (2 * gp->kernel.length * gp->kernel.length));
}

/* Solves L z = k in place for the first n rows. */
static void solve_lower(const struct td_gp *gp, uint32_t n, double *z)
{
	for (uint32_t i = 0; i < n; i++) {
		const double *l = const_row(gp, i);

		for (uint32_t j = 0; j < i; j++)
			z[i] -= l[j] * z[j];
		z[i] /= l[i];
	}
}

static void solve_upper(const struct td_gp *gp, uint32_t n, double *z)
{
	for (uint32_t i = n; i--;) {
		const double *l = const_row(gp, i);

		z[i] /= l[i];
		for (uint32_t j = 0; j < i; j++)
			z[j] -= l[j] * z[i];
	}
}

/* Appends the factor's row for sample i. The rows before it are valid. */
static void append_row(struct td_gp *gp, uint32_t i)
{
	double *l = row(gp, i), rest = 1 + gp->kernel.noise;

	for (uint32_t j = 0; j < i; j++)
		l[j] = covariance(gp, gp->x[i], gp->x[j]);
	solve_lower(gp, i, l);
	for (uint32_t j = 0; j < i; j++)
		rest -= l[j] * l[j];
	/* Two equal samples leave only the noise; rounding may leave a little less. */
	l[i] = sqrt(fmax(rest, gp->kernel.noise / 2));
}

static void solve_weights(struct td_gp *gp)
{
	double sum = 0, square = 0;

	for (uint32_t i = 0; i < gp->count; i++)
		sum += gp->y[i];
	gp->mean = sum / gp->count;
	for (uint32_t i = 0; i < gp->count; i++)
		square += (gp->y[i] - gp->mean) * (gp->y[i] - gp->mean);
	gp->deviation = square > 0 ? sqrt(square / gp->count) : 1;
	for (uint32_t i = 0; i < gp->count; i++)
		gp->alpha[i] = (gp->y[i] - gp->mean) / gp->deviation;
	solve_lower(gp, gp->count, gp->alpha);
	solve_upper(gp, gp->count, gp->alpha);
}

int td_gp_add(struct td_gp *gp, const double *x, double y)
{
	if (gp->count == TD_GP_SAMPLES_MAX)
		return -ENOSPC;
	for (uint32_t d = 0; d < TD_GP_DIMENSIONS; d++)
		if (!isfinite(x[d]))
			return -EINVAL;
	if (!isfinite(y))
		return -EINVAL;
	for (uint32_t d = 0; d < TD_GP_DIMENSIONS; d++)
		gp->x[gp->count][d] = x[d];
	gp->y[gp->count] = y;
	append_row(gp, gp->count++);
	solve_weights(gp);
	return 0;
}

void td_gp_predict(const struct td_gp *gp, const double *x, double *ret_mean, double *ret_variance)
{
	double k[TD_GP_SAMPLES_MAX], mean = 0, variance = 1, scale = gp->count ? gp->deviation : 1;

	for (uint32_t i = 0; i < gp->count; i++) {
		k[i] = covariance(gp, x, gp->x[i]);
		mean += k[i] * gp->alpha[i];
	}
	solve_lower(gp, gp->count, k);
	for (uint32_t i = 0; i < gp->count; i++)
		variance -= k[i] * k[i];
	*ret_mean = gp->mean + mean * scale;
	*ret_variance = fmax(variance, 0) * scale * scale;
}

double td_gp_log_likelihood(const struct td_gp *gp)
{
	double sum = 0;

	for (uint32_t i = 0; i < gp->count; i++)
		sum -= 0.5 * (gp->y[i] - gp->mean) / gp->deviation * gp->alpha[i] +
		       log(const_row(gp, i)[i]) + 0.5 * log(2 * M_PI);
	return sum;
}

static void refactor(struct td_gp *gp, double length)
{
	gp->kernel.length = length;
	for (uint32_t i = 0; i < gp->count; i++)
		append_row(gp, i);
	solve_weights(gp);
}

void td_gp_choose_length(struct td_gp *gp, const double *lengths, uint32_t count)
{
	double best = -INFINITY, best_length = gp->kernel.length;

	if (!gp->count)
		return;
	for (uint32_t i = 0; i < count; i++) {
		double likelihood;

		refactor(gp, lengths[i]);
		likelihood = td_gp_log_likelihood(gp);
		if (likelihood > best) {
			best = likelihood;
			best_length = lengths[i];
		}
	}
	refactor(gp, best_length);
}

double td_gp_beta(uint32_t candidates, uint32_t iteration)
{
	double n = iteration ? iteration : 1;

	return fmax(0, 2 * log(candidates / (n * n)));
}

uint32_t td_gp_least_bound(
	const struct td_gp *gp, const double *candidates, uint32_t count, double beta)
{
	uint32_t best = 0;
	double least = INFINITY;

	for (uint32_t c = 0; c < count; c++) {
		double mean, variance, bound;

		td_gp_predict(gp, candidates + (size_t)c * TD_GP_DIMENSIONS, &mean, &variance);
		bound = mean - sqrt(beta * variance);
		if (bound < least) {
			least = bound;
			best = c;
		}
	}
	return best;
}
