/*
 * Sockets and wall time around the server. There is one server per directory: it holds <dir>/lock,
 * which names it, for its life.
 */
#include "softgpu/server/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/time.h"
#include "softgpu/server/internal.h"

#define BATCH 64
/*
 * A client with more unread messages than this is dropped: it has no more operations and threads
 * than this.
 */
#define WAITING_MAX 16384u

/* A packet that is queued because the socket was full. */
struct packet {
	struct packet *next;
	size_t len;
	char bytes[];
};

struct connection {
	int fd;
	bool broken;
	struct packet *first, **last; /* the queue, at most WAITING_MAX bytes */
	unsigned waiting;
	struct sg_peer_state *state;
	struct connection *next;
};

static struct sg_server server;
static struct connection *connections;
static int epoll_fd, listen_fd, timer_fd, signal_fd;

/* Sends a packet. Returns false if the socket takes no more for now. */
static bool put(struct connection *connection, const struct msghdr *header)
{
	ssize_t n;

	do
		n = sendmsg(connection->fd, header, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n < 0 && errno == EAGAIN)
		return false;
	connection->broken |= n < 0;
	return true;
}

static void set_events(struct connection *connection, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = connection};

	connection->broken |= epoll_ctl(epoll_fd, EPOLL_CTL_MOD, connection->fd, &event) < 0;
}

static void keep(struct connection *connection, const struct msghdr *header, size_t len)
{
	struct packet *packet =
		connection->waiting < WAITING_MAX ? malloc(sizeof(*packet) + len) : NULL;
	char *at;

	if (!packet) {
		connection->broken = true;
		return;
	}
	packet->next = NULL;
	packet->len = len;
	at = packet->bytes;
	for (size_t i = 0; i < header->msg_iovlen; i++)
		at = mempcpy(at, header->msg_iov[i].iov_base, header->msg_iov[i].iov_len);
	if (!connection->first) {
		connection->last = &connection->first;
		set_events(connection, EPOLLIN | EPOLLOUT);
	}
	*connection->last = packet;
	connection->last = &packet->next;
	connection->waiting++;
}

static void send_packet(void *peer, const struct sg_msg *msg, const void *extra, size_t len)
{
	struct connection *connection = peer;
	struct iovec parts[2] = {{(void *)msg, sizeof(*msg)}, {(void *)extra, len}};
	struct msghdr header = {.msg_iov = parts, .msg_iovlen = len ? 2 : 1};

	if (!connection->broken && (connection->first || !put(connection, &header)))
		keep(connection, &header, sizeof(*msg) + len);
}

static void drop_packet(struct connection *connection)
{
	struct packet *packet = connection->first;

	connection->first = packet->next;
	connection->waiting--;
	free(packet);
}

static void send_waiting(struct connection *connection)
{
	while (connection->first && !connection->broken) {
		struct iovec part = {connection->first->bytes, connection->first->len};

		if (!put(connection, &(struct msghdr){.msg_iov = &part, .msg_iovlen = 1}))
			return;
		drop_packet(connection);
	}
	if (!connection->broken)
		set_events(connection, EPOLLIN);
}

static int watch(int fd, void *data)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = data};

	return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

static void accept_one(void)
{
	struct connection *connection;
	struct ucred credentials;
	socklen_t len = sizeof(credentials);
	int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return;
	connection = calloc(1, sizeof(*connection));
	if (connection && getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &len) == 0)
		connection->state = sg_server_connect(&server, connection, credentials.pid);
	if (!connection || !connection->state || watch(fd, connection) < 0) {
		if (connection && connection->state)
			sg_server_disconnect(&server, connection->state, td_time_now_ns());
		free(connection);
		close(fd);
		return;
	}
	connection->fd = fd;
	connection->next = connections;
	connections = connection;
}

static void read_packets(struct connection *connection)
{
	char packet[sizeof(struct sg_msg) + SG_TOUCH_MAX * sizeof(struct sg_touch)];

	for (int i = 0; i < BATCH && !connection->broken; i++) {
		ssize_t n = recv(connection->fd, packet, sizeof(packet), MSG_DONTWAIT | MSG_TRUNC);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n <= 0 || (size_t)n > sizeof(packet) ||
			sg_server_packet(&server, connection->state, packet, (size_t)n,
				td_time_now_ns()) < 0)
			connection->broken = true;
	}
}

static void serve_connection(struct connection *connection, uint32_t events)
{
	if (events & EPOLLOUT)
		send_waiting(connection);
	if (events & ~(uint32_t)EPOLLOUT)
		read_packets(connection);
}

static void drop_broken(void)
{
	for (struct connection **c = &connections; *c;) {
		struct connection *connection = *c;

		if (!connection->broken) {
			c = &connection->next;
			continue;
		}
		*c = connection->next;
		sg_server_disconnect(&server, connection->state, td_time_now_ns());
		close(connection->fd);
		while (connection->first)
			drop_packet(connection);
		free(connection);
	}
}

