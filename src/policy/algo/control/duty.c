/* Controls the duty of besteffort work by the guaranteed job's step time; see duty.h. */
#include "policy/algo/control/duty.h"

#include "policy/algo/control/duty_units.h"

#define PPM TD_DUTY_PPM
/* A duty that would fail if raised is kept for at most this many steps of the job. */
#define HOLD_STEPS_MAX 1280
/* A pause in the steps that make the baseline is left empty for up to this many step times. */
#define FIRST_PAUSE 4
/*
 * How many steps of a unit have their pauses left empty: enough for a baseline of the longest
 * round, and for the steps that are not judged.
 */
#define FIRST_STEPS (TD_DUTY_STEPS_MAX + 8)
/* The number of such steps of one job over all of its units. */
#define EMPTY_STEPS_MAX 64
/* A unit's pauses stay empty for this long at most, because an epoch may be taken for a step. */
#define EMPTY_MAX_NS 60000000000ull
/* The mean over rounds begins anew after this many rounds. */
#define AVERAGED_MAX 16
/*
 * Rounds in which a rise is predicted to fail before the floor is measured again. The number
 * doubles each time.
 */
#define FORETOLD_ROUNDS 8
/*
 * Rounds at the floor whose mean is too long for any duty to rise. After them the job's own steps
 * are taken to have grown.
 */
#define ABOVE_ROUNDS 2
/*
 * If the mean of n rounds was too long but no single round was, the duty is held for n times this
 * many rounds.
 */
#define HOLD_FOR_ROUNDS 2

const struct td_duty_params td_duty_default = TD_DUTY_DEFAULT;

static uint32_t round_length(const struct td_duty *duty, const struct td_duty_params *params)
{
	uint32_t length = duty->length ? duty->length : params->steps;

	if (!length)
		return 1;
	return length < TD_DUTY_STEPS_MAX ? length : TD_DUTY_STEPS_MAX;
}

struct td_duty_params td_duty_params_of(uint32_t slack_ppm)
{
	struct td_duty_params params = td_duty_default;

	if (!slack_ppm)
		return params;
	params.slack_ppm = slack_ppm;
	params.raise_ppm = slack_ppm / 2;
	if (slack_ppm / 5 < params.floor_ppm)
		params.floor_ppm = slack_ppm / 5;
	return params;
}

static uint64_t root(uint64_t n)
{
	uint64_t r = 0;

	while ((r + 1) * (r + 1) <= n)
		r++;
	return r ? r : 1;
}

/* Returns the longest time that one step may take. */
static uint64_t allowed_ns(const struct td_duty *duty, const struct td_duty_params *params)
{
	uint64_t slack = td_duty_with_slack(duty->baseline_ns, params->slack_ppm);
	uint64_t noise = td_duty_add(duty->baseline_ns, TD_DUTY_OUTLIER * duty->noise_ns);

	return slack > noise ? slack : noise;
}

/* Returns the duty one step below `failed`, from which the duty had been raised to it. */
static uint32_t step_below(uint32_t failed, const struct td_duty_params *params)
{
	uint32_t least = td_duty_floor_ppm(params) / 2 * 5, step = failed / 2;

	step = step > least ? step : least;
	step = step < params->step_ppm ? step : params->step_ppm;
	return failed > step ? failed - step : 0;
}

static uint32_t step_above(uint32_t duty_ppm, const struct td_duty_params *params)
{
	uint32_t least = td_duty_floor_ppm(params) / 2 * 5,
		 step = duty_ppm > least ? duty_ppm : least;

	return duty_ppm + (step < params->step_ppm ? step : params->step_ppm);
}

/*
 * Lowers the duty after a step or a round of seen_ns that was too long; 0: its time is not known.
 */
