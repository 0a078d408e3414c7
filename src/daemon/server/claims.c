/* See claims.h. */
#include "daemon/server/claims.h"

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

void td_claims_init(struct td_claims *claims, int listen_fd)
{
	struct sockaddr_un address = {0};
	socklen_t len = sizeof(address) - 1;

	*claims = (struct td_claims){.directory = -1};
	if (!getsockname(listen_fd, (struct sockaddr *)&address, &len))
		memcpy(claims->socket, address.sun_path, sizeof(claims->socket));
	claims->socket[sizeof(claims->socket) - 1] = 0;
}

void td_claims_deinit(struct td_claims *claims)
{
	while (claims->count)
		td_claims_release(claims, claims->held[0].uuid);
	if (claims->directory >= 0)
		close(claims->directory);
	claims->directory = -1;
}

/* Whoever comes to a GPU again and again does not fill the disk. */
static int complain(struct td_claims *claims, const char *what, const char *path, int r)
{
	uint32_t suppressed;

	if (td_complaints_allow(&claims->complaints, td_time_now_ns(), &suppressed))
		td_log(TD_LOG_WARN,
			"%s=%s errno=%d shared without a lock against other daemons; %u more "
			"suppressed",
			what, path, -r, suppressed);
	return 0;
}

int td_claims_take(
	struct td_claims *claims, const char *path, const uint8_t *uuid, struct td_err *err)
{
	struct td_gpu_owner owner;
	char name[TD_UUID_TEXT];
	int fd;

	td_uuid_format(name, uuid);
	if (claims->count == TD_GPU_MAX)
		return td_err_set(err, -EBUSY,
			"%s is one more than the %u GPUs that a node may have", name, TD_GPU_MAX);
	if (claims->directory < 0)
		claims->directory = td_gpu_locks_open(path);
	if (claims->directory < 0)
		return complain(claims, "locks", path, claims->directory);
	fd = td_gpu_lock_take(claims->directory, uuid, claims->socket, &owner);
	if (fd == -EBUSY)
		return td_err_set(err, -EBUSY,
			"%s is shared by another tandemd: pid %d, uid %u, socket %s", name,
			(int)owner.pid, (unsigned)owner.uid, owner.socket);
	if (fd < 0)
		return complain(claims, "gpu", name, fd);
	memcpy(claims->held[claims->count].uuid, uuid, 16);
	claims->held[claims->count++].fd = fd;
	return 0;
}

void td_claims_release(struct td_claims *claims, const uint8_t *uuid)
{
	for (uint32_t i = 0; i < claims->count; i++) {
		if (memcmp(claims->held[i].uuid, uuid, 16))
			continue;
		td_gpu_lock_release(claims->directory, uuid, claims->held[i].fd);
		claims->held[i] = claims->held[--claims->count];
		return;
	}
}
