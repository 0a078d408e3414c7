/*
 * The schedulers that know services: GSLICE, gpulets, MuxFlow, Mudi, and bounds.
 *
 * All of them serve jobs first come first served, one on a GPU unless told otherwise, beside a
 * service or on a GPU without. They differ in the choice of the GPU and in its division:
 *
 *   gslice           anywhere; feedback of P99 in steps of 5 % (baselines.h)
 *   gpulets          anywhere; the smallest of six sizes by the curve alone (baselines.h)
 *   muxflow          matched every 15 min by predicted speed; what the service's activity leaves,
 *                    PID on the load (muxflow.h)
 *   mudi             least predicted slope; GP-LCB over batches, smallest share by the curve
 *                    (mudi.h)
 *   mudi_more        as mudi, up to three jobs on a GPU, for their layers together; equal parts for
 *                    the jobs (5.5)
 *   even             anywhere, up to three on a GPU; equal parts ("Random" of 7.4)
 *   bound            the most speed within the objective by the true speeds, all batches and
 *                    shares tried: no system
 *   mudi_exact       as mudi, with lines through exact samples of every pair: a bound of its
 *                    learners, no system
 *   mudi_more_exact  as mudi_more, likewise: a bound, no system
 *   mudi_truth       the most speed by Mudi's rules with the true speeds, all batches tried: a
 *                    bound of Mudi, no system
 *
 * This file has the queue, the free GPUs and the table of the schedulers; beside_baselines.c,
 * beside_muxflow.c and beside_mudi.c have the rest.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "match/match.h"
#include "sim/base/random.h"
#include "sim/scheduler/beside.h"

const struct td_service_kind *td_beside_kind(const struct td_cluster *cluster, uint32_t service)
{
	return &cluster->services->kinds[cluster->services->list[service].kind];
}

double td_beside_activity(const struct td_cluster *cluster, uint32_t service)
{
	const struct td_service_kind *kind = td_beside_kind(cluster, service);
	double rate = cluster->services->list[service].seen.rate_per_s;
	uint32_t batch = td_service_usual_batch(kind, rate);

	return fmin(1, rate * td_service_batch_s(kind, batch) / batch);
}

uint32_t td_beside_slot(uint64_t key)
{
	return (uint32_t)(key * 0x9e3779b97f4a7c15ull >> (64 - TD_BESIDE_CACHE_BITS));
}

struct td_beside_found *td_beside_look_up(
	struct td_cluster *cluster, uint32_t service, uint32_t profile)
{
	struct td_beside *state = cluster->sched_state;
	const struct td_service *of = &cluster->services->list[service];
	uint64_t rate = (uint64_t)(of->seen.rate_per_s * 1024);
	uint64_t key = (rate << 16 | (uint64_t)of->kind << 10 | profile) + 1;
	struct td_beside_found *found = &state->cache[td_beside_slot(key)];

	if (found->key != key)
		*found = (struct td_beside_found){.key = 0};
	state->services[service].key = key;
	return found;
}

/* --- where --- */

bool td_beside_is_open(const struct td_cluster *cluster, uint32_t gpu)
{
	const struct td_beside *state = cluster->sched_state;

	return state->taken[gpu] < state->tasks_max;
}

uint32_t td_beside_choose_any(struct td_cluster *cluster)
{
	struct td_beside *state = cluster->sched_state;
	uint32_t n = 0;

	for (uint32_t g = 0; g < cluster->gpu_count; g++)
		if (td_beside_is_open(cluster, g))
			state->kinds[n++] = g;
	return n ? state->kinds[td_random_gpu(&state->random, n)] : UINT32_MAX;
}

bool td_beside_start(struct td_cluster *cluster, uint32_t index, uint32_t found)
{
	struct td_beside *state = cluster->sched_state;
	const struct td_sim_job *job = &cluster->jobs[index];

	if (found < job->gpus) {
		for (uint32_t k = 0; k < found; k++)
			state->taken[state->place[k]]--;
		return false;
	}
	td_cluster_start(cluster, index, state->place, true);
	return true;
}

static bool is_among(const uint32_t *gpus, uint32_t n, uint32_t gpu)
{
	while (n--)
		if (gpus[n] == gpu)
			return true;
	return false;
}

bool td_beside_place(struct td_cluster *cluster, uint32_t index)
{
	struct td_beside *state = cluster->sched_state;
	const struct td_sim_job *job = &cluster->jobs[index];
	uint32_t n = 0;

	for (; n < job->gpus; n++) {
		uint32_t gpu = state->variant == TD_BESIDE_MUDI
				       ? td_beside_choose_mudi(cluster, job->profile)
			       : state->variant >= TD_BESIDE_OPTIMUM
				       ? td_beside_choose_optimum(cluster, job->profile)
				       : td_beside_choose_any(cluster);

		if (gpu == UINT32_MAX || (n && is_among(state->place, n, gpu)))
			break;
		state->place[n] = gpu;
		state->taken[gpu]++;
	}
	return td_beside_start(cluster, index, n);
}

