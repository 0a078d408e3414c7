/*
 * The bursts of work of an online program whose requests are not known, as its library sees them in
 * its launches (preload/measure/bursts.h). They show how much work comes, and not how long requests
 * wait before it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct td_process;

struct td_bursts_seen {
	double per_s;
	uint64_t length_ns; /* from the first call to the last, on average; not the GPU's time */
};

/* Does only the GPU tell something of the program's requests? */
bool td_bursts_are_wanted(const struct td_process *process);
/* Returns whether there were any. The program writes the figures, so they are not trusted. */
bool td_bursts_of(const struct td_process *process, uint64_t now_ns, struct td_bursts_seen *ret);
