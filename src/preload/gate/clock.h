/*
 * A clock of each GPU by the process's own events, and what of its time was paid for: work of several streams or threads that overlapped counts once. The spans in which the GPU has worked are kept on one
 * scale, the distance from an event that is exchanged for a younger one now and then, as a driver tells such distances in floats.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct td_driver;

/* Between two events that are complete; negative: not known. */
double td_clock_between_ns(const struct td_driver *driver, void *from, void *to);

/* Of work that took raw_ns and ended with an event of that context, the part that nobody has paid for: it counts as paid from now on. False: there is no clock for it. gpu: a slot. */
bool td_clock_find_fresh(int gpu, uint64_t context, const struct td_driver *driver, void *event,
	uint64_t raw_ns, uint64_t *ret_ns);

/*
 * A complete event that its owner needs no more, or NULL, may become the clock's; without one, or where that of a dead context ticks, it does. Returns it, or another to be used
 * again, or NULL where it is the clock's from now on.
 */
void *td_clock_set(int gpu, uint64_t context, const struct td_driver *driver, void *event);

/* In the child of a fork. */
void td_clock_forked(void);
