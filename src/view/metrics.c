/*
 * This file implements metrics.h. The format is Prometheus, "Exposition formats", text-based format
 * 0.0.4.
 */
#include "view/metrics.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "base/uuid.h"
#include "gpu/nvml.h"
#include "proto/words.h"

enum rows { ROWS_node, ROWS_gpu, ROWS_others, ROWS_job };

enum metric {
#define METRIC(rows, id, type, unit, help, known, value) METRIC_##id,
#include "view/metrics.def"
#undef METRIC
	METRIC_N,
};

static const struct {
	enum rows rows;
	const char *name, *type, *help;
} metrics[METRIC_N] = {
#define METRIC(rows, id, type, unit, help, known, value) {ROWS_##rows, "tandem_" #id, #type, help},
#include "view/metrics.def"
#undef METRIC
};

/* One row; metrics[].rows says which member is used. */
struct row {
	const struct td_snapshot *now;
	/* NULL in rows of others and jobs if their GPU is not listed */
	const struct td_msg_gpu *gpu;
	const struct td_msg_others *others;
	const struct td_snapshot_job *job;
	size_t left_out; /* the number of jobs' rows without series */
};

/* The rows of jobs that have series. */
struct shown {
	bool jobs[TD_METRICS_JOBS_MAX];
	size_t left_out;
};

static double td_metrics_count(const struct td_snapshot *s, const char *state)
{
	size_t count = 0;

	for (size_t i = 0; i < s->job_count; i++)
		count += !strcmp(s->jobs[i].said.state, state);
	return (double)count;
}

/* Returns false if the row has no sample of this metric. */
static bool value_of(enum metric metric, const struct row *row, double *ret)
{
	const struct td_snapshot *now = row->now;
	const struct td_msg_gpu *gpu = row->gpu;
	const struct td_msg_others *others = row->others;
	const struct td_msg_job *said = row->job ? &row->job->said : NULL;

	switch (metric) {
#define METRIC(rows, id, type, unit, help, known, value)                                           \
	case METRIC_##id:                                                                          \
		if (!(known))                                                                      \
			return false;                                                              \
		*ret = (double)(value);                                                            \
		return true;
#include "view/metrics.def"
#undef METRIC
	case METRIC_N: break;
	}
	return false;
}

/* -- labels -- */

char *td_gpu_uuid(char *buf, const struct td_msg_gpu *gpu)
{
	td_uuid_format(buf, gpu->gpu);
	/* The driver puts " MIG " into the name of a part of a GPU. */
	if (strstr(gpu->name, " MIG "))
		memcpy(buf, "MIG-", 4);
	return buf;
}

/* Adds a label. *separator is '{' before the first label and ',' before the others. */
static void add_label(struct td_text *text, char *separator, const char *name, const char *value)
{
	char printable[TD_STR_MAX + 1];

	snprintf(printable, sizeof(printable), "%s", value);
	td_printable(printable);
	td_text_add(text, "%c%s=\"", *separator, name);
	for (const char *c = printable; *c; c++)
		td_text_add(text, *c == '"' || *c == '\\' ? "\\%c" : "%c", *c);
	td_text_put(text, "\"", 1);
	*separator = ',';
}

static void add_number(struct td_text *text, char *separator, const char *name, uint32_t number)
{
	char digits[16] = "";

	if (number != UINT32_MAX)
		snprintf(digits, sizeof(digits), "%u", number);
	add_label(text, separator, name, digits);
}

static void add_labels(struct td_text *text, enum metric metric, const struct row *row)
{
	const struct td_msg_job *said = row->job ? &row->job->said : NULL;
	char separator = '{', uuid[TD_UUID_TEXT] = "";

	if (metric == METRIC_build_info)
		add_label(text, &separator, "version", TANDEM_VERSION);
	if (metrics[metric].rows != ROWS_node)
		add_label(text, &separator, "gpu", row->gpu ? td_gpu_uuid(uuid, row->gpu) : "");
	if (metric == METRIC_gpu_info) {
		add_number(text, &separator, "index", row->gpu->index);
		add_label(text, &separator, "name", row->gpu->name);
	}
	if (said) {
		add_label(text, &separator, "job", said->job);
		add_label(text, &separator, "name", *said->name ? said->name : said->job);
		add_number(text, &separator, "pid", said->pid);
	}
	if (metric == METRIC_job_info) {
		add_label(text, &separator, "class", said->class);
		add_label(text, &separator, "backend", said->backend);
		add_number(text, &separator, "uid", said->uid);
	}
	if (metric == METRIC_service_info)
		add_label(text, &separator, "service", said->service);
	if (separator == ',')
		td_text_put(text, "}", 1);
}

