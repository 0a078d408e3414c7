/*
 * The table of the node's GPUs: which GPU gets an entry or loses it, and how large a GPU is taken
 * to be.
 */
#include "daemon/node/gpus.h"
#include "test.h"

#include "unit/daemon/fake_node.h"

static struct world w;

static void begin(void)
{
	world_init(&w);
}

static struct fake *newcomer(int i, uid_t uid)
{
	struct td_msg_hello hello = {
		.class = TD_CLASS_BESTEFFORT, .weight = 1, .abi = TD_PAGES_ABI};
	struct fake *f = &w.fakes[i];

	memset(f, 0, sizeof(*f));
	f->process = td_node_hello(&w.node, f, 100 + i, td_identity_local(uid), &hello, w.now);
	return f;
}

static int attach(struct fake *f, uint32_t slot, unsigned gpu, uint64_t total_bytes)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_attach};

	msg.attach.slot = slot;
	memset(msg.attach.gpu, (int)gpu + 1, 16);
	msg.attach.total_bytes = total_bytes;
	return say(&w, f, &msg);
}

static void detach(struct fake *f, uint32_t slot)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_detach};

	msg.detach.slot = slot;
	CHECK_EQ(say(&w, f, &msg), 0);
}

static struct td_nvml_gpu listed(uint32_t index, unsigned gpu, uint64_t total_bytes)
{
	struct td_nvml_gpu row = {.index = index, .total_bytes = total_bytes};

	memset(row.uuid, (int)gpu + 1, sizeof(row.uuid));
	return row;
}

/* Returns the first GPU of a process. */
static const struct td_gpu *gpu_of(const struct fake *f)
{
	return &w.node.gpus[td_container_of(f->process->clients.next, struct td_client, of_process)
				    ->gpu];
}

/*
 * Takes `count` GPUs from `first` on, each by one slot of as many programs of the user as that
 * needs, from fake `at` on.
 */
static void take_gpus(int at, uid_t uid, unsigned first, unsigned count)
{
	struct fake *f = NULL;

	for (unsigned i = 0; i < count; i++) {
		if (i % TD_SLOT_MAX == 0)
			f = newcomer(at++, uid);
		CHECK_EQ(attach(f, i % TD_SLOT_MAX, first + i, 64 * MIB), 0);
		CHECK(!f->process->foreign);
	}
}

TEST(a_gpu_that_nvml_does_not_list_is_forgotten_with_its_last_client)
{
	begin();
	struct fake *f = newcomer(0, 1000);

	for (unsigned gpu = 0; gpu < 200; gpu++) {
		CHECK_EQ(attach(f, 0, gpu, 64 * MIB), 0);
		settle(&w);
		CHECK_EQ(w.node.gpu_count, 1);
		detach(f, 0);
		CHECK_EQ(w.node.gpu_count, 0);
		CHECK_EQ(w.claims, 0);
	}
	CHECK(!f->process->foreign);
}

TEST(one_that_nvml_lists_is_kept)
{
	const struct td_nvml_gpu row = listed(0, 0, 64 * MIB);

	begin();
	td_gpus_seen(&w.node, &row, 1, w.now);
	struct fake *f = newcomer(0, 1000);

	CHECK_EQ(attach(f, 0, 0, 64 * MIB), 0);
	w.node.gpus[0].handovers = 7;
	detach(f, 0);
	CHECK_EQ(w.node.gpu_count, 1);
	CHECK_EQ(w.node.gpus[0].handovers, 7);
}

TEST(another_gpu_in_the_same_place_starts_anew)
{
	begin();
	struct fake *a = newcomer(0, 1000), *b = newcomer(1, 1000);

	CHECK_EQ(attach(a, 0, 0, 64 * MIB), 0);
	CHECK_EQ(attach(b, 0, 1, 64 * MIB), 0);
	settle(&w);
	w.node.gpus[0].handovers = 7;
	CHECK_EQ(td_gpu_number(&w.node, 1), 1);
	detach(a, 0);
	CHECK_EQ(td_gpu_number(&w.node, 1), 1); /* others keep their numbers */
	CHECK_EQ(attach(a, 0, 2, 32 * MIB), 0);
	CHECK_EQ(w.node.gpus[0].handovers, 0);
	CHECK_EQ(w.node.gpus[0].total_bytes, 32 * MIB);
	CHECK_EQ(w.node.gpu_count, 2);
}

/* A test's policy, which remembers who was forgotten. */
static uint32_t forgotten;

static void forget(void *state, uint32_t gpu)
{
	(void)state;
	forgotten |= 1u << gpu;
}

TEST(the_policy_forgets_it_too)
{
	begin();
	struct td_policy policy = *w.node.policy;
	struct fake *a = newcomer(0, 1000), *b = newcomer(1, 1000);

	policy.forget_gpu = forget;
	w.node.policy = &policy;
	CHECK_EQ(attach(a, 0, 0, 64 * MIB), 0);
	CHECK_EQ(attach(b, 0, 1, 64 * MIB), 0);
	CHECK_EQ(forgotten, 0);
	detach(b, 0);
	CHECK_EQ(forgotten, 2);
	w.node.policy = w.node.options.policy;
}

TEST(eight_gpus_of_seven_slices_have_places)
{
	struct td_nvml_gpu rows[8];

	begin();
	for (unsigned i = 0; i < 8; i++) {
		rows[i] = listed(i, 200 + i, 640 * MIB);
		rows[i].mig = true;
	}
	td_gpus_seen(&w.node, rows, 8, w.now);
	take_gpus(0, 1000, 0, 56);
	CHECK_EQ(w.node.gpu_count, 56);
	settle(&w);
}

