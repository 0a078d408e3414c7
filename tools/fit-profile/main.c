/*
 * Makes the profile of a service, which policy mudi reads, from measurements in a CSV file. Each
 * row is a point: the layers of the neighbour (zeros: alone), batch, share of the SMs, and P99
 * latency of a batch in seconds.
 *
 * usage: fit-profile GPU-NAME POINTS.csv NAME.profile
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "learn/campaign.h"
#include "proto/layers.h"

#define POINTS_MAX 100000u
#define COLUMNS    (TD_LAYER_KINDS + 3)

static struct td_campaign_point points[POINTS_MAX];

static int fail(const char *what)
{
	fprintf(stderr, "fit-profile: %s\n", what);
	return 2;
}

/* False: the line has no such columns. */
static bool read_row(char *line, struct td_campaign_point *point)
{
	double values[COLUMNS];
	char *at = line;

	for (uint32_t c = 0; c < COLUMNS; c++) {
		char *end;

		values[c] = strtod(at, &end);
		if (end == at || (c + 1 < COLUMNS ? *end != ',' : *end && *end != '\n'))
			return false;
		at = end + 1;
	}
	memcpy(point->layers, values, sizeof(point->layers));
	if (!(values[TD_LAYER_KINDS] >= 1 && values[TD_LAYER_KINDS] <= TD_PROFILE_BATCH_MAX))
		return false;
	point->batch = (uint32_t)values[TD_LAYER_KINDS];
	point->share = values[TD_LAYER_KINDS + 1];
	point->latency_s = values[TD_LAYER_KINDS + 2];
	return true;
}

/* The first line names the columns. */
static int read_points(FILE *file, uint32_t *ret_count, struct td_err *err)
{
	char line[512];
	uint32_t count = 0, number = 0;

	while (fgets(line, sizeof(line), file)) {
		if (!number++)
			continue;
		if (count == POINTS_MAX)
			return td_err_set(err, -E2BIG, "more than %u points", POINTS_MAX);
		if (!read_row(line, &points[count]))
			return td_err_set(err, -EINVAL,
				"line %u: \"%.80s\" is not valid: expected %d counts of layers, "
				"batch, share, seconds",
				number, strtok(line, "\n"), TD_LAYER_KINDS);
		count++;
	}
	*ret_count = count;
	return 0;
}

/* The daemon never sees a half of it. */
static int write_file(const char *path, const void *bytes, size_t size)
{
	char new[4096];
	FILE *file;

	if (snprintf(new, sizeof(new), "%s.new", path) >= (int)sizeof(new))
		return -ENAMETOOLONG;
	file = fopen(new, "we");
	if (!file)
		return -errno;
	if (fwrite(bytes, 1, size, file) != size) {
		fclose(file);
		return -EIO;
	}
	if (fclose(file) || rename(new, path))
		return -errno;
	return 0;
}

int main(int argc, char **argv)
{
	static const char *const names[TD_PROFILE_MODELS] = {
		"slope left of the knee", "slope right of it", "knee's share", "knee's latency"};
	struct td_service_profile profile;
	struct td_err err = {0};
	uint32_t count = 0;
	void *bytes;
	size_t size;
	FILE *file;
	int r;

	if (argc != 4)
		return fail("usage: fit-profile GPU-NAME POINTS.csv NAME.profile");
	file = fopen(argv[2], "re");
	if (!file)
		return fail(strerror(errno));
	r = read_points(file, &count, &err);
	fclose(file);
	if (!r)
		r = td_campaign_learn(points, count, argv[1], &td_learn_default, &profile, &err);
	if (r)
		return fail(err.msg);
	r = td_service_profile_to_bytes(&profile, &bytes, &size);
	if (!r)
		r = write_file(argv[3], bytes, size);
	if (r)
		return fail(strerror(-r));
	printf("%llu curves, batches %u to %u\n", (unsigned long long)profile.curve_count,
		profile.batch_min, profile.batch_max);
	for (unsigned m = 0; m < TD_PROFILE_MODELS; m++)
		printf("%-23s error %.4g\n", names[m], profile.error[m]);
	free(bytes);
	td_service_profile_deinit(&profile);
	return 0;
}
