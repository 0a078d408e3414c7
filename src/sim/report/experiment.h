/*
 * The papers' experiments by name. Each fills rows: the paper's figure, our figure, over how many
 * seeds, and whether that counts as reproduced by the rule that was fixed before anything was run.
 * A claim of the paper (claims.def) is judged once all rows that take part in it exist.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "sim/data/profiles.h"

struct td_err;

enum td_verdict {
	TD_REPRODUCED,
	TD_NOT_REPRODUCED,
	TD_BOUNDED, /* a measured bound excludes it, see td_seeds */
	/* The model or the policy allows no other result, so the row shows nothing. */
	TD_BY_CONSTRUCTION,
	/* The model was fitted to this figure of the paper, so the row shows nothing. */
	TD_CALIBRATED,
	TD_SHOWN, /* no rule says what would count as reproduced */
	/* Verdicts of tandem in its main measure, over paired seeds, see bootstrap.h. */
	/* The interval excludes that there is no difference, and the guard holds. */
	TD_BETTER,
	TD_NO_DIFFERENCE, /* the interval does not exclude that there is no difference */
	TD_LOSS,          /* the interval says that it is worse, or the guard does not hold */
	TD_VERDICT_N,
};

/*
 * Variants of the contention model: as fitted, proportional sharing, and with the pressure of
 * capped jobs doubled or halved. An order of policies has to hold in all of them.
 */
enum td_variant {
	TD_FITTED,
	TD_PROPORTIONAL,
	TD_DOUBLED,
	TD_HALVED,
	TD_VARIANT_N,
};

/* The claims of the papers, whose rules were fixed before anything was run. */
enum td_claim {
	TD_CLAIM_NONE,
#define TD_CLAIM(id_, experiment_, metric_, paper_, rule_, variants_) TD_CLAIM_##id_,
#include "sim/report/claims.def"
#undef TD_CLAIM
	TD_CLAIM_N,
};

/*
 * The result of a claim over all seeds.
 * - lost: the order does not hold, or it holds and does not count because its guard fails
 *   (unguarded);
 * - forbidden: the lost seeds in which a bound measured in that very seed excludes the order with
 *   its guard.
 *
 * Reproduced: none is lost. Bounded: every lost seed is forbidden. A bound that leaves no gain in
 * one seed excuses no other.
 */
struct td_seeds {
	uint32_t count, lost, forbidden, unguarded;
};

struct td_row {
	const char *experiment;
	char metric[96], paper[64], ours[64], spread[64], interval[64], note[768];
	enum td_verdict verdict;
	enum td_claim claim; /* TD_CLAIM_NONE: the row belongs to no claim */
	enum td_variant variant;
	struct td_seeds seeds; /* used by rows of a claim; a mean over seeds is one check */
};

struct td_experiment_run {
	const char *data; /* folder of the data, or NULL */
	bool quick;
	uint32_t seeds; /* number of seeds: 15; 1 when quick */
	uint32_t jobs;  /* number of processes, see workers.h */
	FILE *report;   /* gets text and tables beyond the rows, as Markdown */
	struct td_row *rows;
	uint32_t row_count, row_room;
	struct td_row *last;  /* the last row; NULL: there is none, or memory was out */
	bool short_of_memory; /* some row is missing for lack of memory */
	const char *name;
	char cut[512]; /* why the run ended early; "": it did not */
};

struct td_experiment {
	const char *name, *summary;
	bool needs_data;
	int (*run)(struct td_experiment_run *run, struct td_err *err);
};

/* All experiments; the last entry has a NULL name. */
extern const struct td_experiment td_experiments[];

/* Adds a row, run->last, which the caller fills. Returns NULL if memory is out. */
struct td_row *td_row_add(struct td_experiment_run *run, enum td_verdict verdict);
void td_row_put(struct td_experiment_run *run, enum td_verdict verdict, const char *metric,
	const char *paper, const char *spread, const char *note, const char *format, ...)
	__attribute__((format(printf, 7, 8)));

/*
 * Adds the interval of a median to the last row, in the row's unit. `values` are paired ratios or
 * differences, one for each seed. The verdict does not change.
 */
void td_row_interval(struct td_experiment_run *run, const double *values, uint32_t count);
/*
 * Adds such an interval and the verdict on tandem beside another system. Values above `none` (1 for
 * ratios, 0 for differences) are in tandem's favour. guard: tandem's guard holds.
 */
void td_row_beside(struct td_experiment_run *run, const double *values, uint32_t count, double none,
	bool guard);

