/* Registers with the daemon, takes its orders, and asks for admission; see link.h. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/time.h"
#include "cli/supervise/link.h"
#include "proto/socket.h"

/* The delays between attempts to connect, as in libtandem.so. */
#define DELAY_NS     (100 * TD_NS_PER_MS)
#define DELAY_MAX_NS (2 * TD_NS_PER_S)
/* How long to wait while the daemon's queue is full. Signals are not handled meanwhile. */
#define PATIENCE_NS (50 * TD_NS_PER_MS)
/* How long to wait at the end for the daemon's last answers. */
#define LINGER_MS 200
/* A daemon that sends nothing for this long counts as missing. */
#define ANSWER_NS (5 * TD_NS_PER_S)

void td_link_init(struct td_link *link, const char *path, const char *job, uint32_t can)
{
	memset(link, 0, sizeof(*link));
	link->fd = link->ask_fd = -1;
	link->delay_ns = DELAY_NS;
	snprintf(link->path, sizeof(link->path), "%s", path);
	link->said.type = TD_MSG_TYPE_supervise;
	snprintf(link->said.supervise.job, sizeof(link->said.supervise.job), "%s", job);
	link->said.supervise.can = can;
}

static void drop(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void retry_later(struct td_link *link, uint64_t now_ns)
{
	drop(&link->fd);
	link->owed = 0;
	link->has_answered = false;
	link->retry_ns = now_ns + link->delay_ns;
	link->delay_ns = 2 * link->delay_ns < DELAY_MAX_NS ? 2 * link->delay_ns : DELAY_MAX_NS;
}

void td_link_send(struct td_link *link, const struct td_msg *msg)
{
	if (link->fd < 0)
		return;
	link->owed += msg->type == TD_MSG_TYPE_supervise;
	link->has_answered |= msg->type == TD_MSG_TYPE_ordered;
	if (td_socket_send(link->fd, msg, NULL, 0))
		retry_later(link, td_time_now_ns());
}

void td_link_say(
	struct td_link *link, uint32_t pid, uint32_t epoch, uint64_t ordered, uint32_t instance)
{
	struct td_msg_supervise *said = &link->said.supervise;

	if (said->pid == pid && said->epoch == epoch && said->ordered == ordered &&
		said->instance == instance)
		return;
	said->instance = instance;
	said->pid = pid;
	said->epoch = epoch;
	said->ordered = ordered;
	td_link_send(link, &link->said);
}

void td_link_tick(struct td_link *link, uint64_t now_ns)
{
	if (link->fd >= 0 || !*link->path || now_ns < link->retry_ns)
		return;
	link->fd = td_socket_connect(link->path, PATIENCE_NS);
	if (link->fd < 0)
		retry_later(link, now_ns);
	td_link_send(link, &link->said);
}

bool td_link_recv(struct td_link *link, struct td_msg *ret, uint64_t now_ns)
{
	while (link->fd >= 0) {
		int r = td_socket_recv(link->fd, ret, NULL, MSG_DONTWAIT);

		if (r == -EAGAIN)
			return false;
		if (r < 0 || (!r && ret->type == TD_MSG_TYPE_error)) {
			retry_later(link, now_ns);
			return false;
		}
		link->delay_ns = DELAY_NS;
		if (!r && ret->type == TD_MSG_TYPE_end && link->owed)
			link->owed--;
		if (!r && ret->type == TD_MSG_TYPE_order)
			return true;
	}
	return false;
}

void td_link_deinit(struct td_link *link)
{
	struct pollfd poll_fd = {link->fd, POLLIN, 0};
	struct td_msg msg;

	while (link->has_answered && link->owed && link->fd >= 0 &&
		poll(&poll_fd, 1, LINGER_MS) > 0)
		(void)td_link_recv(link, &msg, td_time_now_ns());
	drop(&link->fd);
	drop(&link->ask_fd);
}

uint64_t td_link_wake_ns(const struct td_link *link)
{
	uint64_t wake_ns = link->fd < 0 && *link->path ? link->retry_ns : UINT64_MAX;

	return link->is_asking && link->ask_until_ns < wake_ns ? link->ask_until_ns : wake_ns;
}

void td_link_ask(struct td_link *link, const struct td_msg_admit *admit, uint64_t now_ns)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_admit, .admit = *admit};

	drop(&link->ask_fd);
	link->is_asking = true;
	link->ask_fd = td_socket_connect(link->path, PATIENCE_NS);
	link->ask_until_ns = now_ns + ANSWER_NS;
	if (link->ask_fd >= 0 && td_socket_send(link->ask_fd, &msg, NULL, 0))
		drop(&link->ask_fd);
}

enum td_link_admission td_link_admission(struct td_link *link, uint64_t now_ns)
{
	struct td_msg msg;
	int r = link->ask_fd < 0 ? -ENOTCONN
				 : td_socket_recv(link->ask_fd, &msg, NULL, MSG_DONTWAIT);

	if (!link->is_asking || (r == -EAGAIN && now_ns < link->ask_until_ns))
		return TD_LINK_WAITS;
	drop(&link->ask_fd);
	link->is_asking = false;
	return !r && msg.type == TD_MSG_TYPE_error ? TD_LINK_REFUSED : TD_LINK_ADMITTED;
}
