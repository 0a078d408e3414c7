/*
 * Reads the links of /proc/thread-self/fd; see opened.h. It asks for the thread and not for the
 * process, whose list is empty once its first thread has ended. It takes nothing from the heap.
 */
#include "preload/base/opened.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char list[] = "/proc/thread-self/fd";

/* A record of getdents64(2). */
struct entry {
	uint64_t inode, offset;
	unsigned short bytes;
	unsigned char type;
	char name[];
};

static void name(char *ret, size_t len, const char *path)
{
	size_t n = strnlen(path, len - 1);

	memcpy(ret, path, n);
	ret[n] = '\0';
}

static bool is_wanted(int fd, const char *link, bool (*is)(const char *path), char *ret, size_t len)
{
	char path[PATH_MAX];
	ssize_t n = readlinkat(fd, link, path, sizeof(path) - 1);

	if (n <= 0)
		return false; /* closed meanwhile, or the entry "." or ".." */
	path[n] = '\0';
	if (!is(path))
		return false;
	name(ret, len, path);
	return true;
}

/* Returns 1 if found, 0 if there is none, -1 if the list ended with an error. */
static int find_descriptor(int fd, bool (*is)(const char *path), char *ret, size_t len)
{
	char buffer[4096] __attribute__((aligned(8)));
	long n;

	while ((n = syscall(SYS_getdents64, fd, buffer, sizeof(buffer))) > 0)
		for (long at = 0; at < n;) {
			const struct entry *entry = (const struct entry *)(buffer + at);

			if (is_wanted(fd, entry->name, is, ret, len))
				return 1;
			at += entry->bytes;
		}
	return n ? -1 : 0;
}

bool td_opened_find(bool (*is)(const char *path), char *ret, size_t len)
{
	int saved = errno, fd = open(list, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = fd < 0 ? -1 : find_descriptor(fd, is, ret, len);

	if (fd >= 0)
		close(fd);
	if (r < 0)
		name(ret, len, list);
	errno = saved;
	return r != 0;
}
