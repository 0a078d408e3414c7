/* Divides memory by trial and error; see memory_trial.h. */
#include "policy/algo/fit/memory_trial.h"

#include <errno.h>
#include <string.h>

#include "base/bounds.h"

#define CHUNKS_AT_FIRST 8

/*
 * Returns floor(bytes x share / whole) for share <= whole, without overflow. Doubles, rounded down,
 * are exact enough for a starting point.
 */
static uint64_t scale(uint64_t bytes, uint64_t share, uint64_t whole)
{
	double scaled = (double)bytes * ((double)share / (double)whole);

	return scaled > 4096 ? (uint64_t)scaled - 4096 : 0;
}

static uint64_t floor_of(const struct td_memory_trial_job *job)
{
	return td_min_u64(job->floor_bytes, job->demand_bytes);
}

static bool has_changed(const struct td_memory_trial *trial, uint64_t capacity_bytes,
	const struct td_memory_trial_job *jobs, uint32_t count)
{
	if (trial->count != count || trial->capacity_bytes != capacity_bytes)
		return true;
	for (uint32_t i = 0; i < count; i++)
		if (trial->ids[i] != jobs[i].id || trial->demand_bytes[i] != jobs[i].demand_bytes)
			return true;
	return false;
}

static void begin_search(struct td_memory_trial *trial, const struct td_memory_trial_params *params,
	uint64_t capacity_bytes, const struct td_memory_trial_job *jobs, uint32_t count)
{
	uint64_t demand = 0, floors = 0;

	*trial = (struct td_memory_trial){
		.count = count, .capacity_bytes = capacity_bytes, .aggregate = -1};
	for (uint32_t i = 0; i < count; i++) {
		trial->ids[i] = jobs[i].id;
		trial->demand_bytes[i] = jobs[i].demand_bytes;
		demand += jobs[i].demand_bytes;
		floors += floor_of(&jobs[i]);
	}
	trial->settled = demand <= capacity_bytes;
	for (uint32_t i = 0; i < count; i++) {
		uint64_t above = jobs[i].demand_bytes - floor_of(&jobs[i]);

		if (trial->settled)
			trial->limit_bytes[i] = jobs[i].demand_bytes;
		else if (floors >= capacity_bytes)
			trial->limit_bytes[i] = scale(floor_of(&jobs[i]), capacity_bytes, floors);
		else
			trial->limit_bytes[i] =
				floor_of(&jobs[i]) +
				scale(above, capacity_bytes - floors, demand - floors);
	}
	trial->chunk_bytes = capacity_bytes / CHUNKS_AT_FIRST;
	if (trial->chunk_bytes < params->chunk_min_bytes)
		trial->chunk_bytes = params->chunk_min_bytes;
}

/* Gives away memory that the limits leave over, without a trial: it takes nothing from any job. */
static void give_rest(struct td_memory_trial *trial, uint64_t capacity_bytes)
{
	uint64_t used = 0;

	for (uint32_t i = 0; i < trial->count; i++)
		used += trial->limit_bytes[i];
	for (uint32_t i = 0; i < trial->count && used < capacity_bytes; i++) {
		uint64_t more = td_min_u64(
			capacity_bytes - used, trial->demand_bytes[i] - trial->limit_bytes[i]);

		trial->limit_bytes[i] += more;
		used += more;
	}
}

static uint64_t above_floor(
	const struct td_memory_trial *trial, const struct td_memory_trial_job *jobs, uint32_t i)
{
	uint64_t floor_bytes = floor_of(&jobs[i]);

	return trial->limit_bytes[i] > floor_bytes ? trial->limit_bytes[i] - floor_bytes : 0;
}

/* Gives one job all memory that it lacks, taken from the other jobs. */
static bool fill(
	struct td_memory_trial *trial, const struct td_memory_trial_job *jobs, uint32_t receiver)
{
	uint64_t lacks = trial->demand_bytes[receiver] - trial->limit_bytes[receiver];
	uint64_t spare = 0, taken = 0;

