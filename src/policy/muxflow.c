/* MuxFlow's control of a GPU and its Algorithm 1; see muxflow.h. */
#include "policy/muxflow.h"

#include <math.h>

#define PPM 1e6
#define S   1000000000ull

const struct td_muxflow_params td_muxflow_t4 = {
	.load = {.low_gain = 4, .high_gain = 0.2, .threshold_mhz = 1005, .max_mhz = 1590},
	.pid = {.set_point = 0.9, .kp = 0.5, .ki = 2, .max_ppm = 1000000, .max_gap_ns = 1000000000},
	.monitor = {.healthy = {900000, 850000, 850000, 900},
		.unhealthy = {970000, 930000, 920000, 750},
		.overlimit = {1000000, 980000, 970000, 585},
		.period_base_ns = 10 * S,
		.period_max_ns = 3600 * S,
		.window_ns = 7200 * S},
	.sm = {.floor_ppm = 100000, .ceiling_ppm = 1000000, .grain_ppm = 10000},
	.memory_quota_ppm = 400000,
};

struct td_muxflow_output td_muxflow_gpu_step(struct td_muxflow_gpu *gpu,
	const struct td_muxflow_params *params, const struct td_sysmonitor_metrics *metrics,
	uint64_t now_ns)
{
	double load = td_load_factor_gpu(
		&params->load, metrics->sm_activity_ppm / PPM, metrics->clock_mhz);
	uint32_t duty_ppm = td_pid_step(&gpu->pid, &params->pid, load, now_ns);
	enum td_sysmonitor_state state =
		td_sysmonitor_step(&gpu->monitor, &params->monitor, metrics, now_ns);

	return (struct td_muxflow_output){
		.duty_ppm = td_sysmonitor_evicts(state) ? 0 : duty_ppm,
		.accepts = td_sysmonitor_accepts(state),
		.evict = td_sysmonitor_evicts(state),
	};
}

void td_muxflow_inputs(const struct td_muxflow_profile *online,
	const struct td_muxflow_profile *offline, uint32_t sm_ppm, double inputs[TD_MUXFLOW_INPUTS])
{
	inputs[0] = online->utilisation;
	inputs[1] = online->sm_activity;
	inputs[2] = online->sm_occupancy;
	inputs[3] = offline->utilisation;
	inputs[4] = offline->sm_activity;
	inputs[5] = offline->sm_occupancy;
	inputs[6] = offline->alone_s;
	inputs[7] = sm_ppm / PPM;
}

void td_muxflow_weigh(const struct td_muxflow_cluster *cluster, float *weights)
{
	for (uint32_t u = 0; u < cluster->online_count; u++) {
		const struct td_muxflow_profile *online = &cluster->online[u];
		uint32_t sm_ppm = td_dynamic_sm_ppm(
			cluster->sm, (uint32_t)(fmin(fmax(online->sm_activity, 0), 1) * PPM));

		for (uint32_t v = 0; v < cluster->offline_count; v++) {
			double inputs[TD_MUXFLOW_INPUTS];

			td_muxflow_inputs(online, &cluster->offline[v], sm_ppm, inputs);
			weights[(size_t)u * cluster->offline_count + v] =
				cluster->accepts && !cluster->accepts[u]
					? 0
					: (float)td_predict(cluster->predictor, inputs);
		}
	}
}

int td_muxflow_schedule(const struct td_muxflow_cluster *cluster, float *weights, void *memory,
	size_t bytes, uint32_t *ret_offline, struct td_match_result *ret_result)
{
	const struct td_match_problem problem = {
		.weights = weights,
		.stride = cluster->offline_count,
		.rows = cluster->online_count,
		.columns = cluster->offline_count,
		.row_counts = cluster->online_counts,
		.column_counts = cluster->offline_counts,
	};
	struct td_match *match;

	td_muxflow_weigh(cluster, weights);
	return td_match_solve(
		&problem, &td_match_default, memory, bytes, ret_offline, ret_result, &match);
}
