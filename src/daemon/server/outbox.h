/*
 * Packets that a peer has not taken yet, in order. They are bounded: a peer that asks and does not
 * read costs this much, and then loses its connection.
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
 * Sends what can be sent without blocking and keeps the rest; fd -1: keeps it until it is flushed.
 * 0, -ENOBUFS if too much is kept, -ENOMEM, or the socket's error.
 */
int td_outbox_send(struct td_outbox *box, int fd, const struct td_msg *msg);

/* Sends what is kept. 0 (look at is_empty) or -errno. */
int td_outbox_flush(struct td_outbox *box, int fd);
