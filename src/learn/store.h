/*
 * Keeps profiles and models in an SQLite database.
 *
 * Purpose. A measurement is kept, so that it need not be repeated: MuxFlow's dry runs and Mudi's
 * campaigns fill a database, learners read it, and models go back into it. There is one file per
 * node or cluster; several processes may have it open.
 *
 * Schema, PRAGMA user_version 2:
 * - profile(gpu, job, feature, value, time_s): one number each, the latest wins; primary key (gpu,
 *   job, feature)
 * - sample(target, gpu, x, y): the learners' input; x is a blob of little-endian doubles
 * - model(target, gpu, blob, time_s): the one in use; primary key (target, gpu)
 * - program, pair, quality: store_programs.h (since version 2)
 *
 * An older version is upgraded when it is opened, in one transaction. A newer one is refused
 * (-EPROTO) and never written.
 *
 * Invariants
 * - a stored value reads the same, to the last bit, in every process and on every machine;
 * - a call has its effect as a whole or not at all, also where the process dies in it;
 * - stored data are checked before they are used, since anybody may have written them: a sample of
 *   a wrong size or a model that td_predictor_check() refuses is an error, never a wild access;
 * - an error leaves every ret_ argument as it was.
 *
 * Errors: -ENOSYS: built without SQLite; -ENOENT: not there; -EBUSY: locked by another process for
 * more than a second; -EIO: the database is damaged or cannot be read or written; -ENOMEM; -EINVAL:
 * a stored value that is malformed.
 */
#pragma once

#include "learn/learn.h"

struct td_store;

/* Opens a store. ":memory:" is one that ends with the process. The caller closes it. */
int td_store_open(const char *path, struct td_store **ret_store);

/* Opens a database that is there, to read only: nothing is made or upgraded. */
int td_store_open_to_read(const char *path, struct td_store **ret_store);
void td_store_close(struct td_store *store);

int td_store_put_profile(struct td_store *store, const char *gpu, const char *job,
	const char *feature, double value, int64_t time_s);
int td_store_get_profile(struct td_store *store, const char *gpu, const char *job,
	const char *feature, double *ret_value);

int td_store_add_sample(struct td_store *store, const char *target, const char *gpu,
	const double *x, uint32_t inputs, double y);

/*
 * Reads all samples of a target, oldest first. Samples with another number of inputs than the
 * newest one are left out. The caller frees both arrays.
 */
int td_store_get_samples(struct td_store *store, const char *target, const char *gpu,
	double **ret_x, double **ret_y, uint32_t *ret_count, uint32_t *ret_inputs);

/* Deletes the oldest samples of a target, so that at most `keep` of them remain. */
int td_store_trim_samples(
	struct td_store *store, const char *target, const char *gpu, uint32_t keep);

int td_store_put_model(struct td_store *store, const char *target, const char *gpu,
	const struct td_model *model, int64_t time_s);
int td_store_get_model(
	struct td_store *store, const char *target, const char *gpu, struct td_model *ret_model);
