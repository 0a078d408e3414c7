/* PID with conditional integration; see pid.h. */
#include "policy/algo/control/pid.h"

#include <math.h>

#define PPM 1e6
#define S   1e9

/*
 * Measured values are loads and latencies relative to 1. No real one reaches this bound, and no
 * product of it with a gain overflows.
 */
#define MEASURED_MAX 1e6

const struct td_pid_params td_pid_muxflow = TD_PID_MUXFLOW;

static uint32_t clamp_ppm(const struct td_pid_params *params, double duty)
{
	double ppm = duty * PPM;

	if (ppm <= params->min_ppm)
		return params->min_ppm;
	return ppm >= params->max_ppm ? params->max_ppm : (uint32_t)ppm;
}

/*
 * Moves the integral by at most the output's range. Does not move it further where the output is at
 * its bound already (anti-windup).
 */
static double integrate(const struct td_pid_params *params, double duty, double step)
{
	double room;

	if (step > 0)
		room = fmax(params->max_ppm / PPM - duty, 0);
	else
		room = fmin(params->min_ppm / PPM - duty, 0);
	return fabs(step) < fabs(room) ? step : room;
}

uint32_t td_pid_step(
	struct td_pid *pid, const struct td_pid_params *params, double measured, uint64_t now_ns)
{
	double error, duty, dt = 0, slope = 0, moved;

	if (!isfinite(measured) || (pid->primed && now_ns <= pid->last_ns))
		return pid->primed ? pid->duty_ppm : clamp_ppm(params, params->bias_ppm / PPM);
	measured = fmax(-MEASURED_MAX, fmin(MEASURED_MAX, measured));
	error = params->set_point - measured;
	if (pid->primed) {
		uint64_t gap_ns = now_ns - pid->last_ns;

		dt = (double)(gap_ns < params->max_gap_ns ? gap_ns : params->max_gap_ns) / S;
		slope = dt > 0 ? (measured - pid->last_measured) / dt : 0;
	}
	duty = params->bias_ppm / PPM + params->kp * error + pid->integral - params->kd * slope;
	moved = integrate(params, duty, params->ki * error * dt);
	pid->integral += moved;
	duty += moved;
	pid->primed = true;
	pid->last_measured = measured;
	pid->last_ns = now_ns;
	pid->duty_ppm = clamp_ppm(params, duty);
	return pid->duty_ppm;
}
