/* Chooses the device with the least slope; see selector.h. */
#include "policy/algo/fit/selector.h"

#include <math.h>

const uint32_t td_selector_batches[TD_SELECTOR_BATCHES] = {16, 32, 64, 128, 256, 512};

double td_selector_score(const struct td_curve *curves, uint32_t count)
{
	double sum = 0;

	for (uint32_t i = 0; i < count; i++)
		sum += td_curve_mean_slope(&curves[i]);
	return count ? sum / count : INFINITY;
}

uint32_t td_selector_choose(const struct td_selector_device *devices, uint32_t count,
	const double *scores, uint64_t needed_bytes, uint32_t tasks_max)
{
	uint32_t best = UINT32_MAX, fewest = 0;
	double least = INFINITY;

	for (uint32_t d = 0; d < count; d++) {
		const struct td_selector_device *device = &devices[d];
		double score = scores[device->service];
		bool is_tie = !(score > least) & (device->tasks < fewest);

		/* One jump, which is nearly always taken where there are many devices. */
		if (!((score < least) | is_tie))
			continue;
		if (!device->accepts || device->tasks >= tasks_max ||
			device->free_bytes < needed_bytes || !isfinite(score))
			continue;
		best = d;
		least = score;
		fewest = device->tasks;
	}
	return best;
}
