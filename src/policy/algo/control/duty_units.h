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
/* A single step that is off by so many times the noise is no noise. */
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

/* The present kind, as it is to be gone on from. */
struct td_duty_unit td_duty_present(const struct td_duty *duty);
void td_duty_go_on_from(struct td_duty *duty, const struct td_duty_unit *unit);

/* Steps of another unit from now on; of one that is new nothing is known. */
void td_duty_change_unit(
	struct td_duty *duty, const struct td_duty_params *params, uint32_t unit, uint64_t now_ns);

/*
 * Another besteffort job has come, in the company of which no kind's duty is proven. All kinds
 * begin again at the floor and double to what they had reached.
 */
void td_duty_begin_company(struct td_duty *duty, const struct td_duty_params *params);

/*
 * Returns the most that the present level's duty may be: the duty of a shorter level that was in
 * force lately, because the first step of that level is made with the present duty. Applies only
 * where levels alternate.
 */
uint32_t td_duty_most_ppm(const struct td_duty *duty);

/* Tells whether the step is further from the baseline than a single step may be. */
bool td_duty_is_off(
	const struct td_duty *duty, const struct td_duty_params *params, uint64_t step_ns);

/* Rounds of such a median are too far from the present baseline to be of its level. */
bool td_duty_is_another_level(
	const struct td_duty *duty, const struct td_duty_params *params, uint64_t median_ns);

/*
 * Begins a level whose steps take median_ns; the present level stays known. The new one starts at
 * the floor and doubles to what was reached.
 */
void td_duty_begin_level(
	struct td_duty *duty, const struct td_duty_params *params, uint64_t median_ns);

/* The level that the step is of, if that is not the present one; NULL: none that is known. */
const struct td_duty_unit *td_duty_find_level(
	const struct td_duty *duty, const struct td_duty_params *params, uint64_t step_ns);

/* Tells whether the level was met so often that a step like its own needs no proof at the floor. */
bool td_duty_is_trusted(const struct td_duty_unit *level);

/* Changes to a level that was found; the findings of the present one are kept. */
void td_duty_change_level(struct td_duty *duty, const struct td_duty_unit *level);
