/* The agent's descriptors; see conn.h. */
#include "preload/link/conn.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "preload/driver/choose.h"
#include "proto/proto.h"
#include "proto/socket.h"

/*
 * Descriptors are moved to this number or higher: above those that programs use, below the usual
 * limit of 1024.
 */
#define FD_FROM 700
/*
 * connect() may take this many seconds while the daemon has many connections to accept. A stopped
 * daemon never accepts.
 */
#define CONNECT_S 2

/* A direct system call, since older versions of glibc do not export fstat. */
static int file_status(int fd, struct stat *ret)
{
	return (int)syscall(SYS_fstat, fd, ret);
}

int td_conn_adopt(struct td_conn *conn, int fd)
{
	int high = fcntl(fd, F_DUPFD_CLOEXEC, FD_FROM), r;
	struct stat st;

	if (high >= 0) {
		close(fd);
		fd = high;
	}
	if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0 || file_status(fd, &st) < 0) {
		r = -errno;
		close(fd);
		return r;
	}
	conn->device = st.st_dev;
	conn->inode = st.st_ino;
	atomic_store(&conn->fd, fd);
	return 0;
}

int td_conn_connect(struct td_conn *conn, const char *path)
{
	const struct timeval patience = {CONNECT_S, 0};
	int fd, r;

	/* If a child inherited the connection, the daemon would not notice the parent's end. */
	td_choose_hold_forks();
	fd = td_socket_new();
	r = fd < 0 ? fd : td_conn_adopt(conn, fd);
	td_choose_release_forks();
	if (r)
		return r;
	fd = atomic_load(&conn->fd);
	(void)fcntl(fd, F_SETFL, 0);
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	r = td_socket_connect_by(fd, path);
	(void)fcntl(fd, F_SETFL, O_NONBLOCK);
	if (r)
		td_conn_close(conn);
	return r;
}

bool td_conn_is_ours(const struct td_conn *conn)
{
	int fd = atomic_load(&conn->fd);
	struct stat st;

	return fd >= 0 && !file_status(fd, &st) && st.st_dev == conn->device &&
	       st.st_ino == conn->inode;
}

void td_conn_close(struct td_conn *conn)
{
	if (td_conn_is_ours(conn))
		close(atomic_load(&conn->fd));
	atomic_store(&conn->fd, -1);
}

int td_conn_send(const struct td_conn *conn, const struct td_msg *msg)
{
	return td_conn_is_ours(conn) ? td_socket_send(atomic_load(&conn->fd), msg, NULL, 0)
				     : -EBADF;
}

int td_conn_recv(const struct td_conn *conn, struct td_msg *ret, int *ret_fds)
{
	return td_conn_is_ours(conn)
		       ? td_socket_recv(atomic_load(&conn->fd), ret, ret_fds, MSG_DONTWAIT)
		       : -EBADF;
}

int td_bell_init(struct td_bell *bell)
{
	int fds[2], r;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	r = td_conn_adopt(&bell->out, fds[0]);
	if (r) {
		close(fds[1]);
		return r;
	}
	r = td_conn_adopt(&bell->in, fds[1]);
	if (r)
		td_conn_close(&bell->out);
	return r;
}

void td_bell_ring(const struct td_bell *bell)
{
	int saved = errno;

	/*
	 * If the pipe is full, it has been rung already. There is no SIGPIPE, since we have both
	 * ends.
	 */
	if (td_conn_is_ours(&bell->in))
		(void)syscall(SYS_write, atomic_load(&bell->in.fd), "", (size_t)1);
	errno = saved;
}

void td_bell_quiet(const struct td_bell *bell)
{
	char rung[256];

	if (td_conn_is_ours(&bell->out))
		(void)!read(atomic_load(&bell->out.fd), rung, sizeof(rung));
}

void td_bell_deinit(struct td_bell *bell)
{
	td_conn_close(&bell->in);
	td_conn_close(&bell->out);
}
