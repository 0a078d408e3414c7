/* Writes what the daemon's exchange of jobs needs from the database (store.h). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "learn/speeds.h"
#include "learn/store.h"
#include "profile/speed_file.h"
#include "profiler/store.h"

/* Adds a kind of GPU, with `count` programs. One that has no predictor is left out. */
static int add_kind(struct td_store *store, struct td_speed_file *file,
	const struct td_program *programs, uint32_t count)
{
	struct td_speed_kind *kind = &file->kinds[file->count];
	int r = td_store_get_model(store, TD_SPEEDS_TARGET, programs->gpu, &kind->model);

	if (r == -ENOENT)
		return 0;
	if (r)
		return r;
	file->count++;
	snprintf(kind->gpu, sizeof(kind->gpu), "%s", programs->gpu);
	kind->programs = calloc(count, sizeof(*kind->programs));
	if (!kind->programs)
		return -ENOMEM;
	kind->count = count;
	for (uint32_t i = 0; i < count; i++) {
		snprintf(kind->programs[i].name, sizeof(kind->programs[i].name), "%s",
			programs[i].name);
		kind->programs[i].alone = td_speeds_profile(&programs[i]);
	}
	return 0;
}

static int collect(struct td_store *store, struct td_speed_file *file, struct td_err *err)
{
	td_auto_free struct td_program *programs = NULL;
	uint32_t count = 0, n;
	int r = td_store_get_programs(store, NULL, &programs, &count);

	file->kinds = r ? NULL : calloc(TD_SPEED_KINDS_MAX, sizeof(*file->kinds));
	if (!r && !file->kinds)
		r = -ENOMEM;
	for (uint32_t i = 0; !r && i < count; i += n) {
		for (n = 1; i + n < count && !strcmp(programs[i].gpu, programs[i + n].gpu);)
			n++;
		if (file->count == TD_SPEED_KINDS_MAX || n > TD_SPEED_PROGRAMS_MAX)
			return td_err_set(err, -E2BIG,
				"the database has more than %u kinds of GPU or %u programs",
				TD_SPEED_KINDS_MAX, TD_SPEED_PROGRAMS_MAX);
		r = add_kind(store, file, &programs[i], n);
	}
	return r ? td_profiler_store_error(r, err) : 0;
}

int td_profiler_export_speeds(struct td_store *store, const char *directory, struct td_err *err)
{
	struct td_speed_file file = {0};
	td_auto_free void *bytes = NULL;
	char path[4096];
	size_t size;
	int r = collect(store, &file, err);

	if (!r) {
		r = snprintf(path, sizeof(path), "%s/" TD_SPEED_FILE, directory) < (int)sizeof(path)
			    ? 0
			    : -ENAMETOOLONG;
		r = r ? r : td_speed_file_to_bytes(&file, &bytes, &size);
		r = r ? r : td_profiler_write(path, bytes, size);
		if (r)
			(void)td_err_set(
				err, r, "\"%.200s\" cannot be written: %s", path, strerror(-r));
	}
	td_speed_file_deinit(&file);
	return r;
}
