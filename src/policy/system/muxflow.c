/*
 * MuxFlow's control of a GPU; see muxflow.h. muxflow_cluster.c has its Algorithm 1 and
 * muxflow_node.c the policy of a node.
 */
#include "policy/system/muxflow.h"

#define PPM 1e6
#define S   1000000000ull

const struct td_muxflow_params td_muxflow_t4 = {
	.load = {.low_gain = 4, .high_gain = 0.2, .threshold_mhz = 1005, .max_mhz = 1590},
	.pid = TD_PID_MUXFLOW,
	.monitor = {.healthy = {900000, 850000, 850000, 900},
		.unhealthy = {970000, 930000, 920000, 750},
		.overlimit = {1000000, 980000, 970000, 585},
		.period_base_ns = 10 * S,
		.period_max_ns = 3600 * S,
		.window_ns = 7200 * S},
	.sm = TD_DYNAMIC_SM_DEFAULT,
	.health = TD_HEALTH_DEFAULT,
	.memory_quota_ppm = 400000,
};

static uint32_t smooth(uint32_t mean, uint32_t sample, double part)
{
	return (uint32_t)(mean + ((double)sample - mean) * part + 0.5);
}

/*
 * Updates the means of the figures. A sample without a clock has a mean without a clock; the
 * clock's mean then begins anew.
 */
static const struct td_sysmonitor_metrics *find_mean(struct td_muxflow_gpu *gpu, uint64_t smooth_ns,
	const struct td_sysmonitor_metrics *metrics, uint64_t now_ns)
{
	const struct td_sysmonitor_metrics was = gpu->mean;
	uint64_t passed_ns = now_ns - gpu->mean_ns;
	double part = passed_ns < smooth_ns ? (double)passed_ns / (double)smooth_ns : 1;

	gpu->mean = *metrics;
	if (gpu->mean_ns) {
		gpu->mean.utilisation_ppm =
			smooth(was.utilisation_ppm, metrics->utilisation_ppm, part);
		gpu->mean.sm_activity_ppm =
			smooth(was.sm_activity_ppm, metrics->sm_activity_ppm, part);
	}
	if (gpu->mean_ns && was.clock_mhz && metrics->clock_mhz)
		gpu->mean.clock_mhz = smooth(was.clock_mhz, metrics->clock_mhz, part);
	gpu->mean_ns = now_ns;
	return &gpu->mean;
}

struct td_muxflow_output td_muxflow_gpu_step(struct td_muxflow_gpu *gpu,
	const struct td_muxflow_params *params, const struct td_sysmonitor_metrics *metrics,
	uint64_t now_ns)
{
	double load = td_load_factor_gpu(
		&params->load, metrics->sm_activity_ppm / PPM, metrics->clock_mhz);
	uint32_t duty_ppm = td_pid_step(&gpu->pid, &params->pid, load, now_ns);
	enum td_sysmonitor_state state = td_sysmonitor_step(&gpu->monitor, &params->monitor,
		find_mean(gpu, params->smooth_ns, metrics, now_ns), now_ns);

	return (struct td_muxflow_output){
		.load = load,
		.duty_ppm = td_sysmonitor_evicts(state) ? 0 : duty_ppm,
		.accepts = td_sysmonitor_accepts(state),
		.evict = td_sysmonitor_evicts(state),
	};
}
