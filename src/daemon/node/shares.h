/*
 * Texts that say why memory shared by processes cannot be opened, for `tandem explain` and events.
 */
#pragma once

#include <stdint.h>

/* Each returns the rest of a sentence, to be put behind a colon. */
const char *td_shares_reason(unsigned denied);
const char *td_shares_obstacle(unsigned unreachable);
