/*
 * The schedulers that know services: GSLICE, gpulets, MuxFlow, Mudi, and the optimum.
 *
 * All of them serve jobs first come first served, one on a GPU, beside a service or on a GPU without. They differ in where a job goes and how the GPU is divided:
 *
 *              where                                          division
 *   gslice     anywhere                                       feedback of P99, steps of 5 % (baselines.h)
 *   gpulets    anywhere                                       the smallest of six sizes by the curve alone (baselines.h)
 *   muxflow    matched every 15 min by predicted speed        what the service's activity leaves, PID on the load (muxflow.h)
 *   mudi       least predicted slope                          GP-LCB over batches, smallest share by the curve (mudi.h)
 *   optimum    the most speed within the objective, by truth  likewise, all batches and shares tried: a bound, no system
 *
 * GSLICE stops where it first holds the objective after having missed it: as published it would miss it once in each cycle for ever.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/time.h"
#include "match/match.h"
#include "policy/baselines.h"
#include "policy/mudi.h"
#include "policy/muxflow.h"
#include "sim/random.h"
#include "sim/sched.h"

#define MATCH_NS   (900 * TD_NS_PER_S)
#define BINS       8u  /* of a service's activity, for the matching */
#define PID_STEPS  30u /* milliseconds' steps until the duty counts as settled */
#define SHARE_STEP 0.05
#define CACHE_BITS 12
#define MOST_SHARE 0.9  /* of a service beside a task, Mudi's */
#define NOISE      0.05 /* of a sample */

enum variant { GSLICE, GPULETS, MUXFLOW, MUDI, OPTIMUM };

/* What was found for a service of a kind at a rate beside a kind of job. */
struct found {
	uint64_t key; /* 0: none */
	uint32_t batch;
	double share, speed;
	bool paused;
};

/*
 * What Mudi has sampled of a service beside a task that it was not trained for (7.3: "Mudi samples the inference latency under this new co-location"): the four numbers of the curve over
 * log2 of the batch, as trees of steps, so that they are read as the trained ones are.
 */
#define STEPS 32u /* 16 to 512 */

struct sampled {
	bool there;
	struct td_mudi_service view;
	struct td_predictor predictors[4];
	struct td_tree_node nodes[4][2 * STEPS - 1];
	uint32_t root;
	double shift[TD_MUDI_INPUTS], scale[TD_MUDI_INPUTS];
};

struct beside {
	enum variant variant;
	struct sampled *sampled; /* of each kind of service and profile; Mudi's */
	uint32_t *queue, head, tail;
	uint8_t *taken; /* of each GPU: has a job */
	uint64_t random, matched_ns;
	bool changed;
	struct per_service {
		struct td_gslice gslice;
		struct td_muxflow_gpu monitor;
		struct td_mudi_device *mudi;
		uint32_t job; /* that it was tuned for */
		uint64_t key;
		double last_share;
		bool grown, watches, paused;
	} * services;
	struct found *cache;
	double (*scores)[TD_SERVICE_KINDS_MAX]; /* of each profile; NAN: not asked yet */
	struct td_selector_device *devices;
	uint32_t *place;
	/* of the matching */
	void *memory;
	size_t bytes;
	float *weights;
	uint32_t *kinds;
};

static const struct td_service_kind *kind_of(const struct td_cluster *cluster, uint32_t service)
{
	return &cluster->services->kinds[cluster->services->list[service].kind];
}

static double usual_activity(const struct td_cluster *cluster, uint32_t service)
{
	const struct td_service_kind *kind = kind_of(cluster, service);
	double rate = cluster->services->list[service].seen.rate_per_s;
	uint32_t batch = td_service_usual_batch(kind, rate);

	return fmin(1, rate * td_service_batch_s(kind, batch) / batch);
}

/* --- what is found once --- */

