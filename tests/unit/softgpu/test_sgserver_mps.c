/*
 * MPS in the softgpu server, on a fake clock: which clients run side by side, and the effect of a
 * fault or a death.
 */
#include "test.h"

#include "cuda/types.h"
#include "softgpu/server/internal.h"

#define MS  1000000ull
#define PPM 1000000u

struct peer {
	struct sg_peer_state *state;
	struct sg_msg last, notice;
	unsigned done, failed, notices;
	uint64_t done_at;
	uint32_t context;
};

static struct sg_server server;
static struct peer mps, a, b, third;
static uint64_t now;

static void keep(void *arg, const struct sg_msg *msg, const void *extra, size_t len)
{
	struct peer *peer = arg;

	(void)extra;
	(void)len;
	if (msg->type == SG_NOTICE) {
		peer->notices++;
		peer->notice = *msg;
		return;
	}
	peer->last = *msg;
	if (msg->type != SG_DONE)
		return;
	peer->done++;
	peer->failed += msg->error != 0;
	peer->done_at = msg->value2;
}

static int tell(struct peer *peer, struct sg_msg msg)
{
	return sg_server_packet(&server, peer->state, &msg, sizeof(msg), now);
}

static uint32_t ask(struct peer *peer, struct sg_msg msg)
{
	if (tell(peer, msg))
		test_fail(__FILE__, __LINE__, "request %u dropped the connection", msg.type);
	return peer->last.error;
}

static void come(struct peer *peer, pid_t pid)
{
	memset(peer, 0, sizeof(*peer));
	peer->state = sg_server_connect(&server, peer, pid);
}

static void go(struct peer *peer)
{
	if (peer->state)
		sg_server_disconnect(&server, peer->state, now);
	peer->state = NULL;
}

static uint32_t join(struct peer *peer, pid_t pid, uint64_t share_ppm)
{
	come(peer, pid);
	return ask(peer, (struct sg_msg){.type = SG_MPS_JOIN, .value = 9, .value2 = share_ppm});
}

static uint32_t open_on(struct peer *peer, uint32_t gpu)
{
	uint32_t error = ask(peer, (struct sg_msg){.type = SG_CONTEXT_NEW, .gpu = gpu});

	peer->context = (uint32_t)peer->last.value;
	return error;
}

/* An MPS server, pid 9, of two GPUs, with the clients a and b on the first. */
static void begin(void)
{
	struct td_gpu_spec spec = *td_gpu_spec_find("a100");

	spec.switch_ns = 0;
	now = 1000 * MS;
	sg_server_init(&server, &spec, 2, now);
	server.send = keep;
	come(&mps, 9);
	CHECK_EQ(
		ask(&mps, (struct sg_msg){.type = SG_MPS_SERVE, .value = 3, .value2 = PPM}), SG_OK);
	CHECK_EQ(join(&a, 1, PPM), SG_OK);
	CHECK_EQ(a.last.value, 3);
	CHECK_EQ(join(&b, 2, PPM), SG_OK);
	CHECK_EQ(open_on(&a, 0), SG_OK);
	CHECK_EQ(open_on(&b, 0), SG_OK);
	memset(&third, 0, sizeof(third));
}

static void end(void)
{
	go(&a);
	go(&b);
	go(&third);
	go(&mps);
	CHECK_EQ(server.gpus[0].memory.plain_bytes, 0);
	CHECK(td_list_empty(&server.mps));
}

/* A kernel of 10 ms. */
static void launch(struct peer *peer, uint64_t op, uint32_t need_ppm)
{
	CHECK_EQ(tell(peer, (struct sg_msg){.type = SG_OP_BEGIN,
				    .context = peer->context,
				    .op = op,
				    .range = need_ppm}),
		0);
	CHECK_EQ(tell(peer, (struct sg_msg){.type = SG_OP_LENGTH,
				    .context = peer->context,
				    .op = op,
				    .value = 10 * MS,
				    .range = need_ppm}),
		0);
}

static void pass(uint64_t ns)
{
	now += ns;
	(void)sg_server_advance(&server, now);
}

static uint64_t state_of_server(void)
{
	struct peer other;

	come(&other, 77);
	ask(&other, (struct sg_msg){.type = SG_MPS_STATE, .value = 9});
	go(&other);
	return other.last.value;
}

TEST(kernels_of_two_clients_run_side_by_side)
{
	begin();
	launch(&a, 1, PPM / 2);
	launch(&b, 1, PPM / 2);
	pass(30 * MS);
	CHECK_EQ(a.done_at, 1010 * MS);
	CHECK_EQ(b.done_at, 1010 * MS);
	launch(&a, 2, PPM);
	launch(&b, 2, PPM);
	pass(30 * MS);
	CHECK_EQ(a.done_at, 1050 * MS);
	CHECK_EQ(b.done_at, 1050 * MS);
	end();
}

