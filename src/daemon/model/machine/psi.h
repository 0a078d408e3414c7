/*
 * Memory pressure of the machine, from the kernel's pressure stall information (PSI). Under
 * pressure, besteffort jobs are evicted (MuxFlow 4.4). Pure.
 *
 *   CALM     --the pressure has been at the bound for lasts_ns-->   one job is evicted, SETTLING
 *   SETTLING --settle_ns are over-->                                CALM
 *
 * The kernel's figure is a mean over 10 s. It falls slowly after an eviction, so settle_ns must
 * pass before the next one.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct td_psi {
	/* the part of the last 10 s in which at least one process waited for memory */
	uint32_t some_ppm;
	/* the part in which all processes that were not idle waited for memory */
	uint32_t full_ppm;
};

/* Parses /proc/pressure/memory, or memory.pressure of a control group. Returns 0 or -EINVAL. */
int td_psi_parse(const char *text, struct td_psi *ret);

struct td_pressure_params {
	uint32_t full_ppm; /* the bound on td_psi.full_ppm; 0: nothing is evicted */
	uint64_t lasts_ns, settle_ns;
};
/* The defaults: the bound is 10 %, lasts_ns is 3 s, settle_ns 15 s. */
extern const struct td_pressure_params td_pressure_default;

/* A zeroed struct is valid: CALM. */
struct td_pressure {
	/* Since when the pressure has been at or above the bound; 0: it is below. */
	uint64_t since_ns;
	uint64_t settles_ns; /* nothing is evicted before this time */
};

/* Returns whether one besteffort job is to be evicted now. */
bool td_pressure_step(struct td_pressure *pressure, const struct td_pressure_params *params,
	const struct td_psi *psi, uint64_t now_ns);
