/* Keeps what duty.c knows of each kind of steps; see duty_units.h. */
#include "policy/algo/control/duty_units.h"

#include <stddef.h>

/*
 * The count of returns to a level is halved when it reaches this number. So a level that the job
 * often returns to is still measured at the floor now and then.
 */
#define MET_MAX 32
/* Two levels differ by at least this many times what a single step may be off. */
#define LEVEL_TIMES 2
/*
 * A level that was left this many steps ago is not expected back, since one step of 100 may be too
 * long by chance.
 */
#define RECENT_STEPS 512

struct td_duty_unit td_duty_present(const struct td_duty *duty)
{
	uint32_t duty_ppm = duty->look_ppm ? duty->look_ppm : duty->duty_ppm;

	return (struct td_duty_unit){duty->unit, duty_ppm, duty->caution_ppm, duty->hold_rounds,
		duty->failed_ppm, duty->met, duty->held_rounds, duty->foretold_rounds,
		duty->foretold_hold, duty->steps_seen, duty->baseline_ns, duty->noise_ns,
		duty->baseline_most_ns, duty->floor_ns, duty->failed_ns};
}

void td_duty_go_on_from(struct td_duty *duty, const struct td_duty_unit *unit)
{
	duty->unit = unit->unit;
	duty->duty_ppm = unit->duty_ppm;
	duty->caution_ppm = unit->caution_ppm;
	duty->hold_rounds = unit->hold_rounds;
	duty->met = unit->met;
	duty->baseline_ns = unit->baseline_ns;
	duty->noise_ns = unit->noise_ns;
	duty->baseline_most_ns = unit->baseline_most_ns;
	duty->floor_ns = unit->floor_ns;
	duty->failed_ppm = unit->failed_ppm;
	duty->failed_ns = unit->failed_ns;
	duty->held_rounds = unit->held_rounds;
	duty->times = duty->long_rounds = duty->above_rounds = 0;
	duty->look_ppm = 0;
	duty->foretold_rounds = unit->foretold_rounds;
	duty->foretold_hold = unit->foretold_hold;
	duty->average = (struct td_duty_average){0};
	duty->before_cut.baseline_ns = 0;
	duty->phase = duty->memory_ppm == TD_DUTY_PPM ? TD_DUTY_COMPUTE : TD_DUTY_MEMORY;
}

/* Returns how far a single step may be off its baseline. */
static uint64_t reach_ns(
	const struct td_duty_params *params, uint64_t baseline_ns, uint64_t noise_ns)
{
	uint64_t slack = td_duty_with_slack(baseline_ns, params->slack_ppm) - baseline_ns;

	return slack > TD_DUTY_OUTLIER * noise_ns ? slack : TD_DUTY_OUTLIER * noise_ns;
}

uint32_t td_duty_most_ppm(const struct td_duty *duty)
{
	uint32_t most = TD_DUTY_PPM;

	for (uint32_t i = 0; i < TD_DUTY_UNITS; i++) {
		const struct td_duty_unit *level = &duty->units[i];
		uint32_t reached =
			level->caution_ppm > level->duty_ppm ? level->caution_ppm : level->duty_ppm;

		if (level->baseline_ns && level->unit == duty->unit &&
			level->baseline_ns < duty->baseline_ns && level->met + duty->met &&
			duty->steps_seen - level->left_steps < RECENT_STEPS && reached < most)
			most = reached;
	}
	return most;
}

