/* Makes a kernel without SO_PEERPIDFD (before Linux 6.5) of any other, for who preloads it. */
#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <sys/socket.h>

#define PEERPIDFD 77

typedef int (*getsockopt_fn)(int fd, int level, int name, void *value, socklen_t *len);

__attribute__((visibility("default"))) int getsockopt(
	int fd, int level, int name, void *value, socklen_t *len)
{
	static getsockopt_fn real;

	if (level == SOL_SOCKET && name == PEERPIDFD) {
		errno = ENOPROTOOPT;
		return -1;
	}
	if (!real)
		real = (getsockopt_fn)dlsym(RTLD_NEXT, "getsockopt");
	return real(fd, level, name, value, len);
}
