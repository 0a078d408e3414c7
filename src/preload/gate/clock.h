/*
 * A clock for each GPU, driven by the process's own events. It knows which part of the GPU's time
 * has been paid for, so that overlapping work of several streams or threads is charged once. Busy
 * spans are kept as distances from a base event. The base is replaced by a younger event now and
 * then, because the driver reports distances as floats.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct td_driver;

/* The time between two complete events; negative: not known. */
double td_clock_between_ns(const struct td_driver *driver, void *from, void *to);

/*
 * Returns in *ret the part of the last raw_ns before the event that nobody has paid for, and marks
 * it paid. False: the context has no clock. gpu is the GPU's number in this process.
 */
bool td_clock_find_fresh(int gpu, uint64_t context, const struct td_driver *driver, void *event,
	uint64_t raw_ns, uint64_t *ret_ns);

/*
 * Offers a complete event, or NULL, as the clock's base. The clock takes it where it has no base or
 * its base belongs to a dead context. Returns an event that the caller may use again, or NULL if
 * the clock took it.
 */
void *td_clock_set(int gpu, uint64_t context, const struct td_driver *driver, void *event);

/* Called in the child of a fork. */
void td_clock_forked(void);