static void cut(struct td_duty *duty, const struct td_duty_params *params, uint64_t seen_ns)
{
	uint32_t failed = duty->duty_ppm;

	if (!duty->before_cut.baseline_ns)
		duty->before_cut = td_duty_present(duty);
	if (duty->hold_rounds * round_length(duty, params) < HOLD_STEPS_MAX)
		duty->hold_rounds = duty->hold_rounds ? duty->hold_rounds * 2 : 1;
	duty->held_rounds = 0;
	if (failed > td_duty_floor_ppm(params)) {
		duty->failed_ppm = failed;
		duty->failed_ns = seen_ns;
	}
	duty->duty_ppm = td_duty_floor_ppm(params);
	duty->caution_ppm = step_below(failed, params);
	duty->times = duty->look_ppm = 0;
	duty->long_rounds = 0;
	duty->phase = TD_DUTY_FLOOR;
}

/* Keeps the duty for at least this many rounds before the next attempt to raise it. */
static void hold_for(struct td_duty *duty, const struct td_duty_params *params, uint32_t rounds)
{
	uint32_t most = HOLD_STEPS_MAX / round_length(duty, params);

	rounds = rounds < most ? rounds : most;
	if (duty->hold_rounds < rounds)
		duty->hold_rounds = rounds;
}

/*
 * Tells whether besteffort work at this duty could make a step this long. If not, the step was a
 * validation, a checkpoint or a pause of the job.
 */
static bool is_besteffort_to_blame(const struct td_duty *duty, uint32_t duty_ppm, uint64_t ns)
{
	uint64_t left = duty_ppm < 9 * PPM / 10 ? PPM - duty_ppm : PPM / 10;

	return ns / 2 / PPM * left <=
	       td_duty_add(duty->baseline_ns, TD_DUTY_OUTLIER * duty->noise_ns);
}

static void arrive(struct td_duty *duty, const struct td_duty_params *params,
	const struct td_duty_input *input, uint64_t now_ns)
{
	*duty = (struct td_duty){
		.phase = TD_DUTY_FLOOR,
		.job = input->job,
		.duty_ppm = td_duty_floor_ppm(params),
		.steps_seen = input->steps,
		.began_ns = input->step_began_ns,
		.unit = input->unit,
		.unit_since_ns = now_ns,
		.company = input->company,
		.skip = true,
	};
}

/*
 * Notes a step that took longer than besteffort work can explain. A few of them are a validation
 * phase of the training. More of them mean that the job now does other work, which has to be
 * measured anew.
 */
static void note_other(struct td_duty *duty, const struct td_duty_params *params, uint64_t now_ns)
{
	const struct td_duty_unit fresh = {
		.unit = duty->unit, .duty_ppm = td_duty_floor_ppm(params)};

	if (++duty->other_steps < params->rebase_rounds * params->steps)
		return;
	td_duty_begin_level(duty, params, 0);
	td_duty_go_on_from(duty, &fresh);
	duty->phase = TD_DUTY_FLOOR;
	duty->length = duty->first_steps = duty->other_steps = 0;
	duty->unit_since_ns = now_ns;
	duty->undo.baseline_ns = 0;
}

/* Adds a time to the round, which is kept sorted. */
static void add_time(struct td_duty *duty, uint64_t ns)
{
	uint32_t at = duty->times++;

	for (; at && duty->times_ns[at - 1] > ns; at--)
		duty->times_ns[at] = duty->times_ns[at - 1];
	duty->times_ns[at] = ns;
}

/* Returns the uncertainty of the round's median. */
static uint64_t uncertainty_ns(const struct td_duty *duty)
{
	return duty->noise_ns / root(duty->times);
}

/*
 * Returns the limit for the median of rounds in the long run. Single steps are longer than the
 * median, and 99 of 100 have to be within the slack. Where the steps' own noise uses that up, the
 * limit is a third of the slack. A fifth is left for the cost of the floor, which the baseline
 * holds.
 */
static uint64_t median_limit_ns(const struct td_duty *duty, const struct td_duty_params *params)
{
	uint64_t slack = td_duty_with_slack(duty->baseline_ns, params->slack_ppm) -
			 duty->baseline_ns,
		 off = slack / 5 + duty->noise_ns / 3 * 7, room = slack > off ? slack - off : 0;

	room = room < slack / 4 * 3 ? room : slack / 4 * 3;
	return td_duty_add(duty->baseline_ns, room > slack / 3 ? room : slack / 3);
}

