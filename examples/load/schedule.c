/* See schedule.h. */
#include "schedule.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

#define LINE_MAX_BYTES 4096
#define CELL_SHOWN     64

/* SplitMix64 (Steele, Lea and Flood 2014): a seed gives the same schedule on every machine. */
static double draw(struct schedule *schedule)
{
	uint64_t z = schedule->random += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return (double)((z ^ z >> 31) >> 11) / 9007199254740992.0;
}

double schedule_rate(const struct schedule *schedule, double at_s)
{
	double phase = schedule->period_s > 0 ? 2 * M_PI * at_s / schedule->period_s : 0;

	return schedule->rate_per_s * (1 + schedule->swing * sin(phase));
}

/* Gaps at the highest rate, of which a share is kept: thinning (Lewis and Shedler 1979). */
static double next_poisson(struct schedule *schedule)
{
	double highest = schedule->rate_per_s * (1 + schedule->swing), at_s = schedule->at_s;

	do
		at_s -= log(1 - draw(schedule)) / highest;
	while (draw(schedule) * highest > schedule_rate(schedule, at_s));
	return at_s;
}

static double next_even(const struct schedule *schedule)
{
	return schedule->at_s + 1 / schedule_rate(schedule, schedule->at_s);
}

/* The cell of that number in a line, cut in place; NULL: the line has fewer. */
static char *cell_of(char *line, unsigned column)
{
	char *cell = line;

	for (; cell && column; column--) {
		cell = strchr(cell, ',');
		cell = cell ? cell + 1 : NULL;
	}
	if (cell)
		cell[strcspn(cell, ",\r\n")] = 0;
	return cell;
}

static int read_row(struct schedule *schedule, double *ret, struct td_err *err)
{
	char line[LINE_MAX_BYTES], *cell, *end;
	double value;

	do {
		if (!fgets(line, sizeof(line), schedule->file))
			return ferror(schedule->file)
				       ? td_err_set(err, -EIO, "the trace cannot be read")
				       : 1;
		schedule->line++;
	} while (schedule->only && (strncmp(line, schedule->only, strlen(schedule->only)) ||
					   line[strlen(schedule->only)] != ','));
	cell = cell_of(line, schedule->column);
	if (!cell)
		return td_err_set(err, -EINVAL, "line %llu of the trace has no column %u",
			(unsigned long long)schedule->line, schedule->column + 1);
	value = strtod(cell, &end);
	if (end == cell || *end || !(value >= 0) || !isfinite(value))
		return td_err_set(err, -EINVAL,
			"line %llu of the trace: \"%.*s\" is not a time: expected seconds, as 0.25",
			(unsigned long long)schedule->line, CELL_SHOWN, cell);
	*ret = value / schedule->speed;
	return 0;
}

int schedule_open(
	struct schedule *schedule, const char *path, const char *column, struct td_err *err)
{
	char line[LINE_MAX_BYTES], *cell = line;

	schedule->file = fopen(path, "re");
	if (!schedule->file)
		return td_err_set(err, -errno, "%.200s: %s", path, strerror(errno));
	if (!fgets(line, sizeof(line), schedule->file))
		return td_err_set(err, -EINVAL, "%.200s is empty: expected a header", path);
	schedule->line = 1;
	line[strcspn(line, "\r\n")] = 0;
	for (schedule->column = 0; cell; schedule->column++) {
		size_t len = strcspn(cell, ",");

		if (len == strlen(column) && !strncmp(cell, column, len))
			return 0;
		cell = cell[len] ? cell + len + 1 : NULL;
	}
	return td_err_set(err, -EINVAL, "%.200s has no column \"%.64s\": its header is \"%.200s\"",
		path, column, line);
}

int schedule_next(struct schedule *schedule, double *ret_s, struct td_err *err)
{
	double next = 0;
	int r = 0;

	switch (schedule->kind) {
	case SCHEDULE_POISSON: next = next_poisson(schedule); break;
	case SCHEDULE_EVEN: next = next_even(schedule); break;
	case SCHEDULE_FILE:
		r = read_row(schedule, &next, err);
		if (schedule->has_gaps)
			next += schedule->at_s;
		break;
	}
	if (r)
		return r;
	/* Rows may be out of order by rounding; a schedule never goes back. */
	if (next > schedule->at_s)
		schedule->at_s = next;
	*ret_s = schedule->at_s;
	return 0;
}
