/*
 * Accepts connections. The kernel keeps new connections of all users in one queue, so one user's
 * could delay all others'. Therefore they are accepted in order, within a bound on time, and a
 * connection for which there is no room is closed at once.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/time.h"
#include "daemon/model/machine/procfs.h"
#include "daemon/server/peers/peer_internal.h"

/*
 * The most connections. Each client costs a page and a descriptor; tools come and go. The last
 * PEERS_RESERVED are for root and the daemon's owner.
 */
#define PEERS_MAX      (TD_CLIENT_MAX + 64)
#define PEERS_RESERVED 64
/*
 * The daemon's own descriptors: its socket, timers, logs, locks of GPUs, and namespaces without
 * connections. A namespace with connections costs one, too; that of a container has several.
 */
#define OWN_DESCRIPTORS (48 + TD_SPACES_UNUSED_MAX)
/* While descriptors are exhausted, the daemon checks this often whether one is free. */
#define DEAF_NS (10 * TD_NS_PER_MS)
/*
 * Connections are accepted for at most this long in a row, as long as messages are served (peer.c).
 */
#define TAKE_NS (2 * TD_NS_PER_MS)

/*
 * Returns the user at the other end of a connection that is closed at once, so his space is not
 * worth a look.
 */
static struct td_identity anybody_at(int fd)
{
	struct ucred credentials = {.uid = (uid_t)-1};
	socklen_t len = sizeof(credentials);

	(void)getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &len);
	return (struct td_identity){.uid = credentials.uid, .space = TD_SPACE_UNKNOWN};
}

static bool has_spare(struct td_server *server)
{
	if (server->spare_fd < 0)
		server->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return server->spare_fd >= 0;
}

/*
 * Accepts and closes a connection when descriptors have run out. One spare descriptor is kept for
 * this. Otherwise epoll would report the same connection again and again.
 */
static void turn_away(struct td_server *server)
{
	int fd;

	close(server->spare_fd);
	server->spare_fd = -1;
	fd = accept4(server->listener.fd, NULL, NULL, SOCK_CLOEXEC);
	if (fd >= 0)
		td_closer_close(server->closer, anybody_at(fd), fd);
}

/*
 * Returns the number of connections that the limit on descriptors allows. The connection of a
 * program needs a second descriptor, which tells when the process ends.
 */
struct td_pool td_accept_all(void)
{
	struct td_pool pool = {.total = PEERS_MAX, .reserve = PEERS_RESERVED};
	struct rlimit limit;
	uint64_t most;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return pool;
	most = (limit.rlim_cur > 2 * OWN_DESCRIPTORS ? limit.rlim_cur - OWN_DESCRIPTORS
						     : limit.rlim_cur / 2) /
	       2;
	if (most < pool.total)
		pool = (struct td_pool){most, most * PEERS_RESERVED / PEERS_MAX};
	return pool;
}

/*
 * Returns whether the daemon may have two file descriptors for each program: its connection, and a
 * pidfd, which tells when the process ends. If there are not enough of them for that, no pidfd is
 * opened, so that as many programs as possible can connect.
 */
bool td_accept_can_watch(void)
{
	struct rlimit limit;

	return !getrlimit(RLIMIT_NOFILE, &limit) &&
	       limit.rlim_cur >= OWN_DESCRIPTORS + 2 * PEERS_MAX;
}

/*
 * Returns whether the user may have one more connection. One that is still being closed counts too.
 */
static bool has_room_for(const struct td_server *server, const struct td_user *user)
{
	return td_pool_allows(&server->connections,
		server->peer_count + td_closer_count(server->closer),
		user->peers + td_closer_count_of(server->closer, user->who),
		td_node_is_owner(&server->node, user->who));
}

/* Accepts one connection. Returns false if none waits, or if none can be accepted now. */
static bool take_one(struct td_server *server)
{
	struct td_identity who = {.uid = (uid_t)-1, .space = TD_SPACE_UNKNOWN};
	struct ucred credentials;
	socklen_t len = sizeof(credentials);
	struct td_peer *peer;
	uint64_t now_ns;
	int fd;

	/* The connection that was turned away last is not closed yet. */
	if (!has_spare(server)) {
		server->deaf_until_ns = td_time_now_ns() + DEAF_NS;
		td_loop_want(server->loop, &server->listener, 0);
		return false;
	}
	fd = accept4(server->listener.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0) {
		if (errno == EMFILE || errno == ENFILE)
			turn_away(server);
		return false;
	}
	now_ns = td_time_now_ns();
	peer = calloc(1, sizeof(*peer));
	if (!peer || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &len) < 0)
		goto err_free;
	who = td_spaces_enter(&server->spaces, fd, &credentials);
	peer->user = td_users_get(&server->users, who, now_ns);
	if (!peer->user || !has_room_for(server, peer->user))
		goto err_free;
	peer->silent_since_ns = now_ns;
	peer->source = (struct td_source){fd, td_peer_ready, true};
	peer->end.fd = -1;
	peer->server = server;
	td_peer_init_unread(peer);
	peer->pid = credentials.pid;
	peer->who = who;
	/*
	 * The start time is read now and not at HELLO: by then the pid can belong to another user's
	 * process.
	 */
	peer->start_ticks = td_procfs_start_ticks(peer->pid, who.uid);
	if (td_loop_add(server->loop, &peer->source) < 0)
		goto err_free;
	td_list_init(&peer->waiting);
	td_list_init(&peer->held);
	td_list_append(&server->peers, &peer->of_server);
	server->peer_count++;
	peer->user->peers++;
	return true;

err_free:
	free(peer);
	td_spaces_leave(&server->spaces, who);
	td_closer_close(server->closer, who, fd);
	return true;
}

void td_accept_ready(struct td_source *source, uint32_t events)
{
	struct td_server *server = td_container_of(source, struct td_server, listener);
	uint64_t until_ns = td_time_now_ns() + TAKE_NS;

	(void)events;
	while (take_one(server) && td_time_now_ns() < until_ns)
		;
}
