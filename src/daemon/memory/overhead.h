/*
 * What a process takes on a GPU beside what it allocates: contexts, loaded code, stacks, rounding,
 * and imported memory that nobody else counts any more (docs/decisions/0009). No call tells it.
 * NVML tells what each process has there in all, and the client what it knows of. The difference
 * counts in the job's limits (docs/decisions/0007).
 *
 * The two figures are of different moments. So the difference is believed only if the client's own
 * figure was the same in two samples; of the two differences the lesser counts. No sample counts
 * while the process has yet to do what it was told. At most an eighth of the GPU is believed, and
 * what the process has imported.
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
 * At the beginning of a step: what clients have imported that no two samples have been about counts
 * in their jobs' hard limits, so that nobody has more of it than that before NVML tells; who lacks
 * room because of it waits for that, a second at most. Returns when this changes by itself,
 * TD_NEVER: it does not.
 */
uint64_t td_overhead_step(struct td_node *node, uint64_t now_ns);

/*
 * The client has given up so much that others of its user may have open, and which may be theirs
 * now: of what they have imported as much counts as if it had just come.
 */
void td_overhead_given_up(struct td_node *node, const struct td_client *by, uint64_t bytes);

/*
 * Of what the client has imported so much is not what samples have been about: it has been closed,
 * or is another's no more.
 */
void td_overhead_doubt(struct td_client *client, uint64_t bytes);

/*
 * When the next sample is wanted earlier than usual, given when the last was taken: a job with a
 * limit has a process on a GPU of which nothing is known yet, or one that has imported more than is
 * known of. now_ns or earlier: at once. TD_NEVER: it is not.
 */
uint64_t td_overhead_wants_ns(const struct td_node *node, uint64_t sampled_ns, uint64_t now_ns);
