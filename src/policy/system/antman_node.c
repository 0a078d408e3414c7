/*
 * The policy "antman": the local coordinator of every GPU of a node (antman.h).
 *
 *   guaranteed and online jobs run, unbounded, with all of the memory that they demand
 *   for each GPU: duty and memory of the besteffort jobs <- the coordinator
 *     the duty is divided by weight among those that have work; memory is the coordinator's
 *
 * The guaranteed job may have several processes on the GPU: its steps are those of the slowest
 * (slowest.h). AntMan guarantees one job per GPU. Where two or more are, there is no single step
 * time to protect, and besteffort work stays at the least of their floors. Trial and error needs
 * speeds. A window ends when each job has finished WINDOW_STEPS steps under the present limits; a
 * job's speed is its best step time (profiled or seen) over its mean of that window. A job without
 * steps has no speed, and its window is lost after WINDOW_NS.
 *
 * A besteffort job that cannot run with a part of its memory on the host, and does not fit in what
 * those before it leave, is closed, and its memory goes.
 *
 * Invariants
 * - guaranteed jobs are never bounded or closed, except those that their user has paused, which
 *   count as gone;
 * - the duties of the besteffort jobs that have work sum up to at most the coordinator's;
 * - limits never exceed the capacity;
 * - at most TD_MEMORY_TRIAL_JOBS_MAX besteffort jobs per GPU run at once; later ones wait.
 */
#include "base/bounds.h"
#include "policy/node/admit.h"
#include "policy/node/plans.h"
#include "policy/node/profile.h"
#include "policy/node/share.h"
#include "policy/node/beside/slowest.h"
#include "policy/node/beside/trials.h"
#include "policy/system/antman.h"

#define WINDOW_STEPS 3
#define WINDOW_NS    60000000000ull
/*
 * The lowest duty beside a job that states no slack: 4 %, within the default slack of 5 %. So the
 * duty never holds up a job that uses a few per cent of the GPU now and then, as the paper's job A.
 */
#define FLOOR_PPM 40000

struct job {
	uint32_t id;
	/* steps: finished so far; first_step: its value when the window began. */
	uint64_t steps, first_step;
	/* Sum over the window's steps that were seen; best step ever seen. */
	uint64_t sum_ns, best_ns;
	uint32_t seen;
};

struct gpu {
	struct td_antman_gpu coordinator;
	struct td_slowest slowest;
	struct td_trials trials;
	uint64_t window_began_ns;
	struct job jobs[TD_MEMORY_TRIAL_JOBS_MAX];
};

struct antman {
	struct gpu gpus[TD_GPU_MAX];
};

/* The jobs on one GPU, gathered at each step. */
struct present {
	struct td_antman_gpu_params params;         /* slack_ppm is the guaranteed job's */
	uint32_t clients[TD_MEMORY_TRIAL_JOBS_MAX]; /* open besteffort clients */
	struct td_memory_trial_job jobs[TD_MEMORY_TRIAL_JOBS_MAX];
	uint32_t guaranteed_count; /* number of guaranteed jobs */
	uint32_t floor_ppm;        /* lowest floor of the guaranteed jobs, if there are several */
	uint64_t besteffort_ns;    /* GPU time that besteffort work has used under a duty so far */
	struct td_antman_gpu_input input;
};

static bool runs_besteffort(const struct td_view *view, const struct td_plan *plan, uint32_t c)
{
	return view->clients[c].class == TD_CLASS_BESTEFFORT &&
	       plan->grants[c].gate != TD_GATE_CLOSED;
}

static uint64_t alone_step_ns(const struct td_client_view *client)
{
	return client->profile ? client->profile->alone_step_ns : 0;
}

/* Updates the record of a job. The record begins anew if it is of another job. */
static void note_steps(struct job *job, const struct td_client_view *client)
{
	if (job->id != client->id || client->steps < job->steps)
		*job = (struct job){
			client->id, client->steps, client->steps, 0, alone_step_ns(client), 0};
	if (client->steps == job->steps || !client->step_ns)
		return;
	job->steps = client->steps;
	/* The first step of a window began under other limits. */
	if (client->steps - job->first_step < 2)
		return;
	job->sum_ns += client->step_ns;
	job->seen++;
	if (!job->best_ns || client->step_ns < job->best_ns)
		job->best_ns = client->step_ns;
}

static double speed_of(const struct job *job)
{
	if (job->seen < WINDOW_STEPS)
		return -1;
	return (double)job->best_ns * job->seen / (double)job->sum_ns;
}

