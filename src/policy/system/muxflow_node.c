/*
 * The policy "muxflow": an offline workload beside the online one on every GPU of a node
 * (muxflow.h).
 *
 *   for each GPU: health <- td_health_step(its figures, its MPS server, its Xids)
 *                 duty, accepts, evict <- td_muxflow_gpu_step(its figures, health)
 *   offline work: none where it is to be evicted, one workload elsewhere, and no new one where it
 *     is not accepted; with that duty, at most the memory quota, and the SMs that the online
 *     workloads leave (sms.h); work that runs gets another share by a SHARE, where that is possible
 *   a GPU whose health has failed: its MPS server is reset, offline work is evicted, and the rest
 *     is restarted where somebody can do that, online jobs first
 *   every muxflow.exchange: besteffort jobs are restarted on GPUs where they are faster together
 *     (cluster/exchange.h)
 *
 * A GPU without an online job has nothing to protect: its offline work has no bound. While the
 * figures are not known offline work stands still, but is not evicted: a GPU that cannot be watched
 * is not shared. Online work whose need is not known leaves the floor of SMs. The clock's
 * thresholds are parts of the highest clock of the GPU; where that is not known, there is no
 * correction by the clock.
 *
 * Invariants: online and guaranteed jobs are open and unbounded; besides them there is at most one
 * offline client per GPU, and it has a duty, a quota and an SM share; on an evicting GPU no offline
 * client is open and each is named in an EVICT; nobody is evicted for want of figures.
 */
#include "policy/cluster/exchange.h"
#include "policy/node/admit.h"
#include "policy/node/plans.h"
#include "policy/node/profile.h"
#include "policy/node/share.h"
#include "policy/node/beside/sms.h"
#include "policy/system/muxflow.h"

#define PERIOD_NS 10000000ull   /* the paper says "milliseconds" (4.1) */
#define SMOOTH_NS 1000000000ull /* time constant of the means that SysMonitor gets */
/*
 * The activity is a mean over a tenth of a second. If offline work with the whole duty adds 1 to
 * the load, these gains settle a step of the load after four such means. If it adds less, the gains
 * are divided by what it adds, but at least by GAIN_MIN.
 */
#define KP       0.2
#define KI       8.0
#define GAIN_MIN 0.2
#define FIGURES  (TD_HAS(SM_ACTIVITY) | TD_HAS(UTILISATION))

/* The load that offline work adds per duty, as last measured; 0: not measured yet. */
struct gain {
	double gain, duty_sum;
	uint32_t offline_ppm, steps;
};

struct muxflow {
	struct gain gains[TD_GPU_MAX];
	struct td_muxflow_gpu gpus[TD_GPU_MAX];
	struct td_health health[TD_GPU_MAX];
	struct td_reshare reshares[TD_GPU_MAX];
	struct td_exchange exchange;
};

/* The jobs on one GPU, gathered at each step. */
struct present {
	bool online, offline;
	uint32_t online_count;
	const struct td_muxflow_profile *profile; /* of the last online client; NULL: not known */
	uint32_t offline_ppm; /* SM activity of the offline work; 0: not known */
	uint32_t left_ppm;    /* SMs for offline work; 0: no bound */
	struct td_muxflow_params params;
	enum td_health_state health;
	struct td_muxflow_output output;
};

static struct present find_present(const struct td_view *view, uint32_t gpu)
{
	struct present present = {0};
	uint64_t offline = 0;

	for (uint32_t c = 0; c < view->client_count; c++) {
		const struct td_client_view *client = &view->clients[c];

		if (client->gpu != gpu)
			continue;
		if (client->class == TD_CLASS_BESTEFFORT) {
			present.offline = true;
			offline += client->sm_activity_ppm;
			continue;
		}
		present.online = true;
		present.online_count++;
		present.profile = client->profile ? client->profile->alone : NULL;
	}
	present.left_ppm = td_sms_left_ppm(view, gpu, TD_CLASS_GUARANTEED);
	present.offline_ppm = offline < TD_PPM ? (uint32_t)offline : TD_PPM;
	return present;
}

/*
 * The values of td_muxflow_t4, with its clocks relative to 1,590 MHz. A utilisation of 100 % evicts
 * nobody, because any program that is always busy has it.
 */
