/*
 * The overhead of a process on a GPU is the memory that it takes beside its allocations: contexts,
 * loaded code, stacks, rounding, and imported memory that nobody else counts any more
 * (docs/decisions/0009). No call tells it. NVML tells the memory of each process in all, and the
 * client tells the memory that it knows of. The difference counts in the job's limits
 * (docs/decisions/0007).
 *
 * The two figures are of different moments. So the difference is believed only if the client's own
 * figure was the same in two samples, and the lesser of the two differences counts. No sample
 * counts while the process has yet to do what it was told. At most an eighth of the GPU and the
 * imported memory are believed.
 */
#pragma once

#include <stdint.h>

#include "gpu/nvml.h"

struct td_client;
struct td_node;

/* A new sample. uses[].gpu counts in gpus. */
void td_overhead_seen(struct td_node *node, const struct td_nvml_gpu *gpus,
	const struct td_nvml_use *uses, uint32_t count);

/*
 * Called at the beginning of a step. Imported memory that was not there in two samples counts in
 * the hard limit of the client's job, so that no job exceeds its limit before NVML shows the
 * memory. An allocation that lacks room because of this waits for the samples, a second at most.
 * Returns when this changes by itself; TD_NEVER: it does not.
 */
uint64_t td_overhead_step(struct td_node *node, uint64_t now_ns);

/*
 * The client has freed so much memory that others of its user may have open, and that may be theirs
 * now. As much of their imported memory counts as if it had just come.
 */
void td_overhead_given_up(struct td_node *node, const struct td_client *by, uint64_t bytes);

/*
 * So much of the client's imported memory has been closed, or belongs to another process no more:
 * the samples so far do not describe it.
 */
void td_overhead_doubt(struct td_client *client, uint64_t bytes);

/*
 * When the next sample is wanted earlier than usual, given when the last was taken: a job with a
 * limit has a process on a GPU of which nothing is known yet, or one that has imported more than is
 * known of. now_ns or earlier: at once. TD_NEVER: it is not.
 */
uint64_t td_overhead_wants_ns(const struct td_node *node, uint64_t sampled_ns, uint64_t now_ns);
