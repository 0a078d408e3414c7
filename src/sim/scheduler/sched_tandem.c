/*
 * tandem: the cluster's part of the default policy (tandem_cluster.h). Guests have the same duty as
 * AntMan's beside guaranteed jobs, and beside services what slo_split.h leaves. Of a job it is told
 * only what its user declares or a run alone shows: class, GPUs, memory, kind, and the kind's use
 * of a GPU alone. Speeds of jobs that share a GPU reach it ten seconds after a change, as a monitor
 * shows them.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/time.h"
#include "policy/algo/fit/slo_split.h"
#include "policy/cluster/tandem_cluster.h"
#include "sim/scheduler/schedulers.h"

#define ACTIONS 64u

struct tandem {
	struct td_tandem_cluster cluster;
	void *memory;
	bool changed;
	uint64_t decided_ns;
	struct td_slo_split *splits; /* one per service */
	/* Per service: the room that it would leave to jobs never observed. */
	double *rooms;
	double factors[TD_SERVICE_KINDS_MAX]
		      /*
		       * The largest factor observed for a service beside a kind of job; 0: none.
		       * The factor depends on the rate, and too small a factor means a missed
		       * objective.
		       */
		      [TD_PROFILES_MAX];
};

/* Time until a monitor shows speeds. A cheaper move is not followed by the next one earlier. */
#define SHOWN_S 10.
#define FACTOR  1.2 /* the factor beside a company never observed */

static int start_policy(struct td_cluster *cluster, struct tandem *state)
{
	const struct td_services *services = cluster->services;
	uint32_t profiles = cluster->profiles->count;
	uint32_t quotas[TD_TENANTS_MAX], kinds = profiles + (services ? services->kind_count : 0);
	size_t bytes = td_tandem_cluster_bytes(
		cluster->node_count, cluster->gpu_count, cluster->job_count, kinds);
	double demands[TD_PROFILES_MAX + TD_SERVICE_KINDS_MAX];
	const struct td_tandem_cluster_params params = td_tandem_cluster_params_of(
		(uint64_t)(fmax(cluster->options.costs.restart_s, SHOWN_S) * TD_NS_PER_S));
	int r;

	for (uint32_t t = 0; t < TD_TENANTS_MAX; t++)
		quotas[t] = cluster->gpu_count;
	for (uint32_t k = 0; k < profiles; k++)
		demands[k] = cluster->profiles->profiles[k].told_demand;
	for (uint32_t k = profiles; k < kinds; k++)
		demands[k] = 0; /* the room that it leaves already accounts for a service's use */
	state->memory = aligned_alloc(64, (bytes + 63) & ~(size_t)63);
	if (!state->memory)
		return -ENOMEM;
	r = td_tandem_cluster_init(&state->cluster, state->memory, bytes, &params,
		cluster->node_gpus, cluster->node_count, cluster->gpus[0].memory_bytes, quotas,
		TD_TENANTS_MAX, cluster->job_count, demands, kinds);
	for (uint32_t s = 0; !r && services && s < services->count; s++) {
		const struct td_service *service = &services->list[s];

		td_tandem_cluster_serve(&state->cluster, service->gpu, profiles + service->kind,
			services->kinds[service->kind].memory_bytes);
	}
	return r;
}

static int init(struct td_cluster *cluster)
{
	struct tandem *state = calloc(1, sizeof(*state));

	cluster->sched_state = state;
	if (cluster->services &&
		!(cluster->options.knowledge && cluster->options.knowledge->hyperbolas)) {
		free(state);
		cluster->sched_state = NULL;
		return -ENODATA;
	}
	if (state && cluster->services)
		state->splits = calloc(cluster->services->count, sizeof(*state->splits));
	if (state && cluster->services)
		state->rooms = calloc(cluster->services->count, sizeof(*state->rooms));
	if (!state || (cluster->services && (!state->splits || !state->rooms)))
		return -ENOMEM;
	return start_policy(cluster, state);
}

static void deinit(struct td_cluster *cluster)
{
	struct tandem *state = cluster->sched_state;

	free(state->memory);
	free(state->splits);
	free(state->rooms);
	free(state);
}

static void arrive(struct td_cluster *cluster, uint32_t index)
{
	struct tandem *state = cluster->sched_state;
	const struct td_sim_job *job = &cluster->jobs[index];
	const struct td_tandem_request request = {.tenant = job->tenant % TD_TENANTS_MAX,
		.gpus = job->gpus,
		.kind = job->profile,
		.guaranteed = job->class == TD_CLASS_GUARANTEED,
		.bytes = job->memory_bytes};

	if (td_tandem_cluster_submit(&state->cluster, index, &request, cluster->now_ns))
		td_cluster_fail(cluster, index);
	state->changed = true;
}

static void tandem_finish(struct td_cluster *cluster, uint32_t job)
{
	struct tandem *state = cluster->sched_state;

	td_tandem_cluster_finish(&state->cluster, job, cluster->now_ns);
	state->changed = true;
}

/* Returns the part of a GPU that jobs have beside a service. */
static double room_of(const struct td_slo_split *split)
{
	return split->paused ? 0 : split->guest_share * split->duty;
}

static void load_beside(
	struct td_cluster *cluster, struct tandem *state, const struct td_sim_gpu *gpu)
{
	const struct td_service *service = &cluster->services->list[gpu->service];
	double room = state->rooms[gpu->service];

	for (uint32_t i = 0; i < gpu->count && room > 0.02; i++)
		td_tandem_cluster_observe(&state->cluster, cluster->jobs[gpu->jobs[i]].profile,
			cluster->profiles->count + service->kind, true,
			fmin(TD_TANDEM_OVER, gpu->speeds[i] * gpu->count / room));
}

