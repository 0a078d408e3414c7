/*
 * The profile of a service: its latency curves as a campaign has learnt them, in a file.
 *
 * Purpose. A campaign measures a service with several batches, shares of the SMs and
 * neighbours, and learns four models (policy/algo/fit/mudi_curve.h). The daemon reads them when the
 * service comes, and Mudi tunes by them. A curve holds for one kind of GPU and for the batches that
 * were measured, so the file says both.
 *
 * Layout. All are little-endian 64-bit words; a double is stored by its bits.
 *
 *     word 0      0x7464007072660000 ("td", "prf") + version: 2 where it has met
 *     1 to 8      name of the GPU, padded with zeros
 *     9, 10       smallest and largest batch measured
 *     11          number of curves measured
 *     12 to 15    error of each model, root mean square over neighbours left out; 0: not known
 *     16 to 19    bytes of each model
 *     then        the four models (blob.h): slope left and right of the knee, knee's share, latency
 *     version 2   the number of companies that the service has met while it ran, then of each
 *                 11 layers, the factor, the number of measurements, and the time of the last (s)
 *
 * Invariants
 * - what was written reads as the same profile;
 * - parsing trusts nothing. An error leaves *ret_profile as it was;
 * - a profile that was read has four models of TD_MUDI_INPUTS inputs that passed
 *   td_predictor_check(), and batches from 1 to TD_PROFILE_BATCH_MAX.
 *
 * tests/fuzz/fuzz_profile.c gives it bytes of any kind.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "policy/algo/fit/mudi_curve.h"
#include "profile/model.h"
#include "profile/read.h"

struct td_err;

/* The file of profile NAME is NAME with this suffix. */
#define TD_PROFILE_SUFFIX    ".profile"
#define TD_PROFILE_BATCH_MAX 65536u
#define TD_PROFILE_MET_MAX   32u
/* A factor of a company that was met is at most this, and at least one by this. */
#define TD_PROFILE_FACTOR_MAX 8.0

enum td_profile_model {
	TD_PROFILE_LEFT_SLOPE,
	TD_PROFILE_RIGHT_SLOPE,
	TD_PROFILE_KNEE_SHARE,
	TD_PROFILE_KNEE_LATENCY,
	TD_PROFILE_MODELS,
};

struct td_service_profile {
	char gpu[64]; /* name of the GPU, as the driver reports it */
	uint32_t batch_min, batch_max;
	uint64_t curve_count;
	double error[TD_PROFILE_MODELS];
	struct td_model models[TD_PROFILE_MODELS];
	struct td_mudi_met met[TD_PROFILE_MET_MAX];
	uint32_t met_count;
};

void td_service_profile_deinit(struct td_service_profile *profile);

/* Returns the models as Mudi uses them. They point into the profile. */
struct td_mudi_service td_service_profile_curves(const struct td_service_profile *profile);

/* Writes a profile as bytes. The caller frees *ret_bytes. Returns 0 or -ENOMEM. */
int td_service_profile_to_bytes(
	const struct td_service_profile *profile, void **ret_bytes, size_t *ret_size);

/*
 * Reads a profile from bytes. Returns 0; -EINVAL with err: it is not a profile, or not of this
 * version; -ENOMEM.
 */
int td_service_profile_from_bytes(
	const void *bytes, size_t size, struct td_service_profile *ret_profile, struct td_err *err);

/*
 * Reads a profile from a file. Returns 0, or -errno with err; -EFBIG: more than
 * TD_PROFILE_BYTES_MAX.
 */
int td_service_profile_load(int folder_fd, const char *file, struct td_service_profile *ret_profile,
	struct td_err *err);

/*
 * Checks the name of a service for its file's name. Letters, digits and ". _ + -" are allowed, with
 * no dot at the beginning. Returns 0, or -EINVAL with err.
 */
int td_profile_check_name(const char *name, struct td_err *err);
