/* Why memory that processes share cannot be opened, as `tandem explain` and events say it. */
#pragma once

#include <stdint.h>

/* The rest of a sentence behind a colon. */
const char *td_shares_reason(unsigned denied);
const char *td_shares_obstacle(unsigned unreachable);
