/*
 * This file implements spaces.h. The pid in SO_PEERCRED may be another process's by the time that
 * /proc is read. With SO_PEERPIDFD (Linux 6.5) the process that connected is known to have lived
 * until after the read, so its pid was its own. Before Linux 6.5, the process must have the same
 * uid and the same start time before and after.
 */
#include "daemon/server/peers/spaces.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "daemon/model/machine/procfs.h"

/* Older headers lack these. */
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif
#define NS_GET_USERNS    _IO(0xb7, 1)
#define NS_GET_PARENT    _IO(0xb7, 2)
#define NS_GET_OWNER_UID _IO(0xb7, 4)

#define PATH_LEN 64
#define TEXT_LEN 4096

struct space {
	struct td_list of_all;
	struct td_space_file file;
	uint32_t number, uses;
	int fd;
};

static struct space *space_at(struct td_list *it)
{
	return td_container_of(it, struct space, of_all);
}

bool td_spaces_parse_status(const char *text)
{
	const char *line = strstr(text, "\nNSpid:"), *end;
	unsigned pid;
	int n = 0;

	if (!line || sscanf(line, "\nNSpid:%u%n", &pid, &n) != 1 || !n)
		return false;
	end = line + n;
	return *end == '\n';
}

bool td_spaces_parse_uid_map(const char *text)
{
	unsigned inside, outside, count;

	return sscanf(text, "%u %u %u", &inside, &outside, &count) == 3 && !inside && !outside &&
	       count == UINT32_MAX;
}

static bool read_text(const char *path, char *ret, size_t len)
{
	return !td_file_read(path, ret, len) && *ret;
}

static bool read_file(const char *path, struct td_space_file *ret)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return false;
	*ret = (struct td_space_file){st.st_dev, st.st_ino};
	return true;
}

static bool read_open_file(int fd, struct td_space_file *ret)
{
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return false;
	*ret = (struct td_space_file){st.st_dev, st.st_ino};
	return true;
}

static bool is_same_file(const struct td_space_file *a, const struct td_space_file *b)
{
	return a->device == b->device && a->inode == b->inode;
}

/* Returns whether /proc shows this process under the number that it has for itself. */
static bool shows_us(void)
{
	char text[TEXT_LEN], link[16], number[16];
	ssize_t n = readlink("/proc/self", link, sizeof(link) - 1);

	link[n > 0 ? n : 0] = 0;
	snprintf(number, sizeof(number), "%d", (int)getpid());
	return !strcmp(link, number) && read_text("/proc/self/status", text, sizeof(text)) &&
	       (td_spaces_parse_status(text) || !strstr(text, "\nNSpid:"));
}

static uid_t read_nobody(void)
{
	char text[TEXT_LEN];
	unsigned uid;

	if (!read_text("/proc/self/uid_map", text, sizeof(text)) || td_spaces_parse_uid_map(text))
		return (uid_t)-1;
	return read_text("/proc/sys/kernel/overflowuid", text, sizeof(text)) &&
			       sscanf(text, "%u", &uid) == 1
		       ? uid
		       : 65534;
}

int td_spaces_init(struct td_spaces *spaces)
{
	*spaces = (struct td_spaces){.next = TD_SPACE_OWN + 1};
	td_list_init(&spaces->all);
	spaces->is_readable = shows_us();
	spaces->has_namespaces = read_file("/proc/self/ns/pid", &spaces->own_pid);
	(void)read_file("/proc/self/ns/user", &spaces->own_user);
	spaces->nobody = read_nobody();
	return spaces->is_readable ? 0 : -ENOENT;
}

static void drop(struct space *space)
{
	td_list_remove(&space->of_all);
	close(space->fd);
	free(space);
}

void td_spaces_deinit(struct td_spaces *spaces)
{
	struct td_list *it, *tmp;

	td_list_for_each_safe (it, tmp, &spaces->all)
		drop(space_at(it));
}

uint32_t td_spaces_use(struct td_spaces *spaces, const struct td_space_file *file, int fd)
{
	struct space *space;
	struct td_list *it;

	td_list_for_each (it, &spaces->all) {
		space = space_at(it);
		if (!is_same_file(&space->file, file))
			continue;
		spaces->unused -= !space->uses++;
		td_list_remove(&space->of_all);
		td_list_append(&spaces->all, &space->of_all);
		close(fd);
		return space->number;
	}
	space = calloc(1, sizeof(*space));
	if (!space || spaces->next == TD_SPACE_UNKNOWN) {
		free(space);
		close(fd);
		return TD_SPACE_UNKNOWN;
	}
	*space = (struct space){.file = *file, .number = spaces->next++, .uses = 1, .fd = fd};
	td_list_append(&spaces->all, &space->of_all);
	return space->number;
}

/* Drops the space that was used longest ago among those without connections. */
static void drop_oldest(struct td_spaces *spaces)
{
	struct td_list *it, *tmp;

	td_list_for_each_safe (it, tmp, &spaces->all) {
		if (space_at(it)->uses)
			continue;
		drop(space_at(it));
		spaces->unused--;
		return;
	}
}

