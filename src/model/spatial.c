/* Computes the speeds of kernels that run side by side; see spatial.h. */
#include "model/spatial.h"

#include <assert.h>
#include <math.h>

#include "model/gpu_spec.h"

/*
 * On every GPU of the table two SMs form a texture processing cluster, which is the unit of a
 * share.
 */
#define SMS_PER_UNIT 2u
/*
 * A percentage has few digits: 1 unit of 54 is given as 1.85 %, and must not be rounded down to 0.
 */
#define ROUNDING 1e-6

/*
 * Raises a common level until the parts fill 1. Each round meets all demands that are below an
 * equal part of the rest.
 */
void td_fair_parts(const double *demands, uint32_t count, double *ret_parts)
{
	double rest = 1, level = 0;
	uint32_t open = count;
	bool settled = true;

	for (uint32_t i = 0; i < count; i++)
		ret_parts[i] = -1;
	while (open && settled) {
		settled = false;
		level = fmax(0, rest) / open;
		for (uint32_t i = 0; i < count; i++) {
			if (ret_parts[i] >= 0 || demands[i] > level)
				continue;
			ret_parts[i] = demands[i];
			rest -= demands[i];
			open--;
			settled = true;
		}
	}
	for (uint32_t i = 0; i < count; i++)
		if (ret_parts[i] < 0)
			ret_parts[i] = level;
}

static double want_of(const struct td_spatial_user *user)
{
	return fmin(user->need, user->cap);
}

void td_spatial_speeds(const struct td_spatial_user *users, uint32_t count, double *ret_speeds)
{
	double asked[TD_SPATIAL_MAX] = {0}, parts[TD_SPATIAL_MAX];

	assert(count <= TD_SPATIAL_MAX);
	for (uint32_t i = 0; i < count; i++)
		asked[i] = want_of(&users[i]);
	td_fair_parts(asked, count, parts);
	for (uint32_t i = 0; i < count; i++) {
		ret_speeds[i] = users[i].need > 0 ? fmin(1, parts[i] / users[i].need) : 1;
		asked[i] = users[i].bandwidth * ret_speeds[i];
	}
	td_fair_parts(asked, count, parts);
	for (uint32_t i = 0; i < count; i++)
		if (asked[i] > 0)
			ret_speeds[i] *= fmin(1, parts[i] / asked[i]);
}

double td_spatial_spare_speed(
	const struct td_spatial_user *others, uint32_t count, const struct td_spatial_user *user)
{
	double sms = 1, bandwidth = 1, speed;

	for (uint32_t i = 0; i < count; i++) {
		sms -= want_of(&others[i]);
		bandwidth -= others[i].bandwidth;
	}
	sms = fmin(fmax(0, sms), want_of(user));
	speed = user->need > 0 ? fmin(1, sms / user->need) : 1;
	if (user->bandwidth > 0)
		speed = fmin(speed, fmax(0, bandwidth) / user->bandwidth);
	return speed;
}

static uint32_t units_in(const struct td_gpu_spec *spec)
{
	uint32_t units = spec->sm_count / SMS_PER_UNIT;

	return units ? units : 1;
}

static uint32_t sms_of_units(const struct td_gpu_spec *spec, double units)
{
	uint32_t all = units_in(spec);

	if (units >= all)
		return spec->sm_count;
	return (units < 1 ? 1 : (uint32_t)units) * (spec->sm_count / all);
}

uint32_t td_spatial_sms_of_percentage(const struct td_gpu_spec *spec, double percentage)
{
	return sms_of_units(spec, floor(percentage / 100 * units_in(spec) + ROUNDING));
}

uint32_t td_spatial_sms_of_affinity(const struct td_gpu_spec *spec, uint32_t sm_count)
{
	return sms_of_units(spec, (sm_count + SMS_PER_UNIT - 1) / SMS_PER_UNIT);
}
