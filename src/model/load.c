/* Computes a GPU's load over time from the compute engine's busy counter; see load.h. */
#include "model/load.h"

#include <math.h>

#include "model/gpu_spec.h"

/*
 * Chosen values: the air at a server's inlet, a heat sink with which full load reaches 80 degrees,
 * and a time constant of half a minute.
 */
#define AMBIENT_CELSIUS   30.0
#define FULL_LOAD_CELSIUS 50.0 /* rise above ambient at max_power_mw */
#define TIME_CONSTANT_NS  30e9
/* Chosen values: the temperatures at which clocks begin to fall, and at which they reach base. */
#define SLOWDOWN_CELSIUS 78.0
#define SHUTDOWN_CELSIUS 90.0

#define PPM 1000000.0

void td_load_init(struct td_load *load, const struct td_gpu_spec *spec, uint64_t window_ns,
	uint64_t busy_ns, uint64_t now_ns)
{
	*load = (struct td_load){
		.spec = spec,
		.window_ns = window_ns,
		.window_start_ns = now_ns,
		.last_ns = now_ns,
		.last_busy_ns = busy_ns,
	};
	load->temperature =
		AMBIENT_CELSIUS + FULL_LOAD_CELSIUS * spec->idle_power_mw / spec->max_power_mw;
}

static double power_mw(const struct td_gpu_spec *spec, double share)
{
	return spec->idle_power_mw + share * (spec->max_power_mw - spec->idle_power_mw);
}

static void heat(struct td_load *load, double share, uint64_t ns)
{
	double target = AMBIENT_CELSIUS +
			FULL_LOAD_CELSIUS * power_mw(load->spec, share) / load->spec->max_power_mw;

	load->temperature =
		target + (load->temperature - target) * exp(-(double)ns / TIME_CONSTANT_NS);
}

/*
 * Ends the windows up to now_ns. Windows after the first lie wholly within this update's interval.
 */
static void roll(struct td_load *load, double share, uint64_t now_ns)
{
	uint64_t end_ns = load->window_start_ns + load->window_ns, more;
	double utilisation;

	if (now_ns < end_ns) {
		load->window_busy_ns += share * (double)(now_ns - load->last_ns);
		return;
	}
	load->window_busy_ns += share * (double)(end_ns - load->last_ns);
	utilisation = load->window_busy_ns / (double)load->window_ns;
	more = (now_ns - end_ns) / load->window_ns;
	if (more)
		utilisation = share;
	load->utilisation_ppm = (uint32_t)lround(utilisation * PPM);
	load->window_start_ns = end_ns + more * load->window_ns;
	load->window_busy_ns = share * (double)(now_ns - load->window_start_ns);
}

void td_load_update(struct td_load *load, uint64_t busy_ns, uint64_t now_ns)
{
	double share;

	if (now_ns <= load->last_ns)
		return;
	share = (double)(busy_ns - load->last_busy_ns) / (double)(now_ns - load->last_ns);
	heat(load, share, now_ns - load->last_ns);
	roll(load, share, now_ns);
	load->last_ns = now_ns;
	load->last_busy_ns = busy_ns;
}

uint32_t td_load_utilisation_percent(const struct td_load *load)
{
	return (load->utilisation_ppm + 5000) / 10000;
}

uint32_t td_load_power_mw(const struct td_load *load)
{
	return (uint32_t)lround(power_mw(load->spec, load->utilisation_ppm / PPM));
}

uint32_t td_load_temperature_celsius(const struct td_load *load)
{
	return (uint32_t)lround(load->temperature);
}

uint32_t td_load_clock_mhz(const struct td_load *load)
{
	const struct td_gpu_spec *spec = load->spec;
	double over;

	if (!load->utilisation_ppm)
		return spec->idle_clock_mhz;
	over = (load->temperature - SLOWDOWN_CELSIUS) / (SHUTDOWN_CELSIUS - SLOWDOWN_CELSIUS);
	over = fmin(fmax(over, 0), 1);
	return (uint32_t)lround(spec->clock_mhz - over * (spec->clock_mhz - spec->base_clock_mhz));
}
