/* gRPC between a client and a server of ours, over a pair of sockets. */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "kubernetes/grpc.h"

static struct pair {
	struct td_grpc *server, *client;
	struct td_grpc_call *call; /* the last one; NULL: it was closed */
	unsigned called, closed, answered;
	char path[128], text[TD_GRPC_TEXT];
	int status;
	size_t len;    /* of the last message that came */
	uint8_t first; /* its first byte */
} p;

static void called(
	void *arg, struct td_grpc_call *call, const char *path, const uint8_t *message, size_t len)
{
	(void)arg;
	p.called++;
	p.call = call;
	snprintf(p.path, sizeof(p.path), "%s", path);
	p.len = len;
	p.first = len ? *message : 0;
}

static void closed(void *arg, struct td_grpc_call *call)
{
	(void)arg;
	p.closed++;
	if (p.call == call)
		p.call = NULL;
}

static void answered(void *arg, int status, const char *text, const uint8_t *message, size_t len)
{
	(void)arg;
	p.answered++;
	p.status = status;
	snprintf(p.text, sizeof(p.text), "%s", text);
	p.len = len;
	p.first = len ? *message : 0;
}

static const struct td_grpc_events events = {
	.called = called, .closed = closed, .answered = answered};

static void begin(void)
{
	int fds[2];

	memset(&p, 0, sizeof(p));
	CHECK(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds));
	p.server = td_grpc_open(fds[0], true, &events);
	p.client = td_grpc_open(fds[1], false, &events);
	CHECK(p.server && p.client);
}

static void end(void)
{
	td_grpc_close(p.client);
	td_grpc_close(p.server);
}

/* Both go on until neither has anything to do. */
static void settle(void)
{
	for (int quiet = 0; quiet < 2;) {
		struct pollfd fds[] = {{td_grpc_fd(p.server), td_grpc_events(p.server), 0},
			{td_grpc_fd(p.client), td_grpc_events(p.client), 0}};

		CHECK(!td_grpc_turn(p.server));
		CHECK(!td_grpc_turn(p.client));
		quiet = poll(fds, 2, 0) ? 0 : quiet + 1;
	}
}

TEST(a_call_has_its_path_its_message_and_an_answer)
{
	begin();
	CHECK(!td_grpc_call(p.client, "/a.B/C", (const uint8_t *)"xyz", 3));
	settle();
	CHECK_EQ(p.called, 1);
	CHECK_STR(p.path, "/a.B/C");
	CHECK_EQ(p.len, 3);
	CHECK_EQ(p.first, 'x');
	CHECK_EQ(p.answered, 0);
	CHECK(!td_grpc_answer(p.call, (const uint8_t *)"ok", 2));
	td_grpc_end(p.call, TD_GRPC_OK, NULL);
	settle();
	CHECK_EQ(p.answered, 1);
	CHECK_EQ(p.status, TD_GRPC_OK);
	CHECK_STR(p.text, "");
	CHECK_EQ(p.len, 2);
	CHECK_EQ(p.closed, 1);
	end();
}

TEST(a_refusal_has_its_status_and_its_text)
{
	begin();
	CHECK(!td_grpc_call(p.client, "/a.B/C", NULL, 0));
	settle();
	td_grpc_end(p.call, TD_GRPC_INVALID_ARGUMENT, "\"7\" is not 8");
	settle();
	CHECK_EQ(p.status, TD_GRPC_INVALID_ARGUMENT);
	CHECK_STR(p.text, "\"7\" is not 8");
	end();
}

TEST(a_text_is_one_line_of_ascii_on_the_wire)
{
	begin();
	CHECK(!td_grpc_call(p.client, "/a.B/C", NULL, 0));
	settle();
	td_grpc_end(p.call, TD_GRPC_INTERNAL, "1%\n\xc3\xa4");
	settle();
	CHECK_STR(p.text, "1%25%0A%C3%A4");
	end();
}

TEST(a_large_message_comes_whole)
{
	static uint8_t large[1 << 20];

	begin();
	memset(large, 7, sizeof(large));
	CHECK(!td_grpc_call(p.client, "/a.B/C", large, sizeof(large)));
	settle();
	CHECK_EQ(p.len, sizeof(large));
	CHECK(!td_grpc_answer(p.call, large, sizeof(large)));
	td_grpc_end(p.call, TD_GRPC_OK, NULL);
	settle();
	CHECK_EQ(p.answered, 1);
	CHECK_EQ(p.len, sizeof(large));
	CHECK_EQ(p.first, 7);
	end();
}

TEST(too_large_a_message_is_refused_and_the_connection_stays)
{
	uint8_t *large = calloc(1, TD_GRPC_MESSAGE_MAX + 100);

	begin();
	CHECK(large && !td_grpc_call(p.client, "/a.B/C", large, TD_GRPC_MESSAGE_MAX + 100));
	settle();
	free(large);
	CHECK_EQ(p.called, 0);
	CHECK_EQ(p.status, TD_GRPC_RESOURCE_EXHAUSTED);
	CHECK(!td_grpc_call(p.client, "/a.B/C", NULL, 0));
	settle();
	CHECK_EQ(p.called, 1);
	end();
}

TEST(more_calls_than_there_may_be_are_refused)
{
	begin();
	for (unsigned i = 0; i < TD_GRPC_CALLS + 3; i++)
		CHECK(!td_grpc_call(p.client, "/a.B/C", NULL, 0));
	settle();
	CHECK_EQ(p.called, TD_GRPC_CALLS);
	end();
	CHECK_EQ(p.closed, TD_GRPC_CALLS);
}

TEST(an_answer_that_nobody_reads_does_not_grow_without_end)
{
	static uint8_t part[1 << 20];
	unsigned taken = 0;

	begin();
	CHECK(!td_grpc_call(p.client, "/a.B/C", NULL, 0));
	settle();
	while (taken < 100 && !td_grpc_answer(p.call, part, sizeof(part)))
		taken++;
	CHECK(taken >= 1 && taken <= 4);
	CHECK_EQ(td_grpc_answer(p.call, part, sizeof(part)), -ENOBUFS);
	end();
}

TEST(a_client_that_goes_away_ends_its_calls)
{
	begin();
	CHECK(!td_grpc_call(p.client, "/a.B/C", NULL, 0));
	settle();
	td_grpc_close(p.client);
	p.client = NULL;
	CHECK_EQ(td_grpc_turn(p.server), -ECONNRESET);
	td_grpc_close(p.server);
	CHECK_EQ(p.closed, 1);
}

TEST(bytes_that_are_not_http_end_the_connection)
{
	begin();
	CHECK(td_grpc_feed(p.server, (const uint8_t *)"GET / HTTP/1.1\r\n\r\n", 18) < 0);
	end();
}

/* The call behaves like ListAndWatch: it does not end, and each message goes out as it comes. */
TEST(what_is_said_in_a_call_that_goes_on_is_sent_at_once)
{
	begin();
	CHECK(!td_grpc_call(p.client, "/a.B/C", NULL, 0));
	settle();
	CHECK(!(td_grpc_events(p.server) & POLLOUT));
	CHECK(!td_grpc_answer(p.call, (const uint8_t *)"one", 3));
	CHECK(td_grpc_events(p.server) & POLLOUT);
	settle();
	CHECK_EQ(p.answered, 0);
	CHECK(!(td_grpc_events(p.server) & POLLOUT));
	end();
}
