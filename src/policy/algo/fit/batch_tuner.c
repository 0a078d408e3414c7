/* GP-LCB over batch sizes; see batch_tuner.h. */
#include "policy/algo/fit/batch_tuner.h"

#include <errno.h>
#include <math.h>
#include <string.h>

static const double lengths[] = {0.25, 0.5, 1, 2, 4};

int td_batch_tuner_init(struct td_batch_tuner *tuner, const uint32_t *batches, uint32_t count,
	double share, uint32_t iterations_max)
{
	if (count > TD_BATCH_CANDIDATES_MAX || !iterations_max ||
		iterations_max > TD_GP_SAMPLES_MAX || !isfinite(share))
		return -EINVAL;
	for (uint32_t i = 0; i < count; i++)
		if (!batches[i])
			return -EINVAL;
	memset(tuner, 0, sizeof(*tuner));
	tuner->gp.kernel = (struct td_gp_kernel){.length = 1, .noise = 1e-3};
	tuner->count = count;
	tuner->iterations_max = iterations_max;
	for (uint32_t i = 0; i < count; i++) {
		tuner->batches[i] = batches[i];
		tuner->points[i][0] = log2(batches[i]);
		tuner->points[i][1] = share;
	}
	return count ? 0 : 1;
}

uint32_t td_batch_tuner_propose(struct td_batch_tuner *tuner)
{
	uint32_t n = tuner->gp.count;
	double beta;

	if (!tuner->count)
		return 0;
	if (!n) {
		/* Without samples all bounds are equal: start in the middle. */
		tuner->proposed = tuner->count / 2;
		return tuner->batches[tuner->proposed];
	}
	beta = tuner->converged ? 0 : td_gp_beta(tuner->count, n);
	tuner->proposed = td_gp_least_bound(&tuner->gp, &tuner->points[0][0], tuner->count, beta);
	return tuner->batches[tuner->proposed];
}

void td_batch_tuner_observe(struct td_batch_tuner *tuner, double iteration_s)
{
	uint8_t *tried = &tuner->tried[tuner->proposed];

	if (tuner->converged || !tuner->count || !(iteration_s > 0) || !isfinite(iteration_s))
		return;
	/* The bound is least at a batch that was sampled before, and this sample confirms it. */
	tuner->converged = *tried > 0;
	if (*tried < UINT8_MAX)
		++*tried;
	(void)td_gp_add(&tuner->gp, tuner->points[tuner->proposed], iteration_s);
	td_gp_choose_length(&tuner->gp, lengths, sizeof(lengths) / sizeof(lengths[0]));
	tuner->converged |= tuner->gp.count == tuner->iterations_max;
}