/*
 * Computes the factor of a service beside its jobs, as a sum over them. Returns the record of their
 * kind, for a single job.
 */
static double *factor_of(
	struct td_cluster *cluster, struct tandem *state, uint32_t service, double *ret_factor)
{
	const struct td_service *of = &cluster->services->list[service];
	const struct td_sim_gpu *gpu = &cluster->gpus[of->gpu];
	double *first = NULL;

	*ret_factor = 1;
	for (uint32_t i = 0; i < gpu->count; i++) {
		double *factor = &state->factors[of->kind][cluster->jobs[gpu->jobs[i]].profile];

		*ret_factor += (*factor > 0 ? *factor : FACTOR) - 1;
		first = first ? first : factor;
	}
	return gpu->count == 1 ? first : NULL;
}

/*
 * Tells the scheduler the room that the service would leave to jobs never observed, which does not
 * depend on the present guests.
 */
static void tell_room(struct td_cluster *cluster, struct tandem *state, uint32_t index)
{
	const struct td_service *service = &cluster->services->list[index];
	struct td_slo_split split;

	td_slo_split_begin(&split, cluster->options.knowledge->hyperbolas[service->kind],
		td_selector_batches, TD_SELECTOR_BATCHES,
		cluster->services->kinds[service->kind].objective_s, service->seen.rate_per_s,
		FACTOR);
	state->rooms[index] = room_of(&split);
	td_tandem_cluster_room(&state->cluster, service->gpu, state->rooms[index], cluster->now_ns);
}

static bool tune(struct td_cluster *cluster, uint32_t index, uint32_t round)
{
	struct tandem *state = cluster->sched_state;
	struct td_service *service = &cluster->services->list[index];
	const struct td_service_kind *kind = &cluster->services->kinds[service->kind];
	struct td_slo_split *split = &state->splits[index];
	double factor, *learnt = factor_of(cluster, state, index, &factor);
	bool alone = !cluster->gpus[service->gpu].count, more = false;

	if (!round)
		td_slo_split_begin(split, cluster->options.knowledge->hyperbolas[service->kind],
			td_selector_batches, TD_SELECTOR_BATCHES, kind->objective_s,
			service->seen.rate_per_s, alone ? FACTOR : factor);
	else
		more = td_slo_split_observe(split, service->seen.p99_s, service->seen.busy);
	if (!round)
		tell_room(cluster, state, index);
	if (round && !more && learnt && !split->paused)
		*learnt = fmax(*learnt, split->factor);
	service->split = (struct td_split){.batch = split->batch,
		.service_share = alone || split->paused ? 1 : split->share,
		.guest_share = split->guest_share,
		.guest_duty = split->duty,
		.paused = split->paused};
	return !alone && !split->paused && (!round || more);
}

/*
 * Tells the scheduler the speeds of the guests on a GPU. Guests take turns in what the holder
 * leaves, so each is reported as if it were the only guest.
 */
static void load(struct td_cluster *cluster, uint32_t at)
{
	struct tandem *state = cluster->sched_state;
	const struct td_sim_gpu *gpu = &cluster->gpus[at];
	uint32_t holder = TD_NO_JOB;

	state->changed = true;
	if (gpu->service != TD_SERVICE_NONE) {
		load_beside(cluster, state, gpu);
		return;
	}
	for (uint32_t i = 0; i < gpu->count; i++)
		if (!cluster->jobs[gpu->jobs[i]].guest)
			holder = i;
	for (uint32_t i = 0; i < gpu->count; i++) {
		const struct td_sim_job *job = &cluster->jobs[gpu->jobs[i]];

		if (!job->guest || (holder == TD_NO_JOB && gpu->count != 2))
			continue;
		if (holder != TD_NO_JOB)
			td_tandem_cluster_observe(&state->cluster, job->profile,
				cluster->jobs[gpu->jobs[holder]].profile, true,
				fmin(1, gpu->speeds[i] * (gpu->count - 1)));
		else
			td_tandem_cluster_observe(&state->cluster, job->profile,
				cluster->jobs[gpu->jobs[!i]].profile, false, gpu->speeds[i]);
	}
}

static void tandem_decide(struct td_cluster *cluster)
{
	struct tandem *state = cluster->sched_state;
	struct td_tandem_action actions[ACTIONS];
	uint32_t gpus[TD_GANG_MAX], count;

	if (!state->changed && cluster->now_ns - state->decided_ns < cluster->sched->tick_ns)
		return;
	state->changed = false;
	state->decided_ns = cluster->now_ns;
	do {
		count = td_tandem_cluster_step(&state->cluster, cluster->now_ns, actions, ACTIONS);
		for (uint32_t a = 0; a < count; a++) {
			(void)td_tandem_cluster_gpus(&state->cluster, actions[a].job, gpus);
			if (actions[a].verb == TD_TANDEM_PREEMPT)
				td_cluster_suspend(cluster, actions[a].job);
			else if (actions[a].verb == TD_TANDEM_MOVE)
				td_cluster_move(cluster, actions[a].job, gpus,
					cluster->options.costs.restart_s);
			else
				td_cluster_start(cluster, actions[a].job, gpus,
					actions[a].verb == TD_TANDEM_START_GUEST);
		}
	} while (count == ACTIONS);
}

const struct td_sched td_sched_tandem = {
	.name = "tandem",
	.summary =
		"guaranteed jobs by quota, all others where it gains, moved when that gains more",
	.guards = true,
	.tick_ns = 30 * TD_NS_PER_S,
	.init = init,
	.deinit = deinit,
	.arrive = arrive,
	.finish = tandem_finish,
	.load = load,
	.decide = tandem_decide,
	.tune = tune,
	.round_s = 1,
};