static struct found *look_up(struct td_cluster *cluster, uint32_t service, uint32_t profile)
{
	struct beside *state = cluster->sched_state;
	const struct td_service *of = &cluster->services->list[service];
	uint64_t rate = (uint64_t)(of->seen.rate_per_s * 1024);
	uint64_t key = (rate << 16 | (uint64_t)of->kind << 10 | profile) + 1;
	struct found *found = &state->cache[key * 0x9e3779b97f4a7c15ull >> (64 - CACHE_BITS)];

	if (found->key != key)
		*found = (struct found){.key = 0};
	state->services[service].key = key;
	return found;
}

/* All batches and shares, by the truth itself. */
static const struct found *find_optimum(
	struct td_cluster *cluster, uint32_t service, uint32_t profile)
{
	struct found *found = look_up(cluster, service, profile);
	const struct td_service_kind *kind = kind_of(cluster, service);
	const struct td_contender *guest = &cluster->profiles->profiles[profile].contender;
	double rate = cluster->services->list[service].seen.rate_per_s;
	struct beside *state = cluster->sched_state;

	if (found->key)
		return found;
	*found = (struct found){.key = state->services[service].key,
		.batch = td_service_usual_batch(kind, rate),
		.share = 1,
		.paused = true};
	for (uint32_t b = 0; b < TD_SELECTOR_BATCHES; b++) {
		for (double share = SHARE_STEP; share < 0.99; share += SHARE_STEP) {
			struct td_split split = {.batch = td_selector_batches[b],
				.service_share = share,
				.guest_share = 1 - share,
				.guest_duty = 1};
			struct td_service_seen seen;
			double speed;

			td_service_truth(&cluster->options.contention, kind, &split, rate, guest, 1,
				cluster->table, &speed, &seen);
			if (seen.p99_s > kind->objective_s || !(speed > found->speed))
				continue;
			*found = (struct found){found->key, split.batch, share, speed, false};
		}
	}
	return found;
}

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

static struct sampled *sampled_of(const struct td_cluster *cluster, uint32_t kind, uint32_t profile)
{
	const struct beside *state = cluster->sched_state;

	return &state->sampled[(size_t)kind * cluster->profiles->count + profile];
}

/* Curves of six samples for each of the six batches, and between them by log2 of the batch. */
static void sample(struct td_cluster *cluster, uint32_t kind, uint32_t profile, uint64_t *random)
{
	static const double shares[] = {0.1, 0.25, 0.4, 0.55, 0.75, 0.9};
	struct sampled *sampled = sampled_of(cluster, kind, profile);
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
	const struct sampled *sampled = sampled_of(cluster, kind, profile);

	return sampled->there ? &sampled->view : &cluster->options.knowledge->mudi[kind];
}

/* --- where --- */

static bool is_open(const struct td_cluster *cluster, uint32_t gpu)
{
	const struct beside *state = cluster->sched_state;

	return !state->taken[gpu];
}

static uint32_t choose_any(struct td_cluster *cluster)
{
	struct beside *state = cluster->sched_state;
	uint32_t n = 0;

	for (uint32_t g = 0; g < cluster->gpu_count; g++)
		if (is_open(cluster, g))
			state->kinds[n++] = g;
	return n ? state->kinds[td_random_gpu(&state->random, n)] : UINT32_MAX;
}

static uint32_t choose_optimum(struct td_cluster *cluster, uint32_t profile)
{
	uint32_t best = UINT32_MAX;
	double most = -1;

	for (uint32_t g = 0; g < cluster->gpu_count; g++) {
		uint32_t service = cluster->gpus[g].service;
		double speed = 1;

		if (!is_open(cluster, g))
			continue;
		if (service != TD_SERVICE_NONE)
			speed = find_optimum(cluster, service, profile)->speed;
		if (!(speed > most))
			continue;
		most = speed;
		best = g;
	}
	return best;
}

/* A GPU without a service has the score 0: there is nobody to disturb. */
static uint32_t choose_mudi(struct td_cluster *cluster, uint32_t profile)
{
	struct beside *state = cluster->sched_state;
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
			.accepts = is_open(cluster, g),
			.free_bytes = UINT64_MAX};
	}
	return td_selector_choose(
		state->devices, cluster->gpu_count, scores, 0, TD_SELECTOR_TASKS_MAX);
}