/* Returns the limit for one round, whose median is not certain. */
static uint64_t round_limit_ns(const struct td_duty *duty, const struct td_duty_params *params)
{
	return td_duty_add(td_duty_with_slack(duty->baseline_ns, params->slack_ppm / 4 * 3),
		uncertainty_ns(duty) / 2 * 3);
}

/*
 * Returns the limit under which a round lets the duty rise, not counting the round's uncertainty.
 */
static uint64_t raise_limit_ns(const struct td_duty *duty, const struct td_duty_params *params)
{
	uint64_t median = median_limit_ns(duty, params),
		 raise = td_duty_with_slack(duty->baseline_ns, params->raise_ppm);

	return median < raise ? median : raise;
}

/* Averages the rounds since the duty was set, which makes their mean ever more certain. */
static void average_round(struct td_duty *duty, uint64_t median)
{
	if (duty->average.duty_ppm != duty->duty_ppm || duty->average.rounds == AVERAGED_MAX)
		duty->average = (struct td_duty_average){.duty_ppm = duty->duty_ppm};
	duty->average.rounds++;
	duty->average.sum_ns = td_duty_add(duty->average.sum_ns, median);
}

static uint64_t average_uncertainty_ns(const struct td_duty *duty)
{
	return duty->noise_ns / root((uint64_t)duty->times * duty->average.rounds);
}

static bool is_too_long_on_average(const struct td_duty *duty, const struct td_duty_params *params)
{
	return duty->duty_ppm > td_duty_floor_ppm(params) &&
	       duty->average.sum_ns / duty->average.rounds >
		       td_duty_add(
			       median_limit_ns(duty, params), average_uncertainty_ns(duty) / 2 * 3);
}

/*
 * Tells whether a duty that failed before would fail again. It assumes that the cost per duty is
 * the same as when it failed.
 */
static bool would_fail_again(
	const struct td_duty *duty, uint32_t floor, uint64_t median, uint32_t next)
{
	double then, now = (double)(median - duty->floor_ns) / (duty->duty_ppm - floor);

	if (!duty->failed_ns || duty->failed_ns <= duty->floor_ns || next < duty->failed_ppm)
		return false;
	then = (double)(duty->failed_ns - duty->floor_ns) / (duty->failed_ppm - floor);
	return 2 * now >= then;
}

/*
 * Predicts the cost of the next duty from what the present one costs beyond the floor, or may cost
 * within its uncertainty. True: the step would become too long.
 */
static bool is_foretold_to_fail(
	const struct td_duty *duty, const struct td_duty_params *params, uint32_t next)
{
	uint32_t floor = td_duty_floor_ppm(params);
	uint64_t mean = duty->average.sum_ns / duty->average.rounds;
	double cost;

	if (!duty->floor_ns || duty->duty_ppm <= floor)
		return false;
	cost = ((double)mean + (double)average_uncertainty_ns(duty) - (double)duty->floor_ns) *
	       (next - duty->duty_ppm) / (duty->duty_ppm - floor);
	if (cost < 0)
		return false;
	return (mean > duty->floor_ns && would_fail_again(duty, floor, mean, next)) ||
	       (double)mean + cost > (double)td_duty_add(median_limit_ns(duty, params),
					     uncertainty_ns(duty) / 2 * 3);
}

static void go_to_floor(struct td_duty *duty, const struct td_duty_params *params)
{
	duty->look_ppm = duty->duty_ppm;
	duty->strayed = false;
	duty->duty_ppm = td_duty_floor_ppm(params);
	duty->phase = TD_DUTY_FLOOR;
}

static void come_from_floor(struct td_duty *duty)
{
	duty->duty_ppm = duty->look_ppm;
	duty->look_ppm = 0;
	duty->phase = duty->memory_ppm == PPM ? TD_DUTY_COMPUTE : TD_DUTY_MEMORY;
}

