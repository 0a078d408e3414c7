/* This file implements rows.h. */
#include "cli/rows.h"

#include <string.h>

#include "base/program.h"
#include "base/uuid.h"
#include "gpu/nvml.h"
#include "gpu/nvml_abi.h"
#include "proto/proto.h"
#include "view/metrics.h"
#include "view/snapshot.h"

void td_rows_who(struct td_json *j, const char *job, const char *name, uint32_t pid)
{
	td_json_str(j, "job", job);
	td_json_str(j, "name", name);
	td_json_u64(j, "pid", pid);
}

void td_rows_number(struct td_json *j, const char *key, uint32_t number)
{
	if (number != UINT32_MAX)
		td_json_u64(j, key, number);
}

static void job_fields(struct td_json *j, const struct td_msg_job *job)
{
	td_rows_who(j, job->job, job->name, job->pid);
	td_json_u64(j, "uid", job->uid);
	td_json_str(j, "class", job->class);
	td_json_str(j, "upgrade", *job->upgrade ? job->upgrade : "none");
	td_json_u64(j, "weight", job->weight);
	td_json_str(j, "backend", job->backend);
	td_json_str(j, "state", job->state);
	td_rows_number(j, "gpu", job->gpu);
	td_json_u64(j, "demanded_bytes", job->demanded_bytes);
	td_json_u64(j, "resident_bytes", job->resident_bytes);
	td_json_u64(j, "host_bytes", job->host_bytes);
	td_json_u64(j, "peak_bytes", job->peak_bytes);
	td_json_u64(j, "cached_bytes", job->cached_bytes);
	td_json_u64(j, "overhead_bytes", job->overhead_bytes);
	if (job->limit_bytes)
		td_json_u64(j, "limit_bytes", job->limit_bytes);
	if (job->soft_bytes)
		td_json_u64(j, "soft_limit_bytes", job->soft_bytes);
	td_json_u64(j, "in_use_bytes", job->demanded_bytes - job->cached_bytes);
	td_json_u64(j, "in_bytes", job->in_bytes);
	td_json_u64(j, "out_bytes", job->out_bytes);
	td_json_u64(j, "launches", job->launches);
	td_json_u64(j, "held_ns", job->held_ns);
	td_json_u64(j, "waited_ns", job->waited_ns);
	td_json_u64(j, "gpu_time_ns", job->gpu_time_ns);
	if (job->metered) {
		td_json_u64(j, "gpu_used_ns", job->used_ns);
		td_json_u64(j, "sm_active_ns", job->sm_active_ns);
		td_json_u64(j, "gpu_used_ppm", job->used_ppm);
		td_json_u64(j, "sm_activity_ppm", job->sm_activity_ppm);
		td_json_u64(j, "core_demand_ppm", job->core_demand_ppm);
	}
	td_json_u64(j, "duty_ppm", job->duty_ppm);
	if (job->sm_share_ppm)
		td_json_u64(j, "sm_share_ppm", job->sm_share_ppm);
	if (job->sm_share_wanted_ppm)
		td_json_u64(j, "sm_share_wanted_ppm", job->sm_share_wanted_ppm);
	td_json_u64(j, "handovers", job->handovers);
	td_json_u64(j, "restarts", job->restarts);
	td_json_u64(j, "moves", job->moves);
	if (job->service[0]) {
		td_json_str(j, "service", job->service);
		td_json_u64(j, "p50_ns", job->p50_ns);
		td_json_u64(j, "p99_ns", job->p99_ns);
		td_json_u64(j, "objective_ns", job->objective_ns);
		td_json_u64(j, "requests_per_1000_seconds", job->rate_milli);
		td_json_u64(j, "requests_waiting", job->queued);
		td_json_u64(j, "batch", job->batch);
	}
	if (job->bursts_milli) {
		td_json_u64(j, "bursts_per_1000_seconds", job->bursts_milli);
		td_json_u64(j, "burst_ns", job->burst_ns);
	}
	if (job->step_sure_ppm) {
		td_json_u64(j, "steps", job->steps);
		td_json_u64(j, "step_ns", job->step_ns);
		td_json_str(j, "step_source", job->step_found ? "found" : "told");
		td_json_u64(j, "step_sure_ppm", job->step_sure_ppm);
		td_json_u64(j, "step_error_ppm", 1000000 - job->step_sure_ppm);
		td_json_str(j, "step_memory_source", job->by_allocator ? "allocator" : "driver");
		td_json_u64(j, "step_peak_bytes", job->step_peak_bytes);
		td_json_u64(j, "step_minimal_bytes", job->step_least_bytes);
	}
}

void td_rows_job(struct td_json *j, const struct td_msg_job *job)
{
	td_json_row(j);
	job_fields(j, job);
	td_json_end_row(j);
}

void td_rows_others(struct td_json *j, const struct td_msg_others *others)
{
	td_json_row(j);
	td_rows_who(j, "", "", 0);
	td_json_u64(j, "processes", others->processes);
	td_rows_number(j, "gpu", others->gpu);
	td_json_u64(j, "demanded_bytes", others->demanded_bytes);
	td_json_u64(j, "resident_bytes", others->resident_bytes);
	td_json_u64(j, "host_bytes", others->host_bytes);
	td_json_end_row(j);
}

