/*
 * Memory runs out while a program comes: nothing of it stays. The linker replaces calloc()
 * (--wrap).
 */
#include "test.h"

#include "unit/daemon/fake_node.h"

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);

static bool short_of_memory;

void *__wrap_calloc(size_t count, size_t size)
{
	return short_of_memory ? NULL : __real_calloc(count, size);
}

static struct world w;

TEST(a_gpus_lock_is_not_kept_for_a_program_that_did_not_come)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_attach};

	world_init(&w);
	fake_hello(&w, &w.fakes[0], "a", TD_BACKEND_PLAIN, false);
	memset(msg.attach.gpu, 1, 16);
	msg.attach.total_bytes = 64 * MIB;
	short_of_memory = true;
	CHECK_EQ(say(&w, &w.fakes[0], &msg), -ENOMEM);
	short_of_memory = false;
	CHECK_EQ(w.claims, 0);
	CHECK_EQ(w.node.gpu_count, 0);
	CHECK_EQ(say(&w, &w.fakes[0], &msg), 0);
	CHECK_EQ(w.claims, 1);
}

TEST(a_user_whose_program_did_not_come_is_not_there)
{
	struct td_msg_hello hello = {.weight = 1};

	world_init(&w);
	short_of_memory = true;
	CHECK(!td_node_hello(&w.node, &w.fakes[0], 1, td_identity_local(1000), &hello, w.now));
	short_of_memory = false;
	CHECK(td_list_empty(&w.node.tenants));
	CHECK(td_list_empty(&w.node.jobs));
	CHECK(td_list_empty(&w.node.processes));
}
