/* See store.h. */
#include "profiler/store.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "learn/store.h"

/* Makes the folders of a file, from the root on. */
static int make_folders(const char *file)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s", file) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	for (char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
		*at = 0;
		if (mkdir(path, 0700) && errno != EEXIST)
			return -errno;
		*at = '/';
	}
	return 0;
}

static int find_own(char *ret, size_t len, struct td_err *err)
{
	const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
	int n;

	if (data && *data == '/')
		n = snprintf(ret, len, "%s/tandem/profiles.db", data);
	else if (home && *home == '/')
		n = snprintf(ret, len, "%s/.local/share/tandem/profiles.db", home);
	else
		return td_err_set(err, -ENOENT,
			"neither HOME nor XDG_DATA_HOME is a folder: expected --store FILE");
	return n < (int)len
		       ? 0
		       : td_err_set(err, -ENAMETOOLONG, "HOME is too long: expected --store FILE");
}

int td_profiler_store_error(int code, struct td_err *err)
{
	switch (code) {
	case -ENOSYS: return td_err_set(err, code, "tandem was built without SQLite");
	case -EPROTO: return td_err_set(err, code, "the database is of a newer version of tandem");
	case -EBUSY: return td_err_set(err, code, "the database is locked by another process");
	case -EIO:
		return td_err_set(
			err, code, "the database is damaged, or cannot be read or written");
	case -EINVAL: return td_err_set(err, code, "the database has a row that is not valid");
	default: return td_err_set(err, code, "the database: %s", strerror(-code));
	}
}

int td_profiler_write(const char *path, const void *bytes, size_t size)
{
	char new[4096];
	ssize_t n;
	int fd, r = 0;

	if (snprintf(new, sizeof(new), "%s.new", path) >= (int)sizeof(new))
		return -ENAMETOOLONG;
	(void)unlink(new);
	fd = open(new, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd < 0)
		return -errno;
	for (size_t done = 0; !r && done < size; done += (size_t)n) {
		n = write(fd, (const char *)bytes + done, size - done);
		r = n < 0 ? -errno : 0;
	}
	if (close(fd) && !r)
		r = -errno;
	if (!r && rename(new, path))
		r = -errno;
	if (r)
		(void)unlink(new);
	return r;
}

static int refuse(const char *path, int code, struct td_err *err)
{
	struct td_err why;

	(void)td_profiler_store_error(code, &why);
	return td_err_set(err, code, "\"%.200s\": %.200s", path, why.msg);
}

/*
 * Opens `path`, or with NULL the user's own. Who only reads makes no folder and no database: a
 * user's own one that is not there yet has no rows.
 */
static int open_one(const char *path, bool to_read, struct td_store **ret_store, struct td_err *err)
{
	bool is_own = !path;
	char own[PATH_MAX];
	int r;

	if (!path) {
		r = find_own(own, sizeof(own), err);
		if (r)
			return r;
		r = to_read ? 0 : make_folders(own);
		if (r)
			return td_err_set(err, r, "\"%s\": %s", own, strerror(-r));
		path = own;
	}
	r = to_read ? td_store_open_to_read(path, ret_store) : td_store_open(path, ret_store);
	if (to_read && is_own && r == -ENOENT)
		r = td_store_open(":memory:", ret_store);
	return r ? refuse(path, r, err) : 0;
}

int td_profiler_open(const char *path, struct td_store **ret_store, struct td_err *err)
{
	return open_one(path, false, ret_store, err);
}

int td_profiler_open_to_read(const char *path, struct td_store **ret_store, struct td_err *err)
{
	return open_one(path, true, ret_store, err);
}
