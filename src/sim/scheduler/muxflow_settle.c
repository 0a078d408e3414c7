/* Steps MuxFlow's controller until it has settled; see muxflow_settle.h. */
#include "sim/scheduler/muxflow_settle.h"

#include <math.h>
#include <stdlib.h>

#define STEPS_MAX 2000u
#define STILL     10u /* the duty has settled after so many steps without a change */
#define STILL_PPM 50
/* The monitor's figures are capped here at the values above which it would evict jobs. */
#define USED_MOST   0.96
#define ACTIVE_MOST 0.92

struct td_muxflow_output td_muxflow_settle(
	struct td_muxflow_gpu *gpu, const struct td_muxflow_load *load, uint64_t now_ns)
{
	struct td_sysmonitor_metrics metrics = {.initialised = true, .available = true};
	struct td_muxflow_output out = {.duty_ppm = 1000000};
	uint32_t still = 0;

	for (uint32_t k = 0; k < STEPS_MAX && still < STILL; k++) {
		double used = fmin(1, load->busy + load->job * out.duty_ppm / 1e6);
		uint32_t before = out.duty_ppm;

		metrics.utilisation_ppm = (uint32_t)(fmin(USED_MOST, used) * 1e6);
		metrics.sm_activity_ppm =
			(uint32_t)(fmin(ACTIVE_MOST, load->activity * used) * 1e6);
		out = td_muxflow_gpu_step(
			gpu, &td_muxflow_t4, &metrics, now_ns + k * TD_MUXFLOW_STEP_NS + 1);
		still = abs((int)out.duty_ppm - (int)before) <= STILL_PPM ? still + 1 : 0;
	}
	return out;
}
