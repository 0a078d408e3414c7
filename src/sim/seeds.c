/* Verdicts over seeds; see experiment.h. */
#include <string.h>

#include "sim/experiment.h"

void td_seed_add(struct td_seeds *seeds, bool holds, bool forbidden)
{
	seeds->lost += !holds;
	seeds->forbidden += !holds && forbidden;
}

enum td_verdict td_seeds_verdict(const struct td_seeds *seeds)
{
	if (!seeds->lost)
		return TD_REPRODUCED;
	return seeds->forbidden == seeds->lost ? TD_BOUNDED : TD_NOT_REPRODUCED;
}

void td_seeds_put(const struct td_seeds *seeds, char *note, size_t size)
{
	size_t at = strlen(note);

	if (seeds->lost)
		snprintf(note + at, size - at, "; a bound forbids %u of the %u seeds that lose",
			seeds->forbidden, seeds->lost);
}