static void arm(uint64_t deadline_ns)
{
	struct itimerspec when = {0};

	if (deadline_ns != UINT64_MAX) {
		when.it_value.tv_sec = (time_t)(deadline_ns / TD_NS_PER_S);
		when.it_value.tv_nsec = (long)(deadline_ns % TD_NS_PER_S) + !deadline_ns;
	}
	(void)timerfd_settime(timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
}

static void run_loop(void)
{
	struct epoll_event events[BATCH];

	while (!server.stop) {
		uint64_t next = sg_server_advance(&server, td_time_now_ns());
		int n;

		drop_broken();
		arm(next);
		n = epoll_wait(epoll_fd, events, BATCH, -1);
		for (int i = 0; i < n; i++) {
			void *data = events[i].data.ptr;
			char scratch[256];

			if (data == &listen_fd)
				accept_one();
			else if (data == &signal_fd)
				server.stop = true;
			else if (data == &timer_fd)
				(void)!read(timer_fd, scratch, sizeof(scratch));
			else
				serve_connection(data, events[i].events);
		}
	}
}

/* Makes the directory, private to this user: a user who can write there controls the GPU. */
static int make_dir(const char *dir)
{
	struct stat st;

	if (mkdir(dir, 0700) < 0 && errno != EEXIST)
		return -errno;
	if (stat(dir, &st) < 0)
		return -errno;
	return S_ISDIR(st.st_mode) && st.st_uid == geteuid() ? 0 : -EPERM;
}

static int take_lock(const char *dir, char *owner, size_t len)
{
	char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%s/lock", dir);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		ssize_t n = pread(fd, owner, len - 1, 0);

		owner[n > 0 ? n : 0] = 0;
		close(fd);
		return -EBUSY;
	}
	if (ftruncate(fd, 0) < 0 || dprintf(fd, "%d", (int)getpid()) < 0) {
		close(fd);
		return -EIO;
	}
	return fd;
}

static int listen_in(const char *dir)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd;

	if (snprintf(address.sun_path, sizeof(address.sun_path), "%s/socket", dir) >=
		(int)sizeof(address.sun_path))
		return -ENAMETOOLONG;
	unlink(address.sun_path);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, 1024) < 0) {
		int r = -errno;

		close(fd);
		return r;
	}
	return fd;
}

/*
 * Returns a number made from the directory, so that a server that is started again in it has the
 * same GPUs.
 */
static uint64_t instance_of(const char *dir)
{
	char real[PATH_MAX];

	return td_hash_str(realpath(dir, real) ? real : dir);
}

static int set_up(
	const char *dir, const struct td_gpu_spec *spec, uint32_t gpu_count, uint32_t features)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (epoll_fd < 0 || timer_fd < 0 || signal_fd < 0)
		return -errno;
	sg_server_init(&server, spec, gpu_count, td_time_now_ns());
	sg_server_identify(&server, instance_of(dir));
	sg_server_set_features(&server, features);
	server.send = send_packet;
	if (watch(listen_fd, &listen_fd) || watch(timer_fd, &timer_fd) ||
		watch(signal_fd, &signal_fd))
		return -ENOMEM;
	return 0;
}

/* The sentence has room before it for what is told first. */
static int report(int ready_fd, enum sg_start outcome, char *text)
{
	text[0] = (char)outcome;
	if (ready_fd < 0)
		fprintf(stderr, "softgpu: %s\n", text + 1);
	else if (write(ready_fd, text, 1 + strlen(text + 1)) < 0)
		return 1;
	return 1;
}

int sg_serve(const char *dir, const struct td_gpu_spec *spec, uint32_t gpu_count, uint32_t features,
	int ready_fd)
{
	char owner[32] = "", text[PATH_MAX + 128];
	int lock_fd, r = make_dir(dir);

	lock_fd = r ? r : take_lock(dir, owner, sizeof(owner));
	if (lock_fd == -EBUSY) {
		snprintf(text + 1, sizeof(text) - 1, "%s: a server is running already (pid %s)",
			dir, owner);
		return report(ready_fd, SG_BUSY, text);
	}
	listen_fd = lock_fd < 0 ? lock_fd : listen_in(dir);
	r = listen_fd < 0 ? listen_fd : set_up(dir, spec, gpu_count, features);
	if (r < 0) {
		snprintf(text + 1, sizeof(text) - 1, "%s: %s", dir, strerror(-r));
		return report(ready_fd, SG_FAILED, text);
	}
	if (ready_fd >= 0) {
		text[0] = SG_STARTED;
		if (write(ready_fd, text, 1) != 1)
			return 1;
		close(ready_fd);
	}
	run_loop();
	snprintf(text, sizeof(text), "%s/socket", dir);
	unlink(text);
	close(lock_fd);
	return 0;
}
