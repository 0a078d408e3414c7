/* Finds the TCP ports on which programs listen; see listens.h. */
#include "cli/supervise/listens.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/supervise/processes.h"

/* More sockets or ports than these are not looked at. */
#define SOCKETS_MAX 1024
#define PORTS_MAX   64
#define MEMBERS_MAX 256

/* The state of a listening socket in /proc/net/tcp. */
#define LISTENS 0x0A

struct listening {
	unsigned long inode;
	unsigned port;
};

struct ports {
	unsigned count, port[PORTS_MAX];
};

/* Adds the listening sockets of a file like /proc/net/tcp. Returns the new count. */
static unsigned read_table(
	pid_t pid, const char *name, struct listening *all, unsigned count, unsigned max)
{
	char path[64], line[512];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/net/%s", (int)pid, name);
	file = fopen(path, "re");
	while (file && count < max && fgets(line, sizeof(line), file)) {
		unsigned port, state;
		unsigned long inode;

		if (sscanf(line, " %*d: %*[0-9A-F]:%x %*[0-9A-F]:%*x %x %*s %*s %*s %*u %*u %lu",
			    &port, &state, &inode) == 3 &&
			state == LISTENS)
			all[count++] = (struct listening){inode, port};
	}
	if (file)
		fclose(file);
	return count;
}

static void add_port(struct ports *ports, unsigned port)
{
	for (unsigned i = 0; i < ports->count; i++)
		if (ports->port[i] == port)
			return;
	if (ports->count < PORTS_MAX)
		ports->port[ports->count++] = port;
}

/* Adds the ports of the listening sockets that the process has open. */
static void add_ports_of(
	pid_t pid, const struct listening *all, unsigned count, struct ports *ports)
{
	char path[64], text[64];
	DIR *directory;
	struct dirent *entry;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	directory = opendir(path);
	while (directory && (entry = readdir(directory))) {
		ssize_t n = readlinkat(dirfd(directory), entry->d_name, text, sizeof(text) - 1);
		unsigned long inode;

		text[n > 0 ? n : 0] = 0;
		if (sscanf(text, "socket:[%lu]", &inode) != 1)
			continue;
		for (unsigned i = 0; i < count; i++)
			if (all[i].inode == inode)
				add_port(ports, all[i].port);
	}
	if (directory)
		closedir(directory);
}

static struct ports ports_of(pid_t root)
{
	td_auto_free struct listening *all = calloc(SOCKETS_MAX, sizeof(*all));
	struct ports ports = {0};
	pid_t members[MEMBERS_MAX];
	unsigned count, member_count;

	if (!all)
		return ports;
	count = read_table(root, "tcp", all, 0, SOCKETS_MAX);
	count = read_table(root, "tcp6", all, count, SOCKETS_MAX);
	member_count = td_processes_below(root, members, MEMBERS_MAX);
	for (unsigned i = 0; i < member_count; i++)
		add_ports_of(members[i], all, count, &ports);
	return ports;
}

bool td_listens_as(pid_t first, pid_t second)
{
	struct ports wanted = ports_of(first), has = wanted.count ? ports_of(second) : wanted;
	unsigned before = has.count;

	for (unsigned i = 0; i < wanted.count; i++)
		add_port(&has, wanted.port[i]);
	return wanted.count && has.count == before;
}
