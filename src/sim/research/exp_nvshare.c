/*
 * The experiment nvshare-table2 runs two copies of each of four programs on a P100, under policies
 * of src/policy on a simulated node.
 *
 * The table is the only data. A copy is a host block, then a GPU block, 50/50 or 10/90 of half the
 * sequential baseline. Four cells are calibrated and count for nothing: light_balanced under
 * KubeShare (overlap 1.24) and with the scheduler off (managed memory costs 4.5 %), heavy_balanced
 * off (thrashing, 8.0 x) and with a quantum of 30 s (2.08 s a hand-over, which includes the cost of
 * managed memory there). Everything else follows.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/err.h"
#include "base/time.h"
#include "model/gpu_spec.h"
#include "sim/engine/node.h"
#include "sim/report/experiment.h"

#define OVERLAP    1.24
#define MANAGED    1.045
#define THRASH     8.0
#define HANDOVER_S 2.08

static const struct {
	const char *name;
	double baseline_s, host_part, gib;
	bool heavy;
} programs[] = {
	{"light_balanced", 2636, 0.5, 7.2, false},
	{"light_intense", 1384, 0.1, 7.2, false},
	{"heavy_balanced", 2766, 0.5, 15.3, true},
	{"heavy_intense", 1438, 0.1, 15.3, true},
};

enum { KUBESHARE, OFF, TQ_1000, TQ_100, TQ_60, TQ_30, ROWS };

static const struct {
	const char *name;
	double quantum_s;  /* 0: all programs run at once */
	double paper_s[4]; /* 0: the program was out of memory */
	int calibrated;    /* one bit per program */
} rows[ROWS] = {
	[KUBESHARE] = {"KubeShare", 0, {1724, 1078, 0, 0}, 1},
	[OFF] = {"nvshare (scheduler off)", 0, {1772, 1128, 11757, 11434}, 1 | 4},
	[TQ_1000] = {"nvshare (1000)", 1000, {2053, 1361, 2043, 1380}, 0},
	[TQ_100] = {"nvshare (100)", 100, {2010, 1351, 2100, 1435}, 0},
	[TQ_60] = {"nvshare (60)", 60, {2020, 1348, 2122, 1468}, 0},
	[TQ_30] = {"nvshare (30)", 30, {2017, 1366, 2170, 1521}, 4},
};

static struct td_node_sim setup(const char *policy, double quantum_s)
{
	return (struct td_node_sim){.policy = td_policy_find(policy),
		.options = {.enabled = quantum_s > 0,
			.quantum_ns = (uint64_t)(quantum_s * 1e9),
			.quantum_min_ns = 2 * TD_NS_PER_S,
			.swap_share_ppm = TD_PPM / 10,
			.swap_share_long_ppm = TD_PPM / 100,
			.quantum_long_ns = 300 * TD_NS_PER_S},
		.capacity_bytes = 16ull << 30,
		.handover_ns = (uint64_t)(HANDOVER_S * 1e9),
		.overlap = OVERLAP,
		.thrash = THRASH,
		.managed_cost = MANAGED,
		.pages_itself = true};
}

static double simulate(const struct td_node_sim *sim, size_t program, uint32_t *ret_handovers)
{
	double half = programs[program].baseline_s / 2;
	struct td_node_job job = {.host_s = half * programs[program].host_part,
		.gpu_s = half * (1 - programs[program].host_part),
		.bytes = (uint64_t)(programs[program].gib * 0x1p30)};
	struct td_node_job jobs[2] = {job, job};
	struct td_node_result result;

	if (!sim->policy || td_node_simulate(sim, jobs, 2, &result) || result.stuck)
		return NAN;
	if (ret_handovers)
		*ret_handovers = result.handovers;
	return result.end_s;
}

static void put_cell(struct td_experiment_run *run, int row, size_t program, uint32_t *held)
{
	double paper = rows[row].paper_s[program], ours, error;
	struct td_node_sim sim = setup("nvshare", rows[row].quantum_s);
	bool calibrated = rows[row].calibrated >> program & 1;
	char metric[96], said[64];

	snprintf(metric, sizeof(metric), "%s, %s", rows[row].name, programs[program].name);
	if (row == KUBESHARE) {
		/* Without managed memory a program that exceeds the GPU is refused. */
		sim.managed_cost = 1;
		if (2 * programs[program].gib > 16) {
			td_row_put(run, paper > 0 ? TD_NOT_REPRODUCED : TD_BY_CONSTRUCTION, metric,
				"OOM", "", "arithmetic: two do not fit in 16 GB", "OOM");
			td_row_claim(run, TD_CLAIM_NVSHARE_CELLS, TD_FITTED, NULL);
			return;
		}
	}
	ours = simulate(&sim, program, NULL);
	error = (ours / paper - 1) * 100;
	snprintf(said, sizeof(said), "%.0f s", paper);
	*held += !calibrated && fabs(error) <= 10;
	td_row_put(run,
		calibrated          ? TD_CALIBRATED
		: fabs(error) <= 10 ? TD_REPRODUCED
				    : TD_NOT_REPRODUCED,
		metric, said, "", "", "%.0f s (%+.1f %%)", ours, error);
	if (!calibrated)
		td_row_claim(run, TD_CLAIM_NVSHARE_CELLS, TD_FITTED, NULL);
}

