/*
 * The record of a node, which its agent keeps in the state (node/NAME) and schedulers read: the
 * GPUs with their room, load and verdict, and what runs. It names jobs, but neither programs nor
 * users.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/uuid.h"

struct td_snapshot;
struct td_text;

#define TD_RECORD_GPUS    64u
#define TD_RECORD_JOBS    256u /* rows of jobs on GPUs; further ones are only counted */
#define TD_RECORD_NAME    128u
#define TD_RECORD_WORD    16u
#define TD_RECORD_UNKNOWN UINT32_MAX

struct td_record_gpu {
	uint32_t index; /* its number on the node */
	char uuid[TD_UUID_TEXT];
	char name[TD_RECORD_NAME];
	uint64_t total_bytes;
	uint64_t room_bytes; /* memory that no job has asked for */
	uint32_t load_ppm;   /* the mean of the last 10 s; TD_RECORD_UNKNOWN */
	uint32_t clients;
	bool accepts; /* more besteffort work may come: it is healthy, and SysMonitor allows it */
	char monitor[TD_RECORD_WORD]; /* SysMonitor's state; "": the policy does not judge */
	char health[TD_RECORD_WORD];
};

/* One job on one GPU. */
struct td_record_job {
	char job[TD_RECORD_NAME];
	uint32_t gpu;
	char class[TD_RECORD_WORD], state[TD_RECORD_WORD];
	uint64_t demanded_bytes;
	uint64_t p99_ns, objective_ns; /* only of a service; objective_ns is 0 if it is not one */
};

struct td_record {
	char node[TD_RECORD_NAME];
	bool answers; /* the node's daemon does */
	struct td_record_gpu gpu[TD_RECORD_GPUS];
	struct td_record_job job[TD_RECORD_JOBS];
	uint32_t gpus, jobs;
	uint32_t more_jobs; /* rows that did not fit */
};

/*
 * Fills the record from a complete round of the daemon. load_ppm has an entry for each GPU of the
 * snapshot.
 */
void td_record_take(
	struct td_record *record, const struct td_snapshot *snapshot, const uint32_t *load_ppm);

/*
 * Whether what a scheduler decides by has changed: GPUs, verdicts, jobs; room or load by more than
 * a twentieth.
 */
bool td_record_differs(const struct td_record *before, const struct td_record *now);

/* Writes it as JSON. */
void td_record_write(const struct td_record *record, struct td_text *text);
/*
 * Reads what td_record_write() wrote. Fields that it does not know are ignored, so records of newer
 * agents can be read. Returns 0, -EBADMSG or -ENOMEM. *ret is written only on success.
 */
int td_record_read(const char *bytes, size_t length, struct td_record *ret);
