/*
 * The codec: every message makes the round trip, grows and shrinks at its end, and nothing
 * malformed gets through.
 */
#include "test.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/orders.h"
#include "proto/proto.h"
#include "proto/socket.h"

static uint8_t packet[TD_PROTO_MAX];
static struct td_msg in, out;

static unsigned counter;

/* Fills a field with a value that no other field of the message has. */
#define FILL_u8(p)   *(p) = (uint8_t)++counter
#define FILL_u32(p)  *(p) = 0x01020300u + ++counter
#define FILL_u64(p)  *(p) = 0x0102030405060700ull + ++counter
#define FILL_str(p)  snprintf(*(p), sizeof(*(p)), "text %u", ++counter)
#define FILL_uuid(p) memset(*(p), (int)++counter, 16)

static void round_trip(void)
{
	int n = td_proto_encode(&in, packet, sizeof(packet));

	CHECK(n > 0);
	memset(&out, 0xee, sizeof(out));
	CHECK_EQ(td_proto_decode(packet, (size_t)n, &out), 0);
	CHECK(!memcmp(&in, &out, sizeof(in)));
}

#define F(type, name) FILL_##type(&m->name);
#define MESSAGE(number, id, fields)                                                                \
	TEST(id##_makes_the_round_trip)                                                            \
	{                                                                                          \
		struct td_msg_##id *m = &in.id;                                                    \
		memset(&in, 0, sizeof(in));                                                        \
		in.type = TD_MSG_TYPE_##id;                                                        \
		fields round_trip();                                                               \
		CHECK_STR(td_proto_name(number), #id);                                             \
	}
#include "proto/messages.def"
#undef MESSAGE
#undef F

static int encode_ready(void)
{
	memset(&in, 0, sizeof(in));
	in.type = TD_MSG_TYPE_ready;
	in.ready.slot = 3;
	in.ready.seq = 7;
	return td_proto_encode(&in, packet, sizeof(packet));
}

TEST(fields_behind_the_known_ones_are_ignored)
{
	int n = encode_ready();

	memset(packet + n, 0x55, 40);
	packet[4] = (uint8_t)(packet[4] + 40);
	CHECK_EQ(td_proto_decode(packet, (size_t)n + 40, &out), 0);
	CHECK_EQ(out.ready.slot, 3);
	CHECK_EQ(out.ready.seq, 7);
}

TEST(missing_trailing_fields_are_zero)
{
	int n = encode_ready();

	packet[4] = (uint8_t)(packet[4] - 4);
	CHECK_EQ(td_proto_decode(packet, (size_t)n - 4, &out), 0);
	CHECK_EQ(out.ready.slot, 3);
	CHECK_EQ(out.ready.seq, 0);
}

TEST(malformed_packets_are_refused)
{
	int n = encode_ready();

	CHECK_EQ(td_proto_decode(packet, 7, &out), -EBADMSG);
	CHECK_EQ(
		td_proto_decode(packet, (size_t)n - 1, &out), -EBADMSG); /* length does not match */
	packet[4] = (uint8_t)(packet[4] - 1);
	CHECK_EQ(td_proto_decode(packet, (size_t)n - 1, &out), -EBADMSG); /* half a field */
	encode_ready();
	packet[0] = 99;
	CHECK_EQ(td_proto_decode(packet, (size_t)n, &out), -EPROTO);
	encode_ready();
	packet[2] = 0xff;
	CHECK_EQ(td_proto_decode(packet, (size_t)n, &out), TD_PROTO_UNKNOWN);
	CHECK_EQ(out.type, 0xff);
}

TEST(strings_with_a_nul_or_beyond_the_limit_are_refused)
{
	int n;

	memset(&in, 0, sizeof(in));
	in.type = TD_MSG_TYPE_explain;
	strcpy(in.explain.job, "hello");
	n = td_proto_encode(&in, packet, sizeof(packet));
	packet[8 + 2 + 1] = 0;
	CHECK_EQ(td_proto_decode(packet, (size_t)n, &out), -EBADMSG);
	memset(packet + 8, 0, sizeof(packet) - 8);
	packet[4] = 0x2c; /* 2 + 298 bytes */
	packet[5] = 0x01;
	packet[8] = 0x2a;
	packet[9] = 0x01;
	memset(packet + 10, 'x', 298);
	CHECK_EQ(td_proto_decode(packet, 8 + 300, &out), -EBADMSG);
}

/* The bytes as another program would write them: not made by the codec. */
static void check_golden(const uint8_t *golden, size_t len)
{
	CHECK_EQ(td_proto_encode(&in, packet, sizeof(packet)), (int)len);
	CHECK(!memcmp(packet, golden, len));
	CHECK_EQ(td_proto_decode(golden, len, &out), 0);
	CHECK(!memcmp(&in, &out, sizeof(in)));
}

TEST(supervise_is_these_bytes)
{
	static const uint8_t golden[] = {1, 0, 64, 0, 29, 0, 0, 0, /* version, type, length */
		3, 0, 'j', 'o', 'b', 0x39, 0x30, 0, 0, 2, 0, 0, 0, 5, 0, 0, 0, 8, 7, 6, 5, 4, 3, 2,
		1, 9, 0, 0, 0};

	memset(&in, 0, sizeof(in));
	in.type = TD_MSG_TYPE_supervise;
	in.supervise = (struct td_msg_supervise){"job", 12345, 2,
		TD_SUPERVISOR_RESTARTS | TD_SUPERVISOR_SHADOWS, 0x0102030405060708, 9};
	check_golden(golden, sizeof(golden));
}

TEST(figures_are_these_bytes)
{
	static const uint8_t golden[] = {1, 0, 68, 0, 58, 0, 0, 0, 3, 0, 'a', 'p', 'i', 0x80, 0xf0,
		0xfa, 2, 0, 0, 0, 0, 1, 1, 0x39, 0x30, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2,
		0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 1, 0, 's', 2, 0, 'n', 'o'};

	memset(&in, 0, sizeof(in));
	in.type = TD_MSG_TYPE_figures;
	in.figures = (struct td_msg_figures){"api", 50000000, 1, 1, 12345, 1, 2, 3, 4, "s", "no"};
	check_golden(golden, sizeof(golden));
}

TEST(order_is_these_bytes)
{
	static const uint8_t golden[] = {1, 0, 65, 0, 40, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0x80, 1, 3,
		0, 0, 0, 0, 0xca, 0x9a, 0x3b, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 1, 4, 0, 'l', 'o',
		'a', 'd', 0x80, 0x1a, 6, 0};

	memset(&in, 0, sizeof(in));
	in.type = TD_MSG_TYPE_order;
	in.order = (struct td_msg_order){
		0x8000000000000001, TD_ORDER_RESTART, 3, 1000000000, 2, 1, "load", 400000};
	check_golden(golden, sizeof(golden));
}

TEST(ordered_is_these_bytes)
{
	static const uint8_t golden[] = {
		1, 0, 66, 0, 13, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 2, 2, 0, 'n', 'o'};

	memset(&in, 0, sizeof(in));
	in.type = TD_MSG_TYPE_ordered;
	in.ordered = (struct td_msg_ordered){9, TD_ORDERED_REFUSED, "no"};
	check_golden(golden, sizeof(golden));
}

TEST(a_message_that_does_not_fit_its_buffer_is_refused)
{
	uint8_t small[10];

	encode_ready();
	CHECK_EQ(td_proto_encode(&in, small, sizeof(small)), -EMSGSIZE);
	in.type = 60000;
	CHECK_EQ(td_proto_encode(&in, packet, sizeof(packet)), -EINVAL);
}

TEST(descriptors_travel_with_a_message_and_surplus_ones_are_closed)
{
	int pair[2], got[TD_SOCKET_FDS], pipes[2];
	char byte = 0;

	CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair));
	CHECK(!pipe(pipes));
	encode_ready();
	CHECK_EQ(td_socket_send(pair[0], &in, pipes, 2), 0);
	CHECK_EQ(td_socket_recv(pair[1], &out, got, 0), 0);
	CHECK_EQ(out.ready.seq, 7);
	CHECK(got[0] >= 0 && got[1] >= 0);
	CHECK_EQ(write(got[1], "x", 1), 1);
	CHECK_EQ(read(pipes[0], &byte, 1), 1);
	CHECK_EQ(byte, 'x');
	CHECK_EQ(td_socket_send(pair[0], &in, pipes, 2), 0);
	CHECK_EQ(td_socket_recv(pair[1], &out, NULL, 0), 0);
	close(got[1]);
	close(pipes[1]);
	CHECK_EQ(read(pipes[0], &byte, 1), 0); /* no writer is left: the surplus was closed */
	close(got[0]);
	close(pipes[0]);
	close(pair[0]);
	CHECK_EQ(td_socket_recv(pair[1], &out, NULL, 0), -ECONNRESET);
	close(pair[1]);
}

static char *mark(char *text)
{
	CHECK(*text);
	*text = '!';
	return text;
}

TEST(each_string_of_a_message_can_be_changed_and_nothing_else)
{
	struct td_msg was;

	memset(&in, 0, sizeof(in));
	in.type = TD_MSG_TYPE_hello;
	in.hello.pid = 7;
	in.hello.weight = 8;
	strcpy(in.hello.job, "job");
	strcpy(in.hello.name, "name");
	strcpy(in.hello.mem, "mem");
	strcpy(in.hello.mem_soft, "soft");
	was = in;
	td_proto_each_str(&in, mark);
	CHECK_STR(in.hello.job, "!ob");
	CHECK_STR(in.hello.name, "!ame");
	CHECK_STR(in.hello.mem, "!em");
	CHECK_STR(in.hello.mem_soft, "!oft");
	*in.hello.job = 'j', *in.hello.name = 'n', *in.hello.mem = 'm', *in.hello.mem_soft = 's';
	CHECK(!memcmp(&in, &was, sizeof(in)));
	in.type = 999;
	td_proto_each_str(&in, mark);
	in.type = 999;
	CHECK(!memcmp(&in.hello, &was.hello, sizeof(in.hello)));
}