/*
 * Spends one round at the floor. It shows whether the duty costs this much, or whether the job's
 * own steps have grown.
 */
static void look_at_floor(struct td_duty *duty, const struct td_duty_params *params)
{
	if (!duty->foretold_hold)
		duty->foretold_hold = FORETOLD_ROUNDS;
	if (++duty->foretold_rounds < duty->foretold_hold ||
		duty->duty_ppm <= td_duty_floor_ppm(params))
		return;
	duty->foretold_rounds = 0;
	if (duty->foretold_hold * round_length(duty, params) < HOLD_STEPS_MAX)
		duty->foretold_hold *= 2;
	go_to_floor(duty, params);
}

static void raise_duty(struct td_duty *duty, const struct td_duty_params *params)
{
	uint32_t next = step_above(duty->duty_ppm, params);

	if (!duty->company)
		return;
	if (duty->duty_ppm < duty->caution_ppm) {
		next = duty->duty_ppm * 2 > next ? duty->duty_ppm * 2 : next;
		next = next < duty->caution_ppm ? next : duty->caution_ppm;
	} else if (is_foretold_to_fail(duty, params, next)) {
		look_at_floor(duty, params);
		return;
	} else if (duty->duty_ppm == duty->caution_ppm && duty->held_rounds++ < duty->hold_rounds) {
		return;
	} else if (duty->duty_ppm > duty->caution_ppm) {
		duty->hold_rounds /= 2; /* a duty above the failed one has held for a round */
	}
	duty->foretold_rounds = duty->foretold_hold = 0;
	if (next > td_duty_most_ppm(duty))
		next = td_duty_most_ppm(duty);
	if (next > duty->duty_ppm)
		duty->duty_ppm = next;
}

/*
 * Returns the median distance from the median, scaled to a standard deviation. A few outliers do
 * not change it.
 */
static uint64_t noise_ns(const struct td_duty *duty)
{
	uint64_t median = duty->times_ns[duty->times / 2], off[TD_DUTY_STEPS_MAX], sample;

	for (uint32_t i = 0; i < duty->times; i++) {
		uint32_t at = i;

		sample = duty->times_ns[i] > median ? duty->times_ns[i] - median
						    : median - duty->times_ns[i];
		for (; at && off[at - 1] > sample; at--)
			off[at] = off[at - 1];
		off[at] = sample;
	}
	return 2 * off[duty->times / 2];
}

/* Averages the noise over rounds, because the figure of one round is rough. */
static void learn_noise(struct td_duty *duty, uint64_t noise)
{
	if (!duty->noise_ns)
		duty->noise_ns = noise;
	else
		duty->noise_ns = duty->noise_ns - duty->noise_ns / 4 + noise / 4;
}

/*
 * Tells whether the round's median is certain enough; otherwise the round gets longer. The first
 * round makes the baseline, against which all is measured: it has to be as certain as one round can
 * make it, up to a sixteenth of the slack.
 */
static bool is_certain(struct td_duty *duty, const struct td_duty_params *params)
{
	uint64_t median = duty->times_ns[duty->times / 2], noise = noise_ns(duty);
	uint64_t slack = td_duty_with_slack(median, params->slack_ppm) - median;
	bool first = !duty->baseline_ns && duty->times < TD_DUTY_STEPS_MAX;
	bool covered = duty->times_ns[duty->times - 1] <=
		       td_duty_with_slack(duty->times_ns[0], params->slack_ppm);

	if ((!covered || first) && noise / root(duty->times) > slack / (first ? 16 : 2)) {
		duty->length = 2 * round_length(duty, params);
		return false;
	}
	if (!duty->baseline_ns && noise / root(params->steps) <= slack / 2)
		duty->length = 0; /* only the first round has to be this long */
	learn_noise(duty, noise);
	return true;
}

/*
 * Lowers the baseline by no more than is certain, because the least of many medians is less than
 * their mean.
 */
