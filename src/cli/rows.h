/* Writes the daemon's rows as JSON, for `tandem ps`, `tandem gpu` and `tandem top`. */
#pragma once

#include "cli/json.h"

struct td_msg_gpu;
struct td_msg_job;
struct td_msg_others;
struct td_snapshot;
struct td_snapshot_job;

/* Writes a field, unless the number is UINT32_MAX. */
void td_rows_number(struct td_json *j, const char *key, uint32_t number);
/*
 * Writes the fields that name a process. Empty strings and 0 mean that there is no single process.
 */
void td_rows_who(struct td_json *j, const char *job, const char *name, uint32_t pid);

void td_rows_job(struct td_json *j, const struct td_msg_job *job);
void td_rows_others(struct td_json *j, const struct td_msg_others *others);
void td_rows_gpu(struct td_json *j, const struct td_msg_gpu *gpu);

/* Prints one round of WATCH as an object on stdout: time_ns, gpus, jobs. */
void td_rows_print_json(const struct td_snapshot *snapshot);
