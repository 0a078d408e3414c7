/* MuxFlow's Algorithm 1: the predictor weighs all pairs, then they are matched. */
#include "policy/cluster/muxflow_cluster.h"

#include <math.h>

#define PPM     1e6
#define FASTEST 16. /* a profile that says more is wrong, and the matching needs finite weights */

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

float td_muxflow_weight(const struct td_predictor *predictor, const struct td_dynamic_sm *sm,
	const struct td_muxflow_profile *online, const struct td_muxflow_profile *offline)
{
	uint32_t sm_ppm =
		td_dynamic_sm_ppm(sm, (uint32_t)(fmin(fmax(online->sm_activity, 0), 1) * PPM));
	double inputs[TD_MUXFLOW_INPUTS], speed;

	td_muxflow_inputs(online, offline, sm_ppm, inputs);
	speed = td_predict(predictor, inputs);
	return isnan(speed) ? 0 : (float)fmin(fmax(speed, -FASTEST), FASTEST);
}

void td_muxflow_weigh(const struct td_muxflow_cluster *cluster, float *weights)
{
	for (uint32_t u = 0; u < cluster->online_count; u++)
		for (uint32_t v = 0; v < cluster->offline_count; v++)
			weights[(size_t)u * cluster->offline_count + v] =
				cluster->accepts && !cluster->accepts[u]
					? 0
					: td_muxflow_weight(cluster->predictor, cluster->sm,
						  &cluster->online[u], &cluster->offline[v]);
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