static void lower_baseline(struct td_duty *duty, uint64_t median)
{
	uint64_t most = td_duty_add(median, 2 * duty->noise_ns / root(duty->times));

	if (most < duty->baseline_ns)
		duty->baseline_ns = most;
}

static void set_baseline(struct td_duty *duty, uint64_t median)
{
	duty->baseline_ns = median;
	duty->baseline_most_ns = td_duty_add(median, uncertainty_ns(duty));
}

static void raise_baseline(struct td_duty *duty, uint64_t median)
{
	uint64_t raised = duty->baseline_ns + (median - duty->baseline_ns) / 4;

	if (raised > duty->baseline_most_ns)
		raised = duty->baseline_most_ns;
	if (raised > duty->baseline_ns)
		duty->baseline_ns = raised;
}

static void give_memory(struct td_duty *duty, const struct td_duty_params *params)
{
	uint32_t memory = duty->memory_ppm + params->memory_step_ppm;

	duty->memory_ppm = memory < PPM && params->memory_step_ppm ? memory : PPM;
}

/*
 * Judges a whole round at the floor. Returns false while the job has not settled, so that the round
 * goes on.
 */
static bool judge_floor(struct td_duty *duty, const struct td_duty_params *params,
	const struct td_duty_input *input)
{
	uint64_t median = duty->times_ns[duty->times / 2];

	if (!is_certain(duty, params)) {
		duty->long_rounds = 0;
		if (duty->times < TD_DUTY_STEPS_MAX)
			return false;
		/* Memory is given by the number of rounds, whatever their times. */
		give_memory(duty, params);
		return true;
	}
	if (!duty->baseline_ns) {
		set_baseline(duty, median);
		if (input->alone_step_ns && input->alone_step_ns < median)
			duty->baseline_ns = input->alone_step_ns;
	}
	if (median > round_limit_ns(duty, params) && ++duty->long_rounds < params->rebase_rounds)
		return true;
	if (duty->long_rounds >= params->rebase_rounds ||
		(median < duty->baseline_ns && td_duty_is_another_level(duty, params, median))) {
		if (td_duty_is_another_level(duty, params, median))
			td_duty_begin_level(duty, params, median);
		set_baseline(duty, median);
		duty->floor_ns = 0;
	} else if (median > duty->baseline_ns && !input->alone_step_ns) {
		raise_baseline(duty, median); /* the first measurement was too low by chance */
	}
	duty->floor_ns = duty->floor_ns ? duty->floor_ns - duty->floor_ns / 4 + median / 4 : median;
	/*
	 * The mean at the floor is too long for any duty to rise, although no step was too long by
	 * itself.
	 */
	duty->above_rounds =
		duty->floor_ns > raise_limit_ns(duty, params) ? duty->above_rounds + 1 : 0;
	if (duty->above_rounds == ABOVE_ROUNDS && !input->alone_step_ns) {
		set_baseline(duty, duty->floor_ns);
		duty->above_rounds = 0;
	}
	lower_baseline(duty, median);
	duty->long_rounds = 0;
	duty->phase = TD_DUTY_MEMORY;
	if (duty->look_ppm)
		come_from_floor(duty);
	return true;
}

/* A round in which besteffort work did nothing shows nothing of what it costs. */
static bool has_company_worked(const struct td_duty *duty, const struct td_duty_input *input)
{
	return !input->company_ns || input->company_ns != duty->company_ns;
}

