/* This file implements cpuset.h. */
#include "daemon/model/machine/cpuset.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"

#define CPU_MAX    65535u
#define OWN        "/tandemd"
#define BESTEFFORT "/besteffort"
#define JOBS       "/jobs"

/* -- lists of CPUs -- */

static bool parse_cpu(const char **text, uint32_t *ret)
{
	const char *begin = *text;
	uint32_t cpu = 0;

	for (; **text >= '0' && **text <= '9'; (*text)++) {
		cpu = cpu * 10 + (uint32_t)(**text - '0');
		if (cpu > CPU_MAX)
			return false;
	}
	*ret = cpu;
	return *text > begin;
}

bool td_cpuset_parse(const char *cpus)
{
	uint32_t first, last;

	if (strlen(cpus) >= TD_CPUSET_CPUS)
		return false;
	for (;;) {
		if (!parse_cpu(&cpus, &first))
			return false;
		if (*cpus == '-') {
			cpus++;
			if (!parse_cpu(&cpus, &last) || last < first)
				return false;
		}
		if (*cpus != ',')
			return !*cpus;
		cpus++;
	}
}

/* -- files of a control group -- */

static void path_of(char *ret, size_t len, const char *own, const char *group, const char *file)
{
	snprintf(ret, len, "%s%s%s", own, group, file);
}

static int write_file(const char *own, const char *group, const char *file, const char *text)
{
	char path[TD_CPUSET_PATH + 64];
	size_t len = strlen(text);
	ssize_t n;
	int fd, r = 0;

	path_of(path, sizeof(path), own, group, file);
	fd = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return -errno;
	n = write(fd, text, len);
	if (n < 0)
		r = -errno;
	else if ((size_t)n != len)
		r = -EIO;
	close(fd);
	return r;
}

static int write_pid(const char *own, const char *group, pid_t pid)
{
	char text[16];

	snprintf(text, sizeof(text), "%d\n", (int)pid);
	return write_file(own, group, "/cgroup.procs", text);
}

/*
 * Returns whether a list of words with spaces between, such as cgroup.controllers, contains the
 * word.
 */
static bool has_word(const char *text, const char *word)
{
	size_t len = strlen(word);

	while (*text) {
		size_t n = strcspn(text, " \n");

		if (n == len && !memcmp(text, word, n))
			return true;
		text += n + (text[n] != 0);
	}
	return false;
}

/* Returns 0, -ENODEV if the cpuset controller is not available in the group, or another -errno. */
static int check_controller(const char *own)
{
	char path[TD_CPUSET_PATH + 64], text[512];
	int r;

	path_of(path, sizeof(path), own, "", "/cgroup.controllers");
	r = td_file_read(path, text, sizeof(text));
	if (r)
		return r;
	return has_word(text, "cpuset") ? 0 : -ENODEV;
}

static int make_group(const char *own, const char *group)
{
	char path[TD_CPUSET_PATH + 64];

	path_of(path, sizeof(path), own, group, "");
	return !mkdir(path, 0755) || errno == EEXIST ? 0 : -errno;
}

/* -- the daemon's own group -- */

static const char *reason(int r)
{
	switch (r) {
	case -ENOENT: return "it is no group of the unified hierarchy (cgroup v2)";
	case -ENODEV: return "it has no cpuset controller";
	case -EACCES:
	case -EPERM:
	case -EROFS: return "it may not be written";
	case -EBUSY: return "other processes are in it";
	default: return strerror(-r);
	}
}

/*
 * Cuts off the subgroup of an earlier daemon from the path. Returns whether the path ended in it.
 */
static bool cut_own(char *own)
{
	size_t len = strlen(own), tail = strlen(OWN);
	bool is = len > tail && !strcmp(own + len - tail, OWN);

	if (is)
		own[len - tail] = 0;
	return is;
}

static int divide(char *own, pid_t self)
{
	int r;

	/*
	 * The daemon may have been started in the subgroup of an earlier one (DelegateSubgroup=).
	 */
	(void)cut_own(own);
	r = check_controller(own);
	if (!r)
		r = make_group(own, OWN);
	if (!r)
		r = write_pid(own, OWN, self);
	if (!r)
		r = write_file(own, "", "/cgroup.subtree_control", "+cpuset");
	if (!r)
		r = make_group(own, BESTEFFORT);
	return r ? r : make_group(own, JOBS);
}

int td_cpuset_set(
	struct td_cpuset *cpuset, const char *root, const char *group, const char *cpus, pid_t self)
{
	char own[TD_CPUSET_PATH], text[TD_CPUSET_CPUS + 1];
	int r = 0;

