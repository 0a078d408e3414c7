/*
 * Host memory for bytes that have left the device. It is pinned, so that copies run at full speed.
 * It is the process's own memory, so it outlives the context that pinned it. It is limited by
 * TANDEM_HOST_LIMIT and by the daemon's grant (host.h). Any thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Returns NULL if malloc or pinning fails, or if the limits forbid more. */
void *td_arena_new(uint64_t bytes);
void td_arena_free(void *arena, uint64_t bytes);

/* Returns TANDEM_HOST_LIMIT in bytes; UINT64_MAX: no limit. */
uint64_t td_arena_limit(void);