/* Judges a whole round of which no step was too long. */
static void judge_good(struct td_duty *duty, const struct td_duty_params *params,
	const struct td_duty_input *input)
{
	uint64_t median = duty->times_ns[duty->times / 2];

	if (median > round_limit_ns(duty, params)) {
		cut(duty, params, median);
		return;
	}
	if (median < duty->baseline_ns && td_duty_is_another_level(duty, params, median)) {
		td_duty_begin_level(duty, params, median);
		return;
	}
	if (duty->phase == TD_DUTY_COMPUTE && !has_company_worked(duty, input))
		return;
	average_round(duty, median);
	if (is_too_long_on_average(duty, params)) {
		hold_for(duty, params, HOLD_FOR_ROUNDS * duty->average.rounds);
		cut(duty, params, duty->average.sum_ns / duty->average.rounds);
		return;
	}
	learn_noise(duty, noise_ns(duty));
	lower_baseline(duty, median);
	if (duty->phase == TD_DUTY_MEMORY) {
		give_memory(duty, params);
		if (duty->memory_ppm == PPM)
			duty->phase = TD_DUTY_COMPUTE;
	} else if (median <= td_duty_add(td_duty_with_slack(duty->baseline_ns, params->raise_ppm),
				     duty->noise_ns / root(duty->times))) {
		raise_duty(duty, params);
	} else {
		look_at_floor(duty, params);
	}
}

/*
 * Tells whether a step is shorter than the job's steps so far, and of no known level. Steps of a
 * new length may have begun. Only a round at the floor shows how long they are without besteffort
 * work, so the duty falls to the floor.
 */
static bool has_strayed(struct td_duty *duty, const struct td_duty_params *params, uint64_t step_ns)
{
	bool off = td_duty_is_off(duty, params, step_ns);

	if (duty->phase == TD_DUTY_FLOOR && duty->look_ppm && duty->strayed && !off) {
		come_from_floor(duty);
		duty->times = 0;
		return true;
	}
	if (!off || duty->phase == TD_DUTY_FLOOR || step_ns > duty->baseline_ns ||
		duty->duty_ppm <= td_duty_floor_ppm(params))
		return false;
	go_to_floor(duty, params);
	duty->strayed = true;
	duty->times = 0;
	return true;
}

/* Takes the time of a step that has ended. */
static void observe(struct td_duty *duty, const struct td_duty_params *params,
	const struct td_duty_input *input, uint64_t now_ns)
{
	duty->steps_seen = input->steps;
	duty->first_steps += duty->first_steps < UINT32_MAX;
	duty->empty_steps += !duty->baseline_ns && duty->empty_steps < EMPTY_STEPS_MAX;
	if (duty->skip) {
		duty->skip = false;
		return;
	}
	if (duty->phase != TD_DUTY_FLOOR && input->step_ns > allowed_ns(duty, params)) {
		if (!is_besteffort_to_blame(duty, duty->duty_ppm, input->step_ns)) {
			note_other(duty, params, now_ns);
			return;
		}
		cut(duty, params,
			/* Between two steps: this time belongs to the step that begins next. */
			input->step_ns);
		return;
	}
	duty->other_steps = 0;
	if (input->step_ns <= allowed_ns(duty, params))
		/* The long step was caused by the duty, so the baseline stays. */
		duty->before_cut.baseline_ns = 0;
	if (has_strayed(duty, params, input->step_ns))
		return;
	add_time(duty, input->step_ns);
	if (duty->times < round_length(duty, params))
		return;
	if (duty->phase != TD_DUTY_FLOOR)
		judge_good(duty, params, input);
	else if (!judge_floor(duty, params, input))
		return;
	duty->times = 0;
	duty->company_ns = input->company_ns;
}

/*
 * Changes the level after a step whose length is that of another level: the next step is expected
 * to be of that level, too. A longer step changes it only under the rules of duty_units.h.
 */
static void change_level(struct td_duty *duty, const struct td_duty_params *params,
	const struct td_duty_input *input)
{
	const struct td_duty_unit *level = td_duty_find_level(duty, params, input->step_ns);
	uint32_t duty_ppm =
		duty->undo.baseline_ns ? duty->undo.duty_ppm : td_duty_present(duty).duty_ppm;

	if (!level)
		return;
	if (level->baseline_ns > duty->baseline_ns && !td_duty_is_trusted(level) &&
		(duty->phase != TD_DUTY_FLOOR || duty->skip) &&
		is_besteffort_to_blame(duty, duty_ppm, input->step_ns))
		return;
	td_duty_change_level(duty, level);
	duty->steps_seen = input->steps;
	duty->began_ns = input->step_began_ns;
	duty->company_ns = input->company_ns;
}

