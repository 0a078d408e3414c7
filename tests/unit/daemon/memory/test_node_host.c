/*
 * The option host.limit: a process reserves host memory before it pins any, and unused reservations
 * never cause a refusal.
 */
#include "base/time.h"
#include "daemon/memory/host.h"
#include "unit/daemon/node_world.h"

static struct fake *swapper(unsigned i, const char *job)
{
	struct fake *f = program(i, job, 24 * MIB);

	fake_want(&w, f);
	return f;
}

static void bound(const char *limit)
{
	CHECK_EQ(td_options_set(&w.node.options, "host.limit", limit, NULL), 0);
	settle(&w);
}

/* Sends the report of a process that has heard HOST. */
static void says(struct fake *f, uint64_t wanted, uint64_t used, bool asks)
{
	struct td_msg ask = {.type = TD_MSG_TYPE_ask}, msg = {.type = TD_MSG_TYPE_used};

	ask.ask.slot = msg.used.slot = TD_SLOT_HOST;
	ask.ask.ticket = f->host.ticket + asks;
	ask.ask.bytes = wanted;
	ask.ask.kind = TD_ASKED_HOST;
	msg.used.acked_seq = f->host.seq;
	msg.used.host_bytes = used;
	CHECK_EQ(say(&w, f, &ask), 0);
	CHECK_EQ(say(&w, f, &msg), 0);
	settle(&w);
}

