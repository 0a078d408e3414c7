/*
 * A model as bytes, for the database and the wire: a header, then arrays, all little-endian 64-bit words, so that a file moves
 * between machines. Parsing trusts nothing: sizes are checked before anything is allocated, the result by td_predictor_check().
 *
 *   word 0: "tdmodel" and the version; then form, inputs, layers, tree count, node count, coefficients, vectors (numbers);
 *   target shift and scale, gamma, rho; widths (8); shift, scale; coefficients; vectors; per node value, input, left; roots
 */
#pragma once

#include "learn/learn.h"

/* *ret_bytes is the caller's to free. Returns 0 or -ENOMEM. */
int td_model_to_blob(const struct td_model *model, void **ret_bytes, size_t *ret_size);

/* Returns 0; -EINVAL: no model, or not of this version; -ENOMEM. */
int td_model_from_blob(const void *bytes, size_t size, struct td_model *ret_model);
