/*
 * PID controller of a duty, as MuxFlow uses it on the GPU load.
 *
 * Purpose. MuxFlow (4.1) delays launches of offline work while the GPU load U_GPU (load_factor.h)
 * exceeds what the online workload can bear, and launches more while the load is lower: "as the GPU
 * load may change rapidly, xCUDA leverages the PID algorithm". Here the measured value is U_GPU,
 * the set point is the load to hold, and the output is the offline work's duty in ppm of the GPU's
 * time.
 *
 *   e(t)  = set_point - measured
 *   duty  = clamp(bias + kp e + I - kd d(measured)/dt, min, max),   dI/dt = ki e
 *
 * The paper gives no gains and calls its parameters "empirically selected"; here they are
 * parameters. Three choices are open in the paper and follow the textbook:
 * - the derivative is of the measurement, not of the error, so that a changed set point is no kick;
 * - anti-windup by conditional integration: while the output is at a bound, the integral does not
 *   move further beyond it. A GPU that was overloaded for an hour gets its duty back as fast as one
 *   that was overloaded for a second;
 * - a gap in the samples counts as at most max_gap_ns, so that a suspended daemon does not
 *   integrate over its sleep.
 *
 * Invariants
 * - min_ppm <= duty <= max_ppm, whatever is measured; a measurement beyond a million counts as a
 *   million;
 * - a measurement that is not finite changes nothing, and neither does a step without time passed;
 * - the first step is proportional only: there is no interval to integrate over;
 * - same sequence of calls, same duties.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct td_pid_params {
	double set_point;
	double kp;         /* duty (1 = all of the time) per unit of error */
	double ki;         /* duty per unit of error and second */
	double kd;         /* duty per unit of measurement per second */
	uint32_t bias_ppm; /* the duty at an error of 0 with no history */
	uint32_t min_ppm, max_ppm;
	uint64_t max_gap_ns; /* a longer interval between samples counts as this */
};

/*
 * Holds U_GPU at 0.9, in the range of MuxFlow's deployment: its section 7.5 reports a mean
 * utilisation of 76 %.
 */
#define TD_PID_MUXFLOW                                                                             \
	{                                                                                          \
		.set_point = 0.9, .kp = 0.5, .ki = 2, .max_ppm = 1000000, .max_gap_ns = 1000000000 \
	}
extern const struct td_pid_params td_pid_muxflow;

/* A zeroed struct is a controller that has seen no sample. */
struct td_pid {
	bool primed;
	double integral; /* share of the time, 1 = all of it */
	double last_measured;
	uint64_t last_ns;
	uint32_t duty_ppm;
};

/* Returns the duty until the next step, in ppm. */
uint32_t td_pid_step(
	struct td_pid *pid, const struct td_pid_params *params, double measured, uint64_t now_ns);
