/* See points.h. */
#include "profiler/service/points.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "learn/store.h"
#include "profiler/store.h"

#define INPUTS (TD_MUDI_LAYERS + 2u)

int td_points_open(
	const char *directory, bool to_read, struct td_store **ret_store, struct td_err *err)
{
	char path[4096];
	int r;

	if (snprintf(path, sizeof(path), "%s/" TD_POINTS_FILE, directory) >= (int)sizeof(path))
		return td_err_set(err, -ENAMETOOLONG, "\"%.80s...\" is too long", directory);
	r = (to_read ? td_store_open_to_read : td_store_open)(path, ret_store);
	if (r == -ENOSYS)
		return td_err_set(err, r,
			"tandem was built without SQLite, which keeps what was "
			"measured: install it and build tandem again");
	return r ? td_err_set(err, r, "%.200s: %s", path, strerror(-r)) : 0;
}

static const char *target_of(enum td_points_of of, const char *service, char buf[80])
{
	static const char *const kinds[TD_POINTS_OF_N] = {"service", "met"};

	snprintf(buf, 80, "%s/%.64s", kinds[of], service);
	return buf;
}

int td_points_read(struct td_store *store, enum td_points_of of, const char *service,
	const char *gpu, struct td_points *ret, struct td_err *err)
{
	td_auto_free double *x = NULL;
	td_auto_free double *y = NULL;
	uint32_t count = 0, inputs = 0;
	char target[80];
	int r = td_store_get_samples(
		store, target_of(of, service, target), gpu, &x, &y, &count, &inputs);

	*ret = (struct td_points){0};
	if (r == -ENOENT || (!r && !count))
		return 0;
	if (!r && inputs != INPUTS)
		r = -EINVAL;
	if (r)
		return td_err_set(err, r, "what was measured of \"%.64s\" cannot be read: %s",
			service, strerror(-r));
	ret->at = calloc(count, sizeof(*ret->at));
	if (!ret->at)
		return td_err_set(err, -ENOMEM, "no memory for %u points", count);
	ret->count = count;
	for (uint32_t i = 0; i < count; i++) {
		const double *row = x + (size_t)i * INPUTS;

		memcpy(ret->at[i].layers, row, sizeof(ret->at[i].layers));
		ret->at[i].batch = row[TD_MUDI_LAYERS] >= 1 && row[TD_MUDI_LAYERS] < UINT32_MAX
					   ? (uint32_t)row[TD_MUDI_LAYERS]
					   : 0;
		ret->at[i].share = row[TD_MUDI_LAYERS + 1];
		ret->at[i].latency_s = y[i];
	}
	return 0;
}

int td_points_add(struct td_store *store, enum td_points_of of, const char *service,
	const char *gpu, struct td_points *points, const struct td_campaign_point *point,
	struct td_err *err)
{
	struct td_campaign_point *at = NULL;
	double x[INPUTS];
	char target[80];
	int r;

	if (points) {
		at = realloc(points->at, (points->count + 1) * sizeof(*points->at));
		if (!at)
			return td_err_set(err, -ENOMEM, "no memory for one more point");
		points->at = at;
	}
	memcpy(x, point->layers, sizeof(point->layers));
	x[TD_MUDI_LAYERS] = point->batch;
	x[TD_MUDI_LAYERS + 1] = point->share;
	r = td_store_add_sample(
		store, target_of(of, service, target), gpu, x, INPUTS, point->latency_s);
	if (r)
		return td_err_set(err, r, "what was measured cannot be kept: %s", strerror(-r));
	if (points)
		points->at[points->count++] = *point;
	return 0;
}

int td_points_trim(struct td_store *store, enum td_points_of of, const char *service,
	const char *gpu, uint32_t keep, struct td_err *err)
{
	char target[80];
	int r = td_store_trim_samples(store, target_of(of, service, target), gpu, keep);

	return r ? td_err_set(err, r, "old measurements cannot be deleted: %s", strerror(-r)) : 0;
}

int td_points_load(
	const char *directory, const char *service, struct td_service_profile *ret_profile)
{
	td_auto_close int folder = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char file[80 + sizeof(TD_PROFILE_SUFFIX)];

	if (folder < 0)
		return -errno;
	snprintf(file, sizeof(file), "%.64s" TD_PROFILE_SUFFIX, service);
	return td_service_profile_load(folder, file, ret_profile, NULL);
}

int td_points_write(const struct td_service_profile *profile, const char *directory,
	const char *service, struct td_err *err)
{
	td_auto_free void *bytes = NULL;
	char path[4096];
	size_t size;
	int r = snprintf(path, sizeof(path), "%s/%s" TD_PROFILE_SUFFIX, directory, service) <
				(int)sizeof(path)
			? 0
			: -ENAMETOOLONG;

	r = r ? r : td_service_profile_to_bytes(profile, &bytes, &size);
	r = r ? r : td_profiler_write(path, bytes, size);
	return r ? td_err_set(err, r, "%.200s: %s", path, strerror(-r)) : 0;
}
