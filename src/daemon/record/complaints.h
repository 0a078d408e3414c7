/* Limits how often something is logged: a token bucket, so that nobody fills the disk. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"

/* A user may make this many complaints at once, and then one per interval. */
#define TD_COMPLAINTS_BURST    10
#define TD_COMPLAINTS_EVERY_NS (10 * TD_NS_PER_S)

/* Zeros: a full bucket. */
struct td_complaints {
	uint64_t full_ns; /* when the bucket is full again */
	uint32_t suppressed;
};

/* True: log it, with the number suppressed since the last one. */
bool td_complaints_allow(
	struct td_complaints *complaints, uint64_t now_ns, uint32_t *ret_suppressed);