static const struct td_muxflow_options defaults = {
	.healthy = {900000, 850000, 850000, 566000},
	.unhealthy = {970000, 930000, 920000, 472000},
	.overlimit = {0, 980000, 970000, 368000},
	.period_ns = 10000000000,
	.window_ns = 7200000000000,
	.load_ppm = 900000,
	.clock_ppm = 632000,
	.memory_ppm = 400000,
	.exchange_ns = 900000000000,
	.exchange_cost_ns = 60000000000,
};

static struct td_sysmonitor_limits limits_of(const struct td_monitor_level *level, uint32_t max_mhz)
{
	return (struct td_sysmonitor_limits){level->utilisation_ppm, level->sm_activity_ppm,
		level->memory_ppm, (uint32_t)((uint64_t)level->clock_ppm * max_mhz / TD_PPM)};
}

/*
 * Updates the load that offline work adds per duty: its activity, a mean over a window of the
 * meter, divided by the mean duty in that window. A new value of the activity ends a window.
 */
static void find_gain(struct gain *gain, uint32_t offline_ppm, uint32_t duty_ppm)
{
	double duty = gain->duty_sum / (gain->steps ? gain->steps : 1);

	if (offline_ppm != gain->offline_ppm && gain->steps && duty > 0) {
		gain->gain = offline_ppm / duty;
		gain->gain = gain->gain < GAIN_MIN ? GAIN_MIN : gain->gain > 1 ? 1 : gain->gain;
		gain->duty_sum = gain->steps = 0;
	}
	gain->offline_ppm = offline_ppm;
	gain->duty_sum += duty_ppm;
	gain->steps++;
}

static struct td_muxflow_params params_of(const struct td_muxflow_options *options,
	const struct td_gpu_view *gpu, const struct gain *of_duty)
{
	struct td_muxflow_params params = td_muxflow_t4;
	uint32_t max_mhz = gpu->sm_clock_max_mhz;
	double gain = of_duty->gain > 0 ? of_duty->gain : 1;

	params.load.threshold_mhz = (uint32_t)((uint64_t)options->clock_ppm * max_mhz / TD_PPM);
	params.load.max_mhz = max_mhz;
	params.monitor.healthy = limits_of(&options->healthy, max_mhz);
	params.monitor.unhealthy = limits_of(&options->unhealthy, max_mhz);
	params.monitor.overlimit = limits_of(&options->overlimit, max_mhz);
	params.monitor.period_base_ns = options->period_ns;
	params.monitor.window_ns = options->window_ns;
	params.memory_quota_ppm = options->memory_ppm;
	params.smooth_ns = SMOOTH_NS;
	params.pid.set_point = options->load_ppm / (double)TD_PPM;
	params.pid.kp = KP / gain;
	params.pid.ki = KI / gain;
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
		.xid_of = (enum td_xid_of)gpu->xid_of,
		.hangs = gpu->hangs,
	};
}

/* Tells whether the GPU's health lets no work run there; SysMonitor's state is then DISABLED. */
static bool is_out(enum td_health_state health)
{
	return health != TD_HEALTH_STARTING && health != TD_HEALTH_GOOD;
}

