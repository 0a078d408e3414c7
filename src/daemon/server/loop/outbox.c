/* This file implements outbox.h. */
#include "daemon/server/loop/outbox.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "proto/proto.h"

struct packet {
	struct td_list of_box;
	size_t len;
	char bytes[];
};

void td_outbox_init(struct td_outbox *box, size_t most_bytes)
{
	td_list_init(&box->packets);
	box->bytes = 0;
	box->most_bytes = most_bytes;
}

static void drop_packet(struct td_outbox *box, struct packet *packet)
{
	td_list_remove(&packet->of_box);
	box->bytes -= sizeof(*packet) + packet->len;
	free(packet);
}

void td_outbox_deinit(struct td_outbox *box)
{
	struct td_list *it, *tmp;

	td_list_for_each_safe (it, tmp, &box->packets)
		drop_packet(box, td_container_of(it, struct packet, of_box));
}

bool td_outbox_is_empty(const struct td_outbox *box)
{
	return td_list_empty(&box->packets);
}

static int send_now(int fd, const void *bytes, size_t len)
{
	ssize_t sent;

	do
		sent = send(fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : 0;
}

static int keep_packet(struct td_outbox *box, const char *bytes, size_t len)
{
	struct packet *packet;

	if (box->bytes + sizeof(*packet) + len > box->most_bytes)
		return -ENOBUFS;
	packet = malloc(sizeof(*packet) + len);
	if (!packet)
		return -ENOMEM;
	packet->len = len;
	memcpy(packet->bytes, bytes, len);
	td_list_append(&box->packets, &packet->of_box);
	box->bytes += sizeof(*packet) + len;
	return 0;
}

int td_outbox_send(struct td_outbox *box, int fd, const struct td_msg *msg)
{
	char bytes[TD_PROTO_MAX];
	int n = td_proto_encode(msg, bytes, sizeof(bytes)), r = -EAGAIN;

	if (n < 0)
		return n;
	if (fd >= 0 && td_outbox_is_empty(box))
		r = send_now(fd, bytes, (size_t)n);
	return r == -EAGAIN ? keep_packet(box, bytes, (size_t)n) : r;
}

int td_outbox_flush(struct td_outbox *box, int fd)
{
	struct td_list *it, *tmp;

	td_list_for_each_safe (it, tmp, &box->packets) {
		struct packet *packet = td_container_of(it, struct packet, of_box);
		int r = send_now(fd, packet->bytes, packet->len);

		if (r)
			return r == -EAGAIN ? 0 : r;
		drop_packet(box, packet);
	}
	return 0;
}
