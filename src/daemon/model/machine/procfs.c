/* This file implements procfs.h. */
#include "daemon/model/machine/procfs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/text.h"

/* These numbers are the same on all architectures; older headers lack them. */
#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

/* The fields of /proc/PID/stat are numbered from 1: the name is field 2, the state field 3. */
#define FIELD_UTIME  14
#define FIELD_STIME  15
#define FIELD_START  22
#define FIELD_STATE  3
#define TEXT_MAX     4096
#define PATH_LEN_MAX 1024

static bool parse_number(const char **text, uint64_t *ret)
{
	uint64_t value = 0;
	const char *p = *text;

	/* Some fields are negative. Their sign is skipped, since none of them is used. */
	if (*p == '-')
		p++;
	if (*p < '0' || *p > '9')
		return false;
	for (; *p >= '0' && *p <= '9'; p++) {
		if (value > (UINT64_MAX - 9) / 10)
			return false;
		value = value * 10 + (uint64_t)(*p - '0');
	}
	*text = p;
	*ret = value;
	return true;
}

/* The process name may contain spaces and parentheses, so it ends at the last ')'. */
bool td_procfs_parse_stat(const char *text, struct td_procfs_stat *ret)
{
	const char *p = strrchr(text, ')');
	uint64_t fields[FIELD_START + 1] = {0};

	if (!p || p[1] != ' ' || p[2] < 'A' || p[2] > 'z' || p[3] != ' ')
		return false;
	ret->state = p[2];
	p += 3;
	for (unsigned i = FIELD_STATE + 1; i <= FIELD_START; i++) {
		if (*p++ != ' ' || !parse_number(&p, &fields[i]))
			return false;
	}
	ret->cpu_ticks = fields[FIELD_UTIME] + fields[FIELD_STIME];
	ret->start_ticks = fields[FIELD_START];
	return true;
}

/*
 * Returns whether the word is in a list with commas. The list of the unified hierarchy is empty,
 * and so is its word.
 */
static bool has_controller(const char *list, size_t len, const char *word)
{
	size_t n = strlen(word);

	if (!n || !len)
		return !n && !len;
	for (size_t i = 0; i + n <= len; i++)
		if ((!i || list[i - 1] == ',') && !memcmp(list + i, word, n) &&
			(i + n == len || list[i + n] == ','))
			return true;
	return false;
}

/* Returns whether the path leads above the group that is the root in this namespace. */
static bool leads_out(const char *path)
{
	size_t len = strlen(path);

	return strstr(path, "/../") || (len >= 3 && !strcmp(path + len - 3, "/.."));
}

bool td_procfs_parse_cgroup(const char *text, const char *controller, char *ret, size_t len)
{
	while (*text) {
		const char *end = strchr(text, '\n'), *list = strchr(text, ':'), *path;
		size_t line = end ? (size_t)(end - text) : strlen(text), n;

		path = list && list < text + line ? strchr(list + 1, ':') : NULL;
		if (path && path < text + line &&
			has_controller(list + 1, (size_t)(path - list - 1), controller)) {
			n = (size_t)(text + line - ++path);
			while (n && path[n - 1] == '/')
				n--;
			if (n >= len || (n && *path != '/'))
				return false;
			memcpy(ret, path, n);
			ret[n] = 0;
			return !leads_out(ret);
		}
		text += line + (end != NULL);
	}
	return false;
}

bool td_procfs_parse_events(const char *text)
{
	static const char word[] = "frozen 1";

	for (const char *p = strstr(text, word); p; p = strstr(p + 1, word))
		if ((p == text || p[-1] == '\n') &&
			(p[sizeof(word) - 1] == '\n' || !p[sizeof(word) - 1]))
			return true;
	return false;
}

bool td_procfs_parse_freezer(const char *text)
{
	return !strcmp(text, "FROZEN\n") || !strcmp(text, "FROZEN");
}

/* Reads a file of /proc or of a control group as text. Returns 0 or -errno. */
static int read_text(const char *path, char *ret, size_t len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t n = fd < 0 ? -1 : read(fd, ret, len - 1);
	int r = n < 0 ? -errno : 0;

	if (fd >= 0)
		close(fd);
	ret[n < 0 ? 0 : n] = 0;
	return r;
}

int td_procfs_stat(pid_t pid, struct td_procfs_stat *ret)
{
	char path[64], text[TEXT_MAX];
	int r;

	/* The process is in another PID namespace, which is not visible here. */
	if (pid <= 0)
		return -ESRCH;
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	r = read_text(path, text, sizeof(text));
	if (r)
		return r;
	return td_procfs_parse_stat(text, ret) ? 0 : -EBADMSG;
}

