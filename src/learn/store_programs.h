/*
 * Programs, pairs of them, and how well a model predicts pairs: tables of the store (store.h).
 *
 * Schema. Ratios are of 1; gpu is the name that the driver tells.
 * - program(gpu, program, ...): the means over `runs` dry runs, alone; one row for each program.
 *   Its columns are the members of struct td_program. Primary key (gpu, program).
 * - pair(id, gpu, online, offline, policy, sm_share, seconds, speed, online_speed, time_s): one row
 *   for each measurement of an offline program beside an online one; see struct td_pair
 * - quality(target, gpu, rows, programs, error, mean_error): of the model of that target. rows,
 *   programs: what it was trained on. error, mean_error: root mean square, over programs left out,
 *   of the model and of the mean of all. Primary key (target, gpu).
 *
 * Errors are those of store.h. A row that is read has finite numbers, none of them below 0.
 */
#pragma once

#include <stdint.h>

struct td_store;

#define TD_PROGRAM_NAME    64
#define TD_PROGRAM_COMMAND 1024

struct td_program {
	char gpu[TD_PROGRAM_NAME], name[TD_PROGRAM_NAME];
	char command[TD_PROGRAM_COMMAND]; /* the command of the last run, for people to read */
	uint64_t runs;
	int64_t time_s;     /* the time of the last run, in seconds since 1970 */
	double seconds;     /* measured, of all runs together */
	double utilisation; /* the part of the time in which its kernels run */
	double sm_activity; /* the same, times the part of the SMs that they take */
	double core_demand; /* the same, times the part of the room for blocks; may exceed 1 */
	double duty;        /* the part of the time that it might use; 1: all */
	double launches_per_s;
	double steps_per_s, step_s; /* 0: its steps are not known */
	double step_sure;           /* how sure the steps are, from 0 to 1 */
	/*
	 * The latency and the rate of a service; 0: the program is no service, or had no requests.
	 */
	double p99_s, requests_per_s;
	uint64_t peak_bytes;     /* the most that was allocated at a time, in any run */
	uint64_t resident_bytes; /* the most of it that was on the GPU at a time, in any run */
};

/*
 * Adds one run (program->runs is not read): the row has then the means over all runs, each of
 * which counts the same. Steps and latencies are means over the runs that had them last.
 */
int td_store_add_program(struct td_store *store, const struct td_program *program);
int td_store_get_program(
	struct td_store *store, const char *gpu, const char *name, struct td_program *ret_program);

/*
 * Reads all programs of a GPU (NULL: of all), by GPU and name. *ret_programs is the caller's to
 * free. -ENOENT: there are none.
 */
int td_store_get_programs(struct td_store *store, const char *gpu, struct td_program **ret_programs,
	uint32_t *ret_count);

struct td_pair {
	char gpu[TD_PROGRAM_NAME], online[TD_PROGRAM_NAME], offline[TD_PROGRAM_NAME];
	char policy[TD_PROGRAM_NAME]; /* the daemon's policy at that time */
	double sm_share;              /* the offline program's share of all SMs */
	double seconds;               /* measured */
	double speed;                 /* the offline program's speed; 1: as fast as alone */
	double online_speed;          /* likewise */
	int64_t time_s;
};

int td_store_add_pair(struct td_store *store, const struct td_pair *pair);

/*
 * Reads the pairs that were measured on GPUs of this name, the oldest first. *ret_pairs is the
 * caller's to free. -ENOENT: there are none.
 */
int td_store_get_pairs(
	struct td_store *store, const char *gpu, struct td_pair **ret_pairs, uint32_t *ret_count);

struct td_quality {
	uint32_t rows, programs;
	double error, mean_error;
};

int td_store_put_quality(struct td_store *store, const char *target, const char *gpu,
	const struct td_quality *quality);
int td_store_get_quality(struct td_store *store, const char *target, const char *gpu,
	struct td_quality *ret_quality);
