/* AntMan's coordinator of one GPU; see antman.h. */
#include "policy/system/antman.h"

#include <errno.h>
#include <string.h>

#define PPM 1000000u

const struct td_antman_gpu_params td_antman_gpu_default = {
	.duty = TD_DUTY_DEFAULT,
	.trial = {.chunk_min_bytes = 128ull << 20, .margin = 0.01},
};

/* Divides `bytes` in proportion to the demands. No job gets more than its demand. */
static void share_out(const struct td_antman_gpu_input *input, uint64_t bytes,
	struct td_antman_gpu_output *output)
{
	double demand = 0;

	for (uint32_t i = 0; i < input->besteffort_count; i++)
		demand += (double)input->besteffort[i].demand_bytes;
	for (uint32_t i = 0; i < input->besteffort_count; i++) {
		uint64_t wanted = input->besteffort[i].demand_bytes;

		output->limit_bytes[i] =
			demand <= (double)bytes
				? wanted
				: (uint64_t)((double)wanted / demand * (double)bytes * (1 - 1e-9));
	}
}

int td_antman_gpu_step(struct td_antman_gpu *gpu, const struct td_antman_gpu_params *params,
	const struct td_antman_gpu_input *input, uint64_t now_ns,
	struct td_antman_gpu_output *ret_output)
{
	struct td_duty_output duty;
	uint64_t spare;

	if (input->besteffort_count > TD_MEMORY_TRIAL_JOBS_MAX)
		return -EINVAL;
	duty = td_duty_step(&gpu->duty, &params->duty, &input->guaranteed, now_ns);
	ret_output->duty_ppm = duty.duty_ppm;
	if (!input->guaranteed.guaranteed && input->besteffort_count > 1) {
		if (input->window_over || gpu->trial.count != input->besteffort_count) {
			int r = td_memory_trial_step(&gpu->trial, &params->trial,
				input->capacity_bytes, input->besteffort, input->besteffort_count);

			if (r < 0)
				return r;
		}
		memcpy(ret_output->limit_bytes, gpu->trial.limit_bytes,
			input->besteffort_count * sizeof(uint64_t));
		return 0;
	}
	gpu->trial.count = 0; /* a job has come or gone, so the trials begin anew */
	spare = input->capacity_bytes > input->guaranteed_bytes
			? input->capacity_bytes - input->guaranteed_bytes
			: 0;
	share_out(input, spare / PPM * duty.memory_ppm + spare % PPM * duty.memory_ppm / PPM,
		ret_output);
	return 0;
}
