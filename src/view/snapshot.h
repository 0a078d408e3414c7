/*
 * A daemon's report on its node at one moment: the rows of one round of WATCH (proto/messages.def),
 * and rates computed from two rounds, such as the share of the time that a job had the GPU. For
 * `tandem top`, `tandem ps`, the metrics and the web page.
 *
 * The functions are pure, apart from allocating memory.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/proto.h"

/* One process on one GPU. */
struct td_snapshot_job {
	struct td_msg_job said;
	/*
	 * How fast this row's counters rose since the previous round; has_rates: the previous round
	 * had this row.
	 */
	bool has_rates;
	double held;      /* the share of the time in which its gate was open: 0 to 1 */
	double busy;      /* the share of the time in which its kernels ran; 0 without a meter */
	double in_bytes;  /* bytes per second moved to the GPU */
	double out_bytes; /* bytes per second moved to the host */
	double launches;  /* launches per second */
};

/* All rows of one round, in the order of arrival. */
struct td_snapshot {
	/* The time of the round by the daemon's clock; 0: the round is not complete. */
	uint64_t time_ns;
	struct td_msg_gpu *gpus;
	struct td_snapshot_job *jobs;
	struct td_msg_others *others;
	size_t gpu_count, job_count, other_count;
	size_t gpu_room, job_room, other_room; /* allocated entries */
};

void td_snapshot_init(struct td_snapshot *snapshot);
void td_snapshot_deinit(struct td_snapshot *snapshot);

/* Forgets the rows and keeps their memory for the next round. */
void td_snapshot_clear(struct td_snapshot *snapshot);

/*
 * Takes one message of a round. Returns 1 if it was END, so that the round is complete; 0 if more
 * is to come; or -ENOMEM. Messages of other kinds are ignored.
 */
int td_snapshot_take(struct td_snapshot *snapshot, const struct td_msg *msg);

/*
 * Computes the rates of the jobs of `now`. `before` is an older round, and complete. A counter that
 * has gone back counts as unchanged. Takes O(n log n). Returns 0 or -ENOMEM.
 */
int td_snapshot_rates(struct td_snapshot *now, const struct td_snapshot *before);

/*
 * Returns the share of the time, 0 to 1, in which a GPU worked, by NVML. Without NVML it is the
 * share in which jobs might use it. Below 0: unknown.
 */
double td_snapshot_use(const struct td_snapshot *snapshot, const struct td_msg_gpu *gpu);
