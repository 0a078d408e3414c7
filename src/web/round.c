/* This file implements round.h. */
#include "web/round.h"

#include <math.h>
#include <string.h>

#include "base/uuid.h"
#include "gpu/nvml.h"
#include "view/jobs.h"
#include "view/metrics.h"

enum rows { ROWS_gpu, ROWS_job, ROWS_others, ROWS_event, ROWS_N };

static const struct {
	enum rows rows;
	const char *name;
} fields[] = {
#define FIELD(rows, name, kind, value) {ROWS_##rows, #name},
#include "web/round.def"
#undef FIELD
};

void td_round_write_fields(struct td_text *text)
{
	static const char *const names[ROWS_N] = {"gpu", "job", "others", "event"};

	for (unsigned rows = 0; rows < ROWS_N; rows++) {
		const char *between = "";

		td_text_add(text, "%s\"%s\":[", rows ? "," : "{", names[rows]);
		for (unsigned i = 0; rows == ROWS_job && i < TD_JOBS_N; i++) {
			td_text_add(text, "%s\"%s\"", between,
				td_jobs_info((enum td_jobs_column)i)->id);
			between = ",";
		}
		for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
			if (fields[i].rows != rows)
				continue;
			td_text_add(text, "%s\"%s\"", between, fields[i].name);
			between = ",";
		}
		td_text_put(text, "]", 1);
	}
	td_text_put(text, "}", 1);
}

static void add_u64(struct td_text *text, uint64_t value)
{
	char digits[20];
	size_t at = sizeof(digits);

	do
		digits[--at] = (char)('0' + value % 10);
	while (value /= 10);
	td_text_put(text, digits + at, sizeof(digits) - at);
}

static void add_number(struct td_text *text, uint32_t value)
{
	if (value == UINT32_MAX)
		td_text_put(text, "null", 4);
	else
		add_u64(text, value);
}

static void add_real(struct td_text *text, double value)
{
	if (!isfinite(value))
		td_text_put(text, "null", 4);
	else if (value >= 0 && value < 1e15 && value == floor(value))
		add_u64(text, (uint64_t)value);
	else
		td_text_add(text, "%.5g", value);
}

static void add_text(struct td_text *text, const char *value)
{
	td_text_add_json(text, value);
}

static void add_column(
	struct td_text *text, const struct td_snapshot_job *job, enum td_jobs_column column)
{
	const char *words = td_jobs_text(job, column);

	if (words)
		add_text(text, words);
	else
		add_real(text, td_jobs_number(job, column) / (td_jobs_is_time(column) ? 1e6 : 1));
}

/* Each function below writes the fields of one kind of row. */
#define FIELD(rows, name, kind, value) FIELD_##rows(kind, value)
#define ADD(kind, value)                                                                           \
	td_text_put(text, &before, 1);                                                             \
	add_##kind(text, value);                                                                   \
	before = ',';
#define FIELD_gpu(kind, value)
#define FIELD_job(kind, value)
#define FIELD_others(kind, value)
#define FIELD_event(kind, value)

#undef FIELD_gpu
#define FIELD_gpu ADD
static void add_gpu(struct td_text *text, const struct td_msg_gpu *gpu)
{
	char before = '[', uuid[TD_UUID_TEXT];

#include "web/round.def"
	td_text_put(text, "]", 1);
}
#undef FIELD_gpu
#define FIELD_gpu(kind, value)

#undef FIELD_job
#define FIELD_job ADD
static void add_job(struct td_text *text, const struct td_snapshot_job *job)
{
	const struct td_msg_job *said = &job->said;
	char before = '[';

	for (unsigned i = 0; i < TD_JOBS_N; i++) {
		td_text_put(text, &before, 1);
		add_column(text, job, (enum td_jobs_column)i);
		before = ',';
	}
#include "web/round.def"
	td_text_put(text, "]", 1);
}
#undef FIELD_job
#define FIELD_job(kind, value)

#undef FIELD_others
#define FIELD_others ADD
static void add_others(struct td_text *text, const struct td_msg_others *others)
{
	char before = '[';

#include "web/round.def"
	td_text_put(text, "]", 1);
}
#undef FIELD_others
#define FIELD_others(kind, value)

#undef FIELD_event
#define FIELD_event ADD
void td_round_write_event(struct td_text *text, const struct td_msg_event *event)
{
	char before = '[';

#include "web/round.def"
	td_text_put(text, "]", 1);
}

void td_round_write(struct td_text *text, const struct td_snapshot *s, uint64_t wall_ns)
{
	td_text_add(text, "{\"time\":%llu,\"wall\":%llu,\"gpus\":[",
		(unsigned long long)s->time_ns / 1000000, (unsigned long long)wall_ns / 1000000);
	for (size_t i = 0; i < s->gpu_count; i++) {
		td_text_put(text, ",", i ? 1 : 0);
		add_gpu(text, &s->gpus[i]);
	}
	td_text_add(text, "],\"jobs\":[");
	for (size_t i = 0; i < s->job_count; i++) {
		td_text_put(text, ",", i ? 1 : 0);
		add_job(text, &s->jobs[i]);
	}
	td_text_add(text, "],\"others\":[");
	for (size_t i = 0; i < s->other_count; i++) {
		td_text_put(text, ",", i ? 1 : 0);
		add_others(text, &s->others[i]);
	}
	td_text_add(text, "]}");
}
