/*
 * Host memory for bytes that have left the device: pinned, so that it is copied at the link's rate,
 * and the process's own, so that it outlives the context that pinned it. No more than
 * TANDEM_HOST_LIMIT in all, and than the daemon grants (host.h). Any thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* NULL: there is no more, or may be no more. */
void *td_arena_new(uint64_t bytes);
void td_arena_free(void *arena, uint64_t bytes);

/* The limit of all of it; UINT64_MAX: as much as the host has. */
uint64_t td_arena_limit(void);
