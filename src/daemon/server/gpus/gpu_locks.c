/* This file implements gpu_locks.h. */
#include "daemon/server/gpus/gpu_locks.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/time.h"
#include "base/uuid.h"
#include "gpu/lock.h"

void td_gpu_locks_init(struct td_gpu_locks *locks, int listen_fd)
{
	struct sockaddr_un address = {0};
	socklen_t len = sizeof(address) - 1;

	*locks = (struct td_gpu_locks){.directory = -1};
	if (!getsockname(listen_fd, (struct sockaddr *)&address, &len))
		memcpy(locks->socket, address.sun_path, sizeof(locks->socket));
	locks->socket[sizeof(locks->socket) - 1] = 0;
}

void td_gpu_locks_deinit(struct td_gpu_locks *locks)
{
	while (locks->count)
		td_gpu_locks_release(locks, locks->held[0].uuid);
	if (locks->directory >= 0)
		close(locks->directory);
	locks->directory = -1;
}

/*
 * Logs a problem at a bounded rate, so that a program that comes to a GPU again and again cannot
 * fill the disk.
 */
static int complain(struct td_gpu_locks *locks, const char *what, const char *path, int r)
{
	uint32_t suppressed;

	if (td_complaints_allow(&locks->complaints, td_time_now_ns(), &suppressed))
		td_log(TD_LOG_WARN,
			"%s=%s errno=%d shared without a lock against other daemons; %u more "
			"suppressed",
			what, path, -r, suppressed);
	return 0;
}

int td_gpu_locks_take(
	struct td_gpu_locks *locks, const char *path, const uint8_t *uuid, struct td_err *err)
{
	struct td_gpu_owner owner;
	char name[TD_UUID_TEXT];
	int fd;

	td_uuid_format(name, uuid);
	if (locks->count == TD_GPU_MAX)
		return td_err_set(err, -EBUSY,
			"%s is one more than the %u GPUs that a node may have", name, TD_GPU_MAX);
	if (locks->directory < 0)
		locks->directory = td_gpu_locks_open(path);
	if (locks->directory < 0)
		return complain(locks, "locks", path, locks->directory);
	fd = td_gpu_lock_take(locks->directory, uuid, locks->socket, &owner);
	if (fd == -EBUSY)
		return td_err_set(err, -EBUSY,
			"%s is shared by another tandemd: pid %d, uid %u, socket %s", name,
			(int)owner.pid, (unsigned)owner.uid, owner.socket);
	if (fd < 0)
		return complain(locks, "gpu", name, fd);
	memcpy(locks->held[locks->count].uuid, uuid, 16);
	locks->held[locks->count++].fd = fd;
	return 0;
}

void td_gpu_locks_release(struct td_gpu_locks *locks, const uint8_t *uuid)
{
	for (uint32_t i = 0; i < locks->count; i++) {
		if (memcmp(locks->held[i].uuid, uuid, 16))
			continue;
		td_gpu_lock_release(locks->directory, uuid, locks->held[i].fd);
		locks->held[i] = locks->held[--locks->count];
		return;
	}
}
