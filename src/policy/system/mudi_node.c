/*
 * The policy "mudi": a service and up to three training tasks on every GPU of a node (mudi.h).
 *
 * - When the tasks have changed, a tuning begins for the sum of their layers (5.5).
 * - When the rate has moved by half, a tuning begins from the batch in force. The rate is the
 *   largest of the last seconds, and the batch must keep up with half as much again.
 * - When P99 exceeds the objective ten seconds after a tuning, one begins for less of the
 *   objective. A miss is taken back after a minute without another one. Each further miss doubles
 *   that time, so that a lasting error of the curves is tried again ever more rarely.
 * - When the first task has finished a step under the present batch, the tuner observes it.
 * - The service gets batch and share as tuned. If no batch holds the objective, training is paused.
 *
 * A service without known curves or without an objective cannot be tuned for and has its GPU to
 * itself. So have two services on one GPU.
 *
 * Where a running service can get another share of the SMs (SHADOW: by a shadow instance, if not by
 * itself) its share is tuned too, from a tenth on; training keeps its own, so the two may exceed
 * the GPU. Elsewhere the service's share is the one that it has, and training that starts gets the
 * rest. Training that has more than the rest is paused, and so is all of it beside a service
 * without a share: the curves do not tell of such a company.
 *
 * The step during which the batch changed shows nothing and is not observed.
 *
 * Invariants: those of mudi.h and colocate.h; nothing is tuned while no training task is there.
 */
#include <math.h>

#include "policy/cluster/colocate.h"
#include "policy/node/profile.h"
#include "policy/algo/control/rate_peak.h"
#include "policy/system/mudi.h"

#define P99_WINDOW_NS 10000000000ull
#define CALM_NS       60000000000ull
#define CALM_MAX_NS   3600000000000ull
/* Nothing is tuned anew before the rate has grown by half, so the batch must keep up with that. */
#define GROWTH 1.5
/* The curves are measured from a tenth of the SMs on, and say nothing of less. */
#define SHARE_MIN_PPM 100000u

struct gpu {
	struct td_mudi_device device;
	uint64_t key; /* hash of the service and the tasks of the last tuning; 0: none */
	uint64_t steps, tuned_ns;
	/*
	 * calm_ns: time without a miss after which one miss is taken back; calm_since_ns: its
	 * beginning.
	 */
	uint64_t calm_ns, calm_since_ns;
	struct td_rate_peak peak;
	bool skip;
};

struct mudi {
	struct td_colocation colocations[TD_GPU_MAX];
	struct gpu gpus[TD_GPU_MAX];
};

/*
 * Returns the FNV-1a hash of the service's job and the ids of the tasks; never 0. A shadow that
 * takes over is of the same job, so the tuning goes on.
 */
static uint64_t key_of(const struct td_colocation *here, const struct td_view *view)
{
	uint64_t key = 14695981039346656037u ^ view->clients[here->service].group;

	for (uint32_t i = 0; i < here->tasks; i++)
		key = key * 1099511628211u ^ view->clients[here->task[i]].id;
	return key ? key : 1;
}

static void add_layers(
	const struct td_colocation *here, const struct td_view *view, double layers[TD_MUDI_LAYERS])
{
	for (uint32_t k = 0; k < TD_MUDI_LAYERS; k++)
		layers[k] = 0;
	for (uint32_t i = 0; i < here->tasks; i++) {
		const struct td_profile *profile = view->clients[here->task[i]].profile;

		for (uint32_t k = 0; profile && k < TD_MUDI_LAYERS; k++)
			layers[k] += profile->layers[k];
	}
}

/* Whole percents: MPS gives no others. A share that is fixed stays as it is. */
static uint32_t to_ppm(double share, bool is_fixed)
{
	double percent = ceil(share * 100 - 1e-6);

	if (is_fixed)
		return share < 1 ? (uint32_t)(share * TD_PPM) : TD_PPM;
	if (!(percent * (TD_PPM / 100) > SHARE_MIN_PPM))
		return SHARE_MIN_PPM;
	return percent < 100 ? (uint32_t)percent * (TD_PPM / 100) : TD_PPM;
}

