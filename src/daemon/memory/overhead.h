/*
 * The overhead of a process on a GPU is the memory that it takes beside its allocations: contexts,
 * loaded code, stacks, rounding, and imported memory that no other process counts any more
 * (docs/decisions/0009). No call returns it. NVML tells the total memory of each process, and the
 * client tells the memory that it knows of. The difference counts in the job's limits
 * (docs/decisions/0007).
 *
 * The two figures are taken at different times. So the difference is believed only if the client's
 * own figure was the same in two samples, and the smaller of the two differences counts. No sample
 * counts while the process has yet to carry out a GRANT, or claims more memory than it reported:
 * it may be preempted between an allocation and its report for any time. At most an eighth of the
 * GPU plus the imported memory is believed.
 */
#pragma once

#include <stdint.h>

#include "gpu/nvml.h"

struct td_client;
struct td_node;

/* Takes a new sample of NVML. uses[].gpu is an index into gpus. */
void td_overhead_seen(struct td_node *node, const struct td_nvml_gpu *gpus,
	const struct td_nvml_use *uses, uint32_t count);

/*
 * Called at the beginning of a step. Imported memory that was not there in two samples counts in
 * the hard limit of the client's job, so that no job exceeds its limit before NVML shows the
 * memory. An allocation that lacks room because of this waits for the samples, a second at most.
 * Returns when this changes by time alone, or TD_NEVER.
 */
uint64_t td_overhead_step(struct td_node *node, uint64_t now_ns);

/*
 * The client `by` has freed `bytes` of memory that other processes of its user may have open. From
 * now on those processes may be the only owners. So that many bytes of their imported memory count
 * as if they had just been imported.
 */
void td_overhead_given_up(struct td_node *node, const struct td_client *by, uint64_t bytes);

/*
 * `bytes` of the client's imported memory were closed, or belong to another process no more. The
 * samples until now do not describe that.
 */
void td_overhead_doubt(struct td_client *client, uint64_t bytes);

/*
 * Returns when to take a sample earlier than usual, or TD_NEVER. This is so when a job with a limit
 * has a process on a GPU whose overhead is unknown, or a process that imported memory which no
 * sample has shown. sampled_ns is the time of the last sample. A result of at most now_ns means at
 * once.
 */
uint64_t td_overhead_wants_ns(const struct td_node *node, uint64_t sampled_ns, uint64_t now_ns);
