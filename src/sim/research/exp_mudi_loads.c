/*
 * Adds the rows of mudi-sim's Fig. 15: whose violations grow least with the load; see mudi_world.h.
 */
#include <string.h>

#include "sim/worlds/mudi_world.h"

/*
 * Tells whether Mudi's violations grow least in that seed. Equal growth of another system does not
 * count against it.
 */
static bool is_slowest(const struct td_mudi_outcome *low, const struct td_mudi_outcome *high)
{
	double mudi = high->late[TD_MUDI_ITSELF] - low->late[TD_MUDI_ITSELF];

	for (int p = 0; p < TD_MUDI_ITSELF; p++)
		if (!(mudi < high->late[p] - low->late[p]))
			return false;
	return true;
}

void td_mudi_put_loads(struct td_experiment_run *run, enum td_variant variant,
	const struct td_mudi_outcome *low, const struct td_mudi_outcome *high)
{
	double rise[TD_MUDI_POLICIES] = {0}, slow[TD_MUDI_POLICIES] = {0},
	       of_mudi[TD_MUDI_SEEDS_MAX];
	struct td_seeds seeds = {0};
	char metric[96], spread[64],
		note[160] = "order in every seed; means over seeds, percentage points; "
			    "tandem last; spread: Mudi's";

	for (uint32_t s = 0; s < run->seeds; s++) {
		for (int p = 0; p < TD_MUDI_POLICIES; p++) {
			rise[p] += (high[s].late[p] - low[s].late[p]) / run->seeds;
			slow[p] += high[s].ct_s[p] / low[s].ct_s[p] / run->seeds;
		}
		of_mudi[s] = high[s].late[TD_MUDI_ITSELF] - low[s].late[TD_MUDI_ITSELF];
		td_seed_add(&seeds, is_slowest(&low[s], &high[s]), false);
	}
	td_spread(of_mudi, run->seeds, spread);
	td_seeds_put(&seeds, note, sizeof(note));
	snprintf(metric, sizeof(metric),
		"rise of violations, load 1 to 4 (Fig. 15), %s: GSLICE, gpulets, MuxFlow, Mudi",
		td_variant_names[variant]);
	td_row_put(run, TD_SHOWN, metric, "slowest rise", spread, note,
		"%.4f, %.4f, %.4f, %.4f; %.4f", rise[TD_MUDI_GSLICE], rise[TD_MUDI_GPULETS],
		rise[TD_MUDI_MUXFLOW], rise[TD_MUDI_ITSELF], rise[TD_MUDI_TANDEM]);
	td_row_claim(run, TD_CLAIM_MUDI_LOADS, variant, &seeds);
	snprintf(metric, sizeof(metric),
		"CT at load 4 / load 1, %s: GSLICE, gpulets, MuxFlow, Mudi; tandem",
		td_variant_names[variant]);
	td_row_put(run, TD_SHOWN, metric, "", "", "", "%.2f, %.2f, %.2f, %.2f; %.2f",
		slow[TD_MUDI_GSLICE], slow[TD_MUDI_GPULETS], slow[TD_MUDI_MUXFLOW],
		slow[TD_MUDI_ITSELF], slow[TD_MUDI_TANDEM]);
}
