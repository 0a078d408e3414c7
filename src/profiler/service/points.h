/*
 * The measured points of a service in the database of a directory of profiles, and the profile that
 * is learnt from them. The file is MEASUREMENTS beside the profiles; samples of "service/NAME" have
 * the inputs: layers of the neighbour, batch, share.
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

/* The points of a service on that GPU; the caller frees ret->at. */
int td_points_read(struct td_store *store, const char *service, const char *gpu,
	struct td_points *ret, struct td_err *err);

/* Adds one to both. */
int td_points_add(struct td_store *store, const char *service, const char *gpu,
	struct td_points *points, const struct td_campaign_point *point, struct td_err *err);

/* Learns a profile and puts its file in place of the one before. */
int td_points_learn(const struct td_points *points, const char *directory, const char *service,
	const char *gpu, struct td_service_profile *ret_profile, struct td_err *err);
