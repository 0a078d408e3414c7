/* Takes the least share that any of the controllers allows; see guard.h. */
#include "policy/node/beside/guard.h"

#include "base/bounds.h"
#include "policy/node/profile.h"

#define FLOOR_PPM 20000u
#define PERIOD_NS 10000000ull
/* One long step in this many is allowed, so that 99 of 100 steps are within their slack. */
#define LONG_STEPS 128
/*
 * The first pause on a GPU admits one piece of work at a time for this long. The program may be
 * loading its data before its first step, and may end the pause at any moment.
 */
#define FIRST_NS 60000000000ull
/* The end of a pause may cost 1 / LONG_SHARES of the slack. */
#define LONG_SHARES 4

static const struct td_pid_params by_load = {
	.set_point = 0.9,
	.kp = 0.5,
	.ki = 2,
	.min_ppm = FLOOR_PPM,
	.max_ppm = TD_PPM,
	.max_gap_ns = 1000000000,
};

static const struct td_pid_params by_latency = {
	.set_point = 0.8,
	.kp = 0.5,
	.ki = 0.5,
	.bias_ppm = 500000,
	.min_ppm = FLOOR_PPM,
	.max_ppm = TD_PPM,
	.max_gap_ns = 1000000000,
};

/*
 * The protected jobs of the GPU. `guaranteed` and `online` are the index of one client each,
 * UINT32_MAX if there is none.
 */
struct present {
	uint32_t guaranteed, online;
	uint32_t guaranteed_count; /* number of guaranteed jobs with steps, up to 2 */
	uint32_t floor_ppm;        /* the lowest floor of all guaranteed jobs */
	bool besteffort, at_work;
	bool unseen;            /* a guaranteed job without steps has work */
	uint64_t besteffort_ns; /* GPU time that besteffort work has used under a duty so far */
	double strain;          /* the worst ratio of P99 to objective; 0: not known for any job */
};

static void note_floor(struct present *here, const struct td_client_view *client)
{
	uint32_t floor_ppm = td_duty_params_of(client->slack_ppm).floor_ppm;

	here->floor_ppm = floor_ppm < here->floor_ppm ? floor_ppm : here->floor_ppm;
}

static void note_guaranteed(struct present *here, const struct td_view *view, uint32_t c)
{
	note_floor(here, &view->clients[c]);
	if (!here->guaranteed_count) {
		here->guaranteed_count = 1;
		here->guaranteed = c;
	} else if (view->clients[c].group != view->clients[here->guaranteed].group) {
		here->guaranteed_count = 2;
	}
}

static bool is_guaranteed(
	const struct td_view *view, const struct td_plan *plan, uint32_t gpu, uint32_t c)
{
	return view->clients[c].gpu == gpu && view->clients[c].class == TD_CLASS_GUARANTEED &&
	       plan->grants[c].gate != TD_GATE_CLOSED;
}

/* Notes a guaranteed job of which no process has reported a step. Its tolerance is not known. */
static void note_unseen(
	struct present *here, const struct td_view *view, const struct td_plan *plan, uint32_t gpu)
{
	for (uint32_t c = 0; c < view->client_count; c++) {
		const struct td_client_view *client = &view->clients[c];

		if (!is_guaranteed(view, plan, gpu, c) || client->steps || !client->wants)
			continue;
		if (here->guaranteed_count &&
			client->group == view->clients[here->guaranteed].group)
			continue;
		here->unseen = true;
		note_floor(here, client);
	}
}

/* Tells whether any process of the job has work, including those without reported steps. */
static bool is_busy(const struct td_view *view, uint32_t gpu, uint32_t group)
{
	for (uint32_t c = 0; c < view->client_count; c++)
		if (view->clients[c].gpu == gpu && view->clients[c].group == group &&
			view->clients[c].wants)
			return true;
	return false;
}

