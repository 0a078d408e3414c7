/*
 * Mudi's device selector: finds the service that a training task disturbs least.
 *
 * Purpose. Mudi (5.2) assigns an incoming training task "to the device that yields the smallest
 * average slope across all batching sizes within the set {16, 32, 64, 128, 256, 512}": a service
 * whose latency hardly depends on its share suffers little and can give much away. The slopes are
 * negative; "smallest" means the least magnitude. They are predicted per (service, batch, task) by
 * learnt models (predict.h), so the score is per service, not per device: a cluster of a thousand
 * devices with six services needs six scores.
 *
 * The paper admits up to three training tasks per device (5.5). A further task is scored by the
 * service's curves beside all of them, which the caller predicts from the sum of their layers.
 *
 * Invariants
 * - a device that does not accept, is full, or lacks the memory is never chosen;
 * - of equal scores the one with fewer tasks, then the first;
 * - same input, same device.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "policy/algo/fit/curve.h"

#define TD_SELECTOR_TASKS_MAX 3
#define TD_SELECTOR_BATCHES   6

/* The batches are 16, 32, ..., 512. */
extern const uint32_t td_selector_batches[TD_SELECTOR_BATCHES];

struct td_selector_device {
	uint32_t service; /* index of its service in `scores` */
	uint32_t tasks;   /* number of training tasks on it */
	bool accepts;
	uint64_t free_bytes;
};

/* Returns the mean magnitude of the slopes over the curves of all batches. */
double td_selector_score(const struct td_curve *curves, uint32_t count);

/*
 * Returns the index of the device, or UINT32_MAX if there is none. A score that is not finite
 * excludes its service's devices.
 */
uint32_t td_selector_choose(const struct td_selector_device *devices, uint32_t count,
	const double *scores, uint64_t needed_bytes, uint32_t tasks_max);
