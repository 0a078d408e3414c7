/* A slow reader gets everything in order; one that does not read is given up at the bound. */
#include "test.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/server/loop/outbox.h"
#include "proto/proto.h"
#include "proto/socket.h"

static int fds[2];
static struct td_outbox box;

static void begin(size_t most_bytes)
{
	CHECK_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
	td_outbox_init(&box, most_bytes);
}

static void end(void)
{
	td_outbox_deinit(&box);
	CHECK_EQ(box.bytes, 0);
	close(fds[0]);
	close(fds[1]);
}

static int put(uint32_t rows)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_end};

	msg.end.rows = rows;
	return td_outbox_send(&box, fds[0], &msg);
}

TEST(a_slow_reader_gets_everything_in_order)
{
	struct td_msg msg;
	uint32_t n = 0;

	begin(1 << 20);
	while (n < 3000)
		CHECK_EQ(put(n++), 0);
	CHECK(!td_outbox_is_empty(&box));
	for (uint32_t i = 0; i < n; i++) {
		if (td_socket_recv(fds[1], &msg, NULL, MSG_DONTWAIT) == -EAGAIN) {
			CHECK_EQ(td_outbox_flush(&box, fds[0]), 0);
			CHECK_EQ(td_socket_recv(fds[1], &msg, NULL, MSG_DONTWAIT), 0);
		}
		CHECK_EQ(msg.end.rows, i);
	}
	CHECK(td_outbox_is_empty(&box));
	end();
}

TEST(one_that_does_not_read_is_given_up_at_the_bound)
{
	int r = 0;

	begin(4096);
	for (int i = 0; i < 100000 && !r; i++)
		r = put(1);
	CHECK_EQ(r, -ENOBUFS);
	CHECK(box.bytes <= 4096);
	end();
}

TEST(one_that_is_gone_is_an_error)
{
	begin(4096);
	close(fds[1]);
	CHECK_EQ(put(1), -EPIPE);
	fds[1] = -1;
	end();
}
