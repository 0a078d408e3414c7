/*
 * A plot of what is known of a service: a panel for each neighbour, with the measured points, the
 * two lines through them, and the curve that the learnt models predict, within its error.
 */
#pragma once

#include "profile/service.h"
#include "profiler/service/points.h"

struct td_err;

/* Checks the name of the file to draw: it ends in .svg or .png. Returns 0, or -EINVAL with err. */
int td_plot_check(const char *path, struct td_err *err);

/*
 * Draws with gnuplot, into a new file that is then renamed. Sorts the points. Returns 0, or
 * -errno with err: gnuplot is missing or has failed, or the file cannot be written.
 */
int td_plot_draw(const char *path, const char *service, const struct td_service_profile *profile,
	struct td_points *points, struct td_err *err);
