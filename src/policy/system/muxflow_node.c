/*
 * The policy "muxflow": an offline workload beside the online one on every GPU of a node
 * (muxflow.h).
 *
 *   for each GPU: health <- td_health_step(its figures, its MPS server, its Xids)
 *                 duty, accepts, evict <- td_muxflow_gpu_step(its figures, health)
 *   offline work: none where it is to be evicted, one workload elsewhere, and no new one where it
 *     is not accepted; with that duty, at most the memory quota, and the SMs that the online
 *     workloads leave by their own activity
 *   a GPU whose health has failed: its MPS server is reset, offline work is evicted, and the rest
 *     is restarted where somebody can do that, online jobs first
 *
 * A GPU without an online job has nothing to protect: its offline work has no bound. While the
 * figures are not known offline work stands still, but is not evicted: a GPU that cannot be watched
 * is not shared. Online work whose activity is not known leaves the floor of SMs. The T4's clock
 * thresholds are scaled to the highest clock of the GPU; where that is not known, there is no
 * correction by the clock.
 *
 * Invariants: online and guaranteed jobs are open and unbounded; besides them there is at most one
 * offline client per GPU, and it has a duty, a quota and an SM share; on an evicting GPU no offline
 * client is open and each is named in an EVICT; nobody is evicted for want of figures.
 */
#include "policy/node/admit.h"
#include "policy/node/plans.h"
#include "policy/node/share.h"
#include "policy/system/muxflow.h"

#define PERIOD_NS 10000000ull /* "milliseconds" (4.1) */
#define FIGURES   (TD_HAS(SM_ACTIVITY) | TD_HAS(UTILISATION))

struct muxflow {
	struct td_muxflow_gpu gpus[TD_GPU_MAX];
	struct td_health health[TD_GPU_MAX];
};

/* The jobs on one GPU. */
struct present {
	bool online, offline;
	uint32_t activity_ppm; /* of what is not offline; the whole GPU where it is not known */
	enum td_health_state health;
	struct td_muxflow_output output;
};

static struct present find_present(const struct td_view *view, uint32_t gpu)
{
	struct present present = {0};
	uint64_t activity = 0;

	for (uint32_t c = 0; c < view->client_count; c++) {
		const struct td_client_view *client = &view->clients[c];

		if (client->gpu != gpu)
			continue;
		if (client->class == TD_CLASS_BESTEFFORT) {
			present.offline = true;
			continue;
		}
		present.online = true;
		activity += client->sm_activity_ppm ? client->sm_activity_ppm : TD_PPM;
	}
	present.activity_ppm = activity < TD_PPM ? (uint32_t)activity : TD_PPM;
	return present;
}

static uint32_t scale_mhz(uint32_t of_t4_mhz, uint32_t max_mhz)
{
	return (uint32_t)((uint64_t)of_t4_mhz * max_mhz / td_muxflow_t4.load.max_mhz);
}

static struct td_muxflow_params params_of(const struct td_gpu_view *gpu)
{
	struct td_muxflow_params params = td_muxflow_t4;
	uint32_t max_mhz = gpu->sm_clock_max_mhz;

	params.load.threshold_mhz = scale_mhz(params.load.threshold_mhz, max_mhz);
	params.load.max_mhz = max_mhz;
	params.monitor.healthy.clock_mhz = scale_mhz(params.monitor.healthy.clock_mhz, max_mhz);
	params.monitor.unhealthy.clock_mhz = scale_mhz(params.monitor.unhealthy.clock_mhz, max_mhz);
	params.monitor.overlimit.clock_mhz = scale_mhz(params.monitor.overlimit.clock_mhz, max_mhz);
	return params;
}

static struct td_health_metrics health_metrics_of(const struct td_gpu_view *gpu)
{
	static const enum td_health_server server[TD_MPS_N] = {
		[TD_MPS_ON] = TD_HEALTH_SERVER_RUNS,
		[TD_MPS_FAILED] = TD_HEALTH_SERVER_FAILED,
	};

