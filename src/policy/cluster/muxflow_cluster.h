/*
 * MuxFlow's Algorithm 1 (5.2): which offline workload shares a GPU with which online service.
 *
 * The predictor gives each pair a weight, the offline workload's speed beside the service with the
 * share of the SMs that the service leaves. The matching with the largest sum of weights is chosen
 * (match/match.h). GPUs that do not accept work have weight 0 and are matched with nobody.
 */
#pragma once

#include "match/match.h"
#include "policy/algo/fit/predict.h"
#include "policy/algo/fit/slo_share.h"

/* The figures of a run alone, as parts of 1, and its time. */
struct td_muxflow_profile {
	double utilisation, sm_activity, sm_occupancy;
	double alone_s; /* seconds per step or request, without other jobs */
};

/*
 * The predictor's inputs: utilisation, SM activity and occupancy of the online and of the offline
 * workload, the offline one's time alone, its SM share.
 */
#define TD_MUXFLOW_INPUTS 8
void td_muxflow_inputs(const struct td_muxflow_profile *online,
	const struct td_muxflow_profile *offline, uint32_t sm_ppm,
	double inputs[TD_MUXFLOW_INPUTS]);

/*
 * Returns the weight of a pair: the offline workload's predicted speed beside the online one, from
 * -16 to 16 whatever the predictor says.
 */
float td_muxflow_weight(const struct td_predictor *predictor, const struct td_dynamic_sm *sm,
	const struct td_muxflow_profile *online, const struct td_muxflow_profile *offline);

struct td_muxflow_cluster {
	/* It has one entry per kind or, without online_counts, one per GPU. */
	const struct td_muxflow_profile *online;
	/* Whether each entry takes offline work; NULL: all do. */
	const bool *accepts;
	const uint32_t *online_counts; /* number of GPUs of each kind; NULL: one each */
	uint32_t online_count;
	const struct td_muxflow_profile *offline;
	const uint32_t *offline_counts;
	uint32_t offline_count;
	const struct td_predictor *predictor; /* has TD_MUXFLOW_INPUTS inputs */
	const struct td_dynamic_sm *sm;
};

/* Writes the weights of all pairs: online_count x offline_count floats. */
void td_muxflow_weigh(const struct td_muxflow_cluster *cluster, float *weights);

/*
 * Weighs all pairs and matches them. memory, bytes, outcomes and ret_offline (the offline kind of
 * each GPU) are those of td_match_solve().
 */
int td_muxflow_schedule(const struct td_muxflow_cluster *cluster, float *weights, void *memory,
	size_t bytes, uint32_t *ret_offline, struct td_match_result *ret_result);
