/*
 * The packets that a peer has not received yet, in order. Their size is bounded: a peer that asks
 * and does not read is disconnected when the bound is reached.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/list.h"

struct td_msg;

struct td_outbox {
	struct td_list packets;
	size_t bytes, most_bytes;
};

void td_outbox_init(struct td_outbox *box, size_t most_bytes);
void td_outbox_deinit(struct td_outbox *box);
bool td_outbox_is_empty(const struct td_outbox *box);

/*
 * Sends the message if that is possible without blocking, otherwise keeps it. fd -1: keeps it until
 * it is flushed. Returns 0, -ENOBUFS if too much is kept, -ENOMEM, or the socket's error.
 */
int td_outbox_send(struct td_outbox *box, int fd, const struct td_msg *msg);

/* Sends kept packets. Returns 0 or -errno. After 0 some may remain; see td_outbox_is_empty(). */
int td_outbox_flush(struct td_outbox *box, int fd);