TEST(a_program_without_mps_takes_turns_with_the_group)
{
	begin();
	come(&third, 3);
	CHECK_EQ(open_on(&third, 0), SG_OK);
	launch(&a, 1, PPM / 2);
	launch(&b, 1, PPM / 2);
	launch(&third, 1, PPM / 2);
	pass(30 * MS);
	/* Turns of 2 ms: the group has 10 ms by 1018, c by 1020. */
	CHECK_EQ(a.done_at, 1018 * MS);
	CHECK_EQ(b.done_at, 1018 * MS);
	CHECK_EQ(third.done_at, 1020 * MS);
	end();
}

TEST(the_smaller_of_both_shares_holds)
{
	begin();
	go(&a);
	CHECK_EQ(ask(&mps, (struct sg_msg){.type = SG_MPS_SET, .value = 9, .value2 = PPM / 2}),
		SG_OK);
	CHECK_EQ(join(&a, 1, PPM), SG_OK);
	CHECK_EQ(a.last.value2, PPM / 2);
	CHECK_EQ(join(&third, 3, PPM / 4), SG_OK);
	CHECK_EQ(third.last.value2, PPM / 4);
	CHECK_EQ(open_on(&a, 0), SG_OK);
	CHECK_EQ(open_on(&third, 0), SG_OK);
	launch(&a, 1, PPM);
	launch(&third, 1, PPM);
	pass(100 * MS);
	CHECK_EQ(a.done_at, 1020 * MS);
	CHECK_EQ(third.done_at, 1040 * MS);
	/* b was there before. */
	launch(&b, 1, PPM);
	pass(100 * MS);
	CHECK_EQ(b.done_at, 1110 * MS);
	end();
}

TEST(a_context_can_have_less_than_its_client)
{
	begin();
	ask(&a, (struct sg_msg){.type = SG_CONTEXT_NEW, .value = PPM / 5});
	a.context = (uint32_t)a.last.value;
	launch(&a, 1, PPM);
	pass(100 * MS);
	CHECK_EQ(a.done_at, 1050 * MS);
	end();
}

TEST(a_fault_ends_all_on_its_gpu_and_newcomers_wait_until_they_are_gone)
{
	begin();
	CHECK_EQ(join(&third, 3, PPM), SG_OK);
	CHECK_EQ(open_on(&third, 1), SG_OK);
	launch(&a, 1, PPM);
	launch(&b, 1, PPM);
	CHECK_EQ(tell(&a, (struct sg_msg){.type = SG_MPS_FAULT,
				  .value = CUDA_ERROR_ILLEGAL_ADDRESS}),
		0);
	CHECK_EQ(a.failed, 1);
	CHECK_EQ(b.failed, 1);
	CHECK_EQ(b.notice.value, CUDA_ERROR_ILLEGAL_ADDRESS);
	CHECK_EQ(third.notices, 0);
	CHECK_EQ(state_of_server(), SG_MPS_FAULTED);
	/* The other GPU works on, but nobody new comes, and nobody comes to this GPU. */
	CHECK_EQ(tell(&third,
			 (struct sg_msg){
				 .type = SG_OP_BEGIN, .gpu = 1, .context = third.context, .op = 1}),
		0);
	CHECK_EQ(open_on(&third, 0), SG_ERR_MPS_NOT_READY);
	struct peer late;
	CHECK_EQ(join(&late, 4, PPM), SG_ERR_MPS_NOT_READY);
	go(&late);
	go(&a);
	CHECK_EQ(state_of_server(), SG_MPS_FAULTED);
	go(&b);
	CHECK_EQ(state_of_server(), SG_MPS_ACTIVE);
	CHECK_EQ(join(&a, 1, PPM), SG_OK);
	CHECK_EQ(open_on(&a, 0), SG_OK);
	end();
}

TEST(a_client_killed_in_the_middle_hangs_the_others_until_the_server_is_gone)
{
	begin();
	launch(&a, 1, PPM / 2);
	launch(&b, 1, PPM / 2);
	go(&a);
	pass(1000 * MS);
	CHECK_EQ(b.done, 0);
	/* Nothing tells, and newcomers hang as well. */
	CHECK_EQ(state_of_server(), SG_MPS_ACTIVE);
	CHECK_EQ(join(&third, 3, PPM), SG_OK);
	CHECK_EQ(open_on(&third, 0), SG_OK);
	launch(&third, 1, PPM / 2);
	pass(1000 * MS);
	CHECK_EQ(third.done, 0);
	go(&mps);
	CHECK_EQ(b.failed, 1);
	CHECK_EQ(third.failed, 1);
	CHECK_EQ(b.notice.value, CUDA_ERROR_MPS_RPC_FAILURE);
	CHECK_EQ(open_on(&b, 0), SG_ERR_MPS_GONE);
	end();
}

