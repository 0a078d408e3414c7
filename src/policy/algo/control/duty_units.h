/*
 * duty.c's: what is known of steps of several kinds, of which one is the present one.
 *
 * Kinds are told apart by the unit that the steps are said to be of, and within a unit by how long they are: a job whose steps take 400 ms for some time, then 260, then 400 again
 * (its pauses, its data vary) has two levels. Each keeps its baseline, its duty, and what failed there; else each change from the shorter to the longer one would look like harm,
 * and what was found out at one would be lost at the other.
 *
 *  - a level begins where steps are another's for good: a round that is much shorter, as no besteffort work makes it so; rounds at the floor that stay long; or many steps that are longer than it can make them;
 *  - a single step that is like those of a known level, and not like the present ones, is of that level. No besteffort work makes one shorter. One that is longer counts if it was
 *    made at the floor, if besteffort work cannot have made it so long, or if the level has been met often: each time that it has been so often as a power of two it is looked at at the floor again.
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

/* All kinds: another besteffort job has come. What was reached with less of it, or with nothing to be seen, is no measure of what is borne now. */
void td_duty_begin_company(struct td_duty *duty, const struct td_duty_params *params);

/* The most that the present level's duty may be: what a shorter one has reached lately, as the first step of that one is made with it. Only where they change to and fro. */
uint32_t td_duty_most_ppm(const struct td_duty *duty);

/* Is it further from the baseline than a single step may be? */
bool td_duty_is_off(
	const struct td_duty *duty, const struct td_duty_params *params, uint64_t step_ns);

/* Rounds of such a median are too far from the present baseline to be of its level. */
bool td_duty_is_another_level(
	const struct td_duty *duty, const struct td_duty_params *params, uint64_t median_ns);

/* The present level stays known, and another one begins whose steps take so long: at the floor, from where the duty doubles to what was reached. */
void td_duty_begin_level(
	struct td_duty *duty, const struct td_duty_params *params, uint64_t median_ns);

/* The level that the step is of, if that is not the present one; NULL: none that is known. */
const struct td_duty_unit *td_duty_find_level(
	const struct td_duty *duty, const struct td_duty_params *params, uint64_t step_ns);

/* It has been met so often that a step like its is believed to be of it without a look at the floor. */
bool td_duty_is_trusted(const struct td_duty_unit *level);

/* To one that was found; what is known of the present one is kept. */
void td_duty_change_level(struct td_duty *duty, const struct td_duty_unit *level);
