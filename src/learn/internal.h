/*
 * Random numbers and the memory of a model in training, shared by all learners. Used only within
 * src/learn.
 *
 * Purpose. Shuffles, bootstraps and first weights come from one generator (xorshift64*, Vigna 2016)
 * that is passed along and seeded once: one seed gives one model. libc's rand() is not used,
 * because it is global and differs between systems.
 *
 * A model owns one block: shift and scale of the inputs, coefficients, vectors. The learner writes
 * into it through td_model_coefficients(); nobody writes to a model that was returned.
 *
 * Invariants: same seed and calls, same numbers, on every machine. A generator's state is never 0.
 * Inputs that are constant standardise to 0, not to infinity. td_dataset_check() has passed before
 * anything is computed.
 */
#pragma once

#include "learn/learn.h"

/* The generator xorshift64*. Its state is never 0. */
struct td_rng {
	uint64_t state;
};

void td_rng_init(struct td_rng *rng, uint64_t seed);
uint64_t td_rng_next(struct td_rng *rng);
uint32_t td_rng_below(struct td_rng *rng, uint32_t n);
double td_rng_unit(struct td_rng *rng);
double td_rng_normal(struct td_rng *rng);

/* Fills items with 0 to n - 1 in random order. */
void td_rng_shuffle(struct td_rng *rng, uint32_t *items, uint32_t n);

/* Checks a data set before training. Returns 0, or -EINVAL. */
int td_dataset_check(const struct td_dataset *data);

/*
 * Makes a model with room for so many numbers: shift and scale, then coefficients, then vectors.
 * Its scales are those of the data. The other numbers are 0.
 */
int td_model_init(struct td_model *model, enum td_predictor_form form,
	const struct td_dataset *data, size_t coefficients, size_t vectors);

/* Writes the data in the model's scales: x (count x inputs) and, unless NULL, y. */
void td_model_standardise(
	const struct td_model *model, const struct td_dataset *data, double *x, double *y);

/* Returns the model's coefficients, which the learner writes while it trains. */
static inline double *td_model_coefficients(struct td_model *model)
{
	return (double *)model->memory + 2 * (size_t)model->predictor.inputs;
}
