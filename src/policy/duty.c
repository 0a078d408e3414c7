/* Step-time feedback; see duty.h. */
#include "policy/duty.h"

#define PPM             1000000u
#define HOLD_ROUNDS_MAX 32

const struct td_duty_params td_duty_default = TD_DUTY_DEFAULT;

static uint32_t floor_ppm(const struct td_duty_params *params)
{
	return params->floor_ppm && params->floor_ppm <= PPM ? params->floor_ppm : 1;
}

static uint32_t round_length(const struct td_duty_params *params)
{
	if (!params->steps)
		return 1;
	return params->steps < TD_DUTY_STEPS_MAX ? params->steps : TD_DUTY_STEPS_MAX;
}

static uint64_t with_slack(uint64_t ns, uint32_t slack_ppm)
{
	uint64_t slack = ns / PPM * slack_ppm + ns % PPM * slack_ppm / PPM;

	return slack > UINT64_MAX - ns ? UINT64_MAX : ns + slack;
}

static void cut(struct td_duty *duty, const struct td_duty_params *params)
{
	uint32_t failed = duty->duty_ppm;

	if (duty->hold_rounds < HOLD_ROUNDS_MAX)
		duty->hold_rounds = duty->hold_rounds ? duty->hold_rounds * 2 : 1;
	duty->held_rounds = 0;
	duty->duty_ppm = floor_ppm(params);
	duty->caution_ppm = failed > params->step_ppm ? failed - params->step_ppm : 0;
	duty->times = 0;
	duty->long_rounds = 0;
	duty->phase = TD_DUTY_FLOOR;
}

static void arrive(struct td_duty *duty, const struct td_duty_params *params,
	const struct td_duty_input *input)
{
	*duty = (struct td_duty){
		.phase = TD_DUTY_FLOOR,
		.job = input->job,
		.duty_ppm = floor_ppm(params),
		.steps_seen = input->steps,
		.skip = true,
	};
}

/* Adds a time to the round, which is kept sorted. */
static void add_time(struct td_duty *duty, uint64_t ns)
{
	uint32_t at = duty->times++;

	for (; at && duty->times_ns[at - 1] > ns; at--)
		duty->times_ns[at] = duty->times_ns[at - 1];
	duty->times_ns[at] = ns;
}

static void raise_duty(struct td_duty *duty, const struct td_duty_params *params)
{
	uint32_t next = duty->duty_ppm + params->step_ppm;

	if (duty->duty_ppm < duty->caution_ppm) {
		next = duty->duty_ppm * 2 > next ? duty->duty_ppm * 2 : next;
		next = next < duty->caution_ppm ? next : duty->caution_ppm;
	} else if (duty->duty_ppm == duty->caution_ppm && duty->held_rounds++ < duty->hold_rounds) {
		return;
	} else if (duty->duty_ppm > duty->caution_ppm) {
		duty->hold_rounds = 0; /* what failed has held for a round */
	}
	duty->duty_ppm = next < PPM ? next : PPM;
}

/* A whole round of steps at the floor: has the job settled? */
static void judge_floor(struct td_duty *duty, const struct td_duty_params *params,
	const struct td_duty_input *input)
{
	uint64_t median = duty->times_ns[duty->times / 2];
	bool stable =
		duty->times_ns[duty->times - 1] <= with_slack(duty->times_ns[0], params->slack_ppm);

	if (!stable) {
		duty->long_rounds = 0;
		return;
	}
	if (!duty->baseline_ns) {
		duty->baseline_ns = median;
		if (input->alone_step_ns && input->alone_step_ns < median)
			duty->baseline_ns = input->alone_step_ns;
	}
	if (median > with_slack(duty->baseline_ns, params->slack_ppm) &&
		++duty->long_rounds < params->rebase_rounds)
		return;
	if (duty->long_rounds >= params->rebase_rounds || median < duty->baseline_ns)
		duty->baseline_ns = median;
	duty->long_rounds = 0;
	duty->phase = TD_DUTY_MEMORY;
}

/* A whole round within the slack. */
static void judge_good(struct td_duty *duty, const struct td_duty_params *params)
{
	uint64_t median = duty->times_ns[duty->times / 2];
	uint32_t memory = duty->memory_ppm + params->memory_step_ppm;

	if (median < duty->baseline_ns)
		duty->baseline_ns = median;
	if (duty->phase == TD_DUTY_MEMORY) {
		duty->memory_ppm = memory < PPM && params->memory_step_ppm ? memory : PPM;
		if (duty->memory_ppm == PPM)
			duty->phase = TD_DUTY_COMPUTE;
	} else {
		raise_duty(duty, params);
	}
}

/* A step has ended. */
static void observe(struct td_duty *duty, const struct td_duty_params *params,
	const struct td_duty_input *input)
{
	duty->steps_seen = input->steps;
	if (duty->skip) {
		duty->skip = false;
		return;
	}
	if (duty->phase != TD_DUTY_FLOOR &&
		input->step_ns > with_slack(duty->baseline_ns, params->slack_ppm)) {
		cut(duty, params); /* between two steps: the next one is under way with it */
		return;
	}
	add_time(duty, input->step_ns);
	if (duty->times < round_length(params))
		return;
	if (duty->phase == TD_DUTY_FLOOR)
		judge_floor(duty, params, input);
	else
		judge_good(duty, params);
	duty->times = 0;
}

/* The present step takes longer than it may from then on; UINT64_MAX: it has not begun, or is not judged. */
static uint64_t overdue_at_ns(const struct td_duty *duty, const struct td_duty_params *params,
	const struct td_duty_input *input)
{
	uint64_t allowed = with_slack(duty->baseline_ns, params->slack_ppm);

	if (!duty->baseline_ns || duty->phase == TD_DUTY_FLOOR || duty->phase == TD_DUTY_FREE ||
		!input->busy || !input->step_began_ns ||
		allowed >= UINT64_MAX - input->step_began_ns)
		return UINT64_MAX;
	return input->step_began_ns + allowed + 1;
}

uint64_t td_duty_wakeup_ns(const struct td_duty *duty, const struct td_duty_params *params,
	const struct td_duty_input *input, uint64_t now_ns)
{
	uint64_t at = overdue_at_ns(duty, params, input);

	return at > now_ns ? at : UINT64_MAX;
}

struct td_duty_output td_duty_step(struct td_duty *duty, const struct td_duty_params *params,
	const struct td_duty_input *input, uint64_t now_ns)
{
	if (!input->guaranteed) {
		duty->phase = TD_DUTY_FREE;
		return (struct td_duty_output){PPM, PPM};
	}
	if (duty->phase == TD_DUTY_FREE || duty->job != input->job)
		arrive(duty, params, input);
	if (input->steps != duty->steps_seen && input->step_ns)
		observe(duty, params, input);
	if (input->host_bytes && duty->memory_ppm) {
		cut(duty, params);
		duty->memory_ppm = 0;
		duty->skip = true;
	}
	if (overdue_at_ns(duty, params, input) <= now_ns) {
		cut(duty, params);
		duty->skip = true;
	}
	return (struct td_duty_output){
		input->busy ? duty->duty_ppm : PPM,
		duty->memory_ppm,
	};
}