static void note_guaranteed(struct present *present, const struct td_client_view *client)
{
	struct td_duty_input *job = &present->input.guaranteed;

	present->floor_ppm =
		td_min_u32(present->floor_ppm, td_duty_params_of(client->slack_ppm).floor_ppm);
	present->input.guaranteed_bytes += client->demanded_bytes;
	if (!present->guaranteed_count) {
		present->guaranteed_count = 1;
		*job = (struct td_duty_input){.guaranteed = true, .job = client->group};
	}
	if (client->group != job->job) {
		present->guaranteed_count = 2;
		return;
	}
	present->params.duty = td_duty_params_of(client->slack_ppm);
	if (!client->slack_ppm)
		present->params.duty.floor_ppm = FLOOR_PPM;
	job->busy |= client->wants;
	job->host_bytes += client->host_bytes;
}

/*
 * Copies the steps of the guaranteed job to the input. All of its processes have to be noted
 * before.
 */
static void note_guaranteed_steps(
	struct present *present, struct gpu *gpu, const struct td_view *view, uint32_t index)
{
	struct td_duty_input *job = &present->input.guaranteed;
	const struct td_client_view *slowest;
	uint32_t c;

	if (!job->guaranteed)
		return;
	c = td_slowest_step(&gpu->slowest, view, index, job->job);
	if (c == UINT32_MAX)
		return;
	slowest = &view->clients[c];
	job->steps = slowest->steps;
	job->step_ns = slowest->step_ns;
	job->step_began_ns = slowest->step_began_ns;
	job->alone_step_ns = alone_step_ns(slowest);
	job->unit = td_slowest_unit(slowest);
}

static void note_besteffort(struct present *present, struct gpu *gpu, const struct td_view *view,
	uint32_t c, uint64_t now_ns)
{
	const struct td_client_view *client = &view->clients[c];
	uint32_t i = present->input.besteffort_count++;

	present->besteffort_ns += client->gpu_time_ns;
	if (gpu->jobs[i].id != client->id) /* a job came or went, so all limits change */
		gpu->window_began_ns = now_ns;
	note_steps(&gpu->jobs[i], client);
	present->clients[i] = c;
	present->jobs[i] = (struct td_memory_trial_job){
		client->id, client->demanded_bytes, client->minimal_bytes, speed_of(&gpu->jobs[i])};
}

static void note_jobs(struct gpu *gpu, const struct td_view *view, const struct td_plan *plan,
	uint32_t index, uint64_t now_ns, struct present *present)
{
	*present = (struct present){.params = td_antman_gpu_default,
		.floor_ppm = TD_PPM,
		.input.capacity_bytes = view->gpus[index].capacity_bytes};
	for (uint32_t c = 0; c < view->client_count; c++) {
		const struct td_client_view *client = &view->clients[c];

		if (client->gpu != index)
			continue;
		if (client->class != TD_CLASS_BESTEFFORT && plan->grants[c].gate != TD_GATE_CLOSED)
			note_guaranteed(present, client);
		else if (runs_besteffort(view, plan, c))
			note_besteffort(present, gpu, view, c, now_ns);
		else
			present->input.guaranteed_bytes += td_view_left_bytes(client);
	}
	note_guaranteed_steps(present, gpu, view, index);
	present->input.besteffort = present->jobs;
}

static bool is_window_over(const struct gpu *gpu, const struct present *present, uint64_t now_ns)
{
	for (uint32_t i = 0; i < present->input.besteffort_count; i++)
		if (gpu->jobs[i].seen < WINDOW_STEPS)
			return now_ns - gpu->window_began_ns >= WINDOW_NS;
	return true;
}

static void begin_window(struct gpu *gpu, uint64_t now_ns)
{
	gpu->window_began_ns = now_ns;
	for (uint32_t i = 0; i < TD_MEMORY_TRIAL_JOBS_MAX; i++) {
		gpu->jobs[i].first_step = gpu->jobs[i].steps;
		gpu->jobs[i].sum_ns = gpu->jobs[i].seen = 0;
	}
}