TEST(nobody_takes_the_last_places_nor_those_of_gpus_that_nvml_lists)
{
	const struct td_nvml_gpu rows[] = {listed(0, 200, 64 * MIB), listed(1, 201, 64 * MIB)};

	begin();
	td_gpus_seen(&w.node, rows, 2, w.now);
	take_gpus(0, 666, 0, TD_GPU_MAX - 2 - TD_GPU_PLACES_KEPT);
	struct fake *one_more = newcomer(6, 666), *honest = newcomer(7, 1000);

	CHECK_EQ(attach(one_more, 0, 100, 64 * MIB), 0);
	CHECK(one_more->process->foreign);
	CHECK_EQ(attach(honest, 0, 101, 64 * MIB), 0);
	CHECK_EQ(attach(honest, 1, 200, 64 * MIB), 0);
	CHECK_EQ(attach(honest, 2, 201, 64 * MIB), 0);
	CHECK(!honest->process->foreign);
}

TEST(who_finds_no_place_runs_alone_and_comes_back_when_there_is_one)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_used};

	begin();
	take_gpus(0, 666, 0, TD_GPU_MAX - TD_GPU_PLACES_KEPT);
	struct fake *f = newcomer(6, 666);

	CHECK_EQ(attach(f, 0, 100, 64 * MIB), 0);
	CHECK_EQ(f->word & TD_WORD_CLOSED, 0);
	CHECK_EQ(f->slot[0].limit, UINT64_MAX);
	CHECK_EQ(attach(f, 1, 101, 64 * MIB), 0);
	CHECK_EQ(w.events[TD_EVENT_UNGOVERNED], 1);
	CHECK_EQ(w.events[TD_EVENT_FOREIGN], 0);
	CHECK_STR(td_process_state(f->process), "ungoverned");
	CHECK(strstr(explained(&w, f), "beyond the 64 GPUs"));
	CHECK_EQ(say(&w, f, &msg), 0);
	fake_dies(&w, &w.fakes[0]);
	CHECK_EQ(say(&w, f, &msg), -ECONNRESET);
}

TEST(what_one_user_says_of_a_gpus_size_takes_nothing_from_another)
{
	begin();
	struct fake *liar = newcomer(0, 666), *honest = newcomer(1, 1000);

	CHECK_EQ(attach(liar, 0, 0, 2), 0);
	CHECK_EQ(gpu_of(liar)->total_bytes, 2);
	CHECK_EQ(attach(honest, 0, 0, 64 * MIB), 0);
	CHECK_EQ(gpu_of(honest)->total_bytes, 64 * MIB);
	CHECK(gpu_of(honest)->capacity_bytes > 56 * MIB);
	CHECK_EQ(honest->slot[0].capacity, gpu_of(honest)->capacity_bytes);
	/* The claim ends with the process that made it. */
	detach(honest, 0);
	CHECK_EQ(gpu_of(liar)->total_bytes, 2);
}

TEST(nvml_knows_better)
{
	const struct td_nvml_gpu row = listed(0, 0, 64 * MIB);

	begin();
	struct fake *liar = newcomer(0, 666), *honest = newcomer(1, 1000);

	CHECK_EQ(attach(liar, 0, 0, 1024 * MIB), 0);
	CHECK_EQ(attach(honest, 0, 0, 62 * MIB), 0);
	CHECK_EQ(gpu_of(honest)->total_bytes, 1024 * MIB);
	td_gpus_seen(&w.node, &row, 1, w.now); /* it is heard later */
	CHECK_EQ(gpu_of(honest)->total_bytes, 64 * MIB);
	fake_dies(&w, liar);
	CHECK_EQ(gpu_of(honest)->total_bytes, 62 * MIB); /* a part is the driver's */
	detach(honest, 0);
	CHECK_EQ(attach(honest, 0, 0, 2), 0);
	CHECK_EQ(gpu_of(honest)->total_bytes, 60 * MIB);
}

TEST(a_program_whose_gpu_has_no_name_says_so_and_does_not_wait)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_ungoverned, .ungoverned.reason = 1};

	begin();
	struct fake *f = newcomer(0, 1000), *other = newcomer(1, 1000);

	CHECK(f->word & TD_WORD_CLOSED);
	CHECK_EQ(say(&w, f, &msg), 0);
	CHECK_EQ(say(&w, f, &msg), 0);
	CHECK_EQ(w.events[TD_EVENT_UNGOVERNED], 1);
	CHECK_EQ(f->word & TD_WORD_CLOSED, 0);
	CHECK_STR(td_process_state(f->process), "ungoverned");
	CHECK(strstr(explained(&w, f), "the driver does not tell which GPU it uses"));
	msg = (struct td_msg){.type = TD_MSG_TYPE_used};
	CHECK_EQ(say(&w, f, &msg), 0); /* it is not asked back */
	/* One that has a GPU besides goes on taking part. */
	CHECK_EQ(attach(other, 0, 0, 64 * MIB), 0);
	msg = (struct td_msg){.type = TD_MSG_TYPE_ungoverned, .ungoverned.reason = 2};
	CHECK_EQ(say(&w, other, &msg), 0);
	CHECK(other->word & TD_WORD_CLOSED);
	CHECK_EQ(w.events[TD_EVENT_UNGOVERNED], 2);
	msg.ungoverned.reason = TD_UNGOVERNED_N;
	CHECK_EQ(say(&w, other, &msg), -EPROTO);
}