/*
 * Returns the time at which the present step becomes too long; UINT64_MAX where it has not begun or
 * is not judged.
 */
static uint64_t overdue_at_ns(const struct td_duty *duty, const struct td_duty_params *params,
	const struct td_duty_input *input)
{
	uint64_t allowed = allowed_ns(duty, params);

	if (!duty->baseline_ns || duty->phase == TD_DUTY_FLOOR || duty->phase == TD_DUTY_FREE ||
		!input->busy || !input->step_began_ns ||
		allowed >= UINT64_MAX - input->step_began_ns)
		return UINT64_MAX;
	return input->step_began_ns + allowed + 1;
}

/* Ends a step, or what was taken for one, and decides whether besteffort work made it too long. */
static void begin_step(struct td_duty *duty, const struct td_duty_params *params,
	const struct td_duty_input *input, uint64_t now_ns)
{
	uint64_t took_ns = input->step_began_ns > duty->began_ns && duty->began_ns
				   ? input->step_began_ns - duty->began_ns
				   : 0;
	struct td_duty_unit undo = duty->undo;

	duty->began_ns = input->step_began_ns;
	duty->undo.baseline_ns = 0;
	if (input->steps == duty->steps_seen)
		duty->skip = false; /* the step that was to be skipped has ended */
	if (undo.baseline_ns && !is_besteffort_to_blame(duty, undo.duty_ppm, took_ns)) {
		td_duty_go_on_from(duty, &undo);
		note_other(duty, params, now_ns);
	}
}

uint64_t td_duty_wakeup_ns(const struct td_duty *duty, const struct td_duty_params *params,
	const struct td_duty_input *input, uint64_t now_ns)
{
	uint64_t at = overdue_at_ns(duty, params, input);

	return at > now_ns ? at : UINT64_MAX;
}

/*
 * Tells whether the job pauses within a step that makes the baseline, and the pause is still short.
 */
static bool is_first_pause(
	const struct td_duty *duty, const struct td_duty_input *input, uint64_t now_ns)
{
	return duty->phase == TD_DUTY_FLOOR && !duty->baseline_ns && input->step_ns &&
	       duty->first_steps < FIRST_STEPS && now_ns - duty->unit_since_ns < EMPTY_MAX_NS &&
	       duty->empty_steps < EMPTY_STEPS_MAX && input->step_began_ns <= now_ns &&
	       (now_ns - input->step_began_ns) / FIRST_PAUSE < input->step_ns;
}

struct td_duty_output td_duty_step(struct td_duty *duty, const struct td_duty_params *params,
	const struct td_duty_input *input, uint64_t now_ns)
{
	if (!input->guaranteed) {
		duty->phase = TD_DUTY_FREE;
		return (struct td_duty_output){PPM, PPM};
	}
	if (duty->phase == TD_DUTY_FREE || duty->job != input->job)
		arrive(duty, params, input, now_ns);
	if (input->company > duty->company)
		td_duty_begin_company(duty, params);
	duty->company = input->company;
	if (input->unit != duty->unit)
		td_duty_change_unit(duty, params, input->unit, now_ns);
	if (input->steps != duty->steps_seen && input->step_ns)
		change_level(duty, params, input);
	if (input->step_began_ns != duty->began_ns)
		begin_step(duty, params, input, now_ns);
	if (input->steps != duty->steps_seen && input->step_ns)
		observe(duty, params, input, now_ns);
	if (input->host_bytes && duty->memory_ppm) {
		cut(duty, params, 0);
		duty->memory_ppm = 0;
		duty->skip = true;
	}
	if (overdue_at_ns(duty, params, input) <= now_ns) {
		struct td_duty_unit undo = td_duty_present(duty);

		cut(duty, params, 0);
		duty->undo = undo;
		duty->skip = true;
	}
	return (struct td_duty_output){
		input->busy || is_first_pause(duty, input, now_ns) ? duty->duty_ppm : PPM,
		duty->memory_ppm,
	};
}
