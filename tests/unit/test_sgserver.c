/* The softgpu server on a fake clock with fake connections: what clients share, and what is left when one is gone. */
#include "test.h"

#include <errno.h>

#include "softgpu/server/server.h"

#define MS  1000000ull
#define MIB (1ull << 20)

struct peer {
	struct sg_peer_state *state;
	struct sg_msg last;
	unsigned done;
	uint64_t done_at;
};

static struct sg_server server;
static struct peer a, b;
static uint64_t now;

static void keep(void *arg, const struct sg_msg *msg, const void *extra, size_t len)
{
	struct peer *peer = arg;

	(void)extra;
	(void)len;
	peer->last = *msg;
	if (msg->type == SG_DONE) {
		peer->done++;
		peer->done_at = msg->value2;
	}
}

static int tell(struct peer *peer, struct sg_msg msg)
{
	return sg_server_packet(&server, peer->state, &msg, sizeof(msg), now);
}

static uint64_t ask(struct peer *peer, struct sg_msg msg)
{
	if (tell(peer, msg))
		test_fail(__FILE__, __LINE__, "request %u dropped the connection", msg.type);
	return peer->last.value;
}

static uint32_t begin(void)
{
	struct td_gpu_spec spec = *td_gpu_spec_find("tiny");

	spec.switch_ns = 0;
	now = 1000 * MS;
	sg_server_init(&server, &spec, 1, now);
	server.send = keep;
	memset(&a, 0, sizeof(a));
	memset(&b, 0, sizeof(b));
	a.state = sg_server_connect(&server, &a, 1);
	b.state = sg_server_connect(&server, &b, 2);
	return (uint32_t)ask(&a, (struct sg_msg){.type = SG_CONTEXT_NEW});
}

static void end(void)
{
	sg_server_disconnect(&server, a.state, now);
	sg_server_disconnect(&server, b.state, now);
	CHECK_EQ(server.gpus[0].memory.plain_bytes, 0);
	CHECK_EQ(server.gpus[0].memory.resident_bytes, 0);
}

TEST(memory_is_refused_at_the_edge_and_freed_when_its_owner_is_gone)
{
	uint32_t context = begin();

	ask(&a, (struct sg_msg){.type = SG_MEMORY_RESERVE, .context = context, .bytes = 60 * MIB});
	CHECK_EQ(a.last.error, SG_OK);
	uint32_t other = (uint32_t)ask(&b, (struct sg_msg){.type = SG_CONTEXT_NEW});
	ask(&b, (struct sg_msg){.type = SG_MEMORY_RESERVE, .context = other, .bytes = 3 * MIB});
	CHECK_EQ(b.last.error, SG_ERR_MEMORY);
	sg_server_disconnect(&server, a.state, now);
	a.state = sg_server_connect(&server, &a, 1);
	ask(&b, (struct sg_msg){.type = SG_MEMORY_RESERVE, .context = other, .bytes = 62 * MIB});
	CHECK_EQ(b.last.error, SG_OK);
	end();
}

TEST(two_kernels_of_two_processes_share_the_time)
{
	uint32_t context = begin(),
		 other = (uint32_t)ask(&b, (struct sg_msg){.type = SG_CONTEXT_NEW});

	CHECK_EQ(tell(&a, (struct sg_msg){.type = SG_OP_BEGIN, .context = context, .op = 1}), 0);
	CHECK_EQ(tell(&b, (struct sg_msg){.type = SG_OP_BEGIN, .context = other, .op = 1}), 0);
	CHECK_EQ(tell(&a, (struct sg_msg){.type = SG_OP_LENGTH,
				  .context = context,
				  .op = 1,
				  .value = 10 * MS}),
		0);
	CHECK_EQ(
		tell(&b,
			(struct sg_msg){
				.type = SG_OP_LENGTH, .context = other, .op = 1, .value = 10 * MS}),
		0);
	now += 15 * MS;
	CHECK(sg_server_advance(&server, now) > now);
	CHECK_EQ(a.done + b.done, 0);
	now += 10 * MS;
	CHECK_EQ(sg_server_advance(&server, now), (long long)UINT64_MAX);
	CHECK_EQ(a.done_at, 1018 * MS);
	CHECK_EQ(b.done_at, 1020 * MS);
	end();
}

TEST(a_client_that_dies_gives_its_turn_back)
{
	uint32_t context = begin(),
		 other = (uint32_t)ask(&b, (struct sg_msg){.type = SG_CONTEXT_NEW});

	tell(&a,
		(struct sg_msg){
			.type = SG_OP_BEGIN, .context = context, .op = 1}); /* endless: no length */
	tell(&b, (struct sg_msg){.type = SG_OP_BEGIN, .context = other, .op = 1});
	tell(&b,
		(struct sg_msg){.type = SG_OP_LENGTH, .context = other, .op = 1, .value = 10 * MS});
	now += 4 * MS;
	sg_server_disconnect(&server, a.state, now);
	a.state = sg_server_connect(&server, &a, 1);
	now += 100 * MS;
	sg_server_advance(&server, now);
	CHECK_EQ(b.done_at, 1012 * MS); /* 2 ms were a's, then b alone */
	end();
}

