/*
 * The softgpu server on a fake clock with fake connections: shared state, and what is left when a
 * client is gone.
 */
#include "test.h"

#include <errno.h>

#include "softgpu/server/internal.h"

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

/* -- memory that processes share -- */

static uint32_t hold_on(struct peer *peer, uint32_t gpu, uint64_t file, uint64_t bytes)
{
	ask(peer,
		(struct sg_msg){.type = SG_MEMORY_HOLD, .gpu = gpu, .value = file, .bytes = bytes});
	return peer->last.error;
}

static uint32_t hold(struct peer *peer, uint64_t file, uint64_t bytes)
{
	return hold_on(peer, 0, file, bytes);
}

static uint32_t drop(struct peer *peer, uint64_t file)
{
	ask(peer, (struct sg_msg){.type = SG_MEMORY_DROP, .value = file});
	return peer->last.error;
}

/* As NVML shows it: 0 without a context. */
static uint64_t memory_of(pid_t pid, uint32_t gpu)
{
	struct sg_process rows[SG_PROCESSES_MAX];
	uint32_t n = sg_server_processes(&server, gpu, rows);

	for (uint32_t i = 0; i < n; i++)
		if (rows[i].pid == (uint32_t)pid)
			return rows[i].memory_bytes;
	return 0;
}

static uint64_t plain_bytes(uint32_t gpu)
{
	return server.gpus[gpu].memory.plain_bytes;
}

TEST(shared_memory_counts_once_and_for_who_still_has_it)
{
	begin();
	ask(&b, (struct sg_msg){.type = SG_CONTEXT_NEW});
	CHECK_EQ(hold(&a, 7, 40 * MIB), SG_OK);
	CHECK_EQ(hold(&b, 7, 40 * MIB), SG_OK);
	CHECK_EQ(plain_bytes(0), 42 * MIB);
	CHECK_EQ(memory_of(1, 0), 41 * MIB);
	CHECK_EQ(memory_of(2, 0), MIB);
	CHECK_EQ(drop(&a, 7), SG_OK);
	CHECK_EQ(plain_bytes(0), 42 * MIB);
	CHECK_EQ(memory_of(1, 0), MIB);
	CHECK_EQ(memory_of(2, 0), 41 * MIB);
	CHECK_EQ(hold(&a, 8, 40 * MIB), SG_ERR_MEMORY);
	CHECK_EQ(drop(&b, 7), SG_OK);
	CHECK_EQ(plain_bytes(0), 2 * MIB);
	CHECK_EQ(hold(&a, 8, 40 * MIB), SG_OK);
	end();
}

TEST(shared_memory_outlives_its_maker_and_ends_with_its_last_holder)
{
	begin();
	hold(&a, 7, 40 * MIB);
	hold(&b, 7, 40 * MIB);
	sg_server_disconnect(&server, a.state, now);
	a.state = sg_server_connect(&server, &a, 1);
	CHECK_EQ(plain_bytes(0), 40 * MIB);
	sg_server_disconnect(&server, b.state, now);
	b.state = sg_server_connect(&server, &b, 2);
	CHECK_EQ(plain_bytes(0), 0);
	CHECK_EQ(hold(&b, 7, 60 * MIB), SG_OK); /* another file by now */
	end();
}

TEST(what_a_context_has_becomes_what_others_may_hold)
{
	uint32_t context = begin();
	struct sg_msg share = {
		.type = SG_MEMORY_SHARE, .context = context, .value = 7, .bytes = 40 * MIB};

	ask(&a, (struct sg_msg){.type = SG_MEMORY_RESERVE, .context = context, .bytes = 40 * MIB});
	share.bytes = 41 * MIB;
	ask(&a, share);
	CHECK_EQ(a.last.error, SG_ERR_VALUE); /* more than it has */
	share.bytes = 40 * MIB;
	ask(&b, share);
	CHECK_EQ(b.last.error, SG_ERR_HANDLE); /* another's context */
	hold(&b, 8, 20 * MIB);
	share.value = 8;
	ask(&a, share);
	CHECK_EQ(a.last.error, SG_ERR_VALUE); /* that is something else */
	drop(&b, 8);
	CHECK_EQ(plain_bytes(0), 41 * MIB);
	share.value = 7;
	ask(&a, share);
	CHECK_EQ(a.last.error, SG_OK);
	CHECK_EQ(hold(&b, 7, 40 * MIB), SG_OK);
	CHECK_EQ(plain_bytes(0), 41 * MIB);
	ask(&a, (struct sg_msg){.type = SG_CONTEXT_FREE, .context = context});
	CHECK_EQ(drop(&a, 7), SG_OK);
	CHECK_EQ(plain_bytes(0), 40 * MIB);
	CHECK_EQ(drop(&b, 7), SG_OK);
	CHECK_EQ(plain_bytes(0), 0);
	end();
}

TEST(each_hold_is_dropped_once)
{
	begin();
	hold(&a, 7, 40 * MIB);
	hold(&a, 7, 40 * MIB);
	CHECK_EQ(plain_bytes(0), 41 * MIB);
	CHECK_EQ(drop(&b, 7), SG_ERR_HANDLE);
	CHECK_EQ(drop(&a, 7), SG_OK);
	CHECK_EQ(plain_bytes(0), 41 * MIB);
	CHECK_EQ(drop(&a, 7), SG_OK);
	CHECK_EQ(drop(&a, 7), SG_ERR_HANDLE);
	CHECK_EQ(plain_bytes(0), MIB);
	end();
}

