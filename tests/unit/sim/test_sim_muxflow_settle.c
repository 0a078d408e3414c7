/*
 * MuxFlow's controller is stepped until it stands still: its figures then equal those after
 * stepping for minutes.
 */
#include "test.h"

#include <math.h>

#include "sim/scheduler/muxflow_settle.h"

#define THROUGHOUT 60000u

/* The controller for ten minutes, as the node steps it. */
static struct td_muxflow_output step_throughout(const struct td_muxflow_load *load)
{
	struct td_sysmonitor_metrics metrics = {.initialised = true, .available = true};
	struct td_muxflow_output out = {.duty_ppm = 1000000};
	struct td_muxflow_gpu gpu = {0};

	for (uint32_t k = 0; k < THROUGHOUT; k++) {
		double used = fmin(1, load->busy + load->job * out.duty_ppm / 1e6);

		metrics.utilisation_ppm = (uint32_t)(fmin(0.96, used) * 1e6);
		metrics.sm_activity_ppm = (uint32_t)(fmin(0.92, load->activity * used) * 1e6);
		out = td_muxflow_gpu_step(
			&gpu, &td_muxflow_t4, &metrics, k * TD_MUXFLOW_STEP_NS + 1);
	}
	return out;
}

/* Parts of the GPU's time that the job has. */
static bool same(const struct td_muxflow_load *load, uint32_t a_ppm, uint32_t b_ppm)
{
	return load->job * fabs((double)a_ppm - (double)b_ppm) / 1e6 < 0.005;
}

static void check_load(double busy, double job, double activity)
{
	const struct td_muxflow_load load = {busy, job, activity};
	struct td_muxflow_output throughout = step_throughout(&load), settled;
	struct td_muxflow_gpu gpu = {0};

	settled = td_muxflow_settle(&gpu, &load, 0);
	CHECK_EQ(settled.evict, throughout.evict);
	CHECK(same(&load, settled.duty_ppm, throughout.duty_ppm));
	/* It settles once more, later, from where it was. */
	settled = td_muxflow_settle(&gpu, &load, 300000000000ull);
	CHECK(same(&load, settled.duty_ppm, throughout.duty_ppm));
}

TEST(a_settled_controller_is_where_stepping_throughout_ends)
{
	for (double busy = 0; busy < 0.9; busy += 0.1)
		for (double job = 0.1; job < 1; job += 0.2) {
			check_load(busy, job, TD_MUXFLOW_ACTIVITY);
			check_load(busy, job, 1);
		}
}