/* -- samples -- */

static void add_sample(struct td_text *text, enum metric metric, const struct row *row)
{
	double value;

	if (!value_of(metric, row, &value))
		return;
	td_text_add(text, "%s", metrics[metric].name);
	add_labels(text, metric, row);
	td_text_add(text, " %.15g\n", value);
}

static const struct td_msg_gpu *gpu_of(const struct td_snapshot *s, uint32_t index)
{
	for (size_t i = 0; index != UINT32_MAX && i < s->gpu_count; i++)
		if (s->gpus[i].index == index)
			return &s->gpus[i];
	return NULL;
}

/*
 * Returns whether both rows would have the same labels. Processes of other PID namespaces have pid
 * 0.
 */
static bool are_alike(
	const struct td_snapshot *s, const struct td_msg_job *a, const struct td_msg_job *b)
{
	return a->pid == b->pid && gpu_of(s, a->gpu) == gpu_of(s, b->gpu) &&
	       !strcmp(a->job, b->job) && !strcmp(a->name, b->name);
}

/*
 * Chooses the rows that get series. Prometheus refuses all series if two have the same labels, so
 * only the first such row is chosen.
 */
static void choose_jobs(const struct td_snapshot *s, struct shown *shown)
{
	size_t count = 0;

	for (size_t i = 0; i < s->job_count && i < TD_METRICS_JOBS_MAX; i++) {
		shown->jobs[i] = true;
		for (size_t k = 0; k < i && shown->jobs[i]; k++)
			shown->jobs[i] = !are_alike(s, &s->jobs[k].said, &s->jobs[i].said);
		count += shown->jobs[i];
	}
	shown->left_out = s->job_count - count;
}

static void add_jobs(struct td_text *text, enum metric metric, const struct td_snapshot *s,
	const struct shown *shown)
{
	for (size_t i = 0; i < s->job_count && i < TD_METRICS_JOBS_MAX; i++) {
		struct row row = {.now = s, .job = &s->jobs[i]};

		row.gpu = gpu_of(s, row.job->said.gpu);
		if (shown->jobs[i])
			add_sample(text, metric, &row);
	}
}

static void add_samples(struct td_text *text, enum metric metric, const struct td_snapshot *s,
	const struct shown *shown)
{
	struct row row = {.now = s, .left_out = shown->left_out};

	switch (metrics[metric].rows) {
	case ROWS_node: add_sample(text, metric, &row); break;
	case ROWS_gpu:
		for (size_t i = 0; i < s->gpu_count; i++) {
			row.gpu = &s->gpus[i];
			add_sample(text, metric, &row);
		}
		break;
	case ROWS_others:
		for (size_t i = 0; i < s->other_count; i++) {
			row.others = &s->others[i];
			row.gpu = gpu_of(s, row.others->gpu);
			add_sample(text, metric, &row);
		}
		break;
	case ROWS_job: add_jobs(text, metric, s, shown); break;
	}
}

void td_metrics_write(struct td_text *text, const struct td_snapshot *s)
{
	struct shown shown;

	choose_jobs(s, &shown);
	for (unsigned i = 0; i < METRIC_N; i++) {
		size_t before = text->length, head;

		td_text_add(text, "# HELP %s %s\n# TYPE %s %s\n", metrics[i].name, metrics[i].help,
			metrics[i].name, metrics[i].type);
		head = text->length;
		add_samples(text, (enum metric)i, s, &shown);
		/* A metric family without samples is left out. */
		if (text->length == head && !text->failed) {
			text->length = before;
			text->text[before] = 0;
		}
	}
}