static bool start(struct td_cluster *cluster, uint32_t index, uint32_t found)
{
	struct beside *state = cluster->sched_state;
	const struct td_sim_job *job = &cluster->jobs[index];

	if (found < job->gpus) {
		for (uint32_t k = 0; k < found; k++)
			state->taken[state->place[k]] = 0;
		return false;
	}
	td_cluster_start(cluster, index, state->place, true);
	return true;
}

static bool start_next(struct td_cluster *cluster)
{
	struct beside *state = cluster->sched_state;
	uint32_t index = state->queue[state->head], n = 0;
	const struct td_sim_job *job = &cluster->jobs[index];

	for (; n < job->gpus; n++) {
		uint32_t gpu = state->variant == MUDI      ? choose_mudi(cluster, job->profile)
			       : state->variant == OPTIMUM ? choose_optimum(cluster, job->profile)
							   : choose_any(cluster);

		if (gpu == UINT32_MAX)
			break;
		state->place[n] = gpu;
		state->taken[gpu] = 1;
	}
	if (!start(cluster, index, n))
		return false;
	state->head++;
	return true;
}

/* --- MuxFlow's matching, of those who wait for one GPU with those that have none --- */

static struct td_muxflow_profile profile_of(double demand, double activity, double alone_s)
{
	double used = demand * activity;

	return (struct td_muxflow_profile){used, 0.8 * used, 0.5 * used, alone_s};
}

static uint32_t row_of(const struct td_cluster *cluster, uint32_t gpu)
{
	uint32_t service = cluster->gpus[gpu].service, bin;

	if (service == TD_SERVICE_NONE)
		return TD_SERVICE_KINDS_MAX * BINS;
	bin = (uint32_t)(usual_activity(cluster, service) * (BINS - 0.01));
	return cluster->services->list[service].kind * BINS + bin;
}

#define ROWS (TD_SERVICE_KINDS_MAX * BINS + 1)

/* Rows: kinds of services by activity; columns: profiles. Returns how many rows there are. */
static uint32_t list_rows(const struct td_cluster *cluster, struct td_muxflow_profile *ret,
	uint32_t *ret_counts, uint32_t *ret_index)
{
	uint32_t rows = 0;

	memset(ret_index, 0xff, ROWS * sizeof(*ret_index));
	for (uint32_t g = 0; g < cluster->gpu_count; g++) {
		uint32_t id = row_of(cluster, g), service = cluster->gpus[g].service;

		if (!is_open(cluster, g))
			continue;
		if (ret_index[id] == UINT32_MAX) {
			double busy =
				service == TD_SERVICE_NONE ? 0 : usual_activity(cluster, service);

			ret_index[id] = rows;
			ret_counts[rows] = 0;
			ret[rows++] =
				service == TD_SERVICE_NONE
					? profile_of(0, 0, 0)
					: profile_of(kind_of(cluster, service)->contender.demand,
						  busy, kind_of(cluster, service)->each_s);
		}
		ret_counts[ret_index[id]]++;
	}
	return rows;
}

