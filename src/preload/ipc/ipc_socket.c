/*
 * Sockets between exporters and importers of memory; see ipc.h. A process removes its socket file
 * when it ends. If it is killed, the daemon removes the file (daemon/server/loop/sweep.h). Abstract
 * names need no removal. Both ends ask the kernel for the other's user.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/time.h"
#include "preload/base/lock.h"
#include "preload/base/settings.h"
#include "preload/ipc/ipc.h"
#include "preload/link/conn.h"
#include "proto/shared_dir.h"
#include "proto/socket.h"

#define BACKLOG    64
#define CONNS_MAX  512
#define PATIENCE   5 /* seconds to wait for a packet of the other end */
#define GOODBYE_MS 1000

const char td_ipc_magic[8] = "tandem\0\1";

static pthread_mutex_t conns_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	bool taken; /* guarded by conns_lock */
	struct td_conn conn;
} conns[CONNS_MAX];

bool td_ipc_random(uint8_t ret[TD_IPC_ID])
{
	return syscall(SYS_getrandom, ret, TD_IPC_ID, 0) == TD_IPC_ID;
}

struct td_conn *td_ipc_conn_new(int fd)
{
	struct td_conn *conn = NULL;

	pthread_mutex_lock(&conns_lock);
	for (unsigned i = 0; i < CONNS_MAX && !conn; i++) {
		if (conns[i].taken)
			continue;
		conns[i].taken = true;
		conn = &conns[i].conn;
	}
	pthread_mutex_unlock(&conns_lock);
	if (!conn) {
		close(fd);
		return NULL;
	}
	atomic_store(&conn->fd, -1);
	if (td_conn_adopt(conn, fd) < 0) {
		td_ipc_conn_free(conn);
		return NULL;
	}
	return conn;
}

void td_ipc_conn_free(struct td_conn *conn)
{
	if (!conn)
		return;
	td_conn_close(conn);
	pthread_mutex_lock(&conns_lock);
	for (unsigned i = 0; i < CONNS_MAX; i++)
		if (&conns[i].conn == conn)
			conns[i].taken = false;
	pthread_mutex_unlock(&conns_lock);
}

/*
 * Closes the connections that the child inherited. Otherwise they would stay open after the
 * parent's end.
 */
void td_ipc_conns_forked(void)
{
	for (unsigned i = 0; i < CONNS_MAX; i++) {
		/* A connection that was never used has inode 0. */
		if (atomic_load(&conns[i].conn.inode))
			td_conn_close(&conns[i].conn);
		conns[i].taken = false;
	}
	pthread_mutex_init(&conns_lock, NULL);
}

#define NAME_LEN (2 * TD_IPC_ID + 1)

static void name_of(const uint8_t name[TD_IPC_ID], char ret[NAME_LEN])
{
	for (unsigned i = 0; i < TD_IPC_ID; i++)
		snprintf(ret + 2 * i, 3, "%02x", name[i]);
}

static socklen_t abstract_of(const char *name, struct sockaddr_un *ret)
{
	int n;

	*ret = (struct sockaddr_un){.sun_family = AF_UNIX};
	n = snprintf(ret->sun_path + 1, sizeof(ret->sun_path) - 1, "tandem-ipc-%s", name);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

/* Returns the directory of socket files; NULL: there is none. */
static const char *dir_of(char buf[TD_SHARED_DIR_MAX])
{
	return *td_settings.socket ? td_shared_dir(buf, TD_SHARED_DIR_MAX, td_settings.socket)
				   : NULL;
}

static int call(bool binds, int fd, const char *name, enum td_ipc_way way)
{
	char buf[TD_SHARED_DIR_MAX];
	const char *dir = dir_of(buf);
	struct sockaddr_un address;
	socklen_t len;

	if (way == TD_IPC_PATH)
		return dir ? (binds ? td_shared_bind : td_shared_connect)(fd, dir, name) : -ENOENT;
	len = abstract_of(name, &address);
	return (binds ? bind : connect)(fd, (struct sockaddr *)&address, len) < 0 ? -errno : 0;
}

static int new_socket(void)
{
	const struct timeval patience = {PATIENCE, 0};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	return fd;
}

static int find_socket_file(const char *name, struct td_shared_file *ret)
{
	char buf[TD_SHARED_DIR_MAX];
	const char *dir = dir_of(buf);

	return dir ? td_shared_find(dir, name, ret) : -ENOENT;
}

int td_ipc_listen(const uint8_t id[TD_IPC_ID], enum td_ipc_way way, struct td_shared_file *ret_file)
{
	int fd = new_socket(), r;
	char name[NAME_LEN];

	if (fd < 0)
		return fd;
	name_of(id, name);
	/* If a file has this name, an earlier listener of this process has left it. */
	if (way == TD_IPC_PATH)
		td_ipc_remove(id);
	r = call(true, fd, name, way);
	if (!r && way == TD_IPC_PATH)
		r = find_socket_file(name, ret_file);
	if (!r && !listen(fd, BACKLOG))
		return fd;
	r = r ? r : -errno;
	close(fd);
	return r;
}

bool td_ipc_is_there(const uint8_t id[TD_IPC_ID], const struct td_shared_file *file)
{
	struct td_shared_file there;
	char name[NAME_LEN];

	name_of(id, name);
	return !find_socket_file(name, &there) && there.device == file->device &&
	       there.inode == file->inode;
}

void td_ipc_remove(const uint8_t id[TD_IPC_ID])
{
	char buf[TD_SHARED_DIR_MAX], name[NAME_LEN];
	const char *dir = dir_of(buf);

	name_of(id, name);
	if (dir)
		td_shared_remove(dir, name);
}

bool td_ipc_is_same_user(int fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) && peer.uid == geteuid();
}

