/*
 * Latency over the share of a GPU, in two fitted forms.
 *
 * Purpose. A policy that gives a service a share of the SMs needs its latency there, how sharply
 * the latency depends on the share, and the smallest share that keeps it under a limit. Two forms
 * answer:
 *
 * - PIECEWISE, Mudi's Eq. 1: two lines that meet at the cut-off point (knee_x, knee_y); beyond it a
 *   larger share gains little. "Calculates the curvature of each set of three consecutive points
 *   and identifies the middle point" - of the lowest curvature in the paper's words. That must mean
 *   the sharpest knee: read literally it errs twice as much on measured curves. So the knee is the
 *   point where the curve bends up most sharply, by Menger's curvature of three points on axes
 *   scaled to [0, 1] (latency and share have no common unit). The slopes are least squares through
 *   that point ("using this point as a basis").
 * - HYPERBOLA, y = a + b / x: a serial part and a part that scales with the SMs. Least squares of
 *   the relative error, a and b never negative. On measured curves it errs less than half as much
 *   as the two lines (5.3 % against 13.5 %), so tandem uses it; mudi keeps the paper's.
 *
 * Invariants
 * - the piecewise fit goes through its knee, which is one of the samples and never the first or the
 *   last;
 * - a hyperbola never rises with x and is never negative;
 * - td_curve_smallest_share() returns a share whose latency is within the limit. Where the curve
 *   falls, no smaller share is;
 * - nothing here divides by zero: samples with equal or non-finite coordinates are refused.
 *
 * Shares are numbers in (0, 1], latencies are in any one unit.
 */
#pragma once

#include <stdint.h>

enum td_curve_form {
	TD_CURVE_PIECEWISE,
	TD_CURVE_HYPERBOLA,
	TD_CURVE_N,
};

struct td_curve {
	enum td_curve_form form;
	union {
		struct {
			double knee_x, knee_y; /* the knee (Delta_0, l_0) */
			/* k_1 and k_2; negative where a larger share lowers the latency. */
			double left_slope, right_slope;
		};
		struct {
			double a, b;
		};
	};
};

/*
 * Fits n samples, x ascending. Returns 0, or -EINVAL: fewer than 3 (piecewise) or 2 (hyperbola)
 * samples, x not ascending or not positive, or a latency that is not positive and finite.
 */
int td_curve_fit_piecewise(
	const double *x, const double *y, uint32_t n, struct td_curve *ret_curve);
int td_curve_fit_hyperbola(
	const double *x, const double *y, uint32_t n, struct td_curve *ret_curve);

/* Returns the latency at a share, which is never negative. */
double td_curve_at(const struct td_curve *curve, double share);

/*
 * Returns the mean magnitude of the slopes, which tells how much the latency depends on the share
 * (Mudi 5.2). A hyperbola has chords instead: from 10 % to 50 % and from there to 90 %, Mudi's
 * range.
 */
double td_curve_mean_slope(const struct td_curve *curve);

/*
 * Returns the smallest share in [min_share, 1] with a latency of at most limit; 2 if there is none.
 */
double td_curve_smallest_share(const struct td_curve *curve, double limit, double min_share);
