/* What every file of tests of the node begins with: one world, programs whose memory can move, needs. */
#pragma once

#include "fake_node.h"
#include "test.h"

static struct world w;

__attribute__((unused)) static struct fake *program(unsigned i, const char *job, uint64_t demanded)
{
	struct fake *f = &w.fakes[i];

	fake_hello(&w, f, job, TD_BACKEND_SWAP, false);
	fake_attach(&w, f, 0, 0, demanded);
	return f;
}

__attribute__((unused)) static void begin(void)
{
	if (w.node.policy)
		td_node_deinit(&w.node);
	world_init(&w);
}

__attribute__((unused)) static bool is_open(const struct fake *f)
{
	return !(f->word & TD_WORD_CLOSED);
}

__attribute__((unused)) static void need(struct fake *f, uint64_t bytes)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_need};

	f->slot[0].answer = -1;
	f->slot[0].asked = bytes;
	msg.need.bytes = bytes;
	CHECK_EQ(say(&w, f, &msg), 0);
}
