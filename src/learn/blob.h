/*
 * A model as bytes, for the database and the wire.
 *
 * Purpose. A model is trained where the samples are and evaluated where jobs are placed: it has to move between processes and machines, and
 * to outlive both. What is stored is exactly what policy/algo/fit/predict.h evaluates, nothing of how it was trained.
 *
 * Layout. All are little-endian 64-bit words, a number as it is, a double by its bits; so a file moves between machines, and a
 * prediction is the same to the last bit on either side.
 *
 *   word 0      0x746400006d6f6400 ("td", "mod") + version, 1 so far
 *   1 to 7      form, inputs, layers, trees, nodes, coefficients, vectors (numbers: vectors x inputs)
 *   8 to 11     target shift and scale, gamma, rho
 *   12 to 19    widths of the layers
 *   then        shift, scale (inputs each); coefficients; vectors; per node value, input, left; roots
 *
 * Every count is in the header and the size follows from them, so that there is nothing to search for and no end to overrun. A later
 * layout gets another version; what is not of a version that is known here is refused, never guessed.
 *
 * Invariants
 *  - what was written reads as the same model, and is written as the same bytes again;
 *  - parsing trusts nothing: counts are checked against bounds, then against the size, before anything is allocated for them;
 *    so it allocates at most about the size of what was given;
 *  - a number that does not fit its field becomes one that td_predictor_check() refuses; what is returned has passed it and can
 *    be evaluated without any access beyond its arrays and without end;
 *  - an error leaves *ret_model as it was.
 *
 * tests/fuzz/fuzz_model.c gives it bytes of any kind.
 */
#pragma once

#include "learn/learn.h"

/* *ret_bytes is the caller's to free. Returns 0 or -ENOMEM. */
int td_model_to_blob(const struct td_model *model, void **ret_bytes, size_t *ret_size);

/* Returns 0; -EINVAL: no model, or not of this version; -ENOMEM. */
int td_model_from_blob(const void *bytes, size_t size, struct td_model *ret_model);
