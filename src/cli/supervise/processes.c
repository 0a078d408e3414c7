/* Finds the processes of a job; see processes.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/supervise/processes.h"

/* A program with more processes than this is signalled in part. */
#define BELOW_MAX 1024

struct process {
	pid_t pid, parent;
};

/* Returns the letter of the process's state; 0 if it cannot be read. */
static char read_stat(pid_t pid, pid_t *ret_parent)
{
	char path[32], text[512], state;
	td_auto_close int fd = -1;
	const char *rest;
	ssize_t n;
	int parent;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return 0;
	text[n] = 0;
	/* The name is in parentheses, and may contain parentheses and blanks itself. */
	rest = strrchr(text, ')');
	if (!rest || sscanf(rest, ") %c %d", &state, &parent) != 2)
		return 0;
	*ret_parent = parent;
	return state;
}

bool td_process_is_stopped(pid_t pid)
{
	pid_t parent;
	char state = read_stat(pid, &parent);

	return state == 'T' || state == 't';
}

/*
 * Returns whether the environment that the process was started with has TANDEM_JOB. The variable
 * may lie across two reads, so the end of one read is kept for the next.
 */
static bool has_job(pid_t pid)
{
	static const char name[] = "\0TANDEM_JOB=";
	const size_t len = sizeof(name) - 1;
	char path[32], text[4096 + sizeof(name)];
	td_auto_close int fd = -1;
	size_t kept = 1;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	text[0] = 0;
	while (fd >= 0 && (n = read(fd, text + kept, sizeof(text) - kept)) > 0) {
		size_t used = kept + (size_t)n;

		if (memmem(text, used, name, len))
			return true;
		kept = used < len - 1 ? used : len - 1;
		memmove(text, text + used - kept, kept);
	}
	return false;
}

/* Lists all living processes. Returns their number or -errno. */
static int list(struct process **ret)
{
	DIR *proc = opendir("/proc");
	struct process *all = NULL;
	int count = 0, room = 0;
	struct dirent *entry;

	if (!proc)
		return -errno;
	while ((entry = readdir(proc))) {
		struct process one = {.pid = atoi(entry->d_name)};
		char state = one.pid > 0 ? read_stat(one.pid, &one.parent) : 0;

		if (!state || state == 'Z' || state == 'X')
			continue;
		if (count == room) {
			struct process *more =
				realloc(all, (size_t)(room = room ? 2 * room : 256) * sizeof(*all));

			if (!more) {
				free(all);
				closedir(proc);
				return -ENOMEM;
			}
			all = more;
		}
		all[count++] = one;
	}
	closedir(proc);
	*ret = all;
	return count;
}

static int compare(const void *a, const void *b)
{
	pid_t first = ((const struct process *)a)->pid, second = ((const struct process *)b)->pid;

	return (first > second) - (first < second);
}

/*
 * Returns whether the process descends from `root`. `all` is sorted by pid. Parents change while
 * the list is read, so the chain of parents may end early.
 */
static bool is_descendant(
	const struct process *all, int count, const struct process *one, pid_t root)
{
	for (int depth = 0; one && depth < count; depth++) {
		struct process parent = {.pid = one->parent};

		if (one->parent == root)
			return true;
		one = bsearch(&parent, all, (size_t)count, sizeof(*all), compare);
	}
	return false;
}

static void send(pid_t pid, int signal)
{
	if (signal && !kill(pid, signal) && signal == SIGTERM)
		kill(pid, SIGCONT);
}

int td_processes_signal(int signal, const pid_t *except, unsigned except_count)
{
	td_auto_free struct process *all = NULL;
	int count = list(&all), found = 0;

	if (count < 0)
		return count;
	qsort(all, (size_t)count, sizeof(*all), compare);
	for (int i = 0; i < count; i++) {
		bool is_excepted = false;

		for (unsigned j = 0; j < except_count; j++)
			is_excepted |= all[i].pid == except[j];
		if (is_excepted || !is_descendant(all, count, all + i, getpid()) ||
			!has_job(all[i].pid))
			continue;
		found++;
		send(all[i].pid, signal);
	}
	return found;
}

unsigned td_processes_below(pid_t root, pid_t *ret, unsigned max)
{
	td_auto_free struct process *all = NULL;
	int count = list(&all);
	unsigned found = 0;

	if (count > 0)
		qsort(all, (size_t)count, sizeof(*all), compare);
	for (int i = 0; i < count && found < max; i++)
		if (all[i].pid == root || is_descendant(all, count, all + i, root))
			ret[found++] = all[i].pid;
	return found;
}

void td_processes_signal_below(pid_t root, int signal)
{
	pid_t below[BELOW_MAX];
	unsigned count = td_processes_below(root, below, BELOW_MAX);

	for (unsigned i = 0; i < count; i++)
		send(below[i], signal);
}
