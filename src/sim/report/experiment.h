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
	TD_BOUNDED,         /* a measured bound forbids it, see td_seeds */
	TD_BY_CONSTRUCTION, /* the model or the policy cannot come out otherwise: shows nothing */
	TD_CALIBRATED,      /* fitted to this very figure: counts for nothing */
	TD_SHOWN,           /* no rule says what would count */
	/* tandem in its main measure, over paired seeds, see bootstrap.h */
	TD_BETTER,        /* the interval excludes no difference, and the guard holds */
	TD_NO_DIFFERENCE, /* the interval does not exclude it */
	TD_LOSS,          /* worse by the interval, or the guard does not hold */
	TD_VERDICT_N,
};

/*
 * Variants of contention: as fitted, by proportional sharing, and with the pressure of jobs under a
 * cap of SMs doubled and halved. An order has to hold in all.
 */
enum td_variant {
	TD_FITTED,
	TD_PROPORTIONAL,
	TD_DOUBLED,
	TD_HALVED,
	TD_VARIANT_N,
};

/* Claims of the papers: metrics whose rule was fixed before. */
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
	enum td_claim claim; /* TD_CLAIM_NONE: it takes part in none */
	enum td_variant variant;
	struct td_seeds seeds; /* of a row that takes part; where it goes by a mean, one for all */
};

struct td_experiment_run {
	const char *data; /* folder, or NULL */
	bool quick;
	uint32_t seeds; /* 15; 1 when quick */
	uint32_t jobs;  /* processes, see workers.h */
	FILE *report;   /* prose and tables beyond the rows, Markdown */
	struct td_row *rows;
	uint32_t row_count, row_room;
	struct td_row *last;  /* row; NULL: none, or there was no memory for it */
	bool short_of_memory; /* some row is missing */
	const char *name;
	char cut[512]; /* why it ended before all was done; "": it did not */
};

struct td_experiment {
	const char *name, *summary;
	bool needs_data;
	int (*run)(struct td_experiment_run *run, struct td_err *err);
};

extern const struct td_experiment td_experiments[]; /* ends with a NULL name */

/* A new row, run->last; the caller fills it. NULL: out of memory. */
struct td_row *td_row_add(struct td_experiment_run *run, enum td_verdict verdict);
void td_row_put(struct td_experiment_run *run, enum td_verdict verdict, const char *metric,
	const char *paper, const char *spread, const char *note, const char *format, ...)
	__attribute__((format(printf, 7, 8)));

/*
 * Adds to the last row the interval of the median of paired ratios or differences, one for each
 * seed, in the row's unit. The verdict is not changed.
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
 * both hold.
 */
void td_seed_add_guarded(struct td_seeds *seeds, bool holds, bool guard, bool forbidden);
enum td_verdict td_seeds_verdict(const struct td_seeds *seeds);
/*
 * Appends "; in 1 the order holds, but not the guard", unless there is none, and "; a bound forbids
 * 2 of the 3 seeds that lose", unless none loses.
 */
void td_seeds_put(const struct td_seeds *seeds, char *note, size_t size);

/*
 * Makes the last row take part in a claim. Its verdict is that of the seeds; NULL: it goes by a
 * mean or is one run, and its own verdict is the only check. Verdicts TD_SHOWN and
 * TD_BY_CONSTRUCTION are not checked.
 */
void td_row_claim(struct td_experiment_run *run, enum td_claim claim, enum td_variant variant,
	const struct td_seeds *seeds);

/* A claim over all rows that take part. */
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
	struct td_seeds seeds, in[TD_VARIANT_N]; /* of all variants; of each */
	uint32_t rows, open;  /* open: rows with a check that fails and is not forbidden */
	uint32_t constructed; /* rows that hold by construction: no checks */
	uint32_t missing;     /* bits of variants that it has no judged row of */
	const struct td_row *first_open; /* or NULL */
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

/* False: no row takes part. */
bool td_claim_fold(
	const struct td_row *rows, uint32_t count, enum td_claim claim, struct td_claim_found *ret);
/* "in fitted 3 of 20 checks fail, ...; holds in proportional": why the verdict is what it is. */
void td_claim_why(const struct td_claim_found *found, enum td_claim claim, char *ret, size_t size);
/*
 * Writes our figures, with the rows of one figure of the paper together: "1.09x to 1.27x; 1.17x to
 * 1.29x".
 */
void td_claim_ours(
	const struct td_row *rows, uint32_t count, enum td_claim claim, char *ret, size_t size);

/*
 * Appends the least and the greatest value over some of the seeds, and how many exceed 1: "LABEL
 * 1.06 to 1.27x (2)".
 */
void td_some_put(const double *values, const uint32_t *some, uint32_t count, const char *label,
	char *note, size_t size);

/* Median of n; sorts. "least to most" of n goes to ret (64 bytes). */
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