	return (struct td_health_metrics){
		.has_figures = (gpu->known & FIGURES) == FIGURES,
		.server = server[gpu->mps],
		.server_ns = gpu->mps_started_ns,
		.xid = gpu->xid,
		.xid_ns = gpu->xid_ns,
		.hangs = gpu->hangs,
	};
}

/* Nothing is to run there: SysMonitor's DISABLED. */
static bool is_out(enum td_health_state health)
{
	return health != TD_HEALTH_STARTING && health != TD_HEALTH_GOOD;
}

static struct td_sysmonitor_metrics metrics_of(
	const struct td_gpu_view *gpu, enum td_health_state health)
{
	uint64_t bytes =
		gpu->used_bytes < gpu->capacity_bytes ? gpu->used_bytes : gpu->capacity_bytes;

	return (struct td_sysmonitor_metrics){
		.initialised = health == TD_HEALTH_GOOD,
		.available = !is_out(health),
		.utilisation_ppm = gpu->utilisation_ppm,
		.sm_activity_ppm = gpu->sm_activity_ppm,
		.memory_ppm = gpu->capacity_bytes ? (uint32_t)((double)bytes /
							       (double)gpu->capacity_bytes * TD_PPM)
						  : 0,
		.clock_mhz = gpu->known & TD_HAS(CLOCK) ? gpu->sm_clock_mhz : 0,
	};
}

static bool is_running(const struct td_view *view, uint32_t gpu)
{
	for (uint32_t c = 0; c < view->client_count; c++)
		if (view->clients[c].gpu == gpu && view->clients[c].class == TD_CLASS_BESTEFFORT &&
			view->clients[c].phase != TD_PHASE_CLOSED)
			return true;
	return false;
}

/* Without figures the controllers stand still and so does offline work. */
static struct td_muxflow_output control(struct td_muxflow_gpu *muxflow,
	const struct td_gpu_view *gpu, enum td_health_state health, uint64_t now_ns)
{
	const struct td_muxflow_params params = params_of(gpu);
	const struct td_sysmonitor_metrics metrics = metrics_of(gpu, health);

	if ((gpu->known & FIGURES) != FIGURES && !is_out(health))
		return (struct td_muxflow_output){0};
	return td_muxflow_gpu_step(muxflow, &params, &metrics, now_ns);
}

/* Returns how many offline clients a GPU may have. */
static uint32_t places_of(const struct td_view *view, uint32_t gpu, const struct present *present)
{
	if (!present->online)
		return is_out(present->health) ? 0 : 1;
	if (present->output.evict || (view->gpus[gpu].known & FIGURES) != FIGURES)
		return 0;
	return present->output.accepts || is_running(view, gpu);
}

static void grant_offline(const struct td_gpu_view *gpu, const struct present *present,
	const struct td_muxflow_params *params, struct td_grant *grant)
{
	uint32_t duty_ppm = present->output.duty_ppm;

	if (!present->online)
		return;
	grant->duty_ppm = duty_ppm ? duty_ppm : 1;
	grant->sm_share_ppm = td_dynamic_sm_ppm(&params->sm, present->activity_ppm);
	grant->limit_bytes = gpu->capacity_bytes / TD_PPM * params->memory_quota_ppm;
}

/* Evictions first, since they make room; then restarts by class, the online jobs first. */
static void act(const struct td_view *view, const struct present *present, struct td_plan *plan)
{
	for (uint32_t c = 0; c < view->client_count; c++) {
		const struct td_client_view *client = &view->clients[c];
		const struct present *here = &present[client->gpu];

		if (client->class == TD_CLASS_BESTEFFORT && here->online && here->output.evict)
			td_plan_act(plan, &(struct td_action){TD_ACTION_EVICT, client->id, 0, 0});
	}
	for (uint32_t class = 0; class < TD_CLASS_N; class ++) {
		for (uint32_t c = 0; c < view->client_count; c++) {
			const struct td_client_view *client = &view->clients[c];
			const struct present *here = &present[client->gpu];

			if (client->class != class || here->health != TD_HEALTH_FAILED ||
				!(client->has & TD_HAS(RESTART)) ||
				(class == TD_CLASS_BESTEFFORT && here->online))
				continue;
			td_plan_act(plan, &(struct td_action){TD_ACTION_RESTART, client->id, 0, 0});
		}
	}
}

