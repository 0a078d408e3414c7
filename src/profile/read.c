/* This file implements read.h. */
#include "profile/read.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"

/* Reads a whole regular file. Its size is checked before memory is allocated. */
static int read_all(int fd, char **ret_bytes, size_t *ret_size, struct td_err *err)
{
	struct stat st;
	size_t size = 0;
	char *bytes;

	if (fstat(fd, &st) < 0)
		return td_err_set(err, -errno, "%s", strerror(errno));
	if (!S_ISREG(st.st_mode))
		return td_err_set(err, -EINVAL, "it is not a regular file");
	if (st.st_size > (off_t)TD_PROFILE_BYTES_MAX)
		return td_err_set(err, -EFBIG, "it has more than %u bytes", TD_PROFILE_BYTES_MAX);
	bytes = malloc((size_t)st.st_size + 1);
	if (!bytes)
		return td_err_set(err, -ENOMEM, "%s", strerror(ENOMEM));
	while (size < (size_t)st.st_size) {
		ssize_t n = read(fd, bytes + size, (size_t)st.st_size - size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		size += (size_t)n;
	}
	*ret_bytes = bytes;
	*ret_size = size;
	return 0;
}

int td_profile_read(
	int folder_fd, const char *file, char **ret_bytes, size_t *ret_size, struct td_err *err)
{
	int fd = openat(folder_fd, file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW), r;

	if (fd < 0)
		return td_err_set(err, -errno, "%s", strerror(errno));
	r = read_all(fd, ret_bytes, ret_size, err);
	close(fd);
	return r;
}
