/* Reads the record of a node; see record.h. */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/node/record.h"

/* A text that fits. Absent is "". */
static bool get_text(const json_t *object, const char *name, char *ret, size_t room)
{
	const json_t *field = json_object_get(object, name);
	const char *text = field ? json_string_value(field) : "";

	if (!text || strlen(text) >= room)
		return false;
	strcpy(ret, text);
	return true;
}

/* A number from 0 to the most. */
static bool get_number(
	const json_t *object, const char *name, uint64_t absent, uint64_t most, uint64_t *ret)
{
	const json_t *field = json_object_get(object, name);
	json_int_t value = json_integer_value(field);

	*ret = absent;
	if (!field)
		return true;
	if (!json_is_integer(field) || value < 0 || (uint64_t)value > most)
		return false;
	*ret = (uint64_t)value;
	return true;
}

static bool get_u32(const json_t *object, const char *name, uint32_t absent, uint32_t *ret)
{
	uint64_t value;

	if (!get_number(object, name, absent, UINT32_MAX, &value))
		return false;
	*ret = (uint32_t)value;
	return true;
}

static bool get_u64(const json_t *object, const char *name, uint64_t *ret)
{
	return get_number(object, name, 0, INT64_MAX, ret);
}

static bool get_bool(const json_t *object, const char *name, bool *ret)
{
	const json_t *field = json_object_get(object, name);

	*ret = json_is_true(field);
	return !field || json_is_boolean(field);
}

static bool read_gpu(const json_t *row, struct td_record_gpu *gpu)
{
	return json_is_object(row) && get_u32(row, "index", 0, &gpu->index) &&
	       get_text(row, "uuid", gpu->uuid, sizeof(gpu->uuid)) &&
	       get_text(row, "name", gpu->name, sizeof(gpu->name)) &&
	       get_u64(row, "total_bytes", &gpu->total_bytes) &&
	       get_u64(row, "room_bytes", &gpu->room_bytes) &&
	       get_u32(row, "load_ppm", TD_RECORD_UNKNOWN, &gpu->load_ppm) &&
	       get_u32(row, "clients", 0, &gpu->clients) &&
	       get_bool(row, "accepts", &gpu->accepts) &&
	       get_text(row, "monitor", gpu->monitor, sizeof(gpu->monitor)) &&
	       get_text(row, "health", gpu->health, sizeof(gpu->health));
}

static bool read_job(const json_t *row, struct td_record_job *job)
{
	return json_is_object(row) && get_u32(row, "gpu", 0, &job->gpu) &&
	       get_text(row, "job", job->job, sizeof(job->job)) &&
	       get_text(row, "class", job->class, sizeof(job->class)) &&
	       get_text(row, "state", job->state, sizeof(job->state)) &&
	       get_u64(row, "demanded_bytes", &job->demanded_bytes) &&
	       get_u64(row, "p99_ns", &job->p99_ns) &&
	       get_u64(row, "objective_ns", &job->objective_ns);
}

static bool read_record(const json_t *root, struct td_record *record)
{
	const json_t *gpus = json_object_get(root, "gpus"), *jobs = json_object_get(root, "jobs");

	if (!json_is_object(root) || !json_is_array(gpus) || !json_is_array(jobs) ||
		json_array_size(gpus) > TD_RECORD_GPUS || json_array_size(jobs) > TD_RECORD_JOBS)
		return false;
	for (size_t i = 0; i < json_array_size(gpus); i++)
		if (!read_gpu(json_array_get(gpus, i), &record->gpu[record->gpus++]))
			return false;
	for (size_t i = 0; i < json_array_size(jobs); i++)
		if (!read_job(json_array_get(jobs, i), &record->job[record->jobs++]))
			return false;
	return get_text(root, "node", record->node, sizeof(record->node)) &&
	       get_bool(root, "answers", &record->answers) &&
	       get_u32(root, "more_jobs", 0, &record->more_jobs);
}

int td_record_read(const char *bytes, size_t length, struct td_record *ret)
{
	json_error_t error;
	json_t *root = json_loadb(bytes, length, 0, &error);
	struct td_record *record = calloc(1, sizeof(*record));
	int r = 0;

	if (!record)
		r = -ENOMEM;
	else if (!root || !read_record(root, record))
		r = -EBADMSG;
	else
		*ret = *record;
	json_decref(root);
	free(record);
	return r;
}