static void coordinate(struct gpu *gpu, const struct td_view *view, uint32_t index,
	uint32_t besteffort_jobs, uint64_t now_ns, struct td_plan *plan)
{
	const struct td_antman_gpu_params *params;
	struct td_antman_gpu_output output;
	struct present present;
	uint64_t wakeup;

	note_jobs(gpu, view, plan, index, now_ns, &present);
	/* Beside two jobs no step time shows the cost of a higher duty. */
	present.input.guaranteed.company = present.guaranteed_count > 1 ? 0 : besteffort_jobs;
	present.input.guaranteed.company_ns = present.besteffort_ns;
	params = &present.params;
	present.input.window_over = is_window_over(gpu, &present, now_ns);
	(void)td_antman_gpu_step(&gpu->coordinator, params, &present.input, now_ns, &output);
	if (present.input.window_over)
		begin_window(gpu, now_ns);
	if (present.guaranteed_count > 1)
		output.duty_ppm = present.floor_ppm;
	for (uint32_t i = 0; i < present.input.besteffort_count; i++) {
		struct td_grant *grant = &plan->grants[present.clients[i]];

		grant->limit_bytes = present.guaranteed_count > 1 ? 0 : output.limit_bytes[i];
		if ((!present.guaranteed_count && present.input.besteffort_count == 1) ||
			view->clients[present.clients[i]].whole)
			grant->limit_bytes = UINT64_MAX;
	}
	if (present.guaranteed_count)
		td_plan_divide_duty(view, index, output.duty_ppm, plan);
	if (!present.input.besteffort_count)
		return;
	wakeup = td_duty_wakeup_ns(
		&gpu->coordinator.duty, &params->duty, &present.input.guaranteed, now_ns);
	if (!present.guaranteed_count && present.input.besteffort_count > 1 &&
		!gpu->coordinator.trial.settled && gpu->window_began_ns + WINDOW_NS < wakeup)
		wakeup = gpu->window_began_ns + WINDOW_NS;
	if (wakeup < plan->next_wakeup_ns)
		plan->next_wakeup_ns = wakeup;
}

static void close_group(const struct td_view *view, uint32_t group, struct td_plan *plan)
{
	for (uint32_t c = 0; c < view->client_count; c++)
		if (view->clients[c].group == group)
			plan->grants[c].gate = TD_GATE_CLOSED;
}

static uint64_t used_bytes(
	const struct td_view *view, const struct td_plan *plan, uint32_t gpu, uint32_t before)
{
	uint64_t bytes = 0;

	for (uint32_t c = 0; c < view->client_count; c++) {
		const struct td_client_view *client = &view->clients[c];

		if (client->gpu != gpu)
			continue;
		if (client->class != TD_CLASS_BESTEFFORT ||
			(c < before && plan->grants[c].gate != TD_GATE_CLOSED))
			bytes += client->demanded_bytes;
		else
			bytes += td_view_left_bytes(client);
	}
	return bytes;
}

/*
 * Closes besteffort jobs that cannot run with a part of their memory on the host and do not fit, in
 * the order of arrival.
 */
static void close_what_does_not_fit(const struct td_view *view, struct td_plan *plan)
{
	for (uint32_t c = 0; c < view->client_count; c++) {
		const struct td_client_view *client = &view->clients[c];
		uint64_t used, stuck = td_view_left_bytes(client);

		if (!runs_besteffort(view, plan, c) || !client->whole)
			continue;
		used = used_bytes(view, plan, client->gpu, c) - stuck;
		if (used + client->demanded_bytes > view->gpus[client->gpu].capacity_bytes)
			close_group(view, client->group, plan);
	}
}

static void antman_step(void *state, const struct td_policy_options *options,
	const struct td_view *view, uint64_t now_ns, struct td_plan *plan)
{
	uint32_t places[TD_GPU_MAX], besteffort_jobs[TD_GPU_MAX];
	struct antman *antman = state;

	(void)options;
	for (uint32_t gpu = 0; gpu < TD_GPU_MAX; gpu++)
		places[gpu] = TD_MEMORY_TRIAL_JOBS_MAX;
	td_plan_begin(view, plan);
	td_admit(view, places, plan);
	td_view_count_besteffort(view, besteffort_jobs);
	close_what_does_not_fit(view, plan);
	for (uint32_t c = 0; c < view->client_count; c++) {
		plan->grants[c].limit_bytes = UINT64_MAX;
		plan->grants[c].steps = true;
	}
	for (uint32_t gpu = 0; gpu < view->gpu_count; gpu++) {
		coordinate(&antman->gpus[gpu], view, gpu, besteffort_jobs[gpu], now_ns, plan);
		if (view->has & TD_HAS(DUTY))
			td_trials_step(&antman->gpus[gpu].trials, view, gpu, now_ns, plan);
	}
	td_share_memory_by_class(view, plan);
	td_plan_make_room(view, plan);
}

static void forget_gpu(void *state, uint32_t gpu)
{
	struct antman *antman = state;

	antman->gpus[gpu] = (struct gpu){0};
}

const struct td_policy td_policy_antman = {
	.name = "antman",
	.summary =
		"besteffort jobs get what the guaranteed job's step time leaves of time and memory",
	.needs = TD_HAS(STEPS) | TD_HAS(DUTY) | TD_HAS(HOST_MEMORY),
	.state_bytes = sizeof(struct antman),
	.step = antman_step,
	.forget_gpu = forget_gpu,
};
