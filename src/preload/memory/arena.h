/*
 * The host memory that holds what has left the device. It is pinned, so that copies run at full
 * speed. It belongs to the process, so it outlives the context that pinned it. TANDEM_HOST_LIMIT
 * and the daemon's grant (host.h) limit its size. Any thread may use it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Returns NULL if malloc or pinning fails, or if the limits forbid more. */
void *td_arena_new(uint64_t bytes);
void td_arena_free(void *arena, uint64_t bytes);

/* Returns TANDEM_HOST_LIMIT in bytes; UINT64_MAX: no limit. */
uint64_t td_arena_limit(void);