static struct td_sysmonitor_metrics metrics_of(
	const struct td_gpu_view *gpu, enum td_health_state health)
{
	/* Memory of others counts as used, and is not in the capacity. */
	uint64_t total = gpu->total_bytes ? gpu->total_bytes : gpu->capacity_bytes,
		 bytes = gpu->used_bytes < total ? gpu->used_bytes : total;

	return (struct td_sysmonitor_metrics){
		.initialised = health == TD_HEALTH_GOOD,
		.available = !is_out(health),
		.utilisation_ppm = gpu->utilisation_ppm,
		.sm_activity_ppm = gpu->sm_activity_ppm,
		.memory_ppm = total ? (uint32_t)((double)bytes / (double)total * TD_PPM) : 0,
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

/* Steps the controllers of a GPU. Without figures they stand still, and offline work is stopped. */
static struct td_muxflow_output control(struct td_muxflow_gpu *muxflow,
	const struct td_gpu_view *gpu, const struct present *present, uint64_t now_ns)
{
	const struct td_sysmonitor_metrics metrics = metrics_of(gpu, present->health);

	if ((gpu->known & FIGURES) != FIGURES && !is_out(present->health))
		return (struct td_muxflow_output){0};
	return td_muxflow_gpu_step(muxflow, &present->params, &metrics, now_ns);
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

/* Returns the memory that offline work may have on the GPU. */
static uint64_t quota_of(const struct td_gpu_view *gpu, const struct present *present)
{
	return present->online ? gpu->capacity_bytes / TD_PPM * present->params.memory_quota_ppm
			       : gpu->capacity_bytes;
}

static void grant_offline(
	const struct td_gpu_view *gpu, const struct present *present, struct td_grant *grant)
{
	uint32_t duty_ppm = present->output.duty_ppm;

	if (!present->online)
		return;
	grant->duty_ppm = duty_ppm ? duty_ppm : 1;
	grant->sm_share_ppm = present->left_ppm;
	grant->limit_bytes = quota_of(gpu, present);
}

/* Adds the actions: evictions first, since they make room; then restarts, online jobs first. */
static void act(const struct td_view *view, const struct present *present, struct td_plan *plan)
{
	for (uint32_t c = 0; c < view->client_count; c++) {
		const struct td_client_view *client = &view->clients[c];
		const struct present *here = &present[client->gpu];

		if (client->class == TD_CLASS_BESTEFFORT && here->online && here->output.evict)
			td_plan_act(plan,
				&(struct td_action){.kind = TD_ACTION_EVICT, .client = client->id});
	}
	for (uint32_t class = 0; class < TD_CLASS_N; class ++) {
		for (uint32_t c = 0; c < view->client_count; c++) {
			const struct td_client_view *client = &view->clients[c];
			const struct present *here = &present[client->gpu];

			if (client->class != class || here->health != TD_HEALTH_FAILED ||
				!(client->has & TD_HAS(RESTART)) ||
				(class == TD_CLASS_BESTEFFORT && here->online))
				continue;
			td_plan_act(plan, &(struct td_action){
						  .kind = TD_ACTION_RESTART, .client = client->id});
		}
	}
}

/* Plans another share of the SMs for the offline client that runs on each GPU. */
static void reshare(struct muxflow *muxflow, const struct td_view *view,
	const struct present *present, uint64_t now_ns, struct td_plan *plan)
{
	for (uint32_t c = 0; c < view->client_count; c++) {
		const struct td_client_view *client = &view->clients[c];
		const struct present *here = &present[client->gpu];
		uint32_t share_ppm;

		if (client->class != TD_CLASS_BESTEFFORT ||
			plan->grants[c].gate == TD_GATE_CLOSED || here->output.evict)
			continue;
		share_ppm = td_sms_reshare(&muxflow->reshares[client->gpu], client, here->left_ppm,
			now_ns, &plan->next_wakeup_ns);
		if (share_ppm)
			td_plan_act(plan, &(struct td_action){.kind = TD_ACTION_SHARE,
						  .client = client->id,
						  .sm_share_ppm = share_ppm});
	}
}

/* -- the exchange of offline work between GPUs -- */

static uint32_t list_offline(const struct td_view *view, struct td_exchange_job *ret)
{
	uint32_t count = 0;

	for (uint32_t c = 0; c < view->client_count && count < TD_EXCHANGE_JOBS; c++) {
		const struct td_client_view *client = &view->clients[c];

		if (client->class != TD_CLASS_BESTEFFORT)
			continue;
		ret[count++] = (struct td_exchange_job){
			.client = client->id,
			.gpu = client->gpu,
			.runs = client->phase != TD_PHASE_CLOSED,
			.goes = client->paused ? 0 : client->restarts_on,
			.bytes = client->demanded_bytes,
			.profile = client->profile ? client->profile->alone : NULL,
		};
	}
	return count;
}

static void exchange(struct muxflow *muxflow, const struct td_muxflow_options *set,
	const struct td_view *view, const struct present *present, struct td_plan *plan)
{
	struct td_exchange_gpu gpus[TD_GPU_MAX];
	struct td_exchange_job jobs[TD_EXCHANGE_JOBS];
	struct td_exchange_move moves[TD_EXCHANGE_JOBS];
	const struct td_exchange_problem problem = {.gpus = gpus,
		.jobs = jobs,
		.gpu_count = view->gpu_count,
		.job_count = list_offline(view, jobs),
		.sm = &td_muxflow_t4.sm,
		.period_ns = set->exchange_ns,
		.cost_ns = set->exchange_cost_ns};
	uint32_t count;

	for (uint32_t gpu = 0; gpu < view->gpu_count; gpu++) {
		const struct present *here = &present[gpu];

		gpus[gpu] = (struct td_exchange_gpu){
			.speeds = view->gpus[gpu].speeds,
			.online = here->online,
			.profile = here->online_count == 1 ? here->profile : NULL,
			.accepts = here->online ? here->output.accepts : !is_out(here->health),
			.room_bytes = quota_of(&view->gpus[gpu], here),
		};
	}
	count = td_exchange_solve(&muxflow->exchange, &problem, moves);
	for (uint32_t m = 0; m < count; m++)
		td_plan_act(plan, &(struct td_action){.kind = TD_ACTION_RESTART,
					  .client = jobs[moves[m].job].client,
					  .gpu = moves[m].gpu,
					  .why = TD_MOVE_PAIRED,
					  .from_ppm = moves[m].from_ppm,
					  .to_ppm = moves[m].to_ppm});
}

/* Exchanges jobs if it is time for that. There must be offline work, and two GPUs. */
static void step_exchange(struct muxflow *muxflow, const struct td_muxflow_options *set,
	const struct td_view *view, const struct present *present, uint64_t now_ns,
	struct td_plan *plan)
{
	struct td_exchange *state = &muxflow->exchange;
	bool wanted = false;

	for (uint32_t gpu = 0; gpu < view->gpu_count; gpu++)
		wanted |= present[gpu].offline && view->gpu_count > 1;
	if (td_exchange_is_due(state, set->exchange_ns, wanted, now_ns))
		exchange(muxflow, set, view, present, plan);
	if (state->due_ns && state->due_ns < plan->next_wakeup_ns)
		plan->next_wakeup_ns = state->due_ns;
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
			.sm_share_ppm = here->left_ppm,
		};
	}
}

static void muxflow_step(void *state, const struct td_policy_options *options,
	const struct td_view *view, uint64_t now_ns, struct td_plan *plan)
{
	const struct td_muxflow_options *set = options->muxflow ? options->muxflow : &defaults;
	struct muxflow *muxflow = state;
	struct present present[TD_GPU_MAX];
	uint32_t places[TD_GPU_MAX] = {0};

	td_plan_begin(view, plan);
	for (uint32_t gpu = 0; gpu < view->gpu_count; gpu++) {
		const struct td_gpu_view *figures = &view->gpus[gpu];
		const struct td_health_metrics health = health_metrics_of(figures);

		present[gpu] = find_present(view, gpu);
		find_gain(&muxflow->gains[gpu], present[gpu].offline_ppm,
			muxflow->gpus[gpu].pid.duty_ppm);
		present[gpu].params = params_of(set, figures, &muxflow->gains[gpu]);
		present[gpu].health = td_health_step(
			&muxflow->health[gpu], &td_muxflow_t4.health, &health, now_ns);
		present[gpu].output = control(&muxflow->gpus[gpu], figures, &present[gpu], now_ns);
		places[gpu] = places_of(view, gpu, &present[gpu]);
		if (present[gpu].online && present[gpu].offline)
			plan->next_wakeup_ns = now_ns + PERIOD_NS;
	}
	td_admit(view, places, plan);
	for (uint32_t c = 0; c < view->client_count; c++) {
		const struct td_gpu_view *gpu = &view->gpus[view->clients[c].gpu];

		plan->grants[c].limit_bytes = UINT64_MAX;
		if (view->clients[c].class == TD_CLASS_BESTEFFORT)
			grant_offline(gpu, &present[view->clients[c].gpu], &plan->grants[c]);
	}
	act(view, present, plan);
	reshare(muxflow, view, present, now_ns, plan);
	step_exchange(muxflow, set, view, present, now_ns, plan);
	judge(muxflow, view, present, plan);
	td_share_memory_by_class(view, plan);
	td_plan_make_room(view, plan);
}

static void forget_gpu(void *state, uint32_t gpu)
{
	struct muxflow *muxflow = state;

	muxflow->gains[gpu] = (struct gain){0};
	muxflow->gpus[gpu] = (struct td_muxflow_gpu){0};
	muxflow->health[gpu] = (struct td_health){0};
	muxflow->reshares[gpu] = (struct td_reshare){0};
}

const struct td_policy td_policy_muxflow = {
	.name = "muxflow",
	.summary = "one offline job beside the online ones, held back by the load and the health "
		   "of the GPU",
	.needs = TD_HAS(UTILISATION) | TD_HAS(SM_ACTIVITY) | TD_HAS(HEALTH) | TD_HAS(DUTY) |
		 TD_HAS(SM_SHARE) | TD_HAS(EVICTION),
	.exchanges = true,
	.by_activity = true,
	.state_bytes = sizeof(struct muxflow),
	.step = muxflow_step,
	.forget_gpu = forget_gpu,
};
