/*
 * Removes dead sockets; see sweep.h. A socket is dead if no process accepts connections on it. A
 * new socket may not listen yet, so young ones are checked later. The test connects to the file
 * that was checked, even if its name leads elsewhere by then.
 *
 *   idle ----requested, and a second after the last sweep began----> sweeping
 *   sweeping: PIECE entries, then a pause, until there are no more;
 *             then idle, requested again if some sockets were too young
 *
 * The directory stays open during a sweep. Other files in it cost a bounded share of the loop's
 * time, and delay the files behind them, but do not hide them.
 */
#include "daemon/server/loop/sweep.h"

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

#define PIECE    64
#define PAUSE_NS (5 * TD_NS_PER_MS)
#define EVERY_NS TD_NS_PER_S
#define NAME_LEN 32
#define YOUNG_S  5
#define AGAIN_NS (6 * TD_NS_PER_S)
/*
 * The modes of the directory. FOR_ALL: any user may put sockets there and use his own, but cannot
 * list or remove others'.
 */
#define MODE_FOR_ALL 01733
#define MODE_FOR_ONE 0700

/* Opens the directory, and makes it if it does not exist. Returns a descriptor or -errno. */
static int open_dir(const char *path)
{
	struct stat st;
	int fd, r = 0;

	if (mkdir(path, MODE_FOR_ONE) < 0 && errno != EEXIST)
		return -errno;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	/*
	 * Whoever owns the directory can replace the files in it. So only a directory of this user
	 * is swept.
	 */
	if (fstat(fd, &st) < 0 || st.st_uid != geteuid())
		r = -EPERM;
	else if (fchmod(fd, geteuid() ? MODE_FOR_ONE : MODE_FOR_ALL) < 0)
		r = -errno;
	if (r)
		close(fd);
	return r ? r : fd;
}

int td_sweep_init(struct td_sweep *sweep, const char *socket)
{
	int fd;

	*sweep = (struct td_sweep){0};
	fd = td_shared_dir(sweep->dir, sizeof(sweep->dir), socket) ? open_dir(sweep->dir)
								   : -ENAMETOOLONG;
	if (fd < 0) {
		sweep->dir[0] = '\0';
		return fd;
	}
	close(fd);
	sweep->due_ns = 1; /* a lost daemon may have left dead sockets */
	return 0;
}

void td_sweep_deinit(struct td_sweep *sweep)
{
	if (sweep->entries)
		closedir(sweep->entries);
	if (*sweep->dir)
		(void)rmdir(sweep->dir);
	*sweep = (struct td_sweep){0};
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

/*
 * Returns whether no process has the socket any more. connect() fails with ECONNREFUSED for such a
 * name, and with EPROTOTYPE for a live socket of another type. So a datagram socket is used for the
 * test: it never gets a connection, over which the other side could pass descriptors that take long
 * to close (closer.h).
 */
static bool is_dead(int file)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool dead;

	if (fd < 0)
		return false;
	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d", file);
	dead = connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0 &&
	       errno == ECONNREFUSED;
	close(fd);
	return dead;
}

/*
 * Checks one file of the directory. Returns whether to check it again later. A socket has one name
 * when it is bound: further names are links that a user made, and a daemon restores its own name if
 * it is lost.
 */
static bool look_at(int dir, const char *name, time_t now)
{
	int file = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	bool young = false;
	struct stat st;

	if (file < 0)
		return false;
	if (!fstat(file, &st) && S_ISSOCK(st.st_mode)) {
		young = st.st_nlink == 1 && st.st_mtime + YOUNG_S > now &&
			st.st_mtime <= now + YOUNG_S;
		if (st.st_nlink > 1 || (!young && is_dead(file)))
			(void)unlinkat(dir, name, 0);
	}
	close(file);
	return young;
}

static bool may_be_socket(const struct dirent *entry)
{
	return entry->d_type == DT_SOCK || entry->d_type == DT_UNKNOWN;
}

static void begin_sweep(struct td_sweep *sweep, uint64_t now_ns)
{
	int fd = open_dir(sweep->dir);

	sweep->due_ns = 0;
	sweep->next_ns = now_ns + EVERY_NS;
	sweep->again = false;
	sweep->entries = fd < 0 ? NULL : fdopendir(fd);
	if (fd >= 0 && !sweep->entries)
		close(fd);
}

static void end_sweep(struct td_sweep *sweep, uint64_t now_ns)
{
	closedir(sweep->entries);
	sweep->entries = NULL;
	if (sweep->again && !sweep->due_ns)
		sweep->due_ns = now_ns + AGAIN_NS;
}

static void look_on(struct td_sweep *sweep, uint64_t now_ns)
{
	time_t now = time(NULL);
	const struct dirent *entry;

	for (unsigned i = 0; i < PIECE; i++) {
		entry = readdir(sweep->entries);
		if (!entry) {
			end_sweep(sweep, now_ns);
			return;
		}
		if (may_be_socket(entry) && is_name(entry->d_name))
			sweep->again |= look_at(dirfd(sweep->entries), entry->d_name, now);
	}
	sweep->piece_ns = now_ns + PAUSE_NS;
}

static uint64_t when(const struct td_sweep *sweep)
{
	if (sweep->entries)
		return sweep->piece_ns;
	if (!sweep->due_ns)
		return UINT64_MAX;
	return sweep->due_ns > sweep->next_ns ? sweep->due_ns : sweep->next_ns;
}

uint64_t td_sweep_turn(struct td_sweep *sweep, uint64_t now_ns)
{
	if (now_ns < when(sweep))
		return when(sweep);
	if (!sweep->entries)
		begin_sweep(sweep, now_ns);
	if (sweep->entries)
		look_on(sweep, now_ns);
	return when(sweep);
}