	snprintf(own, sizeof(own), "%s%s", root, group);
	if (!*cpuset->own && !*cpus) {
		cpuset->why[0] = 0;
		/*
		 * Processes from the time of an earlier daemon may still be in the group of
		 * besteffort jobs.
		 */
		if (cut_own(own))
			(void)write_file(own, BESTEFFORT, "/cpuset.cpus", "\n");
		return 0;
	}
	if (!*cpuset->own)
		r = divide(own, self);
	else
		strcpy(own, cpuset->own);
	snprintf(text, sizeof(text), "%s\n", cpus);
	if (!r)
		r = write_file(own, BESTEFFORT, "/cpuset.cpus", text);
	if (r && *cpuset->own) {
		snprintf(cpuset->why, sizeof(cpuset->why),
			"the CPUs of %.100s" BESTEFFORT
			" cannot be changed: %s; besteffort jobs keep "
			"those that they had",
			own, strerror(-r));
		return r;
	}
	if (r) {
		snprintf(cpuset->why, sizeof(cpuset->why),
			"the daemon cannot divide its control group %.100s: %s; besteffort jobs "
			"run "
			"on all CPUs",
			*own ? own : "/", reason(r));
		return r;
	}
	strcpy(cpuset->own, own);
	cpuset->why[0] = 0;
	return 0;
}

int td_cpuset_join(const struct td_cpuset *cpuset, pid_t pid)
{
	return write_pid(cpuset->own, BESTEFFORT, pid);
}

int td_cpuset_leave(const struct td_cpuset *cpuset, const char *root, const char *group, pid_t pid)
{
	if (*group && !write_pid(root, group, pid))
		return 0;
	return write_pid(cpuset->own, JOBS, pid);
}

/* -- limits that a process would escape -- */

/* The files of limits. "max" means none; cpu.max is followed by its period. */
static const char *const limits[] = {
	"memory.max", "memory.high", "memory.swap.max", "pids.max", "cpu.max"};

/* Writes the first line of the file. Returns 0 or -errno. */
static int read_line(const char *path, char *ret, size_t len)
{
	int r = td_file_read(path, ret, len);

	ret[strcspn(ret, "\n")] = 0;
	return r;
}

/* Returns whether the group has a limit, and says which. */
static bool has_limit(const char *directory, const char *group, char *why, size_t len)
{
	char path[2 * TD_CPUSET_PATH + 32], value[64];

	for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++) {
		int r;

		snprintf(path, sizeof(path), "%s/%s", directory, limits[i]);
		r = read_line(path, value, sizeof(value));
		if (r == -ENOENT || (!r && !strncmp(value, "max", 3)))
			continue;
		if (r)
			snprintf(why, len, "%s of its control group %.120s cannot be read: %s",
				limits[i], group, strerror(-r));
		else
			snprintf(why, len, "its control group %.120s has %s=%s", group, limits[i],
				value);
		return true;
	}
	return false;
}

/* Returns whether the group is `own` or above it. */
static bool is_above(const char *directory, const char *own)
{
	size_t len = strlen(directory);

	return !strncmp(own, directory, len) && (!own[len] || own[len] == '/');
}

bool td_cpuset_escapes(
	const struct td_cpuset *cpuset, const char *root, const char *group, char *why, size_t len)
{
	char directory[2 * TD_CPUSET_PATH];
	size_t end = strlen(root);

	if (strstr(group, "/..")) {
		snprintf(why, len, "its control group %.120s cannot be seen from here", group);
		return true;
	}
	snprintf(directory, sizeof(directory), "%s%s", root, group);
	while (strlen(directory) > end && !is_above(directory, cpuset->own)) {
		if (has_limit(directory, directory + end, why, len))
			return true;
		*strrchr(directory, '/') = 0;
	}
	return false;
}

/* -- other managers -- */

/* Returns whether the part of a path is the word, or begins with it and "-", "." or "_". */
static bool is_named(const char *part, size_t len, const char *word)
{
	size_t n = strlen(word);

	return len >= n && !memcmp(part, word, n) && (len == n || strchr("-._:", part[n]));
}

bool td_cpuset_is_foreign(const char *group)
{
	static const char *const words[] = {"slurm", "slurmstepd", "slurmd", "docker", "kubepods",
		"kubelet", "containerd", "cri-containerd", "nerdctl", "libpod", "crio", "lxc",
		"machine.slice"};

	while (*group) {
		size_t len = strcspn(group, "/");

		for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
			if (is_named(group, len, words[i]))
				return true;
		group += len + (group[len] == '/');
	}
	return false;
}