	for (uint32_t i = 0; i < trial->count; i++)
		spare += i != receiver ? above_floor(trial, jobs, i) : 0;
	if (!lacks || spare < lacks)
		return false;
	for (uint32_t i = 0; i < trial->count && taken < lacks; i++) {
		uint64_t above = i != receiver ? above_floor(trial, jobs, i) : 0;
		/* 8192 makes up for what scale() rounds off. */
		uint64_t share = scale(above, lacks, spare) + 8192;

		share = td_min_u64(share, td_min_u64(above, lacks - taken));
		trial->limit_bytes[i] -= share;
		taken += share;
	}
	trial->limit_bytes[receiver] += taken;
	return true;
}

static bool move_chunk(struct td_memory_trial *trial, const struct td_memory_trial_params *params,
	const struct td_memory_trial_job *jobs, uint32_t donor, uint32_t receiver)
{
	uint64_t lacks = trial->demand_bytes[receiver] - trial->limit_bytes[receiver];
	uint64_t bytes =
		td_min_u64(trial->chunk_bytes, td_min_u64(above_floor(trial, jobs, donor), lacks));

	if (!bytes || bytes < params->chunk_min_bytes)
		return false;
	trial->limit_bytes[donor] -= bytes;
	trial->limit_bytes[receiver] += bytes;
	return true;
}

static void next_change(struct td_memory_trial *trial, const struct td_memory_trial_params *params)
{
	uint32_t changes = trial->count * trial->count;

	trial->change = (trial->change + 1) % changes;
	if (++trial->failures < changes)
		return;
	trial->failures = 0;
	trial->chunk_bytes /= 2;
	trial->settled = trial->chunk_bytes < params->chunk_min_bytes || !trial->chunk_bytes;
}

/* Starts a trial with the next change that moves any memory. */
static void try_change(struct td_memory_trial *trial, const struct td_memory_trial_params *params,
	const struct td_memory_trial_job *jobs)
{
	memcpy(trial->kept_bytes, trial->limit_bytes, sizeof(trial->kept_bytes));
	while (!trial->settled) {
		uint32_t receiver = trial->change / trial->count,
			 donor = trial->change % trial->count;

		trial->trying = receiver == donor
					? fill(trial, jobs, receiver)
					: move_chunk(trial, params, jobs, donor, receiver);
		if (trial->trying)
			return;
		next_change(trial, params);
	}
}

/* Returns the sum of the speeds; negative if one of them is not known. */
static double measure(const struct td_memory_trial_job *jobs, uint32_t count)
{
	double sum = 0;

	for (uint32_t i = 0; i < count; i++) {
		if (!(jobs[i].speed >= 0))
			return -1;
		sum += jobs[i].speed;
	}
	return sum;
}

int td_memory_trial_step(struct td_memory_trial *trial, const struct td_memory_trial_params *params,
	uint64_t capacity_bytes, const struct td_memory_trial_job *jobs, uint32_t count)
{
	double aggregate;

	if (count > TD_MEMORY_TRIAL_JOBS_MAX)
		return -EINVAL;
	if (has_changed(trial, capacity_bytes, jobs, count)) {
		begin_search(trial, params, capacity_bytes, jobs, count);
		give_rest(trial, capacity_bytes);
		return 0;
	}
	aggregate = measure(jobs, count);
	if (aggregate < 0 || count < 2)
		return 0;
	if (trial->settled) {
		if (trial->aggregate > 0 &&
			aggregate < trial->aggregate * (1 - 10 * params->margin)) {
			begin_search(trial, params, capacity_bytes, jobs, count);
			give_rest(trial, capacity_bytes);
		}
		return 0;
	}
	if (trial->trying) {
		trial->trying = false;
		if (aggregate > trial->aggregate * (1 + params->margin)) {
			trial->aggregate = aggregate;
			trial->failures = 0;
		} else {
			memcpy(trial->limit_bytes, trial->kept_bytes, sizeof(trial->kept_bytes));
			next_change(trial, params);
		}
	} else {
		trial->aggregate = aggregate;
	}
	try_change(trial, params, jobs);
	return 0;
}
