/*
 * Memory of the backend that the program has freed, while work may still use it and nothing may be
 * waited for: cuMemFreeAsync never waits, and beside a capture nobody may. The drain thread waits
 * instead; the memory counts until it is freed.
 *
 *   freed --the work submitted before is over (drain.h), and nothing captures--> given back, by the
 *     drain thread
 *         --its context has been waited for, by a thread of the program-------> given back, by that
 *           one
 *         --its context has ended---------------------------------------------> lost with it
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* context: the memory's, which lives. False: it cannot be; nothing is noted. */
bool td_late_free(uint64_t address, void *context);
/* Freed already? Costs one load where there is none. */
bool td_late_has(uint64_t address);

/*
 * All work of the current context has ended, and nothing captures: what was freed in it is given
 * back.
 */
void td_late_is_over(const void *context);
void td_late_context_ended(const void *context);

/* There is no memory: waits a while for what is yet to be given back. True: some was. */
bool td_late_await(void);

/* The process ends, and all of it with it: the drain thread leaves the driver alone. */
void td_late_exiting(void);
void td_late_forked(void);