static void beside_decide(struct td_cluster *cluster)
{
	struct td_beside *state = cluster->sched_state;

	if (state->variant == TD_BESIDE_MUXFLOW) {
		td_beside_decide_muxflow(cluster);
		return;
	}
	if (state->variant == TD_BESIDE_MUDI) {
		td_beside_decide_mudi(cluster);
		return;
	}
	while (state->changed && state->head < state->tail &&
		td_beside_place(cluster, state->queue[state->head]))
		state->head++;
	state->changed = false;
}

/* --- how --- */

static bool tune(struct td_cluster *cluster, uint32_t index, uint32_t round)
{
	struct td_beside *state = cluster->sched_state;
	struct td_service *service = &cluster->services->list[index];
	struct td_beside_service *own = &state->services[index];
	const struct td_service_kind *kind = td_beside_kind(cluster, index);
	const struct td_sim_gpu *gpu = &cluster->gpus[service->gpu];
	uint32_t profile = gpu->count ? cluster->jobs[gpu->jobs[0]].profile : 0;

	if (!round || own->paused)
		service->split = (struct td_split){
			.batch = td_service_usual_batch(kind, service->seen.rate_per_s),
			.service_share = 1,
			.guest_share = 1,
			.guest_duty = 1};
	if (!gpu->count) {
		own->job = UINT32_MAX;
		return false;
	}
	switch (state->variant) {
	case TD_BESIDE_GSLICE: return td_beside_tune_gslice(own, kind, service, round);
	case TD_BESIDE_GPULETS: td_beside_tune_gpulets(cluster, service); return false;
	case TD_BESIDE_MUXFLOW:
		td_beside_tune_muxflow(
			cluster, own, index, cluster->profiles->profiles[profile].told_demand);
		return false;
	case TD_BESIDE_MUDI: return td_beside_tune_mudi(cluster, own, index, round);
	case TD_BESIDE_EVEN:
		service->split.service_share = 1. / (gpu->count + 1);
		service->split.guest_share = 1 - service->split.service_share;
		return false;
	case TD_BESIDE_OPTIMUM:
	case TD_BESIDE_MUDI_TRUTH: break;
	}
	td_beside_tune_optimum(cluster, index, profile);
	return false;
}

/* --- the rest --- */

static void deinit(struct td_cluster *cluster)
{
	struct td_beside *state = cluster->sched_state;

	for (uint32_t s = 0; state->services && s < cluster->services->count; s++)
		free(state->services[s].mudi);
	free(state->queue);
	free(state->taken);
	free(state->services);
	free(state->cache);
	free(state->fits);
	free(state->margins);
	free(state->scores);
	free(state->companies);
	free(state->devices);
	free(state->gpu_scores);
	free(state->place);
	free(state->memory);
	free(state->weights);
	free(state->kinds);
	free(state->sampled);
	free(state);
}

static int prepare_services(struct td_cluster *cluster, struct td_beside *state)
{
	for (uint32_t s = 0; s < cluster->services->count; s++) {
		struct td_beside_service *own = &state->services[s];

		own->gslice = (struct td_gslice){
			.share = 0.5, .step = 0.05, .share_min = 0.1, .slack = 0.8};
		own->job = UINT32_MAX;
		own->mudi = state->variant == TD_BESIDE_MUDI ? calloc(1, sizeof(*own->mudi)) : NULL;
		if (state->variant == TD_BESIDE_MUDI && !own->mudi)
			return -ENOMEM;
	}
	return 0;
}

static bool is_known(const struct td_cluster *cluster, enum td_beside_variant variant)
{
	const struct td_sim_knowledge *known = cluster->options.knowledge;

	switch (variant) {
	case TD_BESIDE_GSLICE:
	case TD_BESIDE_EVEN:
	case TD_BESIDE_OPTIMUM:
	case TD_BESIDE_MUDI_TRUTH: return true;
	case TD_BESIDE_GPULETS: return known && known->pieces;
	case TD_BESIDE_MUXFLOW: return known && known->muxflow;
	case TD_BESIDE_MUDI: return known && known->mudi && known->layers;
	}
	return false;
}

static int init_as(
	struct td_cluster *cluster, enum td_beside_variant variant, uint32_t tasks_max, bool exact)
{
	uint32_t gpus = cluster->gpu_count, profiles = cluster->profiles->count;
	struct td_beside *state;

