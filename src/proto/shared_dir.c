/*
 * Implements shared_dir.h. The interposer uses it, so it neither allocates nor needs a libc newer
 * than 2.17.
 */
#include "proto/shared_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

char *td_shared_dir(char *buf, size_t len, const char *socket)
{
	int n = snprintf(buf, len, "%s.ipc", socket);

	return n > 0 && (size_t)n < len ? buf : NULL;
}

/*
 * Makes the address of a file in the directory. Where the path is too long for a unix address, the
 * address goes through the directory's descriptor, which is then left open in *ret_dir. Returns 0
 * or -errno.
 */
static int address_of(const char *dir, const char *name, struct sockaddr_un *ret, int *ret_dir)
{
	int n = snprintf(ret->sun_path, sizeof(ret->sun_path), "%s/%s", dir, name);

	ret->sun_family = AF_UNIX;
	*ret_dir = -1;
	if (n > 0 && (size_t)n < sizeof(ret->sun_path))
		return 0;
	*ret_dir = open(dir, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (*ret_dir < 0)
		return -errno;
	n = snprintf(ret->sun_path, sizeof(ret->sun_path), "/proc/self/fd/%d/%s", *ret_dir, name);
	return n > 0 && (size_t)n < sizeof(ret->sun_path) ? 0 : -ENAMETOOLONG;
}

static int call(int (*what)(int fd, const struct sockaddr *address, socklen_t len), int fd,
	const char *dir, const char *name)
{
	struct sockaddr_un address;
	int dir_fd, r = address_of(dir, name, &address, &dir_fd);

	if (!r && what(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		r = -errno;
	if (dir_fd >= 0)
		close(dir_fd);
	return r;
}

/* Before bind, the mode of the socket is set: the kernel gives the same mode to the file. */
int td_shared_bind(int fd, const char *dir, const char *name)
{
	if (fchmod(fd, 0600) < 0)
		return -errno;
	return call(bind, fd, dir, name);
}

int td_shared_connect(int fd, const char *dir, const char *name)
{
	return call(connect, fd, dir, name);
}

static bool path_of(char *buf, size_t len, const char *dir, const char *name)
{
	int n = snprintf(buf, len, "%s/%s", dir, name);

	return n > 0 && (size_t)n < len;
}

int td_shared_find(const char *dir, const char *name, struct td_shared_file *ret)
{
	char path[2 * TD_SHARED_DIR_MAX];
	struct stat st;

	if (!path_of(path, sizeof(path), dir, name))
		return -ENOENT;
	/* A direct system call, because libc exports lstat as a symbol only since 2.33. */
	if (syscall(SYS_newfstatat, AT_FDCWD, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (!S_ISSOCK(st.st_mode) || st.st_uid != geteuid())
		return -EPERM;
	*ret = (struct td_shared_file){st.st_dev, st.st_ino};
	return 0;
}

void td_shared_remove(const char *dir, const char *name)
{
	char path[2 * TD_SHARED_DIR_MAX];

	if (path_of(path, sizeof(path), dir, name))
		(void)unlink(path);
}
