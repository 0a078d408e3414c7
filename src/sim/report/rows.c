/* Makes rows of experiments and figures of seeds; see experiment.h. */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/bootstrap.h"
#include "sim/report/experiment.h"

struct td_row *td_row_add(struct td_experiment_run *run, enum td_verdict verdict)
{
	run->last = NULL;
	if (run->row_count == run->row_room) {
		uint32_t room = run->row_room ? 2 * run->row_room : 64;
		struct td_row *larger = reallocarray(run->rows, room, sizeof(*larger));

		if (!larger) {
			run->short_of_memory = true;
			return NULL;
		}
		run->rows = larger;
		run->row_room = room;
	}
	run->last = &run->rows[run->row_count++];
	*run->last = (struct td_row){.experiment = run->name, .verdict = verdict};
	return run->last;
}

void td_row_put(struct td_experiment_run *run, enum td_verdict verdict, const char *metric,
	const char *paper, const char *spread, const char *note, const char *format, ...)
{
	struct td_row *row = td_row_add(run, verdict);
	va_list args;

	if (!row)
		return;
	snprintf(row->metric, sizeof(row->metric), "%s", metric);
	snprintf(row->paper, sizeof(row->paper), "%s", paper);
	snprintf(row->spread, sizeof(row->spread), "%s", spread);
	snprintf(row->note, sizeof(row->note), "%s", note);
	va_start(args, format);
	vsnprintf(row->ours, sizeof(row->ours), format, args);
	va_end(args);
}

static void print_interval(struct td_interval interval, char *ret, size_t size)
{
	if (isinf(interval.low))
		snprintf(ret, size, "too few seeds");
	else
		snprintf(ret, size, "%.4g to %.4g", interval.low, interval.high);
}

void td_row_interval(struct td_experiment_run *run, const double *values, uint32_t count)
{
	if (run->last)
		print_interval(td_bootstrap_median(values, count), run->last->interval,
			sizeof(run->last->interval));
}

void td_row_beside(struct td_experiment_run *run, const double *values, uint32_t count, double none,
	bool guard)
{
	if (!run->last)
		return;
	td_row_interval(run, values, count);
	run->last->verdict = TD_LOSS;
	if (!guard)
		return;
	switch (td_interval_shows(td_bootstrap_median(values, count), none)) {
	case TD_MORE: run->last->verdict = TD_BETTER; break;
	case TD_NOT_SHOWN: run->last->verdict = TD_NO_DIFFERENCE; break;
	case TD_LESS: break;
	}
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double td_median(double *values, uint32_t n)
{
	qsort(values, n, sizeof(*values), compare);
	return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

void td_spread(const double *values, uint32_t n, char *ret)
{
	double least = values[0], most = values[0];

	for (uint32_t i = 1; i < n; i++) {
		least = values[i] < least ? values[i] : least;
		most = values[i] > most ? values[i] : most;
	}
	snprintf(ret, 64, "%.3g to %.3g", least, most);
}