/* Returns whether the group or one above it is frozen. The group's own file may not show it yet. */
static bool is_frozen_at(
	const char *root, const char *group, const char *file, bool (*parse)(const char *text))
{
	char path[PATH_LEN_MAX], at[PATH_LEN_MAX / 2], text[512], *slash;

	snprintf(at, sizeof(at), "%s", group);
	for (;;) {
		snprintf(path, sizeof(path), "%s%s/%s", root, at, file);
		if (!read_text(path, text, sizeof(text)) && parse(text))
			return true;
		slash = strrchr(at, '/');
		if (!slash)
			return false;
		*slash = 0;
	}
}

static bool is_frozen(pid_t pid)
{
	char path[64], text[TEXT_MAX], group[PATH_LEN_MAX / 2];

	snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
	if (read_text(path, text, sizeof(text)))
		return false;
	if (td_procfs_parse_cgroup(text, "", group, sizeof(group)) &&
		(is_frozen_at("/sys/fs/cgroup", group, "cgroup.events", td_procfs_parse_events) ||
			is_frozen_at("/sys/fs/cgroup/unified", group, "cgroup.events",
				td_procfs_parse_events)))
		return true;
	return td_procfs_parse_cgroup(text, "freezer", group, sizeof(group)) &&
	       is_frozen_at(
		       "/sys/fs/cgroup/freezer", group, "freezer.state", td_procfs_parse_freezer);
}

int td_procfs_group(pid_t pid, char *ret, size_t len)
{
	char path[64], text[TEXT_MAX];
	int r;

	if (pid <= 0)
		return -ESRCH;
	snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
	r = read_text(path, text, sizeof(text));
	if (r)
		return r;
	return td_procfs_parse_cgroup(text, "", ret, len) ? 0 : -ENOENT;
}

enum td_stop td_procfs_stop(pid_t pid, const struct td_procfs_stat *stat)
{
	if (stat->state == 'T')
		return TD_STOP_SIGNAL;
	if (stat->state == 't')
		return TD_STOP_TRACED;
	/*
	 * A process that runs on a processor cannot be in a frozen group, so the files need not be
	 * read.
	 */
	return stat->state != 'R' && is_frozen(pid) ? TD_STOP_FROZEN : TD_STOP_NONE;
}

/* Reads the real and the effective uid of a process. Returns 0 or -errno. */
static int read_uids(pid_t pid, uid_t *ret_real, uid_t *ret_effective)
{
	char path[64], text[1024];
	const char *line;
	int r;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	r = td_file_read(path, text, sizeof(text));
	if (r)
		return r;
	line = strstr(text, "\nUid:");
	return line && sscanf(line, "\nUid: %u %u", ret_real, ret_effective) == 2 ? 0 : -ESRCH;
}

int td_procfs_uid(pid_t pid, uid_t *ret)
{
	uid_t effective;

	return read_uids(pid, ret, &effective);
}

uint64_t td_procfs_start_ticks(pid_t pid, uid_t uid)
{
	struct td_procfs_stat stat;
	uid_t real, effective;

	if (td_procfs_stat(pid, &stat) || read_uids(pid, &real, &effective))
		return 0;
	return real == uid || effective == uid ? stat.start_ticks : 0;
}

int td_procfs_pidfd(int socket, pid_t pid)
{
	int fd = -1;
	socklen_t len = sizeof(fd);

	/*
	 * This descriptor names the process that connected, even if another one has its number by
	 * now.
	 */
	if (!getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &fd, &len))
		return fd;
#ifdef SYS_pidfd_open
	fd = (int)syscall(SYS_pidfd_open, pid, 0);
	return fd < 0 ? -errno : fd;
#else
	(void)pid;
	return -ENOSYS;
#endif
}

/* Returns whether the pid still belongs to the process that started at start_ticks. */
static bool is_still(pid_t pid, uint64_t start_ticks)
{
	struct td_procfs_stat stat;

	return start_ticks && !td_procfs_stat(pid, &stat) && stat.start_ticks == start_ticks;
}

int td_procfs_signal(int socket, pid_t pid, uint64_t start_ticks, int signal)
{
	int fd = -1, r;
	socklen_t len = sizeof(fd);
	bool is_exact = !getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &fd, &len);

	if (!is_exact)
		fd = td_procfs_pidfd(socket, pid);
	if (fd < 0)
		return fd;
	/*
	 * The check comes after the descriptor was opened: a later process with that pid would have
	 * a later start time.
	 */
	if (!is_exact && !is_still(pid, start_ticks))
		r = -ESRCH;
	else
		r = syscall(SYS_pidfd_send_signal, fd, signal, NULL, 0) < 0 ? -errno : 0;
	close(fd);
	return r;
}
