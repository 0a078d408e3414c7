/*
 * The common beginning of all tests of the node: one world, programs whose memory can move, and
 * requests for memory.
 */
#pragma once

#include "unit/daemon/fake_node.h"
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
	world_init(&w);
}

__attribute__((unused)) static bool is_open(const struct fake *f)
{
	return !(f->word & TD_WORD_CLOSED);
}

__attribute__((unused)) static void need(struct fake *f, uint64_t bytes)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_ask};

	f->slot[0].answer = -1;
	f->slot[0].asked = bytes;
	msg.ask.bytes = bytes;
	CHECK_EQ(say(&w, f, &msg), 0);
}

/* Returns the most that the job may have, whatever its processes do without asking. */
__attribute__((unused)) static uint64_t charged(const char *job)
{
	uint64_t bytes = 0;
	struct td_list *it;

	td_list_for_each (it, &w.node.clients) {
		const struct td_client *client = td_container_of(it, struct td_client, of_node);

		if (!strcmp(client->process->job->name, job))
			bytes += td_holding_charge(&client->total);
	}
	return bytes;
}

__attribute__((unused)) static struct fake *plain_program(
	unsigned i, const char *job, uint64_t demanded)
{
	struct fake *f = &w.fakes[i];

	fake_hello(&w, f, job, TD_BACKEND_PLAIN, false);
	fake_attach(&w, f, 0, 0, demanded);
	fake_want(&w, f);
	return f;
}

__attribute__((unused)) static void limit(const char *job, const char *mem)
{
	CHECK_EQ(
		td_node_set_job(&w.node, td_identity_local(1000), job, "mem", mem, w.now, NULL), 0);
}

__attribute__((unused)) static struct fake *spilling_program(
	unsigned i, const char *job, uint64_t demanded)
{
	struct fake *f = &w.fakes[i];

	fake_hello(&w, f, job, TD_BACKEND_SWAP, false);
	f->spills = true;
	fake_attach(&w, f, 0, 0, demanded);
	fake_want(&w, f);
	return f;
}

__attribute__((unused)) static void soft(const char *job, const char *mem)
{
	CHECK_EQ(td_node_set_job(
			 &w.node, td_identity_local(1000), job, "mem-soft", mem, w.now, NULL),
		0);
}

/* Reports a failed context on the slot's GPU. */
__attribute__((unused)) static void fails(struct fake *f, uint32_t slot)
{
	struct td_msg failed = {.type = TD_MSG_TYPE_failed};

	failed.failed.slot = slot;
	failed.failed.result = 700;
	CHECK_EQ(say(&w, f, &failed), 0);
}
