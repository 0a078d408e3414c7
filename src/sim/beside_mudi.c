/*
 * Mudi in the simulated cluster: what it samples of tasks that it was not trained for, where a task goes, and its tuning; see mudi.h and sched_beside.c.
 */
#include <math.h>

#include "sim/beside.h"
#include "sim/random.h"

#define MOST_SHARE 0.9  /* of a service beside a task */
#define NOISE      0.05 /* of a sample */
#define STEPS      TD_BESIDE_STEPS

/* A leaf for each step of log2 of the batch from 4 to 9, in a balanced tree; a later node is further down. */
static void plant(struct td_tree_node *nodes, uint32_t at, uint32_t *used, uint32_t from,
	uint32_t count, const double *values)
{
	uint32_t half = count / 2;

	if (count == 1) {
		nodes[at] = (struct td_tree_node){.value = values[from], .input = -1};
		return;
	}
	nodes[at] = (struct td_tree_node){
		.value = 4 + 5. * (from + half) / STEPS, .input = TD_MUDI_LAYERS, .left = *used};
	*used += 2;
	plant(nodes, nodes[at].left, used, from, half, values);
	plant(nodes, nodes[at].left + 1, used, from + half, count - half, values);
}

static struct td_beside_sampled *sampled_of(
	const struct td_cluster *cluster, uint32_t kind, uint32_t profile)
{
	const struct td_beside *state = cluster->sched_state;

	return &state->sampled[(size_t)kind * cluster->profiles->count + profile];
}

/* Curves of six samples for each of the six batches, and between them by log2 of the batch. */
static void sample(struct td_cluster *cluster, uint32_t kind, uint32_t profile, uint64_t *random)
{
	static const double shares[] = {0.1, 0.25, 0.4, 0.55, 0.75, 0.9};
	struct td_beside_sampled *sampled = sampled_of(cluster, kind, profile);
	const struct td_contender *guest = &cluster->profiles->profiles[profile].contender;
	double values[4][TD_SELECTOR_BATCHES], steps[STEPS];

	for (uint32_t b = 0; b < TD_SELECTOR_BATCHES; b++) {
		struct td_curve curve = {.knee_x = 0.5};
		double y[6], speed;

		for (uint32_t s = 0; s < 6; s++) {
			const struct td_split split = {
				td_selector_batches[b], shares[s], 1 - shares[s], 1, false};
			struct td_service_seen seen;

			td_service_truth(&cluster->options.contention,
				&cluster->services->kinds[kind], &split, 1e-3, guest, 1,
				cluster->table, &speed, &seen);
			y[s] = seen.slowdown *
			       td_service_batch_s(
				       &cluster->services->kinds[kind], td_selector_batches[b]) *
			       fmax(0.5, 1 + NOISE * td_random_normal(random));
		}
		(void)td_curve_fit_piecewise(shares, y, 6, &curve);
		values[0][b] = curve.left_slope;
		values[1][b] = curve.right_slope;
		values[2][b] = curve.knee_x;
		values[3][b] = curve.knee_y;
	}
	for (uint32_t i = 0; i < TD_MUDI_INPUTS; i++)
		sampled->scale[i] = 1;
	for (uint32_t n = 0; n < 4; n++) {
		uint32_t used = 1;

		for (uint32_t k = 0; k < STEPS; k++) {
			double at = 5. * (k + 0.5) / STEPS;
			uint32_t b = (uint32_t)fmin(at, TD_SELECTOR_BATCHES - 2);

			steps[k] = values[n][b] + (at - b) * (values[n][b + 1] - values[n][b]);
		}
		plant(sampled->nodes[n], 0, &used, 0, STEPS, steps);
		sampled->predictors[n] = (struct td_predictor){.form = TD_PREDICTOR_FOREST,
			.inputs = TD_MUDI_INPUTS,
			.shift = sampled->shift,
			.scale = sampled->scale,
			.target_scale = 1,
			.nodes = sampled->nodes[n],
			.roots = &sampled->root,
			.node_count = 2 * STEPS - 1,
			.tree_count = 1};
	}
	sampled->view = (struct td_mudi_service){&sampled->predictors[0], &sampled->predictors[1],
		&sampled->predictors[2], &sampled->predictors[3]};
	sampled->there = true;
	cluster->counts.samplings++;
}

/* What Mudi knows of a service beside a kind of task: by training, or sampled since. */
static const struct td_mudi_service *known_of(
	const struct td_cluster *cluster, uint32_t kind, uint32_t profile)
{
	const struct td_beside_sampled *sampled = sampled_of(cluster, kind, profile);

	return sampled->there ? &sampled->view : &cluster->options.knowledge->mudi[kind];
}

/* A GPU without a service has the score 0: there is nobody to disturb. */
uint32_t td_beside_choose_mudi(struct td_cluster *cluster, uint32_t profile)
{
	struct td_beside *state = cluster->sched_state;
	const struct td_sim_knowledge *known = cluster->options.knowledge;
	double *scores = state->scores[profile];

	for (uint32_t k = 0; k < cluster->services->kind_count; k++)
		if (isnan(scores[k]))
			scores[k] = td_mudi_score(
				known_of(cluster, k, profile), known->layers[profile]);
	scores[TD_SERVICE_KINDS_MAX - 1] = 0;
	for (uint32_t g = 0; g < cluster->gpu_count; g++) {
		uint32_t service = cluster->gpus[g].service;

		state->devices[g] = (struct td_selector_device){
			.service = service == TD_SERVICE_NONE
					   ? TD_SERVICE_KINDS_MAX - 1
					   : cluster->services->list[service].kind,
			.accepts = td_beside_is_open(cluster, g),
			.free_bytes = UINT64_MAX};
	}
	return td_selector_choose(
		state->devices, cluster->gpu_count, scores, 0, TD_SELECTOR_TASKS_MAX);
}

