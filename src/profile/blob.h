/*
 * A model as bytes, for the database and the wire.
 *
 * Purpose. A model is trained where the samples are and evaluated where jobs are placed. So it
 * moves between processes and machines, and outlives both. The bytes hold exactly what
 * policy/algo/fit/predict.h evaluates, and nothing of the training.
 *
 * Layout. All are little-endian 64-bit words; a double is stored by its bits. So a prediction is
 * the same to the last bit on every machine.
 *
 *     word 0      0x746400006d6f6400 ("td", "mod") + version, 1 so far
 *     1 to 7      form, inputs, layers, trees, nodes, coefficients, vectors (vectors x inputs)
 *     8 to 11     target shift and scale, gamma, rho
 *     12 to 19    widths of the layers
 *     then        shift, scale (inputs each); coefficients; vectors;
 *                 per node value, input, left; roots
 *
 * The size follows from the counts in the header. A later layout gets another version; an unknown
 * version is refused.
 *
 * Invariants
 * - a model that was written reads as the same model, and what was read is written as the same
 *   bytes again;
 * - parsing trusts nothing: counts are checked against bounds, then against the size, before
 *   anything is allocated. So it allocates about the size of its input at most;
 * - a number that does not fit its field is refused, and so is a model that td_predictor_check()
 *   refuses: evaluation of a returned one stays inside its arrays and ends;
 * - an error leaves *ret_model as it was.
 *
 * tests/fuzz/fuzz_model.c gives it bytes of any kind.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "profile/model.h"

/* Writes a model as bytes. The caller frees *ret_bytes. Returns 0 or -ENOMEM. */
int td_model_to_blob(const struct td_model *model, void **ret_bytes, size_t *ret_size);

/* Reads a model. Returns 0; -EINVAL: it is not a model, or not of this version; -ENOMEM. */
int td_model_from_blob(const void *bytes, size_t size, struct td_model *ret_model);
