/* Implements figures.h. */
#include "gpu/figures.h"

static const struct td_figure *newest(const struct td_figures *figures, uint32_t back)
{
	return &figures->ring[(figures->next + TD_FIGURES_KEPT - 1 - back) % TD_FIGURES_KEPT];
}

void td_figures_add(struct td_figures *figures, const struct td_figure *figure)
{
	if (figures->count && figure->time_ns < newest(figures, 0)->time_ns)
		return;
	figures->ring[figures->next] = *figure;
	figures->next = (figures->next + 1) % TD_FIGURES_KEPT;
	figures->count += figures->count < TD_FIGURES_KEPT;
}

struct td_figures_mean td_figures_mean(const struct td_figures *figures, uint64_t since_ns)
{
	struct td_figures_mean mean = {.least_mhz = UINT32_MAX};
	uint64_t utilisation = 0, mhz = 0;

	for (uint32_t i = 0; i < figures->count; i++) {
		const struct td_figure *figure = newest(figures, i);

		if (figure->time_ns <= since_ns)
			break;
		mean.samples++;
		utilisation += figure->utilisation_ppm;
		mhz += figure->sm_mhz;
		mean.throttle |= figure->throttle;
		if (figure->sm_mhz < mean.least_mhz)
			mean.least_mhz = figure->sm_mhz;
	}
	if (!mean.samples)
		return (struct td_figures_mean){0};
	mean.utilisation_ppm = (uint32_t)(utilisation / mean.samples);
	mean.sm_mhz = (uint32_t)(mhz / mean.samples);
	return mean;
}