static void judge(const struct muxflow *muxflow, const struct td_view *view,
	const struct present *present, struct td_plan *plan)
{
	for (uint32_t gpu = 0; plan->verdicts && gpu < view->gpu_count; gpu++) {
		const struct present *here = &present[gpu];
		const struct td_sysmonitor *monitor = &muxflow->gpus[gpu].monitor;

		plan->verdicts[gpu] = (struct td_gpu_verdict){
			.known = true,
			.accepts = here->online ? here->output.accepts : !is_out(here->health),
			.resets = here->health == TD_HEALTH_FAILED,
			.state = (uint8_t)monitor->state,
			.health = (uint8_t)here->health,
			.load_ppm = (uint32_t)(here->output.load * TD_PPM),
			.duty_ppm = here->online ? here->output.duty_ppm : TD_PPM,
			.until_ns =
				monitor->state == TD_SYSMONITOR_OVERLIMIT ? monitor->until_ns : 0,
		};
	}
}

static void muxflow_step(void *state, const struct td_policy_options *options,
	const struct td_view *view, uint64_t now_ns, struct td_plan *plan)
{
	struct muxflow *muxflow = state;
	struct present present[TD_GPU_MAX];
	uint32_t places[TD_GPU_MAX] = {0};

	(void)options;
	td_plan_begin(view, plan);
	for (uint32_t gpu = 0; gpu < view->gpu_count; gpu++) {
		const struct td_gpu_view *figures = &view->gpus[gpu];
		const struct td_health_metrics health = health_metrics_of(figures);

		present[gpu] = find_present(view, gpu);
		present[gpu].health = td_health_step(
			&muxflow->health[gpu], &td_muxflow_t4.health, &health, now_ns);
		present[gpu].output =
			control(&muxflow->gpus[gpu], figures, present[gpu].health, now_ns);
		places[gpu] = places_of(view, gpu, &present[gpu]);
		if (present[gpu].online && present[gpu].offline)
			plan->next_wakeup_ns = now_ns + PERIOD_NS;
	}
	td_admit(view, places, plan);
	for (uint32_t c = 0; c < view->client_count; c++) {
		const struct td_gpu_view *gpu = &view->gpus[view->clients[c].gpu];
		const struct td_muxflow_params params = params_of(gpu);

		plan->grants[c].limit_bytes = UINT64_MAX;
		if (view->clients[c].class == TD_CLASS_BESTEFFORT)
			grant_offline(
				gpu, &present[view->clients[c].gpu], &params, &plan->grants[c]);
	}
	act(view, present, plan);
	judge(muxflow, view, present, plan);
	td_share_memory_by_class(view, plan);
	td_plan_make_room(view, plan);
}

static void forget_gpu(void *state, uint32_t gpu)
{
	struct muxflow *muxflow = state;

	muxflow->gpus[gpu] = (struct td_muxflow_gpu){0};
	muxflow->health[gpu] = (struct td_health){0};
}

const struct td_policy td_policy_muxflow = {
	.name = "muxflow",
	.summary = "one offline job beside the online ones, held back by the load and the health "
		   "of the GPU",
	.needs = TD_HAS(UTILISATION) | TD_HAS(SM_ACTIVITY) | TD_HAS(HEALTH) | TD_HAS(DUTY) |
		 TD_HAS(SM_SHARE) | TD_HAS(EVICTION),
	.state_bytes = sizeof(struct muxflow),
	.step = muxflow_step,
	.forget_gpu = forget_gpu,
};