TEST(managed_pages_fault_in_and_are_counted)
{
	uint32_t context = begin();
	uint32_t range = (uint32_t)ask(
		&a, (struct sg_msg){.type = SG_MANAGED_NEW, .context = context, .bytes = 4 * MIB});
	struct {
		struct sg_msg msg;
		struct sg_touch run;
	} touch = {
		{.type = SG_OP_TOUCH, .context = context, .op = 1, .value = 1}, {range, 1, 0, 64}};

	tell(&a, (struct sg_msg){.type = SG_OP_BEGIN, .context = context, .op = 1});
	CHECK_EQ(sg_server_packet(&server, a.state, &touch, sizeof(touch), now), 0);
	tell(&a, (struct sg_msg){.type = SG_OP_LENGTH, .context = context, .op = 1, .value = MS});
	now += 1000 * MS;
	sg_server_advance(&server, now);
	CHECK_EQ(a.done, 1);
	CHECK(a.done_at > 1001 * MS);
	CHECK_EQ(server.gpus[0].memory.total.faults, 64);
	CHECK_EQ(server.gpus[0].memory.resident_bytes, 4 * MIB);
	end();
}

TEST(an_effect_slower_than_its_model_makes_the_run_lagged)
{
	uint32_t context = begin();
	char *text;

	tell(&a, (struct sg_msg){.type = SG_OP_BEGIN, .context = context, .op = 1});
	now += 50 * MS;
	tell(&a, (struct sg_msg){
			 .type = SG_OP_LENGTH, .context = context, .op = 1, .value = 10 * MS});
	sg_server_advance(&server, now);
	CHECK_EQ(server.gpus[0].lag_ns, 40 * MS);
	text = sg_server_status(&server, now);
	CHECK(strstr(text, "\"lagged\": true"));
	free(text);
	ask(&a, (struct sg_msg){.type = SG_RESET_COUNTERS});
	text = sg_server_status(&server, now);
	CHECK(strstr(text, "\"lagged\": false"));
	free(text);
	end();
}

TEST(nonsense_drops_the_connection)
{
	uint32_t context = begin();

	CHECK_EQ(sg_server_packet(&server, a.state, "x", 1, now), -EPROTO);
	CHECK_EQ(tell(&a, (struct sg_msg){.type = 999}), -EPROTO);
	CHECK_EQ(tell(&a, (struct sg_msg){.type = SG_OP_LENGTH, .op = 7}), -EPROTO);
	CHECK_EQ(tell(&a, (struct sg_msg){.type = SG_OP_BEGIN, .context = context + 1}), -EPROTO);
	CHECK_EQ(tell(&a, (struct sg_msg){.type = SG_OP_BEGIN, .context = context, .gpu = 5}),
		-EPROTO);
	CHECK_EQ(tell(&a, (struct sg_msg){.type = SG_OP_BEGIN, .context = context, .engine = 77}),
		-EPROTO);
	end();
}

static struct sg_gpu_state state;

static void keep_state(void *arg, const struct sg_msg *msg, const void *extra, size_t len)
{
	keep(arg, msg, extra, len);
	if (len == sizeof(state))
		memcpy(&state, extra, sizeof(state));
}

TEST(load_is_that_of_the_last_whole_window_however_late_it_is_asked)
{
	uint32_t context = begin();

	server.send = keep_state;
	CHECK_EQ(tell(&a, (struct sg_msg){.type = SG_OP_BEGIN, .op = 1, .context = context}), 0);
	CHECK_EQ(tell(&a, (struct sg_msg){.type = SG_OP_LENGTH,
				  .op = 1,
				  .context = context,
				  .value = 500 * MS}),
		0);
	now += 450 * MS;
	ask(&b, (struct sg_msg){.type = SG_GPU_STATE});
	CHECK_EQ(state.utilisation_ppm, 1000000);
	CHECK_EQ(state.used_bytes, MIB);
	/* The window in which it ended is half full; asked late, it is still the last whole one. */
	now += 200 * MS;
	ask(&b, (struct sg_msg){.type = SG_GPU_STATE});
	CHECK_EQ(state.utilisation_ppm, 500000);
	now += 3600000 * MS;
	ask(&b, (struct sg_msg){.type = SG_GPU_STATE});
	CHECK_EQ(state.utilisation_ppm, 0);
	end();
}

TEST(gpus_of_two_servers_differ_and_come_back_the_same)
{
	uint8_t before[16];

	begin();
	sg_server_identify(&server, 77);
	memcpy(before, server.gpus[0].uuid, 16);
	sg_server_identify(&server, 78);
	CHECK(memcmp(before, server.gpus[0].uuid, 16));
	sg_server_identify(&server, 77);
	CHECK(!memcmp(before, server.gpus[0].uuid, 16));
	end();
}
