/*
 * The measured points of a service in the database of a directory of profiles, and the profile that
 * is learnt from them. The file is TD_POINTS_FILE beside the profiles; samples of "service/NAME",
 * which a campaign measures, and of "met/NAME", which the daemon measures while the service runs,
 * have the inputs: layers of the neighbour, batch, share.
 */
#pragma once

#include <stdbool.h>

#include "learn/campaign.h"

struct td_err;
struct td_store;

#define TD_POINTS_FILE "measurements.db"

struct td_points {
	struct td_campaign_point *at;
	uint32_t count;
};

/*
 * Opens the database of measured points in the directory. If it does not exist, it is made, unless
 * to_read is set.
 */
int td_points_open(
	const char *directory, bool to_read, struct td_store **ret_store, struct td_err *err);

enum td_points_of {
	TD_POINTS_CAMPAIGN,
	TD_POINTS_MET,
	TD_POINTS_OF_N,
};

/* The points of a service on that GPU, oldest first; the caller frees ret->at. */
int td_points_read(struct td_store *store, enum td_points_of of, const char *service,
	const char *gpu, struct td_points *ret, struct td_err *err);

/* Adds a point to the store and to `points`, which may be NULL. */
int td_points_add(struct td_store *store, enum td_points_of of, const char *service,
	const char *gpu, struct td_points *points, const struct td_campaign_point *point,
	struct td_err *err);

/* Deletes the oldest points of the service on that GPU, so that at most `keep` remain. */
int td_points_trim(struct td_store *store, enum td_points_of of, const char *service,
	const char *gpu, uint32_t keep, struct td_err *err);

/* Reads the profile of a service. Returns 0 or -errno. */
int td_points_load(
	const char *directory, const char *service, struct td_service_profile *ret_profile);

/* Puts the file of a profile in place of the one before. */
int td_points_write(const struct td_service_profile *profile, const char *directory,
	const char *service, struct td_err *err);
