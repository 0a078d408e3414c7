/*
 * Implements lock.h. Files are opened by name in an open directory, never through a link, and
 * without blocking.
 */
#include "gpu/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/uuid.h"

#define TEXT_MAX 256

/*
 * Files come and go while they are opened. So many failures in a row mean that somebody interferes.
 */
#define ATTEMPTS 100

/*
 * Accepts a directory that is private, or writable for all with the sticky bit. Returns 0 or
 * -errno.
 */
static int check_directory(int fd, bool made)
{
	struct stat st;

	if (made && fchmod(fd, 01777) < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_uid && st.st_uid != geteuid() && !(st.st_mode & S_ISVTX))
		return -EPERM;
	return st.st_mode & 022 && !(st.st_mode & S_ISVTX) ? -EPERM : 0;
}

static int open_directory(const char *path)
{
	bool made = mkdir(path, 0700) == 0;
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), r;

	if (fd < 0)
		return -errno;
	r = check_directory(fd, made);
	if (!r)
		return fd;
	close(fd);
	return r;
}

int td_gpu_locks_open(const char *path)
{
	const char *chosen = getenv("TANDEM_LOCKS");
	int fd;

	if (strcmp(path, "auto"))
		return open_directory(path);
	if (chosen && *chosen)
		return open_directory(chosen);
	fd = open_directory("/run/lock/tandem");
	return fd >= 0 ? fd : open_directory("/tmp/tandem-locks");
}

/*
 * Opens or creates the lock file. It does not use O_CREAT without O_EXCL, because the kernel
 * refuses that for others' files in a sticky directory (fs.protected_regular).
 */
static int open_file(int directory, const char *name)
{
	const int flags = O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;

	for (int i = 0; i < ATTEMPTS; i++) {
		int fd = openat(directory, name, flags);

		if (fd >= 0 || errno != ENOENT)
			return fd < 0 ? -errno : fd;
		fd = openat(directory, name, flags | O_CREAT | O_EXCL, 0666);
		if (fd >= 0) {
			(void)fchmod(fd,
				/*
				 * Independent of the umask, since another user's daemon may come
				 * next.
				 */
				0666);
			return fd;
		}
		if (errno != EEXIST)
			return -errno;
	}
	return -EAGAIN;
}

static int lock_file(int fd)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	return fcntl(fd, F_OFD_SETLK, &lock) < 0 ? -errno : 0;
}

static void read_owner(int fd, struct td_gpu_owner *ret)
{
	char text[TEXT_MAX];
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
	int pid, at = 0;
	unsigned uid;

	*ret = (struct td_gpu_owner){0};
	text[n > 0 ? n : 0] = 0;
	text[strcspn(text, "\n")] = 0;
	if (sscanf(text, "pid=%d uid=%u socket=%n", &pid, &uid, &at) < 2 || !at)
		return;
	/* The text is printed on terminals, so only printable characters are kept. */
	for (char *p = text; *p; p++)
		if (*p < ' ' || *p > '~')
			*p = '?';
	ret->pid = pid;
	ret->uid = uid;
	snprintf(ret->socket, sizeof(ret->socket), "%s", text + at);
}

static int write_owner(int fd, const char *socket)
{
	char text[TEXT_MAX];
	int n = snprintf(text, sizeof(text), "pid=%d uid=%u socket=%.107s\n", (int)getpid(),
		(unsigned)geteuid(), socket);

	if (ftruncate(fd, 0) < 0 || pwrite(fd, text, (size_t)n, 0) != n)
		return -errno;
	return 0;
}

/*
 * Locks the file, and checks that the path still names this file. Returns 0; TD_GPU_LOCK_FREE if
 * another file has replaced it, so that the caller opens it again; or -errno.
 */
static int settle(int fd, struct td_gpu_owner *ret_owner)
{
	struct stat st;
	int r = lock_file(fd);

	if (r == -EAGAIN || r == -EACCES) {
		read_owner(fd, ret_owner);
		return -EBUSY;
	}
	if (!r && fstat(fd, &st) < 0)
		r = -errno;
	if (r)
		return r;
	if (!S_ISREG(st.st_mode) || st.st_nlink > 1)
		return -EPERM;
	return st.st_nlink ? 0 : TD_GPU_LOCK_FREE;
}

int td_gpu_lock_take(
	int directory, const uint8_t *uuid, const char *socket, struct td_gpu_owner *ret_owner)
{
	char name[TD_UUID_TEXT];

	td_uuid_format(name, uuid);
	for (int i = 0; i < ATTEMPTS; i++) {
		td_auto_close int fd = open_file(directory, name);
		int r = fd < 0 ? fd : settle(fd, ret_owner);

		if (r == TD_GPU_LOCK_FREE)
			continue;
		if (!r)
			r = write_owner(fd, socket);
		return r < 0 ? r : td_steal_fd(&fd);
	}
	return -EAGAIN;
}

void td_gpu_lock_release(int directory, const uint8_t *uuid, int fd)
{
	char name[TD_UUID_TEXT];

	/*
	 * The file is removed while this daemon holds its lock. A daemon that opens the file at
	 * this moment notices, after it got the lock, that the name is gone.
	 */
	(void)unlinkat(directory, td_uuid_format(name, uuid), 0);
	close(fd);
}

int td_gpu_lock_owner(int directory, const char *name, struct td_gpu_owner *ret_owner)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	td_auto_close int fd =
		openat(directory, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return errno == ENOENT ? TD_GPU_LOCK_FREE : -errno;
	if (fcntl(fd, F_OFD_GETLK, &lock) < 0)
		return -errno;
	if (lock.l_type == F_UNLCK)
		return TD_GPU_LOCK_FREE;
	read_owner(fd, ret_owner);
	return 0;
}
