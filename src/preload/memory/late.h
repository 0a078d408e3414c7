/*
 * The backend's memory that the program has freed while work may still use it, and where the caller
 * may not wait: in cuMemFreeAsync, or while a stream captures. The drain thread waits instead. The
 * memory counts until it is freed. One of these happens first:
 *
 *   the work submitted before has ended (drain.h) and nothing captures: the drain thread frees it
 *   a thread of the program has waited for its context: that thread frees it
 *   its context has ended: the memory is lost with it
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * Notes that the address is to be freed; `context` is its living context. False: nothing was noted,
 * because malloc failed.
 */
bool td_late_free(uint64_t address, void *context);
/*
 * Returns whether the program has freed this address already. It costs one load if nothing is
 * noted.
 */
bool td_late_has(uint64_t address);

/* All work of the current context has ended and nothing captures: frees what was noted for it. */
void td_late_is_over(const void *context);
void td_late_context_ended(const void *context);

/*
 * Called when the device is out of memory: waits a while for noted memory to be freed. True: some
 * was.
 */
bool td_late_await(void);

/* The process is exiting: the drain thread makes no more driver calls. */
void td_late_exiting(void);
void td_late_forked(void);