/* The first time beside a task that was not profiled: six shares, each costs what a changed share costs. */
static void begin_sampled(struct td_cluster *cluster, uint32_t index, uint32_t job)
{
	struct td_beside *state = cluster->sched_state;
	uint32_t kind = cluster->services->list[index].kind, profile = cluster->jobs[job].profile;
	double cost = 6 * cluster->options.costs.repartition_s;

	if (profile < cluster->options.knowledge->profiled ||
		sampled_of(cluster, kind, profile)->there)
		return;
	sample(cluster, kind, profile, &state->random);
	state->scores[profile][kind] = NAN;
	cluster->jobs[job].left_s += cost;
	cluster->jobs[job].stale = true;
	cluster->counts.repartition_s += cost;
}

/* "A partition of at least 10 % of the GPU" is the task's (7.4); paused where the service cannot do with the rest. */
static bool leaves_room(const struct td_cluster *cluster, uint32_t index, uint32_t job)
{
	const struct td_beside *state = cluster->sched_state;
	const struct td_mudi_device *device = state->services[index].mudi;
	uint32_t kind = cluster->services->list[index].kind, profile = cluster->jobs[job].profile;
	struct td_curve curve = td_mudi_curve(known_of(cluster, kind, profile),
		cluster->options.knowledge->layers[profile], device->batch);
	struct td_slo slo = device->slo;

	slo.batch = device->batch;
	return device->share <= MOST_SHARE ||
	       td_curve_at(&curve, MOST_SHARE) <= td_slo_latency_limit_s(&slo);
}

/* What a tuning has come to, for the next one of the same. */
static void keep(
	struct td_cluster *cluster, struct td_beside_service *own, uint32_t index, uint32_t job)
{
	struct td_beside *state = cluster->sched_state;
	struct td_mudi_device *device = own->mudi;

	device->paused |= !leaves_room(cluster, index, job);
	state->cache[own->key * 0x9e3779b97f4a7c15ull >> (64 - TD_BESIDE_CACHE_BITS)] =
		(struct td_beside_found){own->key, device->batch, device->share, 0, device->paused};
}

static void begin_mudi(
	struct td_cluster *cluster, struct td_beside_service *own, uint32_t index, uint32_t job)
{
	struct td_service *service = &cluster->services->list[index];
	const struct td_service_kind *kind = &cluster->services->kinds[service->kind];
	uint32_t profile = cluster->jobs[job].profile;
	const struct td_slo slo = {.objective_s = kind->objective_s,
		.rate_per_s = service->seen.rate_per_s,
		.load_max = 0.8,
		.headroom = 0.1,
		.share_min = 0.01};
	const struct td_beside_found *found = td_beside_look_up(cluster, index, profile);

	own->job = job;
	if (found->key) { /* such a company has been tuned before */
		own->mudi->batch = found->batch;
		own->mudi->share = found->share;
		own->mudi->paused = found->paused;
		own->mudi->tuned = true;
		own->mudi->slo = slo;
		return;
	}
	cluster->counts.tunings++;
	begin_sampled(cluster, index, job);
	td_mudi_begin(own->mudi, known_of(cluster, service->kind, profile),
		cluster->options.knowledge->layers[profile], &slo);
	if (own->mudi->paused)
		keep(cluster, own, index, job);
}

/* One more iteration of the task; what is found in the end is kept. */
static void observe_mudi(
	struct td_cluster *cluster, struct td_beside_service *own, uint32_t index, uint32_t job)
{
	const struct td_service *service = &cluster->services->list[index];
	struct td_mudi_device *device = own->mudi;
	uint32_t profile = cluster->jobs[job].profile;

	(void)td_mudi_observe(device, known_of(cluster, service->kind, profile),
		cluster->options.knowledge->layers[profile],
		1 / fmax(1e-3, service->seen.guest_speed));
	cluster->counts.iterations++;
	if (device->tuned)
		keep(cluster, own, index, job);
}

/* Anew when another job has come, when the rate has moved by half, or at all while the job is paused, and when the objective is seen to be missed. */
bool td_beside_tune_mudi(struct td_cluster *cluster, struct td_beside_service *own, uint32_t index,
	uint32_t job, uint32_t round)
{
	struct td_service *service = &cluster->services->list[index];
	struct td_mudi_device *device = own->mudi;

	if (!round) {
		own->watches =
			own->job == job && !own->paused &&
			!td_slo_must_retune(device->slo.rate_per_s, service->seen.rate_per_s);
		if (!own->watches)
			begin_mudi(cluster, own, index, job);
	} else if (own->watches) {
		own->watches = false;
		if (service->seen.p99_s <= cluster->services->kinds[service->kind].objective_s)
			return false;
		begin_mudi(cluster, own, index, job);
	} else {
		observe_mudi(cluster, own, index, job);
	}
	own->paused = device->paused;
	if (!own->paused) {
		service->split.batch = device->batch;
		service->split.service_share = fmin(device->share, MOST_SHARE);
		service->split.guest_share = 1 - service->split.service_share;
	}
	service->split.paused = own->paused;
	return own->watches || (!device->tuned && !device->paused);
}
