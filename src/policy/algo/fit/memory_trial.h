/*
 * Divides the memory of a GPU that only besteffort jobs use, by trial and error.
 *
 * Purpose. AntMan (3.3): jobs differ in how much they suffer from tensors on the host (Fig. 10: one
 * loses 25 % at a tenth of its memory, another 60 % at nine tenths). "When the total GPU memory
 * demand of opportunistic jobs exceeds the GPU's memory capacity, AntMan adopts a simple heuristic
 * approach which allocates GPU memory to the job that improves the normalized aggregated job
 * performance at best. This is carried out via an introspective trial-and-error allocation."
 *
 * Method. The aggregate is the sum of the jobs' speeds, each normalised to its speed with all of
 * its memory. One trial changes the limits for one window. If the aggregate has risen by more than
 * the margin, the change stays and is tried once more; otherwise it is undone and the next one is
 * tried. There are n x n changes for n jobs. A chunk moves from a donor to a receiver; where both
 * are the same, the job is filled at the cost of all others, in proportion to what they have above
 * their floors. Filling finds a job that gains nothing below its full demand (ResNet in Fig. 10),
 * for which single chunks show no gain. When every change has failed the chunk is halved; below
 * chunk_min_bytes the search is over. It begins anew when a job comes or goes, a demand changes, or
 * the settled aggregate has fallen by ten margins.
 *
 * The first limits are in proportion to the demands, above each job's floor (its minimal memory).
 *
 * Invariants
 * - the limits' sum never exceeds the capacity, and no limit its job's demand;
 * - no limit falls below the job's floor, unless the floors alone exceed the capacity: then they
 *   are scaled down;
 * - where all demands fit, each job has its demand and nothing is tried;
 * - a kept move has raised the aggregate as measured; a failed one is undone in the next step;
 * - the search ends: every success raises a bounded sum by the margin, and between successes every
 *   change fails once per size.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define TD_MEMORY_TRIAL_JOBS_MAX 16

struct td_memory_trial_job {
	uint32_t id;
	uint64_t demand_bytes;
	uint64_t floor_bytes;
	/*
	 * The speed over the last window, where 1 is the speed with all of the job's memory.
	 * Negative: not known, and the window does not count.
	 */
	double speed;
};

struct td_memory_trial_params {
	uint64_t chunk_min_bytes; /* the trials end when the chunk is smaller; more than 0 */
	double margin;            /* part of the aggregate that a move must gain; more than 0 */
};

/* A zeroed struct has seen no job. */
struct td_memory_trial {
	uint32_t count;
	uint32_t ids[TD_MEMORY_TRIAL_JOBS_MAX];
	uint64_t demand_bytes[TD_MEMORY_TRIAL_JOBS_MAX];
	uint64_t limit_bytes[TD_MEMORY_TRIAL_JOBS_MAX];
	uint64_t capacity_bytes, chunk_bytes;
	double aggregate; /* sum of the speeds under kept_bytes; negative: not measured yet */
	bool trying, settled;
	/* The change on trial; how many failed in a row at this chunk size. */
	uint32_t change, failures;
	uint64_t kept_bytes[TD_MEMORY_TRIAL_JOBS_MAX]; /* the limits without the trial */
};

/*
 * Call once per window. Reads the speeds under the limits of the last step and writes the next
 * limits to trial->limit_bytes, in the order of the jobs. Returns 0, or -EINVAL for more than
 * TD_MEMORY_TRIAL_JOBS_MAX jobs.
 */
int td_memory_trial_step(struct td_memory_trial *trial, const struct td_memory_trial_params *params,
	uint64_t capacity_bytes, const struct td_memory_trial_job *jobs, uint32_t count);