/*
 * Writes the reasons that hold the clock down, such as "power cap, thermal"; "" if there are none.
 * Returns buf.
 */
static char *throttle_text(uint64_t reasons, char *buf, size_t len)
{
#define X(bit, name) {bit, name},
	static const struct {
		uint64_t bit;
		const char *name;
	} names[] = {NVML_CLOCK_REASONS(X)};
#undef X
	size_t used = 0;

	buf[0] = 0;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && used < len; i++)
		if (reasons & names[i].bit)
			used += (size_t)snprintf(
				buf + used, len - used, "%s%s", used ? ", " : "", names[i].name);
	return buf;
}

void td_rows_gpu(struct td_json *j, const struct td_msg_gpu *gpu)
{
	char text[160];
	char uuid[TD_UUID_TEXT];

	td_json_row(j);
	td_rows_number(j, "index", gpu->index);
	td_json_str(j, "uuid", td_gpu_uuid(uuid, gpu));
	td_json_str(j, "name", gpu->name);
	td_json_u64(j, "total_bytes", gpu->total_bytes);
	td_json_u64(j, "capacity_bytes", gpu->capacity_bytes);
	td_json_u64(j, "resident_bytes", gpu->resident_bytes);
	td_json_u64(j, "demanded_bytes", gpu->demanded_bytes);
	td_json_u64(j, "clients", gpu->clients);
	td_json_str(j, "holder", gpu->holder);
	td_json_u64(j, "handovers", gpu->handovers);
	td_json_u64(j, "handover_ns", gpu->handover_ns);
	td_json_str(j, "mps", gpu->mps);
	td_json_str(j, "mps_text", gpu->mps_text);
	if (*gpu->monitor) {
		td_json_str(j, "monitor", gpu->monitor);
		td_json_str(j, "health", gpu->health);
		td_json_u64(j, "accepts", gpu->accepts);
		td_json_u64(j, "load_ppm", gpu->load_ppm);
		td_json_u64(j, "besteffort_duty_ppm", gpu->duty_ppm);
		td_json_u64(j, "overlimit_ns", gpu->overlimit_ns);
	}
	if (gpu->sm_share_ppm)
		td_json_u64(j, "besteffort_sm_share_ppm", gpu->sm_share_ppm);
	td_json_u64(j, "lost", gpu->known & TD_GPU_IS_LOST ? 1 : 0);
	td_json_u64(j, "divided", gpu->known & TD_GPU_IS_DIVIDED ? 1 : 0);
	if (gpu->known & TD_GPU_KNOWS_UTILISATION)
		td_json_u64(j, "utilisation_ppm", gpu->util_ppm);
	if (gpu->known & TD_GPU_KNOWS_MEMORY) {
		td_json_u64(j, "nvml_used_bytes", gpu->used_bytes);
		td_json_u64(j, "nvml_total_bytes", gpu->memory_bytes);
	}
	if (gpu->known & TD_GPU_KNOWS_CLOCK)
		td_json_u64(j, "sm_mhz", gpu->sm_mhz);
	if (gpu->sm_max_mhz)
		td_json_u64(j, "sm_max_mhz", gpu->sm_max_mhz);
	if (gpu->known & TD_GPU_KNOWS_SM_ACTIVITY)
		td_json_u64(j, "sm_activity_ppm", gpu->sm_activity_ppm);
	if (gpu->known & TD_GPU_KNOWS_THROTTLE)
		td_json_str(j, "throttle", throttle_text(gpu->throttle, text, sizeof(text)));
	if (gpu->xid) {
		td_json_u64(j, "xid", gpu->xid);
		td_json_u64(j, "xid_age_ns", gpu->xid_age_ns);
	}
	if (gpu->known & TD_GPU_KNOWS_TEMPERATURE)
		td_json_u64(j, "temperature_celsius", gpu->temperature_c);
	if (gpu->known & TD_GPU_KNOWS_POWER)
		td_json_u64(j, "power_mw", gpu->power_mw);
	td_json_end_row(j);
}

static void rated_job(struct td_json *j, const struct td_snapshot_job *job)
{
	td_json_row(j);
	job_fields(j, &job->said);
	if (job->has_rates) {
		td_json_double(j, "time_ratio", job->held);
		td_json_double(j, "busy_ratio", job->busy);
		td_json_double(j, "in_bytes_per_second", job->in_bytes);
		td_json_double(j, "out_bytes_per_second", job->out_bytes);
		td_json_double(j, "launches_per_second", job->launches);
	}
	td_json_end_row(j);
}

void td_rows_print_json(const struct td_snapshot *s)
{
	struct td_json j;

	printf("{\"time_ns\": %llu, \"gpus\": ", (unsigned long long)s->time_ns);
	td_json_begin(&j, stdout);
	for (size_t i = 0; i < s->gpu_count; i++)
		td_rows_gpu(&j, &s->gpus[i]);
	td_json_end(&j);
	printf(", \"jobs\": ");
	td_json_begin(&j, stdout);
	for (size_t i = 0; i < s->job_count; i++)
		rated_job(&j, &s->jobs[i]);
	for (size_t i = 0; i < s->other_count; i++)
		td_rows_others(&j, &s->others[i]);
	td_json_end(&j);
	puts("}");
	td_output_flush();
}
