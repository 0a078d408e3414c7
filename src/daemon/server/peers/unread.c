/*
 * Keeps the packets that a peer has not read yet, and charges them to the peer's user. While a user
 * has too much unread, nothing from him is read, so that he cannot ask for more. Also reads the
 * last messages of a process that has ended.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/time.h"
#include "daemon/server/peers/peer_internal.h"
#include "proto/socket.h"

/* The most bytes that one peer may leave unread: enough for every event that is kept, and more. */
#define OUT_MAX ((size_t)4 << 20)
/* If its user has no more room, a peer that reads nothing for this long is disconnected. */
#define STUCK_NS (10 * TD_NS_PER_S)
/* At most this many messages of an ended process are read to find its LEFT. */
#define LAST_WORDS_MAX 256

/*
 * The most bytes that all peers together may leave unread. An answer that has begun may exceed
 * this.
 */
static const struct td_pool unread = {.total = 24 << 20, .reserve = 8 << 20};

static bool may_keep_more(const struct td_peer *peer)
{
	const struct td_server *server = peer->server;

	return td_pool_allows(&unread, server->users.out_bytes, peer->user->out_bytes,
		td_node_is_owner(&server->node, peer->who));
}

/* Charges the user with the change in size of the peer's outbox. */
static void account(struct td_peer *peer, size_t before)
{
	peer->user->out_bytes += peer->out.bytes - before;
	peer->server->users.out_bytes += peer->out.bytes - before;
}

/*
 * A tool is read again only when its last answer has been sent and read, and its user does not have
 * too much unread. Programs are always read: their messages free memory, and they are sent little.
 * The loop watches the connection accordingly from now on.
 */
bool td_peer_may_be_read(struct td_peer *peer)
{
	bool writes = !td_outbox_is_empty(&peer->out);
	bool reads = peer->process || (!writes && !peer->answer.type && may_keep_more(peer));
	uint32_t events = (reads ? EPOLLIN : 0u) | (writes ? EPOLLOUT : 0u);

	peer->waits = !reads;
	if (events != peer->events)
		td_loop_want(peer->server->loop, &peer->source, events);
	peer->events = events;
	return reads;
}

static void hold(struct td_peer *peer, const struct td_msg *msg)
{
	size_t before = peer->out.bytes;

	if (td_outbox_send(&peer->out, -1, msg) < 0)
		peer->broken = true;
	if (!before)
		peer->stuck_since_ns = td_time_now_ns();
	account(peer, before);
	peer->server->stuck = true;
	if (td_list_empty(&peer->held))
		td_list_append(&peer->server->held, &peer->held);
}

void td_peer_send_held(struct td_server *server)
{
	struct td_list *it, *tmp;

	server->holds = false;
	td_list_for_each_safe (it, tmp, &server->held) {
		struct td_peer *peer = td_container_of(it, struct td_peer, held);

		td_list_remove(&peer->held);
		td_list_init(&peer->held);
		if (!peer->broken)
			td_peer_flush(peer);
	}
}

/*
 * Sends a message. An answer that has begun is sent to its end; messages without a request need
 * room.
 */
void td_peer_send(struct td_peer *peer, const struct td_msg *msg)
{
	size_t before = peer->out.bytes;

	if (peer->broken)
		return;
	if (peer->process && peer->server->holds) {
		hold(peer, msg);
		return;
	}
	if (td_outbox_send(&peer->out, peer->source.fd, msg) < 0)
		peer->broken = true;
	peer->server->stuck |= peer->broken || !td_outbox_is_empty(&peer->out);
	if (before == peer->out.bytes)
		return;
	if (!before)
		peer->stuck_since_ns = td_time_now_ns();
	account(peer, before);
	if (!peer->is_answered && !may_keep_more(peer))
		peer->broken = true;
	(void)td_peer_may_be_read(peer);
}

void td_peer_flush(struct td_peer *peer)
{
	size_t before = peer->out.bytes;

	if (td_outbox_flush(&peer->out, peer->source.fd) < 0)
		peer->broken = true;
	if (peer->out.bytes != before)
		peer->stuck_since_ns = td_time_now_ns();
	account(peer, before);
	(void)td_peer_may_be_read(peer);
}

int td_peer_answer(struct td_peer *peer, const struct td_msg *msg, uint64_t now_ns)
{
	int r;

	peer->is_answered = true;
	r = td_tool_request(peer, msg, now_ns);
	peer->is_answered = false;
	return r;
}

uint64_t td_peer_answer_later(struct td_peer *peer, uint64_t now_ns)
{
	uint64_t wakeup;

	peer->is_answered = true;
	wakeup = td_tool_turn(peer, now_ns);
	peer->is_answered = false;
	return wakeup;
}

uint64_t td_peer_look_at_outbox(struct td_peer *peer, uint64_t now_ns)
{
	if (!peer->waits)
		return UINT64_MAX;
	(void)td_peer_may_be_read(peer);
	if (td_outbox_is_empty(&peer->out) || may_keep_more(peer))
		return UINT64_MAX;
	if (now_ns < peer->stuck_since_ns + STUCK_NS)
		return peer->stuck_since_ns + STUCK_NS;
	peer->broken = true;
	return now_ns;
}

void td_peer_init_unread(struct td_peer *peer)
{
	peer->events = EPOLLIN;
	td_outbox_init(&peer->out, OUT_MAX);
}

void td_peer_forget_unread(struct td_peer *peer)
{
	size_t before = peer->out.bytes;

	td_outbox_deinit(&peer->out);
	account(peer, before);
}

void td_peer_finish(struct td_peer *peer, uint32_t rows)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_end};

	msg.end.rows = rows;
	msg.end.time_ns = td_time_now_ns();
	td_peer_send(peer, &msg);
}

void td_peer_fail(struct td_peer *peer, int code, const char *text)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_error};

	msg.error.code = (uint32_t)-code;
	snprintf(msg.error.text, sizeof(msg.error.text), "%.*s", TD_STR_MAX, text);
	if (strlen(text) > TD_STR_MAX)
		snprintf(msg.error.rest, sizeof(msg.error.rest), "%.*s", TD_STR_MAX,
			text + TD_STR_MAX);
	td_peer_send(peer, &msg);
}

void td_peer_hear_last_words(struct td_peer *peer, uint64_t now_ns)
{
	struct td_msg msg;
	bool again = true;

	for (int i = 0; peer->process && i < LAST_WORDS_MAX; i++) {
		int r = td_socket_recv_bare(peer->source.fd, &msg);

		/*
		 * The kernel first reports, once, that the peer left messages of ours unread. The
		 * peer's own messages come after that.
		 */
		if (r < 0 && !(r == -ECONNRESET && again))
			return;
		again = again && r >= 0;
		if (r == 0 && msg.type == TD_MSG_TYPE_left)
			(void)td_node_message(&peer->server->node, peer->process, &msg, now_ns);
	}
}
