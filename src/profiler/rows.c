/* Rows of the store from a run, and how fast one program was beside another; program.h. */
#include <stdio.h>
#include <string.h>

#include "profiler/figures.h"
#include "profiler/program.h"

#define PPM 1e6
#define S   1e9
/* If the detected steps are less sure than this, they may not be steps at all. */
#define STEPS_SURE 0.8
#define STEPS_MIN  5 /* fewer in a run are too coarse for a rate */

void td_program_of(const struct td_figures *f, const char *name, const char *command,
	int64_t time_s, struct td_program *ret)
{
	double ns = f->span_ns ? (double)f->span_ns : 1;
	bool has_steps = f->steps >= STEPS_MIN && f->step_sure_ppm / PPM >= STEPS_SURE;

	*ret = (struct td_program){
		.runs = 1,
		.time_s = time_s,
		.seconds = (double)f->span_ns / S,
		.utilisation = (double)f->used_ns / ns,
		.sm_activity = (double)f->active_ns / ns,
		.core_demand = f->core_ns / ns,
		.duty = f->duty_ns / ns,
		.launches_per_s = (double)f->launches / ns * S,
		.steps_per_s = has_steps ? (double)f->steps / ns * S : 0,
		.step_s = has_steps ? (double)f->step_ns / S : 0,
		.step_sure = has_steps ? f->step_sure_ppm / PPM : 0,
		.p99_s = (double)f->p99_ns / S,
		.requests_per_s = (double)f->rate_milli / 1e3,
		.peak_bytes = f->peak_bytes,
		.resident_bytes = f->resident_bytes,
	};
	snprintf(ret->gpu, sizeof(ret->gpu), "%.*s", (int)sizeof(ret->gpu) - 1, f->gpu_name);
	snprintf(ret->name, sizeof(ret->name), "%s", name);
	snprintf(ret->command, sizeof(ret->command), "%s", command);
}

double td_program_speed(const struct td_program *alone, const struct td_program *shared)
{
	if (alone->steps_per_s > 0 && shared->steps_per_s > 0)
		return shared->steps_per_s / alone->steps_per_s;
	return alone->launches_per_s > 0 ? shared->launches_per_s / alone->launches_per_s : 0;
}

char *td_program_command(char *buf, unsigned long len, char *const *argv)
{
	size_t used = 0;

	*buf = 0;
	for (; *argv && used + 1 < len; argv++) {
		int n = snprintf(buf + used, len - used, "%s%s", used ? " " : "", *argv);

		used += n > 0 ? (size_t)n : 0;
	}
	return buf;
}
