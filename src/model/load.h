/*
 * The figures of a GPU's load that NVML shows: utilisation, power, temperature, clock.
 *
 * Purpose. Policies watch these figures (MuxFlow's load factor, SysMonitor's thresholds, DCUDA's
 * energy), so the software GPU has to have them, and they have to follow the load as a GPU's do.
 *
 * Utilisation is the share of the last whole sample window in which a kernel ran. Power grows
 * linearly with it from idle to max; temperature follows power with one time constant; the clock is
 * the highest while there is load, comes down linearly to the base clock when the GPU gets too hot,
 * and is the idle clock without load. The figures are only shown: the model always runs at
 * clock_mhz.
 *
 * Invariants
 * - utilisation is 0 to 100 %, and of a whole window, so it lags by up to one;
 * - power lies between idle and the maximum, the clock between base (or idle, without load) and the
 *   highest;
 * - temperature moves towards what the power leads to and never beyond it; a step without time
 *   passed changes nothing.
 */
#pragma once

#include <stdint.h>

struct td_gpu_spec;

struct td_load {
	const struct td_gpu_spec *spec;
	uint64_t window_ns, window_start_ns;
	uint64_t last_ns, last_busy_ns;
	double window_busy_ns; /* busy time in the window that is not over yet */
	double temperature;    /* degrees Celsius */
	uint32_t utilisation_ppm;
};

/* Makes an idle load at ambient temperature. busy_ns is the engine's counter at now_ns. */
void td_load_init(struct td_load *load, const struct td_gpu_spec *spec, uint64_t window_ns,
	uint64_t busy_ns, uint64_t now_ns);

/*
 * Takes the compute engine's busy_ns counter. Work between two updates counts as spread evenly, so
 * call it at least once per window.
 */
void td_load_update(struct td_load *load, uint64_t busy_ns, uint64_t now_ns);

uint32_t td_load_utilisation_percent(const struct td_load *load);
uint32_t td_load_power_mw(const struct td_load *load);
uint32_t td_load_temperature_celsius(const struct td_load *load);
uint32_t td_load_clock_mhz(const struct td_load *load);
