/*
 * A file with what MuxFlow's exchange needs to know (policy/cluster/exchange.h): for each kind of
 * GPU, the dry runs of programs and the predictor of their speeds beside each other.
 *
 * Purpose. `tandem profile` keeps its measurements in a database. The daemon uses libc alone, so
 * `tandem profile campaign --profiles DIRECTORY` writes for it what it needs.
 *
 * Layout. All are little-endian 64-bit words; a double is stored by its bits.
 *
 *     word 0      0x7464007370640000 ("td", "spd") + version, 1 so far
 *     1           number of kinds of GPU; then for each
 *       8 words   name of the GPU, padded with zeros
 *       2 words   number of programs; bytes of the model
 *       programs  8 words name, padded with zeros; utilisation, SM activity, occupancy, seconds of
 *                 a step alone (struct td_muxflow_profile)
 *       model     as in blob.h
 *
 * Invariants
 * - what was written reads as the same tables, and is written as the same bytes again;
 * - parsing trusts nothing. An error leaves *ret_file as it was;
 * - the models have TD_MUXFLOW_INPUTS inputs and have passed td_predictor_check(). Figures are
 *   finite and not below 0. Names are not empty, and end within their words.
 *
 * tests/fuzz/fuzz_speed_file.c gives it bytes of any kind.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "policy/cluster/muxflow_cluster.h"
#include "profile/model.h"

struct td_err;

#define TD_SPEED_FILE         "muxflow.speeds"
#define TD_SPEED_KINDS_MAX    64u
#define TD_SPEED_PROGRAMS_MAX 4096u

struct td_speed_program {
	char name[64];
	struct td_muxflow_profile alone;
};

struct td_speed_kind {
	char gpu[64];
	uint32_t count;
	struct td_speed_program *programs;
	struct td_model model;
};

struct td_speed_file {
	uint32_t count;
	struct td_speed_kind *kinds;
};

void td_speed_file_deinit(struct td_speed_file *file);

/* Returns the kind of GPU of that name, or NULL. */
const struct td_speed_kind *td_speed_file_kind(const struct td_speed_file *file, const char *gpu);

/* Returns the dry run of the program of that name, or NULL. */
const struct td_muxflow_profile *td_speed_kind_program(
	const struct td_speed_kind *kind, const char *name);

/* The caller frees *ret_bytes. Returns 0, -ENOMEM, or -EINVAL: it breaks the invariants. */
int td_speed_file_to_bytes(const struct td_speed_file *file, void **ret_bytes, size_t *ret_size);

/* Returns 0; -EINVAL with err: it is not such a file, or not of this version; -ENOMEM. */
int td_speed_file_from_bytes(
	const void *bytes, size_t size, struct td_speed_file *ret_file, struct td_err *err);

/* Reads TD_SPEED_FILE of a folder. Returns 0, or -errno with err. */
int td_speed_file_load(int folder_fd, struct td_speed_file *ret_file, struct td_err *err);
