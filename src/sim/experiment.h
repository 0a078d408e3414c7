/*
 * The papers' experiments by name. Each fills rows: what the paper says, what came out here, over how many seeds, and whether that counts as reproduced by the rule that was
 * fixed before anything was run.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "sim/profiles.h"

struct td_err;

enum td_verdict {
	TD_REPRODUCED,
	TD_NOT_REPRODUCED,
	TD_BOUNDED,    /* a measured bound forbids it, see td_seeds */
	TD_CALIBRATED, /* fitted to this very figure: counts for nothing */
	TD_SHOWN,      /* no rule says what would count */
	TD_AT_LEAST, /* tandem, in the main measure, while its guard holds: as good as the paper's system or better */
	TD_AT_LEAST_MEDIAN, /* the same, by the median of the seeds: in single ones it may not be. What papers' orders claim goes by every seed, see td_seeds */
	TD_LOSS,            /* tandem is neither */
	TD_VERDICT_N,
};

struct td_row {
	const char *experiment;
	char metric[96], paper[64], ours[64], spread[64], note[768];
	enum td_verdict verdict;
};

struct td_experiment_run {
	const char *data; /* folder, or NULL */
	bool quick;
	uint32_t seeds; /* 5; 1 when quick */
	uint32_t jobs;  /* processes, see workers.h */
	FILE *report;   /* prose and tables beyond the rows, Markdown */
	struct td_row *rows;
	uint32_t row_count, row_room;
	const char *name;
	char cut[512]; /* why it ended before all was done; "": it did not */
};

struct td_experiment {
	const char *name, *summary;
	bool needs_data;
	int (*run)(struct td_experiment_run *run, struct td_err *err);
};

extern const struct td_experiment td_experiments[]; /* ends with a NULL name */

/* A new row; the caller fills it. NULL: out of memory. */
struct td_row *td_row_add(struct td_experiment_run *run, enum td_verdict verdict);
void td_row_put(struct td_experiment_run *run, enum td_verdict verdict, const char *metric,
	const char *paper, const char *spread, const char *note, const char *format, ...)
	__attribute__((format(printf, 7, 8)));

/*
 * What is claimed of every seed: in how many it does not hold, and in how many of those a bound measured in that very seed forbids it. Reproduced: it holds in all. Bounded: every seed in which it does not is forbidden; a
 * bound that leaves nothing to gain in one seed excuses no other.
 */
struct td_seeds {
	uint32_t lost, forbidden;
};

void td_seed_add(struct td_seeds *seeds, bool holds, bool forbidden);
enum td_verdict td_seeds_verdict(const struct td_seeds *seeds);
/* Appends "; a bound forbids 2 of the 3 seeds that lose", unless none does. */
void td_seeds_put(const struct td_seeds *seeds, char *note, size_t size);

/* Of some of the seeds: appends "LABEL 1.06 to 1.27x (2)", the least and the most, and in how many it is more than 1. */
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
int td_exp_scale(struct td_experiment_run *run, struct td_err *err);
int td_exp_alibaba(struct td_experiment_run *run, struct td_err *err);
