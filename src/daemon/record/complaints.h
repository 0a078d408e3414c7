/* Limits how often something is logged, by a token bucket, so that a user cannot fill the disk. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"

/* A user may make this many complaints at once, and then one per interval. */
#define TD_COMPLAINTS_BURST    10
#define TD_COMPLAINTS_EVERY_NS (10 * TD_NS_PER_S)

/* A zeroed struct is a full bucket. */
struct td_complaints {
	uint64_t full_ns; /* when the bucket is full again */
	uint32_t suppressed;
};

/*
 * Returns whether to log this complaint; if so, also how many were suppressed since the last one.
 */
bool td_complaints_allow(
	struct td_complaints *complaints, uint64_t now_ns, uint32_t *ret_suppressed);