	if (!cluster->services || !is_known(cluster, variant))
		return -ENODATA;
	state = calloc(1, sizeof(*state));
	cluster->sched_state = state;
	if (!state)
		return -ENOMEM;
	state->variant = variant;
	state->tasks_max = tasks_max;
	state->exact = exact;
	state->companies_max = td_beside_companies_max(profiles, tasks_max);
	state->random = cluster->options.seed * 2 + 1;
	state->bytes =
		(td_match_bytes(TD_BESIDE_ROWS, profiles, profiles * gpus) + 63) & ~(size_t)63;
	state->queue = calloc(cluster->job_count, sizeof(*state->queue));
	state->taken = calloc(gpus, sizeof(*state->taken));
	state->services = calloc(cluster->services->count, sizeof(*state->services));
	state->cache = calloc((size_t)1 << TD_BESIDE_CACHE_BITS, sizeof(*state->cache));
	state->fits = calloc((size_t)1 << TD_BESIDE_CACHE_BITS, sizeof(*state->fits));
	state->margins = calloc(state->companies_max, sizeof(*state->margins));
	state->scores = calloc(state->companies_max, sizeof(*state->scores));
	state->companies = calloc(state->companies_max, sizeof(*state->companies));
	state->devices = calloc(gpus, sizeof(*state->devices));
	state->gpu_scores = calloc(gpus, sizeof(*state->gpu_scores));
	state->place = calloc(gpus, sizeof(*state->place));
	state->kinds = calloc(gpus, sizeof(*state->kinds));
	state->weights = calloc(TD_BESIDE_ROWS * (size_t)profiles, sizeof(*state->weights));
	state->sampled = calloc(
		(size_t)TD_SERVICE_KINDS_MAX * state->companies_max, sizeof(*state->sampled));
	state->memory = variant == TD_BESIDE_MUXFLOW ? aligned_alloc(64, state->bytes) : NULL;
	if (!state->queue || !state->taken || !state->services || !state->cache || !state->scores ||
		!state->companies || !state->devices || !state->gpu_scores || !state->place ||
		!state->kinds || !state->weights || !state->sampled || !state->fits ||
		!state->margins || (variant == TD_BESIDE_MUXFLOW && !state->memory))
		return -ENOMEM;
	for (uint32_t p = 0; p < state->companies_max; p++)
		for (uint32_t k = 0; k < TD_SERVICE_KINDS_MAX; k++)
			state->scores[p][k] = NAN;
	if (variant == TD_BESIDE_MUDI)
		td_beside_companies_init(cluster);
	return prepare_services(cluster, state);
}

static void arrive(struct td_cluster *cluster, uint32_t job)
{
	struct td_beside *state = cluster->sched_state;

	state->queue[state->tail++] = job;
	state->changed = true;
}

static void beside_finish(struct td_cluster *cluster, uint32_t index)
{
	struct td_beside *state = cluster->sched_state;
	const struct td_sim_job *job = &cluster->jobs[index];

	for (uint32_t k = 0; k < job->gpus; k++)
		state->taken[cluster->places[job->place + k]]--;
	state->changed = true;
}

#define SCHED(name_, variant_, tasks_, exact_, tick_, round_, summary_)                            \
	static int init_##name_(struct td_cluster *cluster)                                        \
	{                                                                                          \
		return init_as(cluster, variant_, tasks_, exact_);                                 \
	}                                                                                          \
	const struct td_sched td_sched_##name_ = {                                                 \
		.name = #name_,                                                                    \
		.summary = summary_,                                                               \
		.tick_ns = tick_,                                                                  \
		.round_s = round_,                                                                 \
		.init = init_##name_,                                                              \
		.deinit = deinit,                                                                  \
		.arrive = arrive,                                                                  \
		.finish = beside_finish,                                                           \
		.decide = beside_decide,                                                           \
		.tune = tune,                                                                      \
	}

SCHED(gslice, TD_BESIDE_GSLICE, 1, false, 0, 1,
	"services' partitions by feedback of their latency, jobs anywhere");
SCHED(gpulets, TD_BESIDE_GPULETS, 1, false, 0, 1,
	"the smallest of six partitions that is enough by the latency curve, jobs anywhere");
SCHED(muxflow, TD_BESIDE_MUXFLOW, 1, false, TD_BESIDE_MATCH_NS, 1,
	"jobs matched with services every 15 min, shares by activity");
SCHED(mudi, TD_BESIDE_MUDI, 1, false, 0, 0.08,
	"jobs where the latency curve is flattest, batch and share tuned");
SCHED(mudi_more, TD_BESIDE_MUDI, TD_SELECTOR_TASKS_MAX, false, 0, 0.08,
	"mudi with up to three jobs beside a service");
SCHED(even, TD_BESIDE_EVEN, TD_SELECTOR_TASKS_MAX, false, 0, 1,
	"up to three jobs beside a service, anywhere, all with equal parts");
SCHED(bound, TD_BESIDE_OPTIMUM, 1, false, 0, 1,
	"the most speed within the objectives, from the true speeds: a bound");
SCHED(mudi_truth, TD_BESIDE_MUDI_TRUTH, 1, false, 0, 1,
	"mudi with true speeds in place of predicted ones: a bound of mudi");
SCHED(mudi_exact, TD_BESIDE_MUDI, 1, true, 0, 0.08,
	"mudi with exact samples of every pair: a bound of its learners");
SCHED(mudi_more_exact, TD_BESIDE_MUDI, TD_SELECTOR_TASKS_MAX, true, 0, 0.08,
	"mudi_more with exact samples of every company: a bound of its learners");