static struct present present_on(
	const struct td_view *view, const struct td_plan *plan, uint32_t gpu)
{
	struct present here = {
		.guaranteed = UINT32_MAX, .online = UINT32_MAX, .floor_ppm = FLOOR_PPM};

	for (uint32_t c = 0; c < view->client_count; c++) {
		const struct td_client_view *client = &view->clients[c];
		double strain;

		if (client->gpu != gpu || plan->grants[c].gate == TD_GATE_CLOSED)
			continue;
		if (client->class == TD_CLASS_BESTEFFORT) {
			here.besteffort = true;
			here.besteffort_ns += client->gpu_time_ns;
		}
		here.at_work |= client->class != TD_CLASS_BESTEFFORT && client->wants;
		if (client->class == TD_CLASS_GUARANTEED && client->steps)
			note_guaranteed(&here, view, c);
		if (client->class != TD_CLASS_ONLINE)
			continue;
		here.online = c;
		if (!client->p99_ns || !client->objective_ns)
			continue;
		strain = (double)client->p99_ns / (double)client->objective_ns;
		here.strain = strain > here.strain ? strain : here.strain;
	}
	note_unseen(&here, view, plan, gpu);
	return here;
}

/*
 * Tells whether besteffort work stays at the floor, because no single step time shows what the
 * guaranteed jobs tolerate.
 */
static bool is_floor_all(const struct present *here)
{
	return here->guaranteed_count > 1 || here->unseen;
}

static uint32_t by_steps(struct td_guard *guard, const struct td_view *view, uint32_t gpu,
	const struct present *here, uint32_t besteffort_jobs, uint64_t now_ns, struct td_plan *plan)
{
	struct td_duty_params params = td_duty_default;
	struct td_duty_input input = {0};
	uint32_t duty_ppm;
	uint64_t wakeup;

	if (here->guaranteed != UINT32_MAX) {
		uint32_t group = view->clients[here->guaranteed].group,
			 slowest = td_slowest_step(&guard->slowest, view, gpu, group);
		const struct td_client_view *job =
			&view->clients[slowest == UINT32_MAX ? here->guaranteed : slowest];

		params = td_duty_params_of(job->slack_ppm);
		input = (struct td_duty_input){
			.guaranteed = true,
			.busy = is_busy(view, gpu, group),
			.job = group,
			.steps = job->steps,
			.step_ns = job->step_ns,
			.step_began_ns = job->step_began_ns,
			.alone_step_ns = job->profile ? job->profile->alone_step_ns : 0,
			.unit = td_slowest_unit(job),
			/* With two guaranteed jobs no step time shows what more duty costs. */
			.company = is_floor_all(here) ? 0 : besteffort_jobs,
			.company_ns = here->besteffort_ns,
		};
	}
	duty_ppm = td_duty_step(&guard->duty, &params, &input, now_ns).duty_ppm;
	wakeup = td_duty_wakeup_ns(&guard->duty, &params, &input, now_ns);
	if (here->besteffort && wakeup < plan->next_wakeup_ns)
		plan->next_wakeup_ns = wakeup;
	return is_floor_all(here) && here->at_work ? here->floor_ppm : duty_ppm;
}

/*
 * Returns the duty that holds P99. The curves' forecast is where the controller begins, and a low
 * P99 raises that only slowly.
 */
static uint32_t by_strain(struct td_guard *guard, double strain, uint64_t now_ns)
{
	struct td_pid_params params = by_latency;

	if (guard->forecast_ppm) {
		params.bias_ppm = guard->forecast_ppm;
		params.kp = strain > params.set_point ? params.kp : 0;
	}
	return td_pid_step(&guard->latency, &params, strain, now_ns);
}

static uint32_t at_least_floor(uint32_t ppm)
{
	return ppm > FLOOR_PPM ? ppm : FLOOR_PPM;
}

static uint32_t duty_ppm(struct td_guard *guard, const struct td_view *view, uint32_t gpu,
	const struct present *here, uint32_t besteffort_jobs, uint64_t now_ns, struct td_plan *plan)
{
	const struct td_gpu_view *figures = &view->gpus[gpu];
	uint32_t steps_ppm = by_steps(guard, view, gpu, here, besteffort_jobs, now_ns, plan),
		 other_ppm = TD_PPM;

	if (here->online != UINT32_MAX && here->strain > 0)
		other_ppm = by_strain(guard, here->strain, now_ns);
	else if (here->online != UINT32_MAX && guard->forecast_ppm)
		other_ppm = at_least_floor(guard->forecast_ppm);
	else if (here->online != UINT32_MAX && figures->known & TD_HAS(SM_ACTIVITY))
		other_ppm = td_pid_step(
			&guard->load, &by_load, figures->sm_activity_ppm / (double)TD_PPM, now_ns);
	else
		return here->at_work || here->guaranteed_count == 1 ? steps_ppm : TD_PPM;
	if (here->besteffort && here->at_work && now_ns + PERIOD_NS < plan->next_wakeup_ns)
		plan->next_wakeup_ns = now_ns + PERIOD_NS;
	steps_ppm = other_ppm < steps_ppm ? other_ppm : steps_ppm;
	return here->at_work ? steps_ppm : TD_PPM;
}

