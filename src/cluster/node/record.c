/* This file implements record.h, but for reading. */
#include "cluster/node/record.h"

#include <inttypes.h>
#include <string.h>

#include "base/bounds.h"
#include "base/text.h"
#include "gpu/nvml.h"
#include "view/metrics.h"
#include "view/snapshot.h"

#define STEP 20u /* a change by more than a twentieth is worth a write */

static void copy(char *to, size_t room, const char *from)
{
	size_t length = strnlen(from, room - 1);

	memcpy(to, from, length);
	to[length] = 0;
}

static void take_gpu(struct td_record_gpu *gpu, const struct td_msg_gpu *said, uint32_t load_ppm)
{
	bool is_judged = *said->monitor;

	*gpu = (struct td_record_gpu){.index = said->index,
		.total_bytes = said->total_bytes,
		.load_ppm = load_ppm,
		.clients = said->clients};
	td_gpu_uuid(gpu->uuid, said);
	copy(gpu->name, sizeof(gpu->name), said->name);
	copy(gpu->monitor, sizeof(gpu->monitor), said->monitor);
	copy(gpu->health, sizeof(gpu->health), said->health);
	gpu->room_bytes =
		td_sub_sat(said->capacity_bytes ? said->capacity_bytes : said->total_bytes,
			said->demanded_bytes);
	gpu->accepts = !(said->known & TD_GPU_IS_LOST) && strcmp(said->health, "broken") != 0 &&
		       (!is_judged || said->accepts);
}

static void take_job(struct td_record_job *job, const struct td_msg_job *said)
{
	*job = (struct td_record_job){.gpu = said->gpu,
		.demanded_bytes = said->demanded_bytes,
		.p99_ns = said->p99_ns,
		.objective_ns = said->objective_ns};
	copy(job->job, sizeof(job->job), said->job);
	copy(job->class, sizeof(job->class), said->class);
	copy(job->state, sizeof(job->state), said->state);
}

void td_record_take(
	struct td_record *record, const struct td_snapshot *snapshot, const uint32_t *load_ppm)
{
	record->answers = true;
	record->gpus = record->jobs = record->more_jobs = 0;
	for (size_t i = 0; i < snapshot->gpu_count && record->gpus < TD_RECORD_GPUS; i++)
		take_gpu(&record->gpu[record->gpus++], &snapshot->gpus[i], load_ppm[i]);
	for (size_t i = 0; i < snapshot->job_count; i++)
		if (record->jobs < TD_RECORD_JOBS)
			take_job(&record->job[record->jobs++], &snapshot->jobs[i].said);
		else
			record->more_jobs++;
}

/* -- changes -- */

/* Whether two values lie further apart than a twentieth of the whole. */
static bool is_far(uint64_t a, uint64_t b, uint64_t whole)
{
	return (a > b ? a - b : b - a) > whole / STEP;
}

static bool gpu_differs(const struct td_record_gpu *a, const struct td_record_gpu *b)
{
	if (a->index != b->index || strcmp(a->uuid, b->uuid) || a->accepts != b->accepts ||
		strcmp(a->monitor, b->monitor) || strcmp(a->health, b->health) ||
		a->total_bytes != b->total_bytes)
		return true;
	if ((a->load_ppm == TD_RECORD_UNKNOWN) != (b->load_ppm == TD_RECORD_UNKNOWN))
		return true;
	return is_far(a->load_ppm, b->load_ppm, 1000000) ||
	       is_far(a->room_bytes, b->room_bytes, a->total_bytes);
}

/* A job's state changes with every turn, so it alone is no reason to write. */
static bool job_differs(const struct td_record_job *a, const struct td_record_job *b)
{
	return strcmp(a->job, b->job) || a->gpu != b->gpu || strcmp(a->class, b->class) ||
	       a->objective_ns != b->objective_ns;
}

bool td_record_differs(const struct td_record *before, const struct td_record *now)
{
	if (before->answers != now->answers || before->gpus != now->gpus ||
		before->jobs != now->jobs || before->more_jobs != now->more_jobs)
		return true;
	for (uint32_t i = 0; i < now->gpus; i++)
		if (gpu_differs(&before->gpu[i], &now->gpu[i]))
			return true;
	for (uint32_t i = 0; i < now->jobs; i++)
		if (job_differs(&before->job[i], &now->job[i]))
			return true;
	return false;
}

/* -- writing -- */

static void add_text(struct td_text *text, const char *name, const char *value)
{
	td_text_add(text, ",\"%s\":", name);
	td_text_add_json(text, value);
}

static void add_number(struct td_text *text, const char *name, uint64_t value)
{
	td_text_add(text, ",\"%s\":%" PRIu64, name, value);
}

static void write_gpu(const struct td_record_gpu *gpu, struct td_text *text)
{
	td_text_add(text, "{\"index\":%u", gpu->index);
	add_text(text, "uuid", gpu->uuid);
	add_text(text, "name", gpu->name);
	add_number(text, "total_bytes", gpu->total_bytes);
	add_number(text, "room_bytes", gpu->room_bytes);
	if (gpu->load_ppm != TD_RECORD_UNKNOWN)
		add_number(text, "load_ppm", gpu->load_ppm);
	add_number(text, "clients", gpu->clients);
	td_text_add(text, ",\"accepts\":%s", gpu->accepts ? "true" : "false");
	if (*gpu->monitor)
		add_text(text, "monitor", gpu->monitor);
	if (*gpu->health)
		add_text(text, "health", gpu->health);
	td_text_add(text, "}");
}

static void write_job(const struct td_record_job *job, struct td_text *text)
{
	td_text_add(text, "{\"gpu\":%u", job->gpu);
	add_text(text, "job", job->job);
	add_text(text, "class", job->class);
	add_text(text, "state", job->state);
	add_number(text, "demanded_bytes", job->demanded_bytes);
	if (job->objective_ns) {
		add_number(text, "p99_ns", job->p99_ns);
		add_number(text, "objective_ns", job->objective_ns);
	}
	td_text_add(text, "}");
}

void td_record_write(const struct td_record *record, struct td_text *text)
{
	td_text_add(text, "{\"node\":");
	td_text_add_json(text, record->node);
	td_text_add(text, ",\"answers\":%s,\"gpus\":[", record->answers ? "true" : "false");
	for (uint32_t i = 0; i < record->gpus; i++) {
		td_text_add(text, i ? "," : "");
		write_gpu(&record->gpu[i], text);
	}
	td_text_add(text, "],\"jobs\":[");
	for (uint32_t i = 0; i < record->jobs; i++) {
		td_text_add(text, i ? "," : "");
		write_job(&record->job[i], text);
	}
	td_text_add(text, "],\"more_jobs\":%u}", record->more_jobs);
}
