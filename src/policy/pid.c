/* PID with conditional integration; see pid.h. */
#include "policy/pid.h"

#include <math.h>

#define PPM 1e6
#define S   1e9

const struct td_pid_params td_pid_muxflow = TD_PID_MUXFLOW;

static uint32_t clamp_ppm(const struct td_pid_params *params, double duty)
{
	double ppm = duty * PPM;

	if (ppm <= params->min_ppm)
		return params->min_ppm;
	return ppm >= params->max_ppm ? params->max_ppm : (uint32_t)ppm;
}

/* The output would lie beyond a bound and the error pushes it further. */
static bool winds_up(const struct td_pid_params *params, double duty, double error)
{
	return (error > 0 && duty * PPM > params->max_ppm) ||
	       (error < 0 && duty * PPM < params->min_ppm);
}

uint32_t td_pid_step(
	struct td_pid *pid, const struct td_pid_params *params, double measured, uint64_t now_ns)
{
	double error, duty, dt = 0, slope = 0;

	if (!isfinite(measured) || (pid->primed && now_ns <= pid->last_ns))
		return pid->primed ? pid->duty_ppm : clamp_ppm(params, params->bias_ppm / PPM);
	error = params->set_point - measured;
	if (pid->primed) {
		uint64_t gap_ns = now_ns - pid->last_ns;

		dt = (double)(gap_ns < params->max_gap_ns ? gap_ns : params->max_gap_ns) / S;
		slope = dt > 0 ? (measured - pid->last_measured) / dt : 0;
	}
	duty = params->bias_ppm / PPM + params->kp * error + pid->integral - params->kd * slope;
	if (!winds_up(params, duty + params->ki * error * dt, error)) {
		pid->integral += params->ki * error * dt;
		duty += params->ki * error * dt;
	}
	pid->primed = true;
	pid->last_measured = measured;
	pid->last_ns = now_ns;
	pid->duty_ppm = clamp_ppm(params, duty);
	return pid->duty_ppm;
}