static uint64_t distance_ns(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

bool td_duty_is_another_level(
	const struct td_duty *duty, const struct td_duty_params *params, uint64_t median_ns)
{
	return duty->baseline_ns && distance_ns(median_ns, duty->baseline_ns) / LEVEL_TIMES >
					    reach_ns(params, duty->baseline_ns, duty->noise_ns);
}

bool td_duty_is_off(
	const struct td_duty *duty, const struct td_duty_params *params, uint64_t step_ns)
{
	return distance_ns(step_ns, duty->baseline_ns) >
	       reach_ns(params, duty->baseline_ns, duty->noise_ns);
}

static bool is_like(
	const struct td_duty_unit *level, const struct td_duty_params *params, uint64_t step_ns)
{
	return distance_ns(step_ns, level->baseline_ns) <=
	       reach_ns(params, level->baseline_ns, level->noise_ns);
}

/* Returns the entry to use: that of the same length, a free one, or the next in turn. */
static struct td_duty_unit *place_for(
	struct td_duty *duty, const struct td_duty_params *params, const struct td_duty_unit *unit)
{
	struct td_duty_unit *free = NULL;

	for (uint32_t i = 0; i < TD_DUTY_UNITS; i++) {
		struct td_duty_unit *place = &duty->units[i];

		if (!place->baseline_ns)
			free = place;
		else if (place->unit == unit->unit && is_like(place, params, unit->baseline_ns))
			return place;
	}
	return free ? free : &duty->units[duty->next_unit++ % TD_DUTY_UNITS];
}

static void keep(
	struct td_duty *duty, const struct td_duty_params *params, const struct td_duty_unit *unit)
{
	if (unit->baseline_ns)
		*place_for(duty, params, unit) = *unit;
}

void td_duty_change_unit(
	struct td_duty *duty, const struct td_duty_params *params, uint32_t unit, uint64_t now_ns)
{
	struct td_duty_unit before = td_duty_present(duty),
			    fresh = {.unit = unit, .duty_ppm = td_duty_floor_ppm(params)};

	if (duty->undo.baseline_ns) {
		before.duty_ppm = duty->undo.duty_ppm;
		before.caution_ppm = duty->undo.caution_ppm;
		before.hold_rounds = duty->undo.hold_rounds;
	}
	for (uint32_t i = 0; i < TD_DUTY_UNITS; i++)
		if (duty->units[i].baseline_ns && duty->units[i].unit == unit) {
			fresh = duty->units[i];
			duty->units[i] = (struct td_duty_unit){0};
			break;
		}
	keep(duty, params, &before);
	td_duty_go_on_from(duty, &fresh);
	if (!fresh.baseline_ns)
		duty->phase = TD_DUTY_FLOOR;
	duty->length = duty->first_steps = 0;
	duty->unit_since_ns = now_ns;
	duty->undo.baseline_ns = 0;
	duty->skip = true;
}

static void come_back_in_steps(uint32_t *duty_ppm, uint32_t *caution_ppm, uint32_t floor)
{
	if (*duty_ppm <= floor)
		return;
	if (*caution_ppm < *duty_ppm)
		*caution_ppm = *duty_ppm;
	*duty_ppm = floor;
}

void td_duty_begin_company(struct td_duty *duty, const struct td_duty_params *params)
{
	uint32_t floor = td_duty_floor_ppm(params);

	if (duty->look_ppm)
		duty->duty_ppm = duty->look_ppm;
	duty->look_ppm = duty->times = 0;
	come_back_in_steps(&duty->duty_ppm, &duty->caution_ppm, floor);
	come_back_in_steps(&duty->undo.duty_ppm, &duty->undo.caution_ppm, floor);
	come_back_in_steps(&duty->before_cut.duty_ppm, &duty->before_cut.caution_ppm, floor);
	for (uint32_t i = 0; i < TD_DUTY_UNITS; i++)
		come_back_in_steps(&duty->units[i].duty_ppm, &duty->units[i].caution_ppm, floor);
}

/*
 * Returns the state before the present level. It skips a cut that a step of another level has
 * caused.
 */
static struct td_duty_unit before_level(const struct td_duty *duty)
{
	return duty->before_cut.baseline_ns ? duty->before_cut : td_duty_present(duty);
}

void td_duty_begin_level(
	struct td_duty *duty, const struct td_duty_params *params, uint64_t median_ns)
{
	struct td_duty_unit before = before_level(duty), fresh = {.unit = before.unit,
								 .duty_ppm = before.duty_ppm,
								 .baseline_ns = median_ns,
								 .baseline_most_ns = median_ns,
								 .noise_ns = duty->noise_ns};

	come_back_in_steps(&fresh.duty_ppm, &fresh.caution_ppm, td_duty_floor_ppm(params));
	keep(duty, params, &before);
	td_duty_go_on_from(duty, &fresh);
	duty->phase = TD_DUTY_FLOOR;
	duty->undo.baseline_ns = 0;
}

const struct td_duty_unit *td_duty_find_level(
	const struct td_duty *duty, const struct td_duty_params *params, uint64_t step_ns)
{
	const struct td_duty_unit *nearest = NULL;

	if (!duty->baseline_ns || !td_duty_is_off(duty, params, step_ns))
		return NULL;
	for (uint32_t i = 0; i < TD_DUTY_UNITS; i++) {
		const struct td_duty_unit *level = &duty->units[i];

		if (level->baseline_ns && level->unit == duty->unit &&
			is_like(level, params, step_ns) &&
			(!nearest || distance_ns(step_ns, level->baseline_ns) <
					     distance_ns(step_ns, nearest->baseline_ns)))
			nearest = level;
	}
	return nearest;
}

bool td_duty_is_trusted(const struct td_duty_unit *level)
{
	return level->met & (level->met - 1);
}

void td_duty_change_level(struct td_duty *duty, const struct td_duty_unit *level)
{
	struct td_duty_unit before = before_level(duty), after = *level;

	duty->units[level - duty->units] = before;
	after.met = after.met < MET_MAX ? after.met + 1 : MET_MAX / 2 + 1;
	td_duty_go_on_from(duty, &after);
	if (duty->duty_ppm > td_duty_most_ppm(duty))
		duty->duty_ppm = td_duty_most_ppm(duty);
	duty->length = 0;
	duty->undo.baseline_ns = 0;
	duty->skip = false;
	duty->other_steps = 0;
}