TEST(a_hold_of_something_else_is_refused)
{
	struct td_gpu_spec spec = *td_gpu_spec_find("tiny");

	begin();
	sg_server_disconnect(&server, a.state, now);
	sg_server_disconnect(&server, b.state, now);
	sg_server_init(&server, &spec, 2, now);
	server.send = keep;
	a.state = sg_server_connect(&server, &a, 1);
	b.state = sg_server_connect(&server, &b, 2);
	hold(&a, 7, 40 * MIB);
	CHECK_EQ(hold_on(&b, 1, 7, 40 * MIB), SG_ERR_VALUE);
	CHECK_EQ(hold(&b, 7, 20 * MIB), SG_ERR_VALUE);
	CHECK_EQ(hold(&b, 8, 0), SG_ERR_VALUE);
	CHECK_EQ(hold(&b, 8, 1ull << 60), SG_ERR_MEMORY);
	ask(&b, (struct sg_msg){.type = SG_MEMORY_HOLD, .value = 7, .value2 = 1, .bytes = MIB});
	CHECK_EQ(b.last.error, SG_OK); /* a file of that number elsewhere */
	CHECK_EQ(plain_bytes(0), 41 * MIB);
	server.gpus[0].lost = true;
	CHECK_EQ(hold(&b, 7, 40 * MIB), SG_ERR_LOST);
	end();
}

static uint32_t checkpoint(uint32_t what, uint64_t map)
{
	ask(&b, (struct sg_msg){.type = SG_CHECKPOINT, .engine = what, .value = 1, .value2 = map});
	return b.last.error;
}

TEST(what_a_checkpointed_process_alone_has_leaves_with_it)
{
	struct td_gpu_spec spec = *td_gpu_spec_find("tiny");

	begin();
	sg_server_disconnect(&server, a.state, now);
	sg_server_disconnect(&server, b.state, now);
	sg_server_init(&server, &spec, 2, now);
	server.send = keep;
	a.state = sg_server_connect(&server, &a, 1);
	b.state = sg_server_connect(&server, &b, 2);
	hold(&a, 7, 40 * MIB);
	hold(&b, 7, 40 * MIB);
	CHECK_EQ(checkpoint(SG_CHECKPOINT_LOCK, 0), SG_OK);
	tell(&a, (struct sg_msg){.type = SG_LOCKED, .value = 1});
	CHECK_EQ(checkpoint(SG_CHECKPOINT_SAVE, 0), SG_ERR_SHARED);
	drop(&b, 7);
	CHECK_EQ(checkpoint(SG_CHECKPOINT_SAVE, 0), SG_OK);
	CHECK_EQ(b.last.value, 40 * MIB);
	CHECK_EQ(plain_bytes(0), 0);
	CHECK_EQ(hold(&b, 7, 40 * MIB), SG_ERR_STATE);
	hold(&b, 8, 60 * MIB);
	CHECK_EQ(checkpoint(SG_CHECKPOINT_RESTORE, SG_REMAP_NOTHING), SG_ERR_MEMORY);
	CHECK_EQ(checkpoint(SG_CHECKPOINT_RESTORE, SG_REMAP_NOTHING ^ 0x11), SG_OK);
	CHECK_EQ(plain_bytes(1), 40 * MIB);
	CHECK_EQ(hold_on(&b, 1, 7, 40 * MIB), SG_OK);
	end();
	CHECK_EQ(plain_bytes(1), 0);
}

TEST(nothing_is_released_of_a_process_that_is_checkpointed)
{
	uint32_t context = begin();

	CHECK_EQ(checkpoint(SG_CHECKPOINT_LOCK, 0), SG_OK);
	tell(&a, (struct sg_msg){.type = SG_LOCKED, .value = 1});
	CHECK_EQ(checkpoint(SG_CHECKPOINT_SAVE, 0), SG_OK);
	ask(&a, (struct sg_msg){.type = SG_MEMORY_RELEASE, .context = context, .bytes = MIB});
	CHECK_EQ(a.last.error, SG_ERR_VALUE);
	end();
}

TEST(a_late_answer_to_a_lock_is_not_the_answer_to_the_next_one)
{
	begin();
	CHECK_EQ(checkpoint(SG_CHECKPOINT_LOCK, 0), SG_OK);
	CHECK_EQ(checkpoint(SG_CHECKPOINT_UNLOCK, 0), SG_OK);
	CHECK_EQ(checkpoint(SG_CHECKPOINT_LOCK, 0), SG_OK);
	tell(&a, (struct sg_msg){.type = SG_LOCKED, .value = 1});
	CHECK_EQ(checkpoint(SG_CHECKPOINT_SAVE, 0), SG_ERR_STATE);
	tell(&a, (struct sg_msg){.type = SG_LOCKED, .value = 2});
	CHECK_EQ(checkpoint(SG_CHECKPOINT_SAVE, 0), SG_OK);
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
