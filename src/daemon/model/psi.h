/*
 * Memory pressure of the machine, by the kernel's pressure stall information (PSI), and what is
 * done about it: besteffort jobs are evicted (MuxFlow 4.4). Pure.
 *
 *   CALM     --the pressure has been at the bound for lasts_ns-->   one job is evicted, SETTLING
 *   SETTLING --settle_ns are over-->                                CALM
 *
 * The kernel's figure is a mean over 10 s. It falls slowly behind an eviction, so the next one
 * waits for that.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct td_psi {
	uint32_t some_ppm; /* of the last 10 s, in which some process waited for memory */
	uint32_t full_ppm; /* in which all that were not idle did */
};

/* The text of /proc/pressure/memory, or of memory.pressure of a control group. 0 or -EINVAL. */
int td_psi_parse(const char *text, struct td_psi *ret);

struct td_pressure_params {
	uint32_t full_ppm; /* the bound; 0: nothing is evicted */
	uint64_t lasts_ns, settle_ns;
};
/* lasts_ns 3 s, settle_ns 15 s. */
extern const struct td_pressure_params td_pressure_default;

/* Zeroed: CALM. */
struct td_pressure {
	uint64_t since_ns;   /* since when it has been at the bound; 0: it is not */
	uint64_t settles_ns; /* until then nothing is evicted */
};

/* True: one besteffort job is to be evicted now. */
bool td_pressure_step(struct td_pressure *pressure, const struct td_pressure_params *params,
	const struct td_psi *psi, uint64_t now_ns);