/* Returns the objective and the rate to tune for: the largest of the last seconds. */
static struct td_slo slo_of(struct gpu *gpu, const struct td_client_view *service, uint64_t now_ns)
{
	struct td_slo slo = td_colocate_slo(service);

	slo.rate_per_s = td_rate_peak_of(&gpu->peak, slo.rate_per_s, now_ns);
	slo.load_max /= GROWTH;
	return slo;
}

static void restart(struct gpu *gpu, const struct td_client_view *task, uint64_t now_ns)
{
	gpu->steps = task->steps;
	gpu->tuned_ns = now_ns;
	gpu->skip = true;
}

/*
 * Tells whether P99 exceeds the objective. P99 is of a window, so the present tuning must have been
 * in force for as long.
 */
static bool is_missed(const struct gpu *gpu, const struct td_client_view *client, uint64_t now_ns)
{
	return gpu->device.tuned && now_ns - gpu->tuned_ns >= P99_WINDOW_NS &&
	       client->p99_ns > client->objective_ns;
}

/* Returns when a miss will be taken back; TD_NEVER: there is none. */
static uint64_t recovers_ns(const struct gpu *gpu)
{
	return gpu->device.margin > 0 ? gpu->calm_since_ns + gpu->calm_ns : TD_NEVER;
}

static void note_miss(struct gpu *gpu, uint64_t now_ns)
{
	uint64_t longer_ns = 2 * gpu->calm_ns < CALM_MAX_NS ? 2 * gpu->calm_ns : CALM_MAX_NS;

	gpu->calm_ns = gpu->calm_ns ? longer_ns : CALM_NS;
	gpu->calm_since_ns = now_ns;
}

static void tune(struct gpu *gpu, const struct td_colocation *here, const struct td_view *view,
	const struct td_mudi_service *service, uint64_t now_ns)
{
	const struct td_client_view *task = &view->clients[here->task[0]];
	const struct td_slo slo = slo_of(gpu, &view->clients[here->service], now_ns);
	double layers[TD_MUDI_LAYERS];
	uint64_t key = key_of(here, view);

	add_layers(here, view, layers);
	if (gpu->key != key || slo.objective_s < gpu->device.slo.objective_s ||
		slo.objective_s > gpu->device.slo.objective_s) {
		gpu->device.margin = 0;
		gpu->calm_ns = 0;
		td_mudi_begin(&gpu->device, service, layers, &slo);
		gpu->key = key;
		restart(gpu, task, now_ns);
		return;
	}
	if (td_slo_must_retune(gpu->device.slo.rate_per_s, slo.rate_per_s)) {
		td_mudi_rescale(&gpu->device, service, layers, &slo);
		restart(gpu, task, now_ns);
		return;
	}
	if (is_missed(gpu, &view->clients[here->service], now_ns)) {
		td_mudi_miss(&gpu->device, service, layers);
		note_miss(gpu, now_ns);
		restart(gpu, task, now_ns);
		return;
	}
	if (now_ns >= recovers_ns(gpu) && td_mudi_recover(&gpu->device, service, layers)) {
		gpu->calm_since_ns = now_ns;
		restart(gpu, task, now_ns);
		return;
	}
	if (task->steps == gpu->steps || !task->step_ns)
		return;
	gpu->steps = task->steps;
	if (gpu->skip)
		gpu->skip = false;
	else
		gpu->skip =
			td_mudi_observe(&gpu->device, service, layers, (double)task->step_ns / 1e9);
	if (gpu->skip)
		gpu->tuned_ns = now_ns;
}

static bool has_shares_changed(const struct td_view *view, const struct td_client_view *client)
{
	return (view->has | client->has) & TD_HAS(SHADOW);
}

/*
 * Sets the share that the service keeps, and admits the tasks that fit beside it, in order of
 * arrival. Returns false if the service has no share, or no task fits.
 */
