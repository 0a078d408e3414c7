/* Judges seeds; see experiment.h. */
#include <math.h>
#include <string.h>

#include "sim/report/experiment.h"

void td_seed_add_guarded(struct td_seeds *seeds, bool holds, bool guard, bool forbidden)
{
	bool lost = !holds || !guard;

	seeds->count++;
	seeds->lost += lost;
	seeds->unguarded += holds && !guard;
	seeds->forbidden += lost && forbidden;
}

void td_seed_add(struct td_seeds *seeds, bool holds, bool forbidden)
{
	td_seed_add_guarded(seeds, holds, true, forbidden);
}

enum td_verdict td_seeds_verdict(const struct td_seeds *seeds)
{
	if (!seeds->lost)
		return TD_REPRODUCED;
	return seeds->forbidden == seeds->lost ? TD_BOUNDED : TD_NOT_REPRODUCED;
}

void td_some_put(const double *values, const uint32_t *some, uint32_t count, const char *label,
	char *note, size_t size)
{
	double least = INFINITY, most = -INFINITY;
	uint32_t gained = 0;
	size_t at = strlen(note);

	for (uint32_t k = 0; k < count; k++) {
		double value = values[some[k]];

		least = fmin(least, value);
		most = fmax(most, value);
		gained += value > 1;
	}
	if (count == 1)
		snprintf(note + at, size - at, "%s %.3gx (%u)", label, least, gained);
	else
		snprintf(note + at, size - at, "%s %.3g to %.3gx (%u)", label, least, most, gained);
}

void td_seeds_put(const struct td_seeds *seeds, char *note, size_t size)
{
	size_t at = strlen(note);

	if (seeds->unguarded)
		at += snprintf(note + at, size - at, "; in %u the order holds, but not the guard",
			seeds->unguarded);
	if (seeds->lost && at < size)
		snprintf(note + at, size - at, "; a bound forbids %u of the %u seeds that lose",
			seeds->forbidden, seeds->lost);
}