static uint64_t max(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* The most that they may have, whatever they do without asking. */
static uint64_t host_charged(void)
{
	uint64_t bytes = 0;
	struct td_list *it;

	td_list_for_each (it, &w.node.processes) {
		const struct td_host_part *part =
			&td_container_of(it, struct td_process, of_node)->host;

		bytes += max(part->holding.believed, part->used_bytes);
	}
	return bytes;
}

TEST(without_a_limit_nobody_is_told_anything)
{
	begin();
	struct fake *a = swapper(0, "a");

	settle(&w);
	CHECK_EQ(a->host_told, 0);
	bound("20m");
	CHECK_EQ(a->host_told, 1);
	CHECK_EQ(a->host.bytes, 0);
	bound("none");
	CHECK_EQ(a->host.bytes, UINT64_MAX);
}

TEST(what_is_asked_for_is_granted_while_there_is_any)
{
	begin();
	struct fake *a = swapper(0, "a"), *b = swapper(1, "b");

	bound("20m");
	says(a, 0, 0, false);
	says(b, 0, 0, false);
	says(a, 12 * MIB, 0, true);
	CHECK_EQ(a->host.bytes, 12 * MIB);
	says(a, 12 * MIB, 12 * MIB, false);
	says(b, 12 * MIB, 0, true);
	says(a, 12 * MIB, 12 * MIB, false); /* it can spare nothing */
	CHECK_EQ(b->host.ticket, 1);        /* answered: it is to go on with less */
	CHECK_EQ(b->host.bytes, 8 * MIB);
	CHECK_EQ(host_charged(), 20 * MIB);
	fake_dies(&w, a);
	settle(&w);
	CHECK_EQ(b->host.bytes, 12 * MIB);
	CHECK(within_capacity(&w));
}

TEST(what_another_only_keeps_is_called_back_first)
{
	begin();
	struct fake *a = swapper(0, "a"), *b = swapper(1, "b");

	bound("20m");
	says(b, 0, 0, false);
	says(a, 16 * MIB, 0, true);
	says(a, 0, 16 * MIB, false); /* all of it is back on the GPU, the buffers are kept */
	says(b, 12 * MIB, 0, true);
	CHECK_EQ(b->host.ticket, 0); /* not yet */
	CHECK(a->host.others_lack);
	says(a, 0, 2 * MIB, false);
	CHECK_EQ(a->host.bytes, 2 * MIB);
	says(a, 0, 2 * MIB, false);
	CHECK_EQ(b->host.ticket, 1);
	CHECK_EQ(b->host.bytes, 12 * MIB);
	CHECK(!a->host.others_lack);
	CHECK(host_charged() <= 20 * MIB);
}

TEST(one_that_does_not_answer_is_waited_for_for_a_while)
{
	begin();
	struct fake *a = swapper(0, "a"), *b = swapper(1, "b");

	bound("20m");
	says(b, 0, 0, false);
	says(a, 16 * MIB, 0, true);
	says(b, 12 * MIB, 0, true);
	CHECK_EQ(b->host.ticket, 0);
	w.now += 2 * TD_NS_PER_S;
	settle(&w);
	CHECK_EQ(b->host.ticket, 1);
	CHECK_EQ(b->host.bytes, 4 * MIB);
	CHECK_EQ(host_charged(), 20 * MIB);
}

TEST(a_lowered_limit_takes_nothing_away_and_who_comes_back_keeps_what_he_has)
{
	begin();
	struct fake *a = swapper(0, "a"), *b = swapper(1, "b");

	bound("20m");
	says(b, 0, 0, false);
	says(a, 16 * MIB, 16 * MIB, true);
	CHECK_EQ(a->host.bytes, 16 * MIB);
	bound("8m");
	says(a, 16 * MIB, 16 * MIB, false);
	CHECK_EQ(a->host.bytes, 16 * MIB);
	says(b, 4 * MIB, 0, true);
	says(a, 16 * MIB, 16 * MIB, false);
	CHECK_EQ(b->host.bytes, 0);
	CHECK_EQ(b->host.ticket, 1);
}

TEST(whatever_is_asked_the_sum_stays_within_the_limit)
{
	uint32_t seed = 7;

	begin();
	for (unsigned i = 0; i < 4; i++)
		swapper(i, (const char *[]){"a", "b", "c", "d"}[i]);
	bound("32m");
	for (unsigned i = 0; i < 4; i++)
		says(&w.fakes[i], 0, 0, false);
	for (unsigned i = 0; i < 2000; i++) {
		struct fake *f = &w.fakes[(seed = seed * 1664525 + 1013904223) >> 30];
		uint64_t wanted = (seed >> 8) % 24 * MIB,
			 used = f->host.bytes < wanted ? f->host.bytes : wanted;

		says(f, wanted, used, seed & 1);
		CHECK(host_charged() <= 32 * MIB);
		w.now += 100 * TD_NS_PER_MS;
	}
}

TEST(nobody_is_granted_anything_beside_one_that_has_yet_to_say_what_it_took)
{
	begin();
	struct fake *a = swapper(0, "a"), *b = swapper(1, "b");

	bound("20m");
	says(a, 12 * MIB, 0, true);
	CHECK_EQ(a->host.ticket, 0);
	CHECK_EQ(a->host.bytes, 0);
	says(b, 0, 16 * MIB, false); /* from before there was a limit */
	says(b, 0, 16 * MIB, false); /* it is asked for what it does not need, and needs it */
	CHECK_EQ(a->host.ticket, 1);
	CHECK_EQ(a->host.bytes, 4 * MIB);
	CHECK_EQ(host_charged(), 20 * MIB);
}

TEST(what_was_said_before_the_limit_was_away_is_not_believed)
{
	begin();
	struct fake *a = swapper(0, "a"), *b = swapper(1, "b");

	bound("20m");
	says(a, 0, 0, false);
	says(b, 0, 0, false);
	bound("none");
	bound("20m");
	says(a, 12 * MIB, 0, true);
	CHECK_EQ(a->host.ticket, 0);
	says(b, 16 * MIB, 16 * MIB, false);
	CHECK_EQ(a->host.ticket, 1);
	CHECK_EQ(a->host.bytes, 4 * MIB);
}

TEST(what_was_asked_before_the_limit_was_away_is_not_asked_any_more)
{
	begin();
	struct fake *a = swapper(0, "a"), *b = swapper(1, "b");

	bound("20m");
	says(a, 12 * MIB, 0, true);
	CHECK_EQ(a->host.ticket, 0);
	bound("none");
	CHECK_EQ(a->host.ticket, 1);
	w.now += 5 * TD_NS_PER_S;
	bound("20m");
	CHECK_EQ(a->host.bytes, 0);
	says(a, 12 * MIB, 0, false);
	CHECK_EQ(a->host.bytes, 0); /* b has to say what it took */
	b->slow = true;
	a->slow = true;
	bound("none");
	bound("20m");
	w.now += 5 * TD_NS_PER_S;
	settle(&w);
	CHECK_EQ(a->host.bytes, 0);
}

/* Two kinds of message, and it is a new daemon to which both are new. */
TEST(who_says_more_than_it_has_reported_so_far_is_waited_for)
{
	begin();
	struct fake *a = swapper(0, "a"), *b = program(1, "b", 0);

	bound("20m");
	says(b, 0, 16 * MIB, false);
	says(a, 12 * MIB, 0, true);
	CHECK_EQ(a->host.ticket, 0);
	b->slot[0].demanded = 16 * MIB;
	fake_memory(&w, b, 0);
	settle(&w);
	says(b, 16 * MIB, 16 * MIB, false);
	CHECK_EQ(a->host.ticket, 1);
	CHECK_EQ(a->host.bytes, 4 * MIB);
}

TEST(who_never_says_it_is_waited_for_for_a_while_and_counts_as_what_it_has_reported)
{
	begin();
	struct fake *a = swapper(0, "a"), *b = swapper(1, "b");

	b->slow = true;
	b->slot[0].resident = 14 * MIB;
	fake_memory(&w, b, 0);
	bound("20m");
	says(a, 16 * MIB, 0, true);
	CHECK_EQ(a->host.ticket, 0);
	w.now = settle(&w);
	settle(&w);
	CHECK_EQ(a->host.ticket, 1);
	CHECK_EQ(a->host.bytes, 10 * MIB);
	/* a newcomer holds nobody up for longer than that */
	swapper(2, "c")->slow = true;
	says(a, 16 * MIB, 0, true);
	w.now += TD_NS_PER_S;
	settle(&w);
	CHECK_EQ(a->host.ticket, 2);
}

/* The daemon was started anew: those who were there before are still on their way. */
TEST(after_a_restart_nothing_is_granted_before_all_are_likely_to_be_back)
{
	begin();
	struct fake *a = swapper(0, "a"), *b;

	CHECK_EQ(td_options_set(&w.node.options, "host.limit", "20m", NULL), 0);
	w.node.settle_ns = w.now + 300 * TD_NS_PER_MS;
	w.now = w.node.settle_ns;
	settle(&w);
	says(a, 12 * MIB, 0, true);
	w.now += 100 * TD_NS_PER_MS;
	settle(&w);
	CHECK_EQ(a->host.ticket, 0);
	b = swapper(1, "b");
	settle(&w);
	says(b, 16 * MIB, 16 * MIB, false);
	w.now += TD_NS_PER_S;
	settle(&w);
	says(b, 16 * MIB, 16 * MIB, false);
	CHECK_EQ(a->host.ticket, 1);
	CHECK_EQ(a->host.bytes, 4 * MIB);
}

TEST(who_says_that_it_has_or_wants_more_than_its_allocations_is_not_believed)
{
	begin();
	struct fake *a = swapper(0, "a"), *liar = swapper(1, "b");

	bound("40m");
	says(a, 0, 0, false);
	says(liar, UINT64_MAX, UINT64_MAX - 1, true);
	w.now += 2 * TD_NS_PER_S; /* perhaps a report of its allocations was on its way */
	settle(&w);
	CHECK_EQ(liar->host.ticket, 1);
	CHECK_EQ(liar->host.bytes, 24 * MIB);
	says(a, 16 * MIB, 0, true);
	CHECK_EQ(a->host.ticket, 1);
	CHECK_EQ(a->host.bytes, 16 * MIB);
	liar->slot[0].demanded = 4 * MIB;
	fake_memory(&w, liar, 0);
	says(a, 24 * MIB, 0, true);
	says(liar, UINT64_MAX, UINT64_MAX, true);
	CHECK_EQ(liar->host.bytes, 4 * MIB);
	CHECK_EQ(a->host.bytes, 24 * MIB);
}

TEST(a_process_that_is_let_go_with_a_foreign_gpu_has_no_bound)
{
	begin();
	struct fake *a = swapper(0, "a");

	bound("20m");
	CHECK_EQ(a->host.bytes, 0);
	w.foreign = 1;
	memset(w.node.gpus[1].uuid, 2, 16);
	w.node.gpu_count = 2;
	fake_attach(&w, a, 1, 1, 0);
	CHECK(a->process->foreign);
	settle(&w);
	CHECK_EQ(a->host.bytes, UINT64_MAX);
}

TEST(a_process_that_swaps_no_more_loses_its_bound)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_backend};
	struct fake *f = &w.fakes[0];

	begin();
	fake_hello(&w, f, "a", TD_BACKEND_SWAP, false);
	bound("20m");
	CHECK_EQ(f->host.bytes, 0);
	msg.backend.kind = TD_BACKEND_PLAIN;
	CHECK_EQ(say(&w, f, &msg), 0);
	settle(&w);
	CHECK_EQ(f->host.bytes, UINT64_MAX);
	bound("none");
	CHECK_EQ(f->host_told, 2);
}

TEST(what_the_driver_pages_is_in_no_arena)
{
	begin();
	struct fake *a, *m = &w.fakes[1];

	fake_hello(&w, m, "m", TD_BACKEND_MANAGED, false);
	fake_attach(&w, m, 0, 0, 40 * MIB);
	m->slot[0].resident = 0; /* all of it lies on the host */
	fake_memory(&w, m, 0);
	bound("20m");
	a = swapper(0, "a");
	settle(&w);
	says(a, 0, 0, false);
	says(a, 16 * MIB, 0, true);
	CHECK_EQ(a->host.bytes, 16 * MIB);
}
