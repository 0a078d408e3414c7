/* This file implements jobs.h. */
#include "view/jobs.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"

static const struct td_jobs_info columns[TD_JOBS_N] = {
#define COLUMN(id, title, help, width, rank, when, kind, value)                                    \
	{#id, title, help, #kind, width, rank, TD_JOBS_WHEN_##when},
#include "view/jobs.def"
#undef COLUMN
};

enum kind {
	KIND_text,
	KIND_number,
	KIND_count,
	KIND_share,
	KIND_size,
	KIND_time,
	KIND_limit,
	KIND_tail,
	KIND_moved,
};

static const enum kind kinds[TD_JOBS_N] = {
#define COLUMN(id, title, help, width, rank, when, kind, value) KIND_##kind,
#include "view/jobs.def"
#undef COLUMN
};

const struct td_jobs_info *td_jobs_info(enum td_jobs_column column)
{
	return &columns[column];
}

enum td_jobs_column td_jobs_find(const char *id)
{
	unsigned column = 0;

	while (column < TD_JOBS_N && strcmp(columns[column].id, id))
		column++;
	return (enum td_jobs_column)column;
}

/* -- values -- */

/*
 * Returns the share of the time in which the job's kernels ran. The meter is exact; without it, the
 * times of kernels under a duty are used. NAN: unknown.
 */
static double td_jobs_busy(const struct td_snapshot_job *job)
{
	if (job->said.metered)
		return job->said.used_ppm / 1e6;
	return job->has_rates && job->said.gpu_time_ns ? job->busy : NAN;
}

static bool has_soft_limit(const struct td_msg_job *said)
{
	return said->soft_bytes && (!said->limit_bytes || said->soft_bytes < said->limit_bytes);
}

static double td_jobs_limit(const struct td_msg_job *said)
{
	uint64_t bytes = has_soft_limit(said) ? said->soft_bytes : said->limit_bytes;

	return bytes ? (double)bytes : NAN;
}

bool td_jobs_is_late(const struct td_msg_job *said)
{
	return *said->service && said->objective_ns && said->p99_ns > said->objective_ns;
}

#define IF_NUMBER_text(value)   return NAN
#define IF_NUMBER_number(value) return (double)(value)
#define IF_NUMBER_count         IF_NUMBER_number
#define IF_NUMBER_share         IF_NUMBER_number
#define IF_NUMBER_size          IF_NUMBER_number
#define IF_NUMBER_time          IF_NUMBER_number
#define IF_NUMBER_limit         IF_NUMBER_number
#define IF_NUMBER_tail          IF_NUMBER_number
#define IF_NUMBER_moved         IF_NUMBER_number

double td_jobs_number(const struct td_snapshot_job *job, enum td_jobs_column column)
{
	const struct td_msg_job *said = &job->said;

	switch (column) {
#define COLUMN(id, title, help, width, rank, when, kind, value)                                    \
	case TD_JOBS_##id:                                                                         \
		IF_NUMBER_##kind(value);
#include "view/jobs.def"
#undef COLUMN
	case TD_JOBS_N: break;
	}
	return NAN;
}

#define IF_TEXT_text(value)   return value
#define IF_TEXT_number(value) return NULL
#define IF_TEXT_count         IF_TEXT_number
#define IF_TEXT_share         IF_TEXT_number
#define IF_TEXT_size          IF_TEXT_number
#define IF_TEXT_time          IF_TEXT_number
#define IF_TEXT_limit         IF_TEXT_number
#define IF_TEXT_tail          IF_TEXT_number
#define IF_TEXT_moved         IF_TEXT_number

const char *td_jobs_text(const struct td_snapshot_job *job, enum td_jobs_column column)
{
	const struct td_msg_job *said = &job->said;

	switch (column) {
#define COLUMN(id, title, help, width, rank, when, kind, value)                                    \
	case TD_JOBS_##id:                                                                         \
		IF_TEXT_##kind(value);
#include "view/jobs.def"
#undef COLUMN
	case TD_JOBS_N: break;
	}
	return NULL;
}

bool td_jobs_is_time(enum td_jobs_column column)
{
	return kinds[column] == KIND_time || kinds[column] == KIND_tail;
}

bool td_jobs_says(const struct td_snapshot_job *job, enum td_jobs_column column)
{
	return kinds[column] == KIND_text ? *td_jobs_text(job, column) != 0
					  : !isnan(td_jobs_number(job, column));
}

/* -- cells -- */

static void set_text(char *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void set_text(char *buf, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(buf, TD_JOBS_CELL, format, args);
	va_end(args);
}

/* Writes a short rate such as "1.2G", since two of them share a column. */
static void set_rate(char *buf, size_t len, double bytes)
{
	static const char units[] = " KMGTP";
	unsigned unit = 0;

	while (bytes >= 1000 && units[unit + 1]) {
		bytes /= 1024;
		unit++;
	}
	if (!unit)
		snprintf(buf, len, "%.0f", bytes);
	else
		snprintf(buf, len, bytes < 10 ? "%.1f%c" : "%.0f%c", bytes, units[unit]);
}

static void set_moved(char *buf, const struct td_snapshot_job *job)
{
	char in[32], out[32];

	set_rate(in, sizeof(in), job->in_bytes);
	set_rate(out, sizeof(out), job->out_bytes);
	set_text(buf, "%s/%s", in, out);
}

static uint64_t whole(double value)
{
	return value > 0 ? value < 1.8e19 ? (uint64_t)value : UINT64_MAX : 0;
}

static void set_number(char *buf, enum kind kind, double value)
{
	switch (kind) {
	case KIND_share: set_text(buf, "%.0f%%", value * 100); return;
	case KIND_size:
	case KIND_limit: td_format_size(buf, TD_JOBS_CELL, whole(value)); return;
	case KIND_time:
	case KIND_tail: td_format_duration(buf, TD_JOBS_CELL, whole(value)); return;
	/* A service with few requests handles a fraction of one per second. */
	case KIND_count: set_text(buf, value > 0 && value < 9.95 ? "%.1f" : "%.0f", value); return;
	case KIND_number:
	case KIND_text:
	case KIND_moved: break;
	}
	set_text(buf, "%.0f", value);
}

char *td_jobs_cell(char *buf, const struct td_snapshot_job *job, enum td_jobs_column column)
{
	double value = td_jobs_number(job, column);
	char sign = 0;

	*buf = 0;
	if (kinds[column] == KIND_text) {
		set_text(buf, "%s", td_jobs_text(job, column));
		return buf;
	}
	if (isnan(value))
		return buf;
	if (kinds[column] == KIND_moved) {
		set_moved(buf, job);
		return buf;
	}
	if (kinds[column] == KIND_limit && has_soft_limit(&job->said))
		sign = '~';
	if (kinds[column] == KIND_tail && td_jobs_is_late(&job->said))
		sign = '!';
	set_number(buf, kinds[column], value);
	if (sign) {
		memmove(buf + 1, buf, strlen(buf) + 1);
		*buf = sign;
	}
	return buf;
}

char *td_jobs_cell_of_others(
	char *buf, const struct td_msg_others *others, enum td_jobs_column column)
{
	*buf = 0;
	if (column == TD_JOBS_gpu && others->gpu != UINT32_MAX)
		set_text(buf, "%u", others->gpu);
	if (column == TD_JOBS_name)
		set_text(buf, "(%u of others)", others->processes);
	if (column == TD_JOBS_memory)
		td_format_size(buf, TD_JOBS_CELL, others->demanded_bytes);
	if (column == TD_JOBS_device)
		td_format_size(buf, TD_JOBS_CELL, others->resident_bytes);
	if (column == TD_JOBS_host && others->host_bytes)
		td_format_size(buf, TD_JOBS_CELL, others->host_bytes);
	return buf;
}

/* -- columns -- */

void td_jobs_mark(const struct td_snapshot *s, bool marks[TD_JOBS_N])
{
	for (unsigned i = 0; i < TD_JOBS_N; i++) {
		marks[i] |= columns[i].when != TD_JOBS_WHEN_some;
		for (size_t k = 0; k < s->job_count && !marks[i]; k++)
			marks[i] = td_jobs_says(&s->jobs[k], (enum td_jobs_column)i);
	}
}

void td_jobs_write_columns(struct td_text *text)
{
	for (unsigned i = 0; i < TD_JOBS_N; i++) {
		const struct td_jobs_info *c = &columns[i];

		td_text_add(text,
			"%c{\"id\":\"%s\",\"kind\":\"%s\",\"left\":%s,\"some\":%s,\"rank\":%u,"
			"\"title\":",
			i ? ',' : '[', c->id, c->kind, c->width < 0 ? "true" : "false",
			c->when == TD_JOBS_WHEN_some ? "true" : "false", c->rank);
		td_text_add_json(text, c->title);
		td_text_add(text, ",\"help\":");
		td_text_add_json(text, c->help);
		td_text_put(text, "}", 1);
	}
	td_text_put(text, "]", 1);
}

/* -- order -- */

static bool matches(const struct td_msg_job *job, const char *filter)
{
	char pid[16];

	snprintf(pid, sizeof(pid), "%u", job->pid);
	return strcasestr(job->job, filter) || strcasestr(job->name, filter) ||
	       strcasestr(job->class, filter) || strcasestr(job->state, filter) ||
	       strstr(pid, filter);
}

struct order {
	const struct td_snapshot *snapshot;
	enum td_jobs_column key;
	bool descending;
};

static int compare_u32(uint32_t a, uint32_t b)
{
	return (a > b) - (a < b);
}

/* Compares two numbers. NAN (unknown) is less than any number. */
static int compare_numbers(double a, double b)
{
	if (isnan(a) || isnan(b))
		return isnan(b) - isnan(a);
	return (a > b) - (a < b);
}

static int compare_by(
	const struct td_snapshot_job *a, const struct td_snapshot_job *b, enum td_jobs_column key)
{
	if (kinds[key] == KIND_text)
		return strcasecmp(td_jobs_text(a, key), td_jobs_text(b, key));
	/* A process without a GPU comes last. */
	if (key == TD_JOBS_gpu)
		return compare_u32(a->said.gpu, b->said.gpu);
	return compare_numbers(td_jobs_number(a, key), td_jobs_number(b, key));
}

static int compare_indices(const void *left, const void *right, void *arg)
{
	const struct order *order = arg;
	const struct td_snapshot_job *a = &order->snapshot->jobs[*(const size_t *)left],
				     *b = &order->snapshot->jobs[*(const size_t *)right];
	int r = compare_by(a, b, order->key);

	if (order->descending)
		r = -r;
	r = r ? r : compare_u32(a->said.gpu, b->said.gpu);
	return r ? r : compare_u32(a->said.pid, b->said.pid);
}

size_t td_jobs_order(const struct td_snapshot *s, enum td_jobs_column key, bool descending,
	const char *filter, size_t *ret)
{
	struct order order = {s, key, descending};
	size_t count = 0;

	for (size_t i = 0; i < s->job_count; i++)
		if (!*filter || matches(&s->jobs[i].said, filter))
			ret[count++] = i;
	qsort_r(ret, count, sizeof(*ret), compare_indices, &order);
	return count;
}
