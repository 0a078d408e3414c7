/*
 * A daemon's report on its node at one moment: the rows of one round of WATCH (proto/messages.def),
 * and the rates that follow from two rounds, such as the share of the time that a job had the GPU.
 *
 * Functions are pure, messages in and rows out, and only allocate memory. Used by `tandem top`.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/proto.h"

/* One process on one GPU. */
struct td_snapshot_job {
	struct td_msg_job said;
	/* Rates since the last round that had this row. has_rates: there was one. */
	bool has_rates;
	double held;      /* the share of the time in which its gate was open: 0 to 1 */
	double busy;      /* the share of the time in which its kernels ran; 0 without a meter */
	double in_bytes;  /* moved to the GPU, a second */
	double out_bytes; /* moved to the host, a second */
	double launches;  /* a second */
};

/* All rows of one round, in the order of arrival. */
struct td_snapshot {
	uint64_t time_ns; /* of the daemon's clock; 0: the round is not complete */
	struct td_msg_gpu *gpus;
	struct td_snapshot_job *jobs;
	struct td_msg_others *others;
	size_t gpu_count, job_count, other_count;
	size_t gpu_room, job_room, other_room; /* entries that are allocated */
};

void td_snapshot_init(struct td_snapshot *snapshot);
void td_snapshot_deinit(struct td_snapshot *snapshot);

/* Forgets the rows and keeps their memory for the next round. */
void td_snapshot_clear(struct td_snapshot *snapshot);

/* Takes one message of a round. 1: it was the END, the round is complete; 0: more is to come;
 * -ENOMEM. A message of another kind is ignored. */
int td_snapshot_take(struct td_snapshot *snapshot, const struct td_msg *msg);

/* Computes the rates of the jobs of `now` against `before`, which is complete and older. A counter
 * that has gone back counts as one that has not moved. O(n log n). 0 or -ENOMEM. */
int td_snapshot_rates(struct td_snapshot *now, const struct td_snapshot *before);

/* The share of the time in which a GPU worked, by NVML, or else in which jobs might use it: 0 to 1;
 * below 0: not known. */
double td_snapshot_use(const struct td_snapshot *snapshot, const struct td_msg_gpu *gpu);
