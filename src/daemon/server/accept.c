/*
 * Who connects. The kernel keeps newcomers in one line, whoever they are, so one user's could delay
 * all others': those who wait are taken as they come, within a bound on time, and whoever has no
 * room is sent away at once.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/time.h"
#include "daemon/model/procfs.h"
#include "daemon/server/peer_internal.h"

/* Each client costs a page and a descriptor; tools come and go. The last connections are root's. */
#define PEERS_MAX      (TD_CLIENT_MAX + 64)
#define PEERS_RESERVED 64
/* Descriptors of the daemon's own: its socket, timers, logs, locks of GPUs. */
#define OWN_DESCRIPTORS 48
/* While descriptors are exhausted, this is how often it checks for free ones. */
#define DEAF_NS (10 * TD_NS_PER_MS)
/* Newcomers are taken for as long as those who are there are served (peer.c). */
#define TAKE_NS (2 * TD_NS_PER_MS)

/* -1: not known. */
static uid_t uid_of(int fd)
{
	struct ucred credentials;
	socklen_t len = sizeof(credentials);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &len) < 0 ? (uid_t)-1
									       : credentials.uid;
}

static bool has_spare(struct td_server *server)
{
	if (server->spare_fd < 0)
		server->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return server->spare_fd >= 0;
}

/*
 * Descriptors have run out. One is kept for taking the newcomer and sending it away, who would else
 * be announced again and again.
 */
static void turn_away(struct td_server *server)
{
	int fd;

	close(server->spare_fd);
	server->spare_fd = -1;
	fd = accept4(server->listener.fd, NULL, NULL, SOCK_CLOEXEC);
	if (fd >= 0)
		td_closer_close(server->closer, uid_of(fd), fd);
}

/*
 * The number of possible connections by the number of descriptors. A program needs a second one,
 * for its end.
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
 * Watching a process takes a second descriptor. Where descriptors are few, connections come first.
 */
bool td_accept_can_watch(void)
{
	struct rlimit limit;

	return !getrlimit(RLIMIT_NOFILE, &limit) &&
	       limit.rlim_cur >= OWN_DESCRIPTORS + 2 * PEERS_MAX;
}

/* A connection that is not closed yet counts as its user's. */
static bool has_room_for(const struct td_server *server, const struct td_user *user)
{
	return td_pool_allows(&server->connections,
		server->peer_count + td_closer_count(server->closer),
		user->peers + td_closer_count_of(server->closer, user->uid),
		td_node_is_owner(&server->node, user->uid));
}

/* Takes the next one who waits. False: nobody does, or nobody can be taken now. */
static bool take_one(struct td_server *server)
{
	struct ucred credentials = {.uid = (uid_t)-1};
	socklen_t len = sizeof(credentials);
	struct td_peer *peer;
	uint64_t now_ns;
	int fd;

	/* The one that was sent away last is not closed yet. */
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
	peer->user = td_users_get(&server->users, credentials.uid, now_ns);
	if (!peer->user || !has_room_for(server, peer->user))
		goto err_free;
	peer->silent_since_ns = now_ns;
	peer->source = (struct td_source){fd, td_peer_ready};
	peer->end.fd = -1;
	peer->server = server;
	td_peer_init_unread(peer);
	peer->pid = credentials.pid;
	peer->uid = credentials.uid;
	/* Now, not at HELLO: by then the number can be another user's process. */
	peer->start_ticks = td_procfs_start_ticks(peer->pid, peer->uid);
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
	td_closer_close(server->closer, credentials.uid, fd);
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