static void start_matched(struct td_cluster *cluster, const uint32_t *index, const uint32_t *counts,
	uint32_t rows, const uint32_t *columns)
{
	struct beside *state = cluster->sched_state;
	uint32_t next[ROWS], at = 0;

	for (uint32_t r = 0; r < rows; r++) {
		next[r] = at;
		at += counts[r];
	}
	/* A copy of a row is a GPU of it, in their order. */
	for (uint32_t g = 0; g < cluster->gpu_count; g++) {
		uint32_t row = index[row_of(cluster, g)], kind;

		if (!is_open(cluster, g))
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
	struct beside *state = cluster->sched_state;
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
		offline[cols] = profile_of(cluster->profiles->profiles[k].contender.demand, 1, 0.1);
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

/* Gangs first come first served among themselves, on any open GPUs; single jobs by the matching. */
static void decide_muxflow(struct td_cluster *cluster)
{
	struct beside *state = cluster->sched_state;
	uint32_t kept;

	if (cluster->now_ns - state->matched_ns < MATCH_NS && state->matched_ns)
		return;
	state->matched_ns = cluster->now_ns;
	for (uint32_t q = state->head; q < state->tail; q++) {
		uint32_t index = state->queue[q], n = 0, gpu;

		if (cluster->jobs[index].gpus == 1)
			continue;
		for (; n < cluster->jobs[index].gpus; n++) {
			gpu = choose_any(cluster);
			if (gpu == UINT32_MAX)
				break;
			state->place[n] = gpu;
			state->taken[gpu] = 1;
		}
		if (!start(cluster, index, n))
			break;
	}
	match(cluster);
	kept = state->tail;
	for (uint32_t q = state->tail; q-- > state->head;)
		if (cluster->jobs[state->queue[q]].status == TD_SIM_WAITING)
			state->queue[--kept] = state->queue[q];
	state->head = kept;
}

static void decide(struct td_cluster *cluster)
{
	struct beside *state = cluster->sched_state;

	if (state->variant == MUXFLOW) {
		decide_muxflow(cluster);
		return;
	}
	while (state->changed && state->head < state->tail && start_next(cluster))
		;
	state->changed = false;
}

/* --- how --- */

static bool tune_gslice(struct per_service *own, const struct td_service_kind *kind,
	struct td_service *service, uint32_t round)
{
	double before = own->gslice.share;

	if (!round) {
		own->grown = false;
		service->split.service_share = before;
	} else {
		double share = td_gslice_step(&own->gslice, service->seen.p99_s, kind->objective_s);

		own->grown |= share > before;
		service->split.service_share = share;
		if (share >= before && share <= before)
			return false;
		if (own->grown && share < before) { /* back to where it was missed */
			own->gslice.share = service->split.service_share = before;
			return false;
		}
	}
	service->split.guest_share = 1 - service->split.service_share;
	service->split.paused = service->split.guest_share < 0.01;
	return true;
}

static void tune_gpulets(const struct td_cluster *cluster, struct td_service *service)
{
	const struct td_service_kind *kind = &cluster->services->kinds[service->kind];
	const struct td_slo slo = {.objective_s = kind->objective_s,
		.rate_per_s = service->seen.rate_per_s,
		.batch = service->split.batch,
		.load_max = 0.8,
		.share_min = 0.01};
	uint32_t b = 0;
	double size;

	while (td_selector_batches[b] < service->split.batch)
		b++;
	size = td_gpulet_size(&slo, &cluster->options.knowledge->pieces[service->kind][b]);
	service->split.paused = !(size > 0 && size < 1);
	service->split.service_share = size > 0 ? size : 1;
	service->split.guest_share = 1 - service->split.service_share;
}

static void tune_muxflow(
	const struct td_cluster *cluster, struct per_service *own, uint32_t index, double demand)
{
	struct td_service *service = &cluster->services->list[index];
	double busy = usual_activity(cluster, index);
	double share = td_dynamic_sm_ppm(&td_dynamic_sm_default, (uint32_t)(busy * 1e6)) / 1e6;
	struct td_sysmonitor_metrics metrics = {.initialised = true, .available = true};
	struct td_muxflow_output out = {.duty_ppm = 1000000};

	for (uint32_t k = 0; k < PID_STEPS; k++) {
		double used = fmin(1, busy + share * demand * out.duty_ppm / 1e6);

		metrics.utilisation_ppm = (uint32_t)(fmin(0.96, used) * 1e6);
		metrics.sm_activity_ppm = (uint32_t)(fmin(0.92, used) * 1e6);
		out = td_muxflow_gpu_step(&own->monitor, &td_muxflow_t4, &metrics,
			cluster->now_ns + k * 10000000ull + 1);
	}
	service->split.guest_share = share;
	service->split.guest_duty = out.duty_ppm / 1e6;
	service->split.paused = out.evict;
}

/* The first time beside a task that was not profiled: six shares, each costs what a changed share costs. */
static void begin_sampled(struct td_cluster *cluster, uint32_t index, uint32_t job)
{
	struct beside *state = cluster->sched_state;
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
	const struct beside *state = cluster->sched_state;
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
static void keep(struct td_cluster *cluster, struct per_service *own, uint32_t index, uint32_t job)
{
	struct beside *state = cluster->sched_state;
	struct td_mudi_device *device = own->mudi;

	device->paused |= !leaves_room(cluster, index, job);
	state->cache[own->key * 0x9e3779b97f4a7c15ull >> (64 - CACHE_BITS)] =
		(struct found){own->key, device->batch, device->share, 0, device->paused};
}

static void begin_mudi(
	struct td_cluster *cluster, struct per_service *own, uint32_t index, uint32_t job)
{
	struct td_service *service = &cluster->services->list[index];
	const struct td_service_kind *kind = &cluster->services->kinds[service->kind];
	uint32_t profile = cluster->jobs[job].profile;
	const struct td_slo slo = {.objective_s = kind->objective_s,
		.rate_per_s = service->seen.rate_per_s,
		.load_max = 0.8,
		.headroom = 0.1,
		.share_min = 0.01};
	const struct found *found = look_up(cluster, index, profile);

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
	struct td_cluster *cluster, struct per_service *own, uint32_t index, uint32_t job)
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
static bool tune_mudi(struct td_cluster *cluster, struct per_service *own, uint32_t index,
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

static bool tune(struct td_cluster *cluster, uint32_t index, uint32_t round)
{
	struct beside *state = cluster->sched_state;
	struct td_service *service = &cluster->services->list[index];
	struct per_service *own = &state->services[index];
	const struct td_service_kind *kind = kind_of(cluster, index);
	const struct td_sim_gpu *gpu = &cluster->gpus[service->gpu];
	uint32_t profile = gpu->count ? cluster->jobs[gpu->jobs[0]].profile : 0;
	const struct found *found;

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
	case GSLICE: return tune_gslice(own, kind, service, round);
	case GPULETS: tune_gpulets(cluster, service); return false;
	case MUXFLOW:
		tune_muxflow(
			cluster, own, index, cluster->profiles->profiles[profile].contender.demand);
		return false;
	case MUDI: return tune_mudi(cluster, own, index, gpu->jobs[0], round);
	case OPTIMUM: break;
	}
	found = find_optimum(cluster, index, profile);
	service->split.batch = found->batch;
	service->split.service_share = found->share;
	service->split.guest_share = 1 - found->share;
	service->split.paused = found->paused;
	return false;
}

/* --- the rest --- */

static void deinit(struct td_cluster *cluster)
{
	struct beside *state = cluster->sched_state;

	for (uint32_t s = 0; state->services && s < cluster->services->count; s++)
		free(state->services[s].mudi);
	free(state->queue);
	free(state->taken);
	free(state->services);
	free(state->cache);
	free(state->scores);
	free(state->devices);
	free(state->place);
	free(state->memory);
	free(state->weights);
	free(state->kinds);
	free(state->sampled);
	free(state);
}

static int prepare_services(struct td_cluster *cluster, struct beside *state)
{
	for (uint32_t s = 0; s < cluster->services->count; s++) {
		struct per_service *own = &state->services[s];

		own->gslice = (struct td_gslice){
			.share = 0.5, .step = 0.05, .share_min = 0.1, .slack = 0.8};
		own->job = UINT32_MAX;
		own->mudi = state->variant == MUDI ? calloc(1, sizeof(*own->mudi)) : NULL;
		if (state->variant == MUDI && !own->mudi)
			return -ENOMEM;
	}
	return 0;
}

static bool is_known(const struct td_cluster *cluster, enum variant variant)
{
	const struct td_sim_knowledge *known = cluster->options.knowledge;

	switch (variant) {
	case GSLICE:
	case OPTIMUM: return true;
	case GPULETS: return known && known->pieces;
	case MUXFLOW: return known && known->muxflow;
	case MUDI: return known && known->mudi && known->layers;
	}
	return false;
}

static int init_as(struct td_cluster *cluster, enum variant variant)
{
	uint32_t gpus = cluster->gpu_count, profiles = cluster->profiles->count;
	struct beside *state;

	if (!cluster->services || !is_known(cluster, variant))
		return -ENODATA;
	state = calloc(1, sizeof(*state));
	cluster->sched_state = state;
	if (!state)
		return -ENOMEM;
	state->variant = variant;
	state->random = cluster->options.seed * 2 + 1;
	state->bytes = (td_match_bytes(ROWS, profiles, profiles * gpus) + 63) & ~(size_t)63;
	state->queue = calloc(cluster->job_count, sizeof(*state->queue));
	state->taken = calloc(gpus, sizeof(*state->taken));
	state->services = calloc(cluster->services->count, sizeof(*state->services));
	state->cache = calloc((size_t)1 << CACHE_BITS, sizeof(*state->cache));
	state->scores = calloc(profiles, sizeof(*state->scores));
	state->devices = calloc(gpus, sizeof(*state->devices));
	state->place = calloc(gpus, sizeof(*state->place));
	state->kinds = calloc(gpus, sizeof(*state->kinds));
	state->weights = calloc(ROWS * (size_t)profiles, sizeof(*state->weights));
	state->sampled = calloc((size_t)TD_SERVICE_KINDS_MAX * profiles, sizeof(*state->sampled));
	state->memory = variant == MUXFLOW ? aligned_alloc(64, state->bytes) : NULL;
	if (!state->queue || !state->taken || !state->services || !state->cache || !state->scores ||
		!state->devices || !state->place || !state->kinds || !state->weights ||
		(variant == MUXFLOW && !state->memory))
		return -ENOMEM;
	for (uint32_t p = 0; p < profiles; p++)
		for (uint32_t k = 0; k < TD_SERVICE_KINDS_MAX; k++)
			state->scores[p][k] = NAN;
	return prepare_services(cluster, state);
}

static void arrive(struct td_cluster *cluster, uint32_t job)
{
	struct beside *state = cluster->sched_state;

	state->queue[state->tail++] = job;
	state->changed = true;
}

static void finish(struct td_cluster *cluster, uint32_t index)
{
	struct beside *state = cluster->sched_state;
	const struct td_sim_job *job = &cluster->jobs[index];

	for (uint32_t k = 0; k < job->gpus; k++)
		state->taken[cluster->places[job->place + k]] = 0;
	state->changed = true;
}

#define SCHED(name_, variant_, tick_, round_, summary_)                                            \
	static int init_##name_(struct td_cluster *cluster)                                        \
	{                                                                                          \
		return init_as(cluster, variant_);                                                 \
	}                                                                                          \
	const struct td_sched td_sched_##name_ = {                                                 \
		.name = #name_,                                                                    \
		.summary = summary_,                                                               \
		.tick_ns = tick_,                                                                  \
		.round_s = round_,                                                                 \
		.init = init_##name_,                                                              \
		.deinit = deinit,                                                                  \
		.arrive = arrive,                                                                  \
		.finish = finish,                                                                  \
		.decide = decide,                                                                  \
		.tune = tune,                                                                      \
	}

SCHED(gslice, GSLICE, 0, 1, "services' partitions by feedback of their latency, jobs anywhere");
SCHED(gpulets, GPULETS, 0, 1,
	"the smallest of six partitions that holds by the curve, jobs anywhere");
SCHED(muxflow, MUXFLOW, MATCH_NS, 1, "jobs matched with services every 15 min, shares by activity");
SCHED(mudi, MUDI, 0, 0.08, "jobs where the latency curve is flattest, batch and share tuned");
SCHED(bound, OPTIMUM, 0, 1, "the most speed within the objectives, by the truth: a bound");