static int connect_by(const char *name, enum td_ipc_way way)
{
	int fd = new_socket(), r;

	if (fd < 0)
		return fd;
	r = call(false, fd, name, way);
	if (!r && !td_ipc_is_same_user(fd))
		r = -EACCES;
	if (r)
		close(fd);
	return r ? r : fd;
}

int td_ipc_connect(const uint8_t id[TD_IPC_ID])
{
	char name[NAME_LEN];
	int by_path, fd;

	name_of(id, name);
	by_path = connect_by(name, TD_IPC_PATH);
	if (by_path >= 0)
		return by_path;
	fd = connect_by(name, TD_IPC_ABSTRACT);
	return fd < 0 && by_path == -EACCES ? by_path : fd;
}

union control {
	char bytes[CMSG_SPACE(TD_IPC_FDS * sizeof(int))];
	struct cmsghdr align;
};

/* Waits for a socket, which does not block itself. Returns 0 or -ETIMEDOUT. */
static int await_socket(int fd, short events, int milliseconds)
{
	struct pollfd poll_fd = {fd, events, 0};
	int r;

	do
		r = poll(&poll_fd, 1, milliseconds);
	while (r < 0 && errno == EINTR);
	return r > 0 ? 0 : -ETIMEDOUT;
}

int td_ipc_send(int fd, const void *bytes, size_t n, const int *fds, unsigned count)
{
	union control control = {0};
	struct iovec iov = {.iov_base = (void *)bytes, .iov_len = n};
	struct msghdr header = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t sent;

	if (count)
		td_socket_put_fds(&header, control.bytes, fds, count);
	do
		sent = sendmsg(fd, &header, MSG_NOSIGNAL);
	while ((sent < 0 && errno == EINTR) ||
		(sent < 0 && errno == EAGAIN && !await_socket(fd, POLLOUT, PATIENCE * 1000)));
	return sent < 0 ? -errno : 0;
}

int td_ipc_receive(int fd, void *ret, size_t n, int *ret_fds, unsigned *ret_count)
{
	union control control;
	struct iovec iov = {.iov_base = ret, .iov_len = n};
	struct msghdr header = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes)};
	unsigned count;
	ssize_t got;
	int r = await_socket(fd, POLLIN, PATIENCE * 1000);

	if (r)
		return r;
	do
		got = recvmsg(fd, &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return -errno;
	count = td_socket_take_fds(&header, ret_fds, ret_count ? *ret_count : 0);
	if (ret_count)
		*ret_count = count;
	if (!got)
		return -ECONNRESET;
	return (size_t)got == n && !(header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) ? 0 : -EBADMSG;
}

void td_ipc_hang_up(struct td_conn *conn)
{
	int fd = conn ? atomic_load(&conn->fd) : -1;

	if (conn && td_conn_is_ours(conn) && !shutdown(fd, SHUT_WR))
		(void)await_socket(fd, POLLIN, GOODBYE_MS);
	td_ipc_conn_free(conn);
}
