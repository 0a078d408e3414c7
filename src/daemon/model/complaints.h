/* How often something is said in the log: a token bucket, so that nobody fills the disk. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"

/* So many at once, and then one in so long. */
#define TD_COMPLAINTS_BURST    10
#define TD_COMPLAINTS_EVERY_NS (10 * TD_NS_PER_S)

/* Zeros: a full bucket. */
struct td_complaints {
	uint64_t full_ns; /* when the bucket is full again */
	uint32_t suppressed;
};

/* True: say it, with how many were suppressed since the last one. */
bool td_complaints_allow(
	struct td_complaints *complaints, uint64_t now_ns, uint32_t *ret_suppressed);