static bool fix_share(struct gpu *gpu, struct td_colocation *here, const struct td_view *view)
{
	const struct td_client_view *client = &view->clients[here->service];
	uint32_t fit = 0, taken_ppm = client->sm_share_ppm;

	gpu->device.share_fixed = 0;
	if (has_shares_changed(view, client))
		return true;
	gpu->device.share_fixed = client->sm_share_ppm / (double)TD_PPM;
	for (; fit < here->tasks; fit++) {
		uint32_t ppm = view->clients[here->task[fit]].sm_share_ppm;

		if (!ppm || ppm > TD_PPM - taken_ppm)
			break;
		taken_ppm += ppm;
	}
	here->tasks = here->places = fit;
	return client->sm_share_ppm && fit;
}

/*
 * Tells that training which starts now gets all that the service leaves, and is accepted if no
 * other task has that.
 */
static struct td_gpu_verdict judge(const struct td_colocation *here, const struct td_view *view)
{
	const struct td_client_view *client = &view->clients[here->service];
	struct td_gpu_verdict verdict = {.known = true, .duty_ppm = TD_PPM};
	uint32_t taken_ppm = here->share_ppm ? here->share_ppm : client->sm_share_ppm;

	verdict.accepts = !here->services || !here->paused;
	if (!here->services || !taken_ppm)
		return verdict;
	if (!has_shares_changed(view, client))
		verdict.accepts = verdict.accepts && !here->tasks;
	verdict.sm_share_ppm = taken_ppm < TD_PPM ? TD_PPM - taken_ppm : 0;
	return verdict;
}

static void decide_gpu(
	struct gpu *gpu, struct td_colocation *here, const struct td_view *view, uint64_t now_ns)
{
	const struct td_client_view *client = &view->clients[here->service];
	const struct td_mudi_service *service = client->profile ? client->profile->service : NULL;

	if (!here->services) {
		gpu->key = 0;
		return;
	}
	here->paused = here->services > 1 || !service || !client->objective_ns;
	if (here->paused || !here->tasks) {
		gpu->key = 0;
		return;
	}
	if (!fix_share(gpu, here, view)) {
		here->paused = true;
		gpu->key = 0;
		return;
	}
	gpu->device.batch_max = client->batch_max;
	tune(gpu, here, view, service, now_ns);
	here->paused = gpu->device.paused;
	here->share_ppm = here->paused ? 0 : to_ppm(gpu->device.share, gpu->device.share_fixed > 0);
	here->batch = here->paused ? 0 : gpu->device.batch;
}

static void mudi_step(void *state, const struct td_policy_options *options,
	const struct td_view *view, uint64_t now_ns, struct td_plan *plan)
{
	struct mudi *mudi = state;

	(void)options;
	td_colocate_look(mudi->colocations, view, plan);
	for (uint32_t gpu = 0; gpu < view->gpu_count; gpu++)
		decide_gpu(&mudi->gpus[gpu], &mudi->colocations[gpu], view, now_ns);
	td_colocate_grant(mudi->colocations, view, plan);
	for (uint32_t gpu = 0; gpu < view->gpu_count; gpu++)
		if (mudi->gpus[gpu].key && recovers_ns(&mudi->gpus[gpu]) < plan->next_wakeup_ns)
			plan->next_wakeup_ns = recovers_ns(&mudi->gpus[gpu]);
	for (uint32_t gpu = 0; plan->verdicts && gpu < view->gpu_count; gpu++)
		plan->verdicts[gpu] = judge(&mudi->colocations[gpu], view);
}

static void forget_gpu(void *state, uint32_t gpu)
{
	struct mudi *mudi = state;

	mudi->colocations[gpu] = (struct td_colocation){0};
	mudi->gpus[gpu] = (struct gpu){0};
}

const struct td_policy td_policy_mudi = {
	.name = "mudi",
	.summary = "training beside a service: batch and SM share by learnt latency curves and by "
		   "trial",
	.needs = TD_HAS(STEPS) | TD_HAS(SERVICE) | TD_HAS(PROFILES) | TD_HAS(SM_SHARE) |
		 TD_HAS(BATCH) | TD_HAS(HOST_MEMORY),
	.state_bytes = sizeof(struct mudi),
	.step = mudi_step,
	.forget_gpu = forget_gpu,
};