void td_spaces_leave(struct td_spaces *spaces, struct td_identity who)
{
	struct td_list *it;

	if (who.space == TD_SPACE_OWN || who.space == TD_SPACE_UNKNOWN)
		return;
	td_list_for_each (it, &spaces->all) {
		struct space *space = space_at(it);

		if (space->number != who.space)
			continue;
		spaces->unused += !--space->uses;
		td_list_remove(&space->of_all);
		td_list_append(&spaces->all, &space->of_all);
		break;
	}
	if (spaces->unused > TD_SPACES_UNUSED_MAX)
		drop_oldest(spaces);
}

/* Opens the process's PID namespace, or the one above it that is directly below the daemon's. */
static int open_below_own(const struct td_spaces *spaces, const char *path)
{
	struct td_space_file file;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	while (fd >= 0) {
		int parent = ioctl(fd, NS_GET_PARENT);

		if (!read_open_file(parent, &file)) {
			close(fd);
			return -EPERM;
		}
		if (is_same_file(&file, &spaces->own_pid)) {
			close(parent);
			return fd;
		}
		close(fd);
		fd = parent;
	}
	return -EACCES;
}

/*
 * Returns whether an ordinary user has made the namespace, which he can in a user namespace of his
 * own. Containers of the system are made by root.
 */
static bool is_made_by_user(const struct td_spaces *spaces, int fd)
{
	td_auto_close int user_fd = ioctl(fd, NS_GET_USERNS);
	struct td_space_file file;
	uid_t owner = 0;

	return read_open_file(user_fd, &file) && !is_same_file(&file, &spaces->own_user) &&
	       !ioctl(user_fd, NS_GET_OWNER_UID, &owner) && owner;
}

/* Returns the space of a process that is in a namespace below the daemon's. */
static uint32_t space_below(struct td_spaces *spaces, const char *path, uid_t uid)
{
	struct td_space_file file;
	int fd = open_below_own(spaces, path);

	if (fd < 0)
		return TD_SPACE_UNKNOWN;
	/* Root is never mistaken for the daemon's own, whoever has made its namespace. */
	if (uid && is_made_by_user(spaces, fd)) {
		close(fd);
		return TD_SPACE_OWN;
	}
	if (!read_open_file(fd, &file)) {
		close(fd);
		return TD_SPACE_UNKNOWN;
	}
	return td_spaces_use(spaces, &file, fd);
}

static uint32_t read_space(struct td_spaces *spaces, pid_t pid, uid_t uid)
{
	char path[PATH_LEN], text[TEXT_LEN];
	struct td_space_file file;

	if (!spaces->has_namespaces)
		return TD_SPACE_OWN;
	snprintf(path, sizeof(path), "/proc/%d/ns/pid", (int)pid);
	if (read_file(path, &file))
		return is_same_file(&file, &spaces->own_pid) ? TD_SPACE_OWN
							     : space_below(spaces, path, uid);
	if (errno != EACCES)
		return TD_SPACE_UNKNOWN;
	/*
	 * This is a process of another user. We may not see which PID namespace it is in, but its
	 * status tells whether it is in ours.
	 */
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	return read_text(path, text, sizeof(text)) && td_spaces_parse_status(text)
		       ? TD_SPACE_OWN
		       : TD_SPACE_UNKNOWN;
}

/* Identifies the process that connected, to tell whether its pid was its own all the time. */
struct witness {
	int fd;               /* below 0: this kernel has no SO_PEERPIDFD */
	uint64_t start_ticks; /* without a descriptor; 0: unknown */
};

static bool begin(struct witness *witness, int socket, const struct ucred *credentials)
{
	socklen_t len = sizeof(witness->fd);

	*witness = (struct witness){.fd = -1};
	if (!getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &witness->fd, &len))
		return true;
	if (errno != ENOPROTOOPT)
		return false; /* the process has ended */
	witness->fd = -1;
	witness->start_ticks = td_procfs_start_ticks(credentials->pid, credentials->uid);
	return witness->start_ticks != 0;
}

static bool end(struct witness *witness, const struct ucred *credentials)
{
	struct pollfd end_fd = {witness->fd, POLLIN, 0};
	bool is_alive;

	if (witness->fd < 0)
		return td_procfs_start_ticks(credentials->pid, credentials->uid) ==
		       witness->start_ticks;
	is_alive = poll(&end_fd, 1, 0) == 0;
	close(witness->fd);
	return is_alive;
}

struct td_identity td_spaces_enter(
	struct td_spaces *spaces, int socket, const struct ucred *credentials)
{
	struct td_identity who = {.uid = credentials->uid, .space = TD_SPACE_UNKNOWN};
	struct witness witness;

	/* The kernel reports pid 0 for a process outside of the daemon's PID namespace. */
	if (!spaces->is_readable || credentials->pid <= 0 || credentials->uid == spaces->nobody ||
		!begin(&witness, socket, credentials))
		return who;
	who.space = read_space(spaces, credentials->pid, credentials->uid);
	if (!end(&witness, credentials)) {
		td_spaces_leave(spaces, who);
		who.space = TD_SPACE_UNKNOWN;
	}
	return who;
}
