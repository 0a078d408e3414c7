/*
 * The kinds of steps that duty.c knows, of which one is the present kind. Internal to duty.c.
 *
 * Purpose. A kind is a unit, as the job names it, and a level, which is how long the steps are. A
 * job whose steps take 400 ms for some time, then 260, then 400 again (its data vary) has two
 * levels. Each keeps its own baseline, duty and failed duty. Otherwise each change from the shorter
 * to the longer level would look like harm, and what was found out at one would be lost at the
 * other.
 *
 * - A level begins where steps change for good: a round that is much shorter, which besteffort work
 *   cannot cause; rounds at the floor that stay long; or many steps longer than besteffort work can
 *   make them.
 * - A single step that is like those of a known level, and unlike the present ones, belongs to that
 *   level. A shorter one always counts. A longer one counts if it was made at the floor, if
 *   besteffort work cannot have made it so long, or if the level has been met often. Each time the
 *   number of meetings is a power of two, the floor is measured again.
 */
#pragma once

#include "policy/algo/control/duty.h"

#define TD_DUTY_PPM 1000000u
/* A step that is off by more than this many times the noise is not explained by noise. */
#define TD_DUTY_OUTLIER 5

static inline uint64_t td_duty_add(uint64_t a, uint64_t b)
{
	return b > UINT64_MAX - a ? UINT64_MAX : a + b;
}

static inline uint64_t td_duty_with_slack(uint64_t ns, uint32_t slack_ppm)
{
	return td_duty_add(
		ns, ns / TD_DUTY_PPM * slack_ppm + ns % TD_DUTY_PPM * slack_ppm / TD_DUTY_PPM);
}

static inline uint32_t td_duty_floor_ppm(const struct td_duty_params *params)
{
	return params->floor_ppm && params->floor_ppm <= TD_DUTY_PPM ? params->floor_ppm : 1;
}

/*
 * td_duty_present() copies the findings about the present kind; td_duty_go_on_from() makes others
 * the present ones.
 */
struct td_duty_unit td_duty_present(const struct td_duty *duty);
void td_duty_go_on_from(struct td_duty *duty, const struct td_duty_unit *unit);

/* Changes to another unit. If the unit is new, nothing is known about its steps. */
void td_duty_change_unit(
	struct td_duty *duty, const struct td_duty_params *params, uint32_t unit, uint64_t now_ns);

/*
 * Tells all kinds that another besteffort job has come. No kind's duty has been proven beside it,
 * so all begin again at the floor and double to what they had reached.
 */
void td_duty_begin_company(struct td_duty *duty, const struct td_duty_params *params);

/*
 * Returns the highest duty allowed at the present level. Where levels alternate, it is the duty
 * that a shorter level had lately, because the first step of that level runs with the present duty.
 */
uint32_t td_duty_most_ppm(const struct td_duty *duty);

/* Tells whether the step is further from the baseline than a single step may be. */
bool td_duty_is_off(
	const struct td_duty *duty, const struct td_duty_params *params, uint64_t step_ns);

/*
 * Tells whether rounds with this median are too far from the baseline to be of the present level.
 */
bool td_duty_is_another_level(
	const struct td_duty *duty, const struct td_duty_params *params, uint64_t median_ns);

/*
 * Begins a level whose steps take median_ns; the present level stays known. The new one starts at
 * the floor and doubles to what was reached.
 */
void td_duty_begin_level(
	struct td_duty *duty, const struct td_duty_params *params, uint64_t median_ns);

/* Returns the known level that the step belongs to; NULL: the present level or an unknown one. */
const struct td_duty_unit *td_duty_find_level(
	const struct td_duty *duty, const struct td_duty_params *params, uint64_t step_ns);

/*
 * Tells whether the job has returned to the level often enough that no round at the floor is needed
 * to confirm it.
 */
bool td_duty_is_trusted(const struct td_duty_unit *level);

/* Makes a known level the present one. The findings about the former level are kept. */
void td_duty_change_level(struct td_duty *duty, const struct td_duty_unit *level);
