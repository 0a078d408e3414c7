/*
 * Mudi in the simulated cluster: its samples of tasks that it was not trained for, its choice of a
 * GPU for a task, and its tuning; see mudi.h and sched_beside.c.
 */
#include <math.h>

#include "sim/base/random.h"
#include "sim/scheduler/beside.h"

#define NOISE     0.05 /* relative noise of a sample */
#define RATE_SAME 0.01
/*
 * Time until a monitor shows a percentile. A round of a tuning is an iteration of the task and
 * shorter.
 */
#define WATCH_S 1.
#define REPEATS 3u /* samples per point of a profile made beforehand, as in knowledge.c */
#define STEPS   TD_BESIDE_STEPS

/*
 * Builds a balanced tree with a leaf for each step of log2 of the batch from 4 to 9. Children come
 * after their parent in the array.
 */
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
	const struct td_cluster *cluster, uint32_t kind, uint32_t company)
{
	const struct td_beside *state = cluster->sched_state;

	return &state->sampled[(size_t)kind * state->companies_max + company];
}

/*
 * Fits a curve of six samples for each of the six batches. A sample is a mean of `repeats` (0:
 * without noise). Between the batches the numbers are interpolated over log2 of the batch.
 */
static void sample(struct td_cluster *cluster, uint32_t kind, uint32_t company, uint32_t repeats,
	uint64_t *random)
{
	static const double shares[] = {0.1, 0.25, 0.4, 0.55, 0.75, 0.9};
	struct td_beside_sampled *sampled = sampled_of(cluster, kind, company);
	const struct td_beside *state = cluster->sched_state;
	const struct td_beside_company *of = &state->companies[company];
	struct td_contender guests[TD_SELECTOR_TASKS_MAX];
	double values[4][TD_SELECTOR_BATCHES], steps[STEPS];
	double noise = repeats ? NOISE / sqrt(repeats) : 0;

	for (uint32_t g = 0; g < of->count; g++)
		guests[g] = cluster->profiles->profiles[of->kinds[g]].contender;
	for (uint32_t b = 0; b < TD_SELECTOR_BATCHES; b++) {
		struct td_curve curve = {.knee_x = 0.5};
		double y[6], speeds[TD_SELECTOR_TASKS_MAX];

		for (uint32_t s = 0; s < 6; s++) {
			const struct td_split split = {
				td_selector_batches[b], shares[s], 1 - shares[s], 1, false};
			struct td_service_seen seen;

			td_service_truth(&cluster->options.contention,
				&cluster->services->kinds[kind], &split, 1e-3, guests, of->count,
				cluster->table, speeds, &seen);
			y[s] = seen.slowdown *
			       td_service_batch_s(
				       &cluster->services->kinds[kind], td_selector_batches[b]) *
			       fmax(0.5, 1 + noise * td_random_normal(random));
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
	sampled->view = (struct td_mudi_service){.left_slope = &sampled->predictors[0],
		.right_slope = &sampled->predictors[1],
		.knee_share = &sampled->predictors[2],
		.knee_latency = &sampled->predictors[3]};
	sampled->there = true;
}

/*
 * Returns what Mudi knows of a service beside a company: its profile (4.1.1), its samples since, or
 * the learners' prediction from the layers.
 */
static const struct td_mudi_service *known_of(
	const struct td_cluster *cluster, uint32_t kind, uint32_t company)
{
	const struct td_beside_sampled *sampled = sampled_of(cluster, kind, company);

	return sampled->there ? &sampled->view : &cluster->options.knowledge->mudi[kind];
}

/*
 * Gives tasks that were profiled beforehand their measured curves instead of predictions. The cost
 * was counted when they were profiled.
 */
static void recall(struct td_cluster *cluster, uint32_t company)
{
	struct td_beside *state = cluster->sched_state;

	for (uint32_t g = 0; g < state->companies[company].count && !state->exact; g++)
		if (state->companies[company].kinds[g] >= cluster->options.knowledge->profiled)
			return;
	for (uint32_t k = 0; k < cluster->services->kind_count; k++)
		if (!sampled_of(cluster, k, company)->there)
			sample(cluster, k, company, state->exact ? 0 : REPEATS, &state->random);
}

static struct td_slo slo_of(const struct td_cluster *cluster, uint32_t service)
{
	return (struct td_slo){.objective_s = td_beside_kind(cluster, service)->objective_s,
		.rate_per_s = cluster->services->list[service].seen.rate_per_s,
		.load_max = 0.8,
		.headroom = 0.1,
		.share_min = 0.01};
}

/*
 * Tells whether the service would hold its objective: "The first constraint ensures that the
 * latency of all requests adheres to the SLO" (Eq. 2). This goes by measured curves at the present
 * rate, or by the last tuning. Predicted curves tell only how flat they are, not how high.
 */
static bool fits(struct td_cluster *cluster, uint32_t service, uint32_t company)
{
	const struct td_beside *state = cluster->sched_state;
	const struct td_service *of = &cluster->services->list[service];
	uint64_t key = ((uint64_t)(of->seen.rate_per_s * 1024) << 16 | (uint64_t)of->kind << 10 |
			       company) +
		       1;
	struct td_beside_fit *fit = &state->fits[td_beside_slot(key)];
	const struct td_beside_found *tried = &state->cache[td_beside_slot(key)];
	struct td_slo slo = slo_of(cluster, service);

	if (!sampled_of(cluster, of->kind, company)->there)
		return true;
	if (tried->key == key && tried->paused)
		return false;
	if (fit->key == key)
		return fit->fits;
	if (state->margins[company][of->kind] > 0)
		slo.objective_s *= state->margins[company][of->kind];
	*fit = (struct td_beside_fit){key, td_mudi_fits(known_of(cluster, of->kind, company),
						   state->companies[company].layers, &slo)};
	return fit->fits;
}

static double score_of(struct td_cluster *cluster, uint32_t kind, uint32_t company)
{
	struct td_beside *state = cluster->sched_state;
	double *score = &state->scores[company][kind];

	recall(cluster, company);
	if (isnan(*score))
		*score = td_mudi_score(
			known_of(cluster, kind, company), state->companies[company].layers);
	return *score;
}

/*
 * Returns the GPU with the least score of the company that would be on it. A GPU without a service
 * has the score 0, because nobody is disturbed there.
 */
uint32_t td_beside_choose_mudi(struct td_cluster *cluster, uint32_t profile)
{
	struct td_beside *state = cluster->sched_state;

	for (uint32_t g = 0; g < cluster->gpu_count; g++) {
		uint32_t service = cluster->gpus[g].service, company;
		struct td_selector_device *device = &state->devices[g];

		*device = (struct td_selector_device){.service = g,
			.tasks = state->taken[g],
			.accepts = td_beside_is_open(cluster, g),
			.free_bytes = UINT64_MAX};
		state->gpu_scores[g] = 0;
		if (!device->accepts || service == TD_SERVICE_NONE)
			continue;
		company = td_beside_company_of(cluster, g, profile);
		state->gpu_scores[g] =
			score_of(cluster, cluster->services->list[service].kind, company);
		device->accepts = fits(cluster, service, company);
	}
	return td_selector_choose(
		state->devices, cluster->gpu_count, state->gpu_scores, 0, state->tasks_max);
}

/*
 * Begins the first sampling beside a task that was not profiled: at six shares, each at the cost of
 * a changed share.
 */
static void begin_sampled(struct td_cluster *cluster, uint32_t index, uint32_t company)
{
	struct td_beside *state = cluster->sched_state;
	const struct td_service *service = &cluster->services->list[index];
	const struct td_sim_gpu *gpu = &cluster->gpus[service->gpu];
	double cost = 6 * cluster->options.costs.repartition_s;

	recall(cluster, company);
	if (sampled_of(cluster, service->kind, company)->there)
		return;
	sample(cluster, service->kind, company, 1, &state->random);
	cluster->counts.samplings++;
	state->scores[company][service->kind] = NAN;
	for (uint32_t i = 0; i < gpu->count; i++) {
		cluster->jobs[gpu->jobs[i]].left_s += cost;
		cluster->jobs[gpu->jobs[i]].stale = true;
		cluster->counts.repartition_s += cost;
	}
}

/* Keeps the result of a tuning for the next tuning with the same company. */
static void keep(
	struct td_cluster *cluster, struct td_beside_service *own, uint32_t index, uint32_t company)
{
	struct td_beside *state = cluster->sched_state;
	struct td_mudi_device *device = own->mudi;

	state->cache[td_beside_slot(own->key)] = (struct td_beside_found){
		own->key, device->batch, device->share, 0, device->margin, device->paused};
	/* A margin that left no batch is not kept, because the cause may be this rate alone. */
	state->margins[company][cluster->services->list[index].kind] =
		device->paused ? 0 : device->margin;
}

/*
 * Sets batch and share that were found before for this company and rate. Returns false if none
 * were.
 */
static bool take_found(
	struct td_cluster *cluster, struct td_mudi_device *device, uint32_t index, uint32_t company)
{
	const struct td_beside_found *found = td_beside_look_up(cluster, index, company);

	if (!found->key)
		return false;
	device->batch = found->batch;
	device->share = found->share;
	device->margin = found->margin;
	device->paused = found->paused;
	device->tuned = true;
	device->slo = slo_of(cluster, index);
	return true;
}

enum cause { NEW_TASK, NEW_RATE, MISSED };

static void begin_tuning(struct td_cluster *cluster, struct td_beside_service *own, uint32_t index,
	uint32_t company, enum cause cause)
{
	const struct td_beside *state = cluster->sched_state;
	struct td_service *service = &cluster->services->list[index];
	const double *layers = state->companies[company].layers;
	const struct td_slo slo = slo_of(cluster, index);

	(void)td_beside_look_up(cluster, index, company); /* sets own->key */
	if (cause != MISSED && take_found(cluster, own->mudi, index, company))
		return;
	cluster->counts.tunings++;
	begin_sampled(cluster, index, company);
	if (cause == NEW_TASK)
		own->mudi->margin = state->margins[company][service->kind];
	switch (cause) {
	case NEW_TASK:
		td_mudi_begin(own->mudi, known_of(cluster, service->kind, company), layers, &slo);
		break;
	case NEW_RATE:
		td_mudi_rescale(own->mudi, known_of(cluster, service->kind, company), layers, &slo);
		break;
	case MISSED:
		own->mudi->slo = slo;
		td_mudi_miss(own->mudi, known_of(cluster, service->kind, company), layers);
		break;
	}
	if (own->mudi->paused)
		keep(cluster, own, index, company);
}

/* Takes one more iteration of the task, and keeps the result when the tuning has ended. */
static void observe_mudi(
	struct td_cluster *cluster, struct td_beside_service *own, uint32_t index, uint32_t company)
{
	const struct td_beside *state = cluster->sched_state;
	const struct td_service *service = &cluster->services->list[index];
	struct td_mudi_device *device = own->mudi;

	(void)td_mudi_observe(device, known_of(cluster, service->kind, company),
		state->companies[company].layers, 1 / fmax(1e-3, service->seen.guest_speed));
	cluster->counts.iterations++;
	if (device->tuned)
		keep(cluster, own, index, company);
}

static bool is_of_now(const struct td_mudi_device *device, const struct td_service *service)
{
	return fabs(device->slo.rate_per_s - service->seen.rate_per_s) <
	       RATE_SAME * service->seen.rate_per_s;
}

/*
 * Tunes anew if another job has come, if the rate has changed by half, at any change while the job
 * is paused, and if the monitor sees the objective missed under the present split.
 */
bool td_beside_tune_mudi(
	struct td_cluster *cluster, struct td_beside_service *own, uint32_t index, uint32_t round)
{
	struct td_beside *state = cluster->sched_state;
	struct td_service *service = &cluster->services->list[index];
	struct td_mudi_device *device = own->mudi;
	bool moved = td_slo_must_retune(device->slo.rate_per_s, service->seen.rate_per_s);
	uint32_t company = td_beside_company_of(cluster, service->gpu, TD_BESIDE_NOBODY);
	uint32_t tasks = company << 20 ^ cluster->gpus[service->gpu].jobs[0];

	if (!round) {
		if (own->job != tasks || own->paused)
			begin_tuning(cluster, own, index, company, NEW_TASK);
		else if (moved)
			begin_tuning(cluster, own, index, company, NEW_RATE);
		own->job = tasks;
	} else if (device->tuned) {
		if (service->seen.p99_s <= cluster->services->kinds[service->kind].objective_s)
			return false;
		/* The time until the monitor sees it is counted as for other systems. */
		service->total_s += WATCH_S - cluster->sched->round_s;
		service->late_s += WATCH_S - cluster->sched->round_s;
		/*
		 * A result of another rate, or one that missed the objective, starts a new search.
		 */
		begin_tuning(cluster, own, index, company,
			is_of_now(device, service) ? MISSED : NEW_RATE);
	} else {
		observe_mudi(cluster, own, index, company);
	}
	own->paused = device->paused;
	state->stuck |= own->paused;
	service->split = (struct td_split){
		.batch = own->paused ? td_service_usual_batch(td_beside_kind(cluster, index),
					       service->seen.rate_per_s)
				     : device->batch,
		.service_share = own->paused ? 1 : device->share,
		.guest_share = own->paused ? 1 : 1 - device->share,
		.guest_duty = 1,
		.paused = own->paused};
	return !own->paused;
}

/*
 * Starts tasks in order of arrival. A task that fits nowhere waits, but later ones may use GPUs
 * that are of no use to it.
 */
static void start_tasks(struct td_cluster *cluster)
{
	struct td_beside *state = cluster->sched_state;
	bool failed[TD_PROFILES_MAX] = {false};
	uint32_t kept = state->head;

	for (uint32_t q = state->head; q < state->tail; q++) {
		const struct td_sim_job *job = &cluster->jobs[state->queue[q]];

		if (!failed[job->profile] && td_beside_place(cluster, state->queue[q]))
			continue;
		failed[job->profile] |= job->gpus == 1;
		state->queue[kept++] = state->queue[q];
	}
	state->tail = kept;
}

/*
 * Moves paused tasks to a GPU where they can run, if there is one: training is paused "until
 * suitable resources become available" (5.3.2).
 */
static void relocate(struct td_cluster *cluster)
{
	struct td_beside *state = cluster->sched_state;

	state->stuck = false;
	for (uint32_t s = 0; s < cluster->services->count; s++) {
		uint32_t from = cluster->services->list[s].gpu, to, job;

		if (!state->services[s].paused || !cluster->gpus[from].count)
			continue;
		job = cluster->gpus[from].jobs[cluster->gpus[from].count - 1];
		if (cluster->jobs[job].gpus != 1)
			continue;
		to = td_beside_choose_mudi(cluster, cluster->jobs[job].profile);
		if (to == UINT32_MAX || to == from)
			continue;
		state->taken[from]--;
		state->taken[to]++;
		td_cluster_move(cluster, job, &to, cluster->options.costs.restart_s);
	}
}

void td_beside_decide_mudi(struct td_cluster *cluster)
{
	struct td_beside *state = cluster->sched_state;

	/*
	 * Searches only if a GPU may have become suitable: a job has come or gone, or rates have
	 * changed.
	 */
	if (cluster->now_ns - state->matched_ns >= cluster->services->interval_ns) {
		state->matched_ns = cluster->now_ns;
		state->changed = true;
	}
	if (state->changed || state->stuck)
		start_tasks(cluster);
	if (state->stuck)
		relocate(cluster);
	state->changed = false;
}
