/*
 * When requests are due: an absolute schedule that does not depend on answers (open loop). A server
 * that stalls is asked all the same, and latencies count from the time that a request was due, so a
 * stall is seen at its full length (no coordinated omission).
 */
#pragma once

#include <stdint.h>
#include <stdio.h>

struct td_err;

enum schedule_kind {
	SCHEDULE_POISSON, /* exponential gaps at the rate of the moment */
	SCHEDULE_EVEN,    /* equal gaps */
	SCHEDULE_FILE,    /* as a trace says */
};

struct schedule {
	enum schedule_kind kind;
	double rate_per_s; /* the mean */
	double swing;      /* 0 to 1: the rate is a sine around the mean, by this part of it */
	double period_s;   /* of the sine */
	double speed;      /* of a file: 2 plays it in half of its time */
	FILE *file;        /* CSV with a header */
	unsigned column;   /* of it, from 0 */
	int has_gaps;      /* the column has gaps, not times */
	const char *only;  /* rows whose first cell is this; NULL: all */
	uint64_t line;     /* of the file, for messages */
	uint64_t random;   /* state of the generator */
	double at_s;       /* of the last request */
};

/* The rate at a time, of the kinds that have one. */
double schedule_rate(const struct schedule *schedule, double at_s);

/*
 * Opens a trace: a CSV file whose header names the column. 0, or -errno with a sentence that quotes
 * what is wrong.
 */
int schedule_open(
	struct schedule *schedule, const char *path, const char *column, struct td_err *err);

/*
 * Seconds from the beginning until the next request. 1: there is none any more. -EINVAL with a
 * sentence: a cell of the file is not a time.
 */
int schedule_next(struct schedule *schedule, double *ret_s, struct td_err *err);
