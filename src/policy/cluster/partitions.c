/*
 * The baselines that give a service a partition of the GPU, as Mudi (7.1) sets them up. Training
 * gets the rest.
 *
 * - gslice: the partition grows and shrinks by feedback of the latency, once per window
 *   (td_gslice_step).
 * - gpulets: the smallest of a few fixed sizes that holds the objective by the service's curve with
 *   its present batch (td_gpulet_size); the whole GPU, and no training, if none does.
 *
 * A service without figures or without an objective has its GPU to itself, and so have two
 * services.
 *
 * Invariants: those of colocate.h; GSLICE's share changes by at most one step per window.
 */
#include "policy/cluster/baselines.h"
#include "policy/cluster/colocate.h"
#include "policy/node/profile.h"

#define WINDOW_NS 1000000000ull

struct gslice_gpu {
	struct td_gslice gslice;
	uint32_t service; /* the service's id; 0: none yet */
	uint64_t judged_ns;
};

struct gslice {
	struct td_colocation colocations[TD_GPU_MAX];
	struct gslice_gpu gpus[TD_GPU_MAX];
};

static const struct td_client_view *service_of(
	const struct td_colocation *here, const struct td_view *view)
{
	const struct td_client_view *service = &view->clients[here->service];

	return here->services == 1 && service->objective_ns ? service : NULL;
}

static uint32_t to_ppm(double share)
{
	return (uint32_t)(share * TD_PPM + 0.5);
}

static void feed_back(struct gslice_gpu *gpu, const struct td_client_view *service, uint64_t now_ns)
{
	if (gpu->service != service->id) {
		*gpu = (struct gslice_gpu){
			.gslice = {.share = 0.5, .step = 0.05, .share_min = 0.1, .slack = 0.8},
			.service = service->id,
			.judged_ns = now_ns};
	} else if (now_ns - gpu->judged_ns >= WINDOW_NS && service->p99_ns) {
		td_gslice_step(
			&gpu->gslice, (double)service->p99_ns, (double)service->objective_ns);
		gpu->judged_ns = now_ns;
	}
}

static void step_gslice(void *state, const struct td_policy_options *options,
	const struct td_view *view, uint64_t now_ns, struct td_plan *plan)
{
	struct gslice *gslice = state;

	(void)options;
	td_colocate_look(gslice->colocations, view, plan);
	for (uint32_t gpu = 0; gpu < view->gpu_count; gpu++) {
		struct td_colocation *here = &gslice->colocations[gpu];
		const struct td_client_view *service;
		uint64_t at;

		if (!here->services)
			continue;
		service = service_of(here, view);
		here->paused = !service;
		if (!service)
			continue;
		feed_back(&gslice->gpus[gpu], service, now_ns);
		here->share_ppm = to_ppm(gslice->gpus[gpu].gslice.share);
		at = gslice->gpus[gpu].judged_ns + WINDOW_NS;
		if (at <= now_ns) /* the service has shown no latency yet */
			at = now_ns + WINDOW_NS;
		plan->next_wakeup_ns = at < plan->next_wakeup_ns ? at : plan->next_wakeup_ns;
	}
	td_colocate_grant(gslice->colocations, view, plan);
}

/*
 * Returns the GPU share by td_gpulet_size(). The curve is that beside a task without layers, which
 * stands for the service alone.
 */
static double size_of(const struct td_client_view *service)
{
	static const double none[TD_MUDI_LAYERS];
	const struct td_slo slo = td_colocate_slo(service);
	const struct td_curve curve = td_mudi_curve(service->profile->service, none, slo.batch);

	return td_gpulet_size(&slo, &curve);
}

static void step_gpulets(void *state, const struct td_policy_options *options,
	const struct td_view *view, uint64_t now_ns, struct td_plan *plan)
{
	struct td_colocation *colocations = state;

	(void)options;
	(void)now_ns;
	td_colocate_look(colocations, view, plan);
	for (uint32_t gpu = 0; gpu < view->gpu_count; gpu++) {
		struct td_colocation *here = &colocations[gpu];
		const struct td_client_view *service;
		double size = 0;

		if (!here->services)
			continue;
		service = service_of(here, view);
		if (service && service->profile && service->profile->service)
			size = size_of(service);
		here->paused = !(size > 0 && size < 1);
		here->share_ppm = to_ppm(size);
	}
	td_colocate_grant(colocations, view, plan);
}

static void forget_gslice(void *state, uint32_t gpu)
{
	struct gslice *gslice = state;

	gslice->colocations[gpu] = (struct td_colocation){0};
	gslice->gpus[gpu] = (struct gslice_gpu){0};
}

static void forget_gpulets(void *state, uint32_t gpu)
{
	((struct td_colocation *)state)[gpu] = (struct td_colocation){0};
}

const struct td_policy td_policy_gslice = {
	.name = "gslice",
	.summary = "a partition for the service by feedback of its latency, the rest for training; "
		   "a baseline",
	.needs = TD_HAS(SERVICE) | TD_HAS(SM_SHARE) | TD_HAS(HOST_MEMORY) | TD_HAS(SHADOW),
	.state_bytes = sizeof(struct gslice),
	.step = step_gslice,
	.forget_gpu = forget_gslice,
};

const struct td_policy td_policy_gpulets = {
	.name = "gpulets",
	.summary =
		"the smallest of a few partitions that holds the service's objective; a baseline",
	.needs = TD_HAS(SERVICE) | TD_HAS(PROFILES) | TD_HAS(SM_SHARE) | TD_HAS(HOST_MEMORY) |
		 TD_HAS(SHADOW),
	.state_bytes = TD_GPU_MAX * sizeof(struct td_colocation),
	.step = step_gpulets,
	.forget_gpu = forget_gpulets,
};
