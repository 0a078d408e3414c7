/*
 * Fits the contention model's three numbers per job to measured pairs.
 *
 * Minimises, over g, p, h > 0 of the free jobs, the sum of Huber's loss of log(1 / s_predicted) -
 * log(1 / s_measured), plus ridge times the squared distance of each number's logarithm from its
 * prior. So a number that no pair determines stays at its prior, and g and p, of which only
 * products are seen, do not diverge. Levenberg and Marquardt's method on the logarithms.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct td_numbers {
	double g, p, h;
};

/* A measurement: job `victim` runs at `speed` beside job `other`. */
struct td_observation {
	uint32_t victim, other;
	double speed;
};

struct td_fit_options {
	double huber; /* limit of the loss, in units of the logarithm: 0.05 is 5 % */
	double ridge;
	uint32_t rounds;
};

/* 5 %, 0.003 and 200. They were chosen once, before any results were compared. */
extern const struct td_fit_options td_fit_default;

/* Returns the speed of a job with the numbers v beside a job with the numbers a. */
double td_pair_speed(const struct td_numbers *v, const struct td_numbers *a);

/*
 * Fits the numbers of all jobs. On entry `numbers` has the start of the search, and the fixed
 * values of jobs that are not free; on return it has the fit. free_jobs and priors are per job;
 * NULL means that all are free, or that the start is the prior. Returns 0, -ENOMEM, or -EINVAL: a
 * speed or number is not positive, or an index is beyond jobs.
 */
int td_fit_pairs(const struct td_observation *observations, uint32_t count, uint32_t jobs,
	const bool *free_jobs, const struct td_numbers *priors,
	const struct td_fit_options *options, struct td_numbers *numbers);