/* Varies the quantum as in Fig. 3: times rise sharply below 10 s and are flat above 60 s. */
static void sweep(struct td_experiment_run *run)
{
	static const double quanta[] = {1, 2, 3, 5, 7, 10, 15, 20, 30, 60, 100, 300, 1000};
	double at_1 = 0, at_10 = 0, at_60 = 0, at_1000 = 0;

	fputs("| quantum s | heavy_balanced, total s | hand-overs |\n|---|---|---|\n", run->report);
	for (size_t q = 0; q < sizeof(quanta) / sizeof(quanta[0]); q++) {
		struct td_node_sim sim = setup("nvshare", quanta[q]);
		uint32_t handovers = 0;
		double total = simulate(&sim, 2, &handovers);

		fprintf(run->report, "| %g | %.0f | %u |\n", quanta[q], total, handovers);
		at_1 = q == 0 ? total : at_1;
		at_10 = quanta[q] > 9 && quanta[q] < 11 ? total : at_10;
		at_60 = quanta[q] > 59 && quanta[q] < 61 ? total : at_60;
		at_1000 = total;
	}
	/*
	 * By construction a hand-over of c s per quantum of q s makes the run 1 + c / q times as
	 * long.
	 */
	td_row_put(run,
		at_1 > 1.3 * at_10 && at_60 < 1.05 * at_1000 ? TD_BY_CONSTRUCTION
							     : TD_NOT_REPRODUCED,
		"quantum (Fig. 3), heavy_balanced", "sharp rise below 10 s", "",
		"a fixed cost for each quantum: any cost of 0.35 to 3.2 s would give this, and "
		"2.08 s are calibrated",
		"%.0f at 1 s, %.0f at 10, %.0f at 60, %.0f at 1000", at_1, at_10, at_60, at_1000);
	td_row_claim(run, TD_CLAIM_NVSHARE_QUANTUM, TD_FITTED, NULL);
}

/*
 * Shows the same programs under the policy tandem, with memory moved in bulk at the rate of the
 * link, in both directions at once.
 */
static void put_tandem(struct td_experiment_run *run, size_t program)
{
	const struct td_gpu_spec *spec = td_gpu_spec_find("v100");
	struct td_node_sim sim = setup("tandem", 30);
	double best = INFINITY, ours;
	char metric[96], said[64];

	sim.pages_itself = false;
	sim.managed_cost = 1;
	sim.handover_ns =
		(uint64_t)(programs[program].gib * 0x1p30 / spec->pinned_bytes_per_us * 1000);
	ours = simulate(&sim, program, NULL);
	for (int row = OFF; row < ROWS; row++) {
		struct td_node_sim nvshare = setup("nvshare", rows[row].quantum_s);

		best = fmin(best, simulate(&nvshare, program, NULL));
	}
	snprintf(metric, sizeof(metric), "tandem, %s, against the best of nvshare's rows",
		programs[program].name);
	snprintf(said, sizeof(said), "nvshare, simulated: %.0f s", best);
	td_row_put(run, ours <= best ? TD_SHOWN : TD_LOSS, metric, said, "",
		ours <= best
			? "nothing is drawn: no interval, and no verdict"
			: "its turns are short at first; the best of nvshare's takes one turn of "
			  "the whole GPU work",
		"%.0f s (%+.1f %%)", ours, (ours / best - 1) * 100);
}

int td_exp_nvshare_table2(struct td_experiment_run *run, struct td_err *err)
{
	uint32_t held = 0;

	if (!td_policy_find("nvshare") || !td_policy_find("tandem") || !td_gpu_spec_find("v100"))
		return td_err_set(
			err, -ENOENT, "the policies nvshare and tandem are not in this build");
	for (int row = 0; row < ROWS; row++)
		for (size_t program = 0; program < 4; program++)
			put_cell(run, row, program, &held);
	td_row_put(run, held >= 18 ? TD_REPRODUCED : TD_NOT_REPRODUCED,
		"cells not calibrated that are within 10 %", "18", "",
		"24 cells, 4 calibrated, 2 out of memory by construction", "%u of 18", held);
	for (size_t program = 0; program < 4; program++) {
		struct td_node_sim sim = setup("nvshare", 1000);
		double baseline = programs[program].baseline_s;
		static const char *const papers[] = {"1.28x", "1.02x", "1.35x", "1.04x"};
		char metric[96];

		snprintf(metric, sizeof(metric), "speed-up over sequential, quantum 1000 s, %s",
			programs[program].name);
		td_row_put(run, TD_SHOWN, metric, papers[program], "", "", "%.2fx",
			baseline / simulate(&sim, program, NULL));
		put_tandem(run, program);
	}
	sweep(run);
	fputs("\nCalibrated: overlap 1.24, managed memory 1.045, thrashing 8.0 times, 2.08 s "
	      "for a hand-over. tandem moves memory in bulk at the rate of src/model's v100 "
	      "link instead of by faults. No paper has measured that, so its rows are shown "
	      "and do not count.\n\n"
	      "Differences: the paper's programs alternate between kernels and host code in "
	      "their own way. Here a copy is one block on the host and one on the GPU, by the "
	      "parts of the time that the paper gives, because nothing else is public. There "
	      "is no noise, so there is no spread.\n",
		run->report);
	return 0;
}