void td_seed_add(struct td_seeds *seeds, bool holds, bool forbidden);
/*
 * Adds a seed of a claim that counts only while its guard holds. forbidden: order and guard cannot
 * both hold in this seed.
 */
void td_seed_add_guarded(struct td_seeds *seeds, bool holds, bool guard, bool forbidden);
enum td_verdict td_seeds_verdict(const struct td_seeds *seeds);
/*
 * Appends "; in 1 the order holds, but not the guard" if there are such seeds, and "; a bound
 * forbids 2 of the 3 seeds that lose" if any loses.
 */
void td_seeds_put(const struct td_seeds *seeds, char *note, size_t size);

/*
 * Adds the last row to a claim. Its verdict becomes that of the seeds. seeds NULL: the row is a
 * mean or a single run, and its own verdict is the only check. The verdicts TD_SHOWN and
 * TD_BY_CONSTRUCTION are not checked.
 */
void td_row_claim(struct td_experiment_run *run, enum td_claim claim, enum td_variant variant,
	const struct td_seeds *seeds);

/* The result of a claim over all of its rows. */
struct td_claim_found {
	/*
	 * The verdict of a claim.
	 * - Shown: no row is judged.
	 * - By construction: all judged rows hold by construction.
	 * - Not reproduced: a check fails that no bound forbids, or a variant is missing.
	 * - Bounded: each check that fails is forbidden.
	 * - Reproduced: no check fails, in any variant.
	 */
	enum td_verdict verdict;
	struct td_seeds seeds, in[TD_VARIANT_N]; /* sums over all variants; sums of each variant */
	/* Rows of the claim; those with a check that fails and is not forbidden. */
	uint32_t rows, open;
	uint32_t constructed; /* rows that hold by construction, so nothing was checked */
	uint32_t missing;     /* bits of the variants without a judged row */
	const struct td_row *first_open; /* the first row that `open` counts, or NULL */
};

struct td_claim_text {
	const char *experiment, *metric, *paper, *rule;
	/*
	 * Bits of the variants that exist. 0: the rule of variants does not apply, because the
	 * contention model plays no part or no policies are compared.
	 */
	uint32_t variants;
};
extern const struct td_claim_text td_claims[TD_CLAIM_N];
extern const char *const td_variant_names[TD_VARIANT_N];

/* Judges a claim over its rows. Returns false if it has no row. */
bool td_claim_fold(
	const struct td_row *rows, uint32_t count, enum td_claim claim, struct td_claim_found *ret);
/*
 * Writes the reason for a claim's verdict, such as "in fitted 3 of 20 checks fail, ...; holds in
 * proportional".
 */
void td_claim_why(const struct td_claim_found *found, enum td_claim claim, char *ret, size_t size);
/*
 * Writes our figures. Rows of the same figure of the paper are together: "1.09x to 1.27x; 1.17x to
 * 1.29x".
 */
void td_claim_ours(
	const struct td_row *rows, uint32_t count, enum td_claim claim, char *ret, size_t size);

/*
 * Appends the least and the greatest value over `some` of the seeds, and how many exceed 1: "LABEL
 * 1.06 to 1.27x (2)".
 */
void td_some_put(const double *values, const uint32_t *some, uint32_t count, const char *label,
	char *note, size_t size);

/*
 * td_median() sorts n values and returns their median. td_spread() writes "least to most" to ret,
 * which has 64 bytes.
 */
double td_median(double *values, uint32_t n);
void td_spread(const double *values, uint32_t n, char *ret);

int td_exp_nvshare_table2(struct td_experiment_run *run, struct td_err *err);
int td_exp_antman_table2(struct td_experiment_run *run, struct td_err *err);
int td_exp_antman_trace(struct td_experiment_run *run, struct td_err *err);
int td_exp_dcuda(struct td_experiment_run *run, struct td_err *err);
int td_exp_dcuda_memory(struct td_experiment_run *run, struct td_err *err);
int td_exp_mudi_sim(struct td_experiment_run *run, struct td_err *err);
int td_exp_mixed(struct td_experiment_run *run, struct td_err *err);
int td_exp_muxflow_sim(struct td_experiment_run *run, struct td_err *err);
int td_exp_muxflow_predictor(struct td_experiment_run *run, struct td_err *err);
int td_exp_muxflow_ablation(struct td_experiment_run *run, struct td_err *err);
int td_exp_queues(struct td_experiment_run *run, struct td_err *err);
int td_exp_scale(struct td_experiment_run *run, struct td_err *err);
int td_exp_alibaba(struct td_experiment_run *run, struct td_err *err);
