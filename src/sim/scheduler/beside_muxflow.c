/*
 * MuxFlow in the simulated cluster: its matching of jobs that wait for one GPU with services that
 * have no job, and its division of a GPU; see muxflow.h and sched_beside.c.
 */
#include <math.h>
#include <string.h>

#include "match/match.h"
#include "sim/scheduler/beside.h"
#include "sim/scheduler/muxflow_settle.h"

#define ROWS TD_BESIDE_ROWS
#define BINS TD_BESIDE_BINS

static struct td_muxflow_profile profile_of(double demand, double activity, double alone_s)
{
	double used = demand * activity;

	return (struct td_muxflow_profile){used, TD_MUXFLOW_ACTIVITY * used, 0.5 * used, alone_s};
}

static uint32_t row_of(const struct td_cluster *cluster, uint32_t gpu)
{
	uint32_t service = cluster->gpus[gpu].service, bin;

	if (service == TD_SERVICE_NONE)
		return TD_SERVICE_KINDS_MAX * BINS;
	bin = (uint32_t)(td_beside_activity(cluster, service) * (BINS - 0.01));
	return cluster->services->list[service].kind * BINS + bin;
}

/*
 * Lists the rows of the matching: kinds of services by activity. Its columns are profiles. Returns
 * the number of rows.
 */
static uint32_t list_rows(const struct td_cluster *cluster, struct td_muxflow_profile *ret,
	uint32_t *ret_counts, uint32_t *ret_index)
{
	uint32_t rows = 0;

	memset(ret_index, 0xff, ROWS * sizeof(*ret_index));
	for (uint32_t g = 0; g < cluster->gpu_count; g++) {
		uint32_t id = row_of(cluster, g), service = cluster->gpus[g].service;

		if (!td_beside_is_open(cluster, g))
			continue;
		if (ret_index[id] == UINT32_MAX) {
			double busy = service == TD_SERVICE_NONE
					      ? 0
					      : td_beside_activity(cluster, service);

			ret_index[id] = rows;
			ret_counts[rows] = 0;
			ret[rows++] =
				service == TD_SERVICE_NONE
					? profile_of(0, 0, 0)
					: profile_of(td_beside_kind(cluster, service)->told_demand,
						  busy, td_beside_kind(cluster, service)->each_s);
		}
		ret_counts[ret_index[id]]++;
	}
	return rows;
}

static void start_matched(struct td_cluster *cluster, const uint32_t *index, const uint32_t *counts,
	uint32_t rows, const uint32_t *columns)
{
	struct td_beside *state = cluster->sched_state;
	uint32_t next[ROWS], at = 0;

	for (uint32_t r = 0; r < rows; r++) {
		next[r] = at;
		at += counts[r];
	}
	/*
	 * A row of the matching stands for several GPUs of one kind. The n-th copy of the row is
	 * the n-th of these GPUs.
	 */
	for (uint32_t g = 0; g < cluster->gpu_count; g++) {
		uint32_t row = index[row_of(cluster, g)], kind;

		if (!td_beside_is_open(cluster, g))
			continue;
		kind = state->kinds[next[row]++];
		if (kind == TD_MATCH_NONE)
			continue;
		for (uint32_t q = state->head; q < state->tail; q++) {
			uint32_t job = state->queue[q];

			if (cluster->jobs[job].status != TD_SIM_WAITING ||
				cluster->jobs[job].gpus != 1 ||
				cluster->jobs[job].profile != columns[kind])
				continue;
			state->place[0] = g;
			state->taken[g] = 1;
			td_cluster_start(cluster, job, state->place, true);
			break;
		}
	}
}

static void match(struct td_cluster *cluster)
{
	struct td_beside *state = cluster->sched_state;
	struct td_muxflow_profile online[ROWS], offline[TD_PROFILES_MAX];
	uint32_t counts[ROWS], index[ROWS], wanted[TD_PROFILES_MAX] = {0};
	uint32_t columns[TD_PROFILES_MAX], offline_counts[TD_PROFILES_MAX], cols = 0, rows;
	struct td_match_result result;

	for (uint32_t q = state->head; q < state->tail; q++)
		if (cluster->jobs[state->queue[q]].gpus == 1)
			wanted[cluster->jobs[state->queue[q]].profile]++;
	for (uint32_t k = 0; k < cluster->profiles->count; k++) {
		if (!wanted[k])
			continue;
		offline[cols] = profile_of(cluster->profiles->profiles[k].told_demand, 1, 0.1);
		offline_counts[cols] =
			wanted[k] < cluster->gpu_count ? wanted[k] : cluster->gpu_count;
		columns[cols++] = k;
	}
	rows = list_rows(cluster, online, counts, index);
	if (!cols || !rows)
		return;
	if (td_muxflow_schedule(&(struct td_muxflow_cluster){.online = online,
					.online_counts = counts,
					.online_count = rows,
					.offline = offline,
					.offline_counts = offline_counts,
					.offline_count = cols,
					.predictor = cluster->options.knowledge->muxflow,
					.sm = &td_dynamic_sm_default},
		    state->weights, state->memory, state->bytes, state->kinds, &result) < 0)
		return;
	start_matched(cluster, index, counts, rows, columns);
}

/* Starts gangs in order of arrival on any open GPUs, and jobs of one GPU by the matching. */
void td_beside_decide_muxflow(struct td_cluster *cluster)
{
	struct td_beside *state = cluster->sched_state;
	uint32_t kept;

	if (cluster->now_ns - state->matched_ns < TD_BESIDE_MATCH_NS && state->matched_ns)
		return;
	state->matched_ns = cluster->now_ns;
	for (uint32_t q = state->head; q < state->tail; q++) {
		uint32_t index = state->queue[q], n = 0, gpu;

		if (cluster->jobs[index].gpus == 1)
			continue;
		for (; n < cluster->jobs[index].gpus; n++) {
			gpu = td_beside_choose_any(cluster);
			if (gpu == UINT32_MAX)
				break;
			state->place[n] = gpu;
			state->taken[gpu] = 1;
		}
		if (!td_beside_start(cluster, index, n))
			break;
	}
	match(cluster);
	kept = state->tail;
	for (uint32_t q = state->tail; q-- > state->head;)
		if (cluster->jobs[state->queue[q]].status == TD_SIM_WAITING)
			state->queue[--kept] = state->queue[q];
	state->head = kept;
}

void td_beside_tune_muxflow(const struct td_cluster *cluster, struct td_beside_service *own,
	uint32_t index, double demand)
{
	struct td_service *service = &cluster->services->list[index];
	double busy = td_beside_activity(cluster, index);
	double share = td_dynamic_sm_ppm(&td_dynamic_sm_default,
			       (uint32_t)(TD_MUXFLOW_ACTIVITY * busy * 1e6)) /
		       1e6;
	const struct td_muxflow_load load = {busy, share * demand, TD_MUXFLOW_ACTIVITY};
	struct td_muxflow_output out = td_muxflow_settle(&own->monitor, &load, cluster->now_ns);

	service->split.guest_share = share;
	service->split.guest_duty = out.duty_ppm / 1e6;
	service->split.paused = out.evict;
}
