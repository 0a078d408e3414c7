/*
 * The history of a GPU's last minutes: a ring of samples, and means over a stretch of it.
 *
 * Policies want figures of short stretches (MuxFlow 4.1 collects them in milliseconds and keeps
 * some minutes), and a single sample of a clock or of the utilisation may be one of a moment.
 *
 * Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define TD_FIGURES_KEPT 2048u /* more than three minutes at ten a second */

struct td_figure {
	uint64_t time_ns;
	uint64_t throttle; /* NVML's bits: reasons why the clock is lower than it could be */
	uint32_t utilisation_ppm, sm_mhz;
};

/* A zeroed struct has no samples. */
struct td_figures {
	struct td_figure ring[TD_FIGURES_KEPT];
	uint32_t next, count;
};

/*
 * Adds a sample. Times must not fall; a sample that breaks this is left out. The oldest sample is
 * dropped when the ring is full.
 */
void td_figures_add(struct td_figures *figures, const struct td_figure *figure);

struct td_figures_mean {
	uint32_t samples; /* 0: the other figures are not known */
	uint32_t utilisation_ppm, sm_mhz;
	uint32_t least_mhz;
	uint64_t throttle; /* all reasons that occurred */
};

/* Returns the means over the samples later than since_ns. */
struct td_figures_mean td_figures_mean(const struct td_figures *figures, uint64_t since_ns);
