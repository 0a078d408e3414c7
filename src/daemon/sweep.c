/*
 * See sweep.h. A socket is dead if nobody takes connections there. One that was just made may not listen yet, so the young are looked at later. Who is
 * asked is the file that was looked at, not what its name may lead to by then.
 */
#include "daemon/sweep.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/time.h"

#define FILES_MAX 4096
#define NAME_LEN  32
#define YOUNG_S   5
#define AGAIN_NS  (6 * TD_NS_PER_S)
#define MODE_FOR_ALL                                                                               \
	01733 /* anyone may put sockets there and use those of their own; nobody can list or remove others' */
#define MODE_FOR_ONE 0700

int td_sweep_init(struct td_sweep *sweep, const char *socket)
{
	struct stat st;
	int fd, r = 0;

	*sweep = (struct td_sweep){0};
	if (!td_shared_dir(sweep->dir, sizeof(sweep->dir), socket))
		r = -ENAMETOOLONG;
	else if (mkdir(sweep->dir, MODE_FOR_ONE) < 0 && errno != EEXIST)
		r = -errno;
	fd = r ? -1 : open(sweep->dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (!r && fd < 0)
		r = -errno;
	/* Its owner can replace what is in it. */
	else if (!r && (fstat(fd, &st) < 0 || st.st_uid != geteuid()))
		r = -EPERM;
	else if (!r && fchmod(fd, geteuid() ? MODE_FOR_ONE : MODE_FOR_ALL) < 0)
		r = -errno;
	if (fd >= 0)
		close(fd);
	if (r)
		sweep->dir[0] = '\0';
	else
		sweep->due_ns = 1; /* what a lost daemon has left to us */
	return r;
}

void td_sweep_deinit(struct td_sweep *sweep)
{
	if (*sweep->dir)
		(void)rmdir(sweep->dir);
	sweep->dir[0] = '\0';
}

void td_sweep_soon(struct td_sweep *sweep, uint64_t now_ns)
{
	if (*sweep->dir && (!sweep->due_ns || now_ns < sweep->due_ns))
		sweep->due_ns = now_ns;
}

static bool is_name(const char *name)
{
	return strlen(name) == NAME_LEN && strspn(name, "0123456789abcdef") == NAME_LEN;
}

/* Refused: by nobody. Whatever else it may be is left alone. */
static bool is_dead(int file)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool dead;

	if (fd < 0)
		return false;
	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d", file);
	dead = connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0 &&
	       errno == ECONNREFUSED;
	close(fd);
	return dead;
}

/* True: it is to be looked at again. */
static bool look_at(int dir, const char *name, time_t now)
{
	int file = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	bool young = false;
	struct stat st;

	if (file < 0)
		return false;
	if (!fstat(file, &st) && S_ISSOCK(st.st_mode)) {
		young = st.st_mtime + YOUNG_S > now && st.st_mtime <= now + YOUNG_S;
		if (!young && is_dead(file))
			(void)unlinkat(dir, name, 0);
	}
	close(file);
	return young;
}

static bool look_around(DIR *dir)
{
	time_t now = time(NULL);
	const struct dirent *entry;
	bool again = false;

	for (unsigned i = 0; i < FILES_MAX && (entry = readdir(dir)); i++)
		if (is_name(entry->d_name))
			again |= look_at(dirfd(dir), entry->d_name, now);
	return again;
}

uint64_t td_sweep_turn(struct td_sweep *sweep, uint64_t now_ns)
{
	DIR *dir;

	if (!sweep->due_ns)
		return UINT64_MAX;
	if (now_ns < sweep->due_ns)
		return sweep->due_ns;
	dir = opendir(sweep->dir);
	sweep->due_ns = dir && look_around(dir) ? now_ns + AGAIN_NS : 0;
	if (dir)
		closedir(dir);
	return sweep->due_ns ? sweep->due_ns : UINT64_MAX;
}
