/*
 * Finds GPUs that other daemons share: their lock files (gpu/lock.h) are held by daemons with
 * another socket.
 */
#include <dirent.h>
#include <errno.h>
#include <pwd.h>
#include <string.h>
#include <unistd.h>

#include "base/parse.h"
#include "cli/cli.h"
#include "gpu/lock.h"
#include "proto/socket.h"

/* Writes the daemon's option gpu.locks, or "auto" if no daemon answers. */
static void find_path(const char *socket, char *ret, size_t len)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_get};
	int fd = td_cli_connect(socket);

	snprintf(ret, len, "auto");
	if (fd < 0)
		return;
	strcpy(msg.get.key, "gpu.locks");
	if (!td_socket_send(fd, &msg, NULL, 0) && !td_socket_recv(fd, &msg, NULL, 0) &&
		msg.type == TD_MSG_TYPE_option)
		snprintf(ret, len, "%s", msg.option.value);
	close(fd);
}

static void format(char *buf, size_t len, const char *gpu, const struct td_gpu_owner *owner)
{
	const struct passwd *user = getpwuid(owner->uid);

	if (!owner->pid)
		snprintf(buf, len, "%.40s is shared by another tandemd", gpu);
	else if (user)
		snprintf(buf, len, "%.40s is shared by another tandemd: pid %d, user %s, socket %s",
			gpu, (int)owner->pid, user->pw_name, owner->socket);
	else
		snprintf(buf, len, "%.40s is shared by another tandemd: pid %d, uid %u, socket %s",
			gpu, (int)owner->pid, (unsigned)owner->uid, owner->socket);
}

int td_cli_foreign_gpus(void (*each)(void *arg, const char *text), void *arg)
{
	char socket[256] = "", path[256], text[512];
	struct td_gpu_owner owner;
	struct dirent *entry;
	int directory;
	DIR *dir;

	if (!td_socket_path(socket, sizeof(socket)))
		socket[0] = 0;
	find_path(socket, path, sizeof(path));
	directory = td_gpu_locks_open(path);
	if (directory < 0)
		return directory;
	dir = fdopendir(directory);
	if (!dir) {
		close(directory);
		return -ENOMEM;
	}
	while ((entry = readdir(dir))) {
		if (strncmp(entry->d_name, "GPU-", 4) ||
			td_gpu_lock_owner(directory, entry->d_name, &owner) ||
			!strcmp(owner.socket, socket))
			continue;
		format(text, sizeof(text), entry->d_name, &owner);
		each(arg, td_printable(text)); /* other users write these files */
	}
	closedir(dir);
	return 0;
}