TEST(a_client_that_leaves_in_order_or_idle_hangs_nobody)
{
	begin();
	launch(&b, 1, PPM / 2);
	go(&a);
	pass(10 * MS);
	CHECK_EQ(b.done, 1);
	CHECK_EQ(join(&a, 1, PPM), SG_OK);
	CHECK_EQ(open_on(&a, 0), SG_OK);
	launch(&a, 1, PPM / 2);
	launch(&b, 2, PPM / 2);
	tell(&a, (struct sg_msg){.type = SG_MPS_LEAVE});
	go(&a);
	pass(10 * MS);
	CHECK_EQ(b.done, 2);
	end();
}

TEST(early_exits_can_be_made_harmless)
{
	begin();
	CHECK_EQ(ask(&b,
			 (struct sg_msg){
				 .type = SG_FAULT, .engine = SG_FAULT_MPS_EARLY_EXIT, .value = 1}),
		SG_OK);
	launch(&a, 1, PPM / 2);
	launch(&b, 1, PPM / 2);
	go(&a);
	pass(10 * MS);
	CHECK_EQ(b.done, 1);
	end();
}

TEST(a_terminated_client_learns_it_and_its_death_is_harmless)
{
	begin();
	launch(&a, 1, PPM / 2);
	launch(&b, 1, PPM / 2);
	CHECK_EQ(ask(&mps, (struct sg_msg){.type = SG_MPS_TERMINATE, .value = 9, .value2 = 3}),
		SG_ERR_VALUE);
	CHECK_EQ(ask(&mps, (struct sg_msg){.type = SG_MPS_TERMINATE, .value = 9, .value2 = 1}),
		SG_OK);
	CHECK_EQ(a.failed, 1);
	CHECK_EQ(a.notice.value, CUDA_ERROR_MPS_CLIENT_TERMINATED);
	CHECK_EQ(tell(&a, (struct sg_msg){.type = SG_OP_BEGIN, .context = a.context, .op = 2}), 0);
	CHECK_EQ(a.failed, 2);
	CHECK_EQ(open_on(&a, 0), SG_ERR_MPS_TERMINATED);
	go(&a);
	pass(10 * MS);
	CHECK_EQ(b.done, 1);
	CHECK_EQ(b.failed, 0);
	end();
}

TEST(a_gpu_has_room_for_48_contexts)
{
	begin();
	for (unsigned i = 2; i < 48; i++)
		CHECK_EQ(open_on(&a, 0), SG_OK);
	CHECK_EQ(open_on(&b, 0), SG_ERR_MPS_CLIENTS);
	CHECK_EQ(open_on(&b, 1), SG_OK);
	end();
}

TEST(the_server_is_the_process_that_has_the_memory)
{
	static struct sg_process rows[SG_PROCESSES_MAX];

	begin();
	ask(&a, (struct sg_msg){.type = SG_MEMORY_RESERVE, .context = a.context, .bytes = 1 << 20});
	CHECK_EQ(sg_server_processes(&server, 0, rows), 1);
	CHECK_EQ(rows[0].pid, 9);
	CHECK_EQ(rows[0].memory_bytes, 2 * server.gpus[0].spec.context_bytes + (1 << 20));
	CHECK_EQ(sg_server_processes(&server, 1, rows), 0);
	end();
}

TEST(a_client_is_not_checkpointed)
{
	begin();
	CHECK_EQ(ask(&mps,
			 (struct sg_msg){
				 .type = SG_CHECKPOINT, .engine = SG_CHECKPOINT_LOCK, .value = 1}),
		SG_ERR_MPS);
	end();
}

TEST(one_joins_a_server_that_is_there_before_the_first_context)
{
	begin();
	come(&third, 3);
	CHECK_EQ(ask(&third, (struct sg_msg){.type = SG_MPS_JOIN, .value = 8, .value2 = PPM}),
		SG_ERR_HANDLE);
	CHECK_EQ(ask(&third, (struct sg_msg){.type = SG_MPS_JOIN, .value = 9, .value2 = 0}),
		SG_ERR_VALUE);
	CHECK_EQ(open_on(&third, 0), SG_OK);
	CHECK_EQ(ask(&third, (struct sg_msg){.type = SG_MPS_JOIN, .value = 9, .value2 = PPM}),
		SG_ERR_STATE);
	CHECK_EQ(ask(&mps, (struct sg_msg){.type = SG_MPS_SERVE, .value = 1, .value2 = PPM}),
		SG_ERR_STATE);
	end();
}
