/* Fits and evaluates latency curves; see curve.h. */
#include "policy/algo/fit/curve.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>

#define NO_SHARE 2.0

static bool are_samples(const double *x, const double *y, uint32_t n, uint32_t least)
{
	if (n < least)
		return false;
	for (uint32_t i = 0; i < n; i++)
		if (!(x[i] > (i ? x[i - 1] : 0)) || !isfinite(x[i]) || !(y[i] > 0) ||
			!isfinite(y[i]))
			return false;
	return true;
}

struct scale {
	double x, y; /* 1 / (range of the axis) */
};

static struct scale axes(const double *x, const double *y, uint32_t n)
{
	double low = y[0], high = y[0];

	for (uint32_t i = 1; i < n; i++) {
		low = fmin(low, y[i]);
		high = fmax(high, y[i]);
	}
	return (struct scale){1 / (x[n - 1] - x[0]), high > low ? 1 / (high - low) : 0};
}

/*
 * Returns Menger's curvature: four times the triangle's area over the product of its sides.
 * Positive where the curve bends up.
 */
static double curvature(const double *x, const double *y, struct scale s)
{
	double ax = (x[1] - x[0]) * s.x, ay = (y[1] - y[0]) * s.y;
	double bx = (x[2] - x[1]) * s.x, by = (y[2] - y[1]) * s.y;

	return 2 * (ax * by - ay * bx) / (hypot(ax, ay) * hypot(bx, by) * hypot(ax + bx, ay + by));
}

/* Returns the slope of the least-squares line through (x[knee], y[knee]) and samples from..to. */
static double slope_through(
	const double *x, const double *y, uint32_t knee, uint32_t from, uint32_t to)
{
	double xx = 0, xy = 0;

	for (uint32_t i = from; i <= to; i++) {
		xx += (x[i] - x[knee]) * (x[i] - x[knee]);
		xy += (x[i] - x[knee]) * (y[i] - y[knee]);
	}
	return xy / xx;
}

int td_curve_fit_piecewise(const double *x, const double *y, uint32_t n, struct td_curve *ret_curve)
{
	uint32_t knee = 1;
	double sharpest = -INFINITY;
	struct scale s;

	if (!are_samples(x, y, n, 3))
		return -EINVAL;
	s = axes(x, y, n);
	for (uint32_t i = 1; i + 1 < n; i++) {
		double c = curvature(x + i - 1, y + i - 1, s);

		if (c > sharpest) {
			sharpest = c;
			knee = i;
		}
	}
	*ret_curve = (struct td_curve){
		.form = TD_CURVE_PIECEWISE,
		.knee_x = x[knee],
		.knee_y = y[knee],
		.left_slope = slope_through(x, y, knee, 0, knee - 1),
		.right_slope = slope_through(x, y, knee, knee + 1, n - 1),
	};
	return 0;
}

int td_curve_fit_hyperbola(const double *x, const double *y, uint32_t n, struct td_curve *ret_curve)
{
	/*
	 * Minimises sum ((a + b u - y) / y)^2 with u = 1 / x: normal equations with weights 1 /
	 * y^2.
	 */
	double w = 0, wu = 0, wuu = 0, wy = 0, wuy = 0, a, b, det;

	if (!are_samples(x, y, n, 2))
		return -EINVAL;
	for (uint32_t i = 0; i < n; i++) {
		double u = 1 / x[i], weight = 1 / (y[i] * y[i]);

		w += weight;
		wu += weight * u;
		wuu += weight * u * u;
		wy += weight * y[i];
		wuy += weight * u * y[i];
	}
	det = w * wuu - wu * wu;
	if (!(det > 0))
		return -EINVAL;
	a = (wuu * wy - wu * wuy) / det;
	b = (w * wuy - wu * wy) / det;
	if (b < 0) {
		a = wy / w;
		b = 0;
	} else if (a < 0) {
		a = 0;
		b = wuy / wuu;
	}
	*ret_curve = (struct td_curve){.form = TD_CURVE_HYPERBOLA, .a = a, .b = b};
	return 0;
}

double td_curve_at(const struct td_curve *curve, double share)
{
	double slope, y;

	if (curve->form == TD_CURVE_HYPERBOLA)
		return curve->a + curve->b / share;
	slope = share <= curve->knee_x ? curve->left_slope : curve->right_slope;
	y = curve->knee_y + slope * (share - curve->knee_x);
	return y > 0 ? y : 0;
}

double td_curve_mean_slope(const struct td_curve *curve)
{
	if (curve->form == TD_CURVE_PIECEWISE)
		return (fabs(curve->left_slope) + fabs(curve->right_slope)) / 2;
	return curve->b * ((1 / 0.1 - 1 / 0.5) / 0.4 + (1 / 0.5 - 1 / 0.9) / 0.4) / 2;
}

/*
 * Returns the smallest share in from..to at which the line from the knee is at most the limit;
 * NO_SHARE if there is none.
 */
static double smallest_on_line(
	const struct td_curve *curve, double slope, double limit, double from, double to)
{
	double x;

	if (td_curve_at(curve, from) <= limit)
		return from;
	if (!(slope < 0))
		return NO_SHARE;
	x = curve->knee_x + (limit - curve->knee_y) / slope;
	return x <= to ? fmax(x, from) : NO_SHARE;
}

double td_curve_smallest_share(const struct td_curve *curve, double limit, double min_share)
{
	double x = NO_SHARE;

	if (!(limit > 0) || !(min_share > 0) || min_share > 1)
		return NO_SHARE;
	if (curve->form == TD_CURVE_HYPERBOLA) {
		if (curve->a >= limit)
			return NO_SHARE;
		x = fmax(curve->b / (limit - curve->a), min_share);
		return x <= 1 ? x : NO_SHARE;
	}
	if (min_share <= curve->knee_x)
		x = smallest_on_line(
			curve, curve->left_slope, limit, min_share, fmin(curve->knee_x, 1));
	if (x > 1 && curve->knee_x < 1)
		x = smallest_on_line(
			curve, curve->right_slope, limit, fmax(min_share, curve->knee_x), 1);
	return x <= 1 ? x : NO_SHARE;
}