/* Returns how much of the time of_ns of a job besteffort work may cost: a quarter of the slack. */
static uint64_t bearable_ns(const struct td_client_view *client, uint64_t of_ns)
{
	uint32_t slack_ppm = client->slack_ppm ? client->slack_ppm : td_duty_default.slack_ppm;

	return of_ns / TD_PPM * slack_ppm / LONG_SHARES + 1;
}

static void bound_by_step(const struct td_client_view *client, struct td_guard_room *room)
{
	uint64_t bearable = bearable_ns(client, client->step_ns), long_ns = LONG_SHARES * bearable,
		 every = client->step_ns < UINT64_MAX / LONG_STEPS ? LONG_STEPS * client->step_ns
								   : UINT64_MAX;

	room->window_ns = td_min_u64(room->window_ns, bearable);
	room->long_ns = room->long_ns ? td_min_u64(room->long_ns, long_ns) : long_ns;
	room->long_every_ns = every > room->long_every_ns ? every : room->long_every_ns;
}

/*
 * Notes the pauses that all guaranteed jobs have in common. Only then does besteffort work have the
 * GPU to itself.
 */
static void note_pauses(struct td_guard *guard, bool at_work, uint64_t now_ns)
{
	if (at_work && !guard->at_work) {
		td_cycle_wake(&guard->cycle, now_ns);
		td_pauses_end(&guard->pauses, now_ns);
	} else if (!at_work && guard->at_work) {
		td_pauses_begin(&guard->pauses, now_ns);
	}
	guard->at_work = at_work;
}

/* Bounds besteffort work during a pause by the expected end of the pause, if there is one. */
static void bound_by_pause(struct td_guard *guard, const struct present *here, uint64_t now_ns,
	struct td_guard_room *room, struct td_plan *plan)
{
	uint64_t again, until;

	if (!guard->pauses.since_ns || !here->besteffort || room->duty_ppm < TD_PPM)
		return;
	until = td_pauses_until_ns(&guard->pauses, room->window_ns, now_ns, &again);
	/*
	 * Neither pauses nor the lengths of kernels are known yet, so one kernel is admitted at a
	 * time.
	 */
	if (!guard->pauses.count)
		again = guard->pauses.since_ns + FIRST_NS;
	if (again > now_ns && again < plan->next_wakeup_ns)
		plan->next_wakeup_ns = again;
	if (until == UINT64_MAX && (guard->pauses.count || again <= now_ns))
		return;
	room->duty_ppm = here->floor_ppm;
	room->pause_until_ns = until;
}

struct td_guard_room td_guard_step(struct td_guard *guard, const struct td_view *view, uint32_t gpu,
	uint32_t besteffort_jobs, uint64_t most_window_ns, uint64_t now_ns, struct td_plan *plan)
{
	struct present here = present_on(view, plan, gpu);
	struct td_guard_room room = {.window_ns = most_window_ns};
	bool guaranteed = false, at_work = false;

	for (uint32_t c = 0; c < view->client_count; c++)
		at_work |= is_guaranteed(view, plan, gpu, c) && view->clients[c].wants;
	note_pauses(guard, at_work, now_ns);
	room.duty_ppm = duty_ppm(guard, view, gpu, &here, besteffort_jobs, now_ns, plan);
	for (uint32_t c = 0; c < view->client_count; c++) {
		const struct td_client_view *client = &view->clients[c];

		if (!is_guaranteed(view, plan, gpu, c))
			continue;
		guaranteed = true;
		note_floor(&here, client);
		if (client->step_ns)
			bound_by_step(client, &room);
		if (guard->cycle.mean_ns)
			room.window_ns = td_min_u64(
				room.window_ns, bearable_ns(client, guard->cycle.mean_ns));
	}
	if (guaranteed)
		bound_by_pause(guard, &here, now_ns, &room, plan);
	return room;
}
