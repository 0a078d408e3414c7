/* This file implements rounds.h. */
#include "cluster/agent/rounds.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/time.h"
#include "proto/proto.h"
#include "proto/socket.h"

#define PERIOD_NS   TD_NS_PER_S
#define RETRY_NS    TD_NS_PER_S
#define SILENCE_NS  (5 * TD_NS_PER_S) /* a daemon that has said nothing for this is away */
#define PATIENCE_NS (200 * TD_NS_PER_MS)

void td_rounds_init(struct td_rounds *rounds, const char *socket)
{
	memset(rounds, 0, sizeof(*rounds));
	snprintf(rounds->socket, sizeof(rounds->socket), "%s", socket);
	rounds->fd = -1;
}

static void hang_up(struct td_rounds *rounds)
{
	if (rounds->fd >= 0)
		close(rounds->fd);
	rounds->fd = -1;
	td_snapshot_clear(&rounds->arriving);
	td_snapshot_clear(&rounds->now);
	td_snapshot_clear(&rounds->before);
}

void td_rounds_deinit(struct td_rounds *rounds)
{
	hang_up(rounds);
	td_snapshot_deinit(&rounds->arriving);
	td_snapshot_deinit(&rounds->now);
	td_snapshot_deinit(&rounds->before);
}

static void call(struct td_rounds *rounds, uint64_t now_ns)
{
	struct td_msg request = {.type = TD_MSG_TYPE_watch, .watch.period_ns = PERIOD_NS};

	rounds->retry_ns = now_ns + RETRY_NS;
	rounds->heard_ns = now_ns;
	rounds->fd = td_socket_connect(rounds->socket, PATIENCE_NS);
	if (rounds->fd >= 0 && td_socket_send(rounds->fd, &request, NULL, 0))
		hang_up(rounds);
}

static void end_round(struct td_rounds *rounds)
{
	struct td_snapshot oldest = rounds->before;

	rounds->before = rounds->now;
	rounds->now = rounds->arriving;
	rounds->arriving = oldest;
	td_snapshot_clear(&rounds->arriving);
	/* If memory is short, the rows have no rates. */
	if (rounds->before.time_ns)
		(void)td_snapshot_rates(&rounds->now, &rounds->before);
}

/* Takes the messages that are there. Returns whether a round has ended. */
static bool take(struct td_rounds *rounds, uint64_t now_ns)
{
	bool is_new = false;
	struct td_msg msg;

	for (;;) {
		int r = td_socket_recv(rounds->fd, &msg, NULL, MSG_DONTWAIT);

		if (r == TD_PROTO_UNKNOWN)
			continue;
		if (r == -EAGAIN)
			return is_new;
		if (!r)
			r = msg.type == TD_MSG_TYPE_error
				    ? -EPROTO
				    : td_snapshot_take(&rounds->arriving, &msg);
		if (r < 0) {
			hang_up(rounds);
			return false;
		}
		rounds->heard_ns = now_ns;
		if (r != 1)
			continue;
		end_round(rounds);
		is_new = true;
	}
}

bool td_rounds_turn(struct td_rounds *rounds, uint64_t now_ns, uint64_t *ret_wakeup_ns)
{
	bool is_new = false;

	if (rounds->fd < 0 && now_ns >= rounds->retry_ns)
		call(rounds, now_ns);
	if (rounds->fd >= 0)
		is_new = take(rounds, now_ns);
	if (rounds->fd >= 0 && now_ns >= rounds->heard_ns + SILENCE_NS)
		hang_up(rounds);
	*ret_wakeup_ns = rounds->fd < 0 ? rounds->retry_ns : rounds->heard_ns + SILENCE_NS;
	return is_new;
}

bool td_rounds_is_refused(const struct td_rounds *rounds)
{
	return rounds->fd == -ECONNREFUSED || rounds->fd == -ENOENT;
}
