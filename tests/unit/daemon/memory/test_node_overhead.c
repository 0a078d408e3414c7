/* Memory of contexts and code, as NVML reports it, counts in a job's limit. */
#include "base/time.h"
#include "daemon/memory/overhead.h"
#include "unit/daemon/node_world.h"

static void sees(const struct fake *f, uint64_t bytes)
{
	const struct td_client *client =
		td_container_of(f->process->clients.next, struct td_client, of_process);
	struct td_nvml_gpu gpu = {0};
	struct td_nvml_use use = {0, (uint32_t)f->process->pid, bytes};

	memcpy(gpu.uuid, w.node.gpus[client->gpu].uuid, 16);
	td_overhead_seen(&w.node, &gpu, &use, 1);
	settle(&w);
}

static struct fake *limited(const char *mem, uint64_t demanded)
{
	struct fake *f = &w.fakes[0];

	fake_hello(&w, f, "a", TD_BACKEND_PLAIN, false);
	fake_attach(&w, f, 0, 0, demanded);
	fake_want(&w, f);
	CHECK_EQ(
		td_node_set_job(&w.node, td_identity_local(1000), "a", "mem", mem, w.now, NULL), 0);
	settle(&w);
	return f;
}

TEST(what_a_context_takes_comes_off_the_limit_and_not_off_what_is_shown_as_the_total)
{
	begin();
	struct fake *a = limited("20m", 8 * MIB);

	CHECK_EQ(a->slot[0].limit, 20 * MIB);
	sees(a, 11 * MIB);
	sees(a, 11 * MIB);
	CHECK_EQ(a->slot[0].limit, 17 * MIB);
	CHECK_EQ(a->slot[0].quota, 20 * MIB);
	CHECK_EQ(a->slot[0].others, 3 * MIB);
	/*
	 * Others cannot have it either, nor the room of a possible other context: a 32nd of the
	 * GPU, as far as that is believed.
	 */
	CHECK_EQ(w.node.gpus[0].capacity_bytes, 59 * MIB);
	need(a, 10 * MIB);
	settle(&w);
	CHECK_EQ(a->slot[0].answer, 0);
}

TEST(a_figure_is_believed_when_it_is_seen_twice_and_the_lesser_of_two)
{
	begin();
	struct fake *a = limited("20m", 8 * MIB);

	sees(a, 15 * MIB);
	CHECK_EQ(a->slot[0].limit, 20 * MIB);
	sees(a, 10 * MIB);
	CHECK_EQ(a->slot[0].limit, 18 * MIB);
	sees(a, 16 * MIB); /* it has allocated, and not said so yet */
	CHECK_EQ(a->slot[0].limit, 18 * MIB);
	a->slot[0].demanded = a->slot[0].resident = 14 * MIB;
	fake_memory(&w, a, 0);
	sees(a, 16 * MIB);
	sees(a, 16 * MIB);
	CHECK_EQ(a->slot[0].limit, 18 * MIB);
}

/* Its thread is preempted between its claim and its report, for longer than two samples. */
TEST(what_a_process_is_allocating_is_no_overhead)
{
	begin();
	struct fake *a = limited("20m", 8 * MIB);

	a->slot[0].claim.device_bytes = 12 * MIB;
	sees(a, 13 * MIB);
	sees(a, 13 * MIB);
	CHECK_EQ(a->slot[0].limit, 20 * MIB);
	a->slot[0].demanded = a->slot[0].resident = 12 * MIB;
	fake_memory(&w, a, 0);
	sees(a, 13 * MIB);
	CHECK_EQ(a->slot[0].limit, 20 * MIB);
	sees(a, 13 * MIB);
	CHECK_EQ(a->slot[0].limit, 19 * MIB);
}

TEST(what_is_there_already_is_not_taken_away)
{
	begin();
	struct fake *a = limited("10m", 9 * MIB);

	sees(a, 14 * MIB);
	sees(a, 14 * MIB);
	CHECK_EQ(a->slot[0].limit, 9 * MIB);
	need(a, MIB);
	settle(&w);
	CHECK_EQ(a->slot[0].answer, 0);
}

TEST(a_newcomer_with_a_limit_is_looked_at_soon_and_others_are_not)
{
	begin();
	struct fake *a = limited("none", 8 * MIB);

	CHECK_EQ(td_overhead_wants_ns(&w.node, w.now, w.now), TD_NEVER);
	CHECK_EQ(td_node_set_job(&w.node, td_identity_local(1000), "a", "mem", "10m", w.now, NULL),
		0);
	CHECK(td_overhead_wants_ns(&w.node, w.now, w.now) < w.now + TD_NS_PER_S);
	sees(a, 9 * MIB);
	sees(a, 9 * MIB);
	CHECK_EQ(td_overhead_wants_ns(&w.node, w.now, w.now), TD_NEVER);
}

TEST(who_dies_takes_it_along)
{
	begin();
	struct fake *a = limited("20m", 8 * MIB), *b = &w.fakes[1];

	sees(a, 11 * MIB);
	sees(a, 11 * MIB);
	fake_hello(&w, b, "a", TD_BACKEND_PLAIN, false);
	fake_attach(&w, b, 0, 0, 4 * MIB);
	settle(&w);
	CHECK_EQ(b->slot[0].others, 11 * MIB);
	fake_dies(&w, a);
	settle(&w);
	CHECK_EQ(b->slot[0].others, 0);
	CHECK_EQ(b->slot[0].limit, 20 * MIB);
	CHECK(within_capacity(&w));
}

/* Its agent moves memory and reports nothing yet: its present memory is not overhead. */
TEST(nothing_is_taken_for_overhead_before_a_process_has_done_what_it_was_told)
{
	begin();
	struct fake *a = limited("20m", 8 * MIB);

	a->slow = true;
	limit("a", "18m");
	settle(&w);
	CHECK_EQ(a->slot[0].limit, 18 * MIB);
	sees(a, 13 * MIB);
	sees(a, 13 * MIB);
	CHECK_EQ(a->slot[0].limit, 18 * MIB);
	a->slow = false;
	settle(&w);
	sees(a, 11 * MIB);
	CHECK_EQ(a->slot[0].limit, 18 * MIB); /* the two before do not count */
	sees(a, 11 * MIB);
	CHECK_EQ(a->slot[0].limit, 15 * MIB);
}

static const struct td_client *client_of(const struct fake *f)
{
	return td_container_of(f->process->clients.next, struct td_client, of_process);
}

TEST(nothing_is_taken_for_overhead_while_a_turn_ends_or_begins)
{
	begin();
	struct fake *a = program(0, "a", 48 * MIB), *b = program(1, "b", 48 * MIB);

	fake_want(&w, a);
	settle(&w);
	fake_want(&w, b);
	w.now += 60 * TD_NS_PER_S;
	a->slow = b->slow = true;
	settle(&w);
	CHECK_EQ(a->process->phase, TD_PHASE_DRAINING);
	sees(a, 50 * MIB);
	sees(a, 50 * MIB);
	fake_act(&w, a); /* drained */
	settle(&w);
	CHECK(a->slot[0].limit < 48 * MIB);
	fake_memory(&w, a, 0); /* a part of it has left */
	sees(a, 51 * MIB);
	sees(a, 51 * MIB);
	CHECK(!client_of(a)->overhead_known);
	fake_act(&w, a);
	settle(&w);
	CHECK_EQ(b->process->phase, TD_PHASE_FILLING);
	fake_memory(&w, b, 0); /* a part of it has come */
	sees(b, 20 * MIB);
	sees(b, 20 * MIB);
	CHECK(!client_of(b)->overhead_known);
	sees(a, a->slot[0].resident + 2 * MIB);
	sees(a, a->slot[0].resident + 2 * MIB);
	CHECK(client_of(a)->overhead_known);
	CHECK_EQ(client_of(a)->overhead_bytes, 2 * MIB);
}

TEST(nothing_is_taken_for_overhead_while_the_agent_is_busy_with_another_gpu)
{
	begin();
	struct fake *a = limited("20m", 8 * MIB);
	struct td_msg msg = {.type = TD_MSG_TYPE_used};

	fake_attach(&w, a, 1, 1, 8 * MIB);
	a->slow = true;
	settle(&w);
	msg.used.acked_seq = a->slot[0].seq;
	msg.used.total_bytes = msg.used.device_bytes = 8 * MIB;
	CHECK_EQ(say(&w, a, &msg), 0);
	sees(a, 12 * MIB);
	sees(a, 12 * MIB);
	CHECK(!client_of(a)->overhead_known);
}

TEST(nobody_is_believed_to_take_more_than_an_eighth_of_the_gpu)
{
	begin();
	struct fake *a = limited("20m", 8 * MIB);

	sees(a, 60 * MIB);
	sees(a, 60 * MIB);
	CHECK_EQ(a->slot[0].limit, 12 * MIB);
	CHECK_EQ(a->slot[0].others, 8 * MIB);
}

/* -- what others made -- */

static void imports(struct fake *f, uint64_t bytes)
{
	f->slot[0].imported = bytes;
	fake_memory(&w, f, 0);
}

TEST(what_was_imported_and_its_maker_has_let_go_of_is_in_the_limit)
{
	begin();
	struct fake *a = limited("20m", 2 * MIB);

	imports(a, 16 * MIB);
	for (unsigned i = 0; i < 3; i++)
		sees(a, 3 * MIB); /* somebody else is charged with it */
	CHECK_EQ(a->slot[0].limit, 19 * MIB);
	sees(a, 19 * MIB);
	CHECK_EQ(a->slot[0].limit, 19 * MIB);
	sees(a, 19 * MIB);
	CHECK_EQ(a->slot[0].limit, 3 * MIB);
	CHECK_EQ(a->slot[0].others, 17 * MIB);
	need(a, 2 * MIB);
	settle(&w);
	CHECK_EQ(a->slot[0].answer, 0);
	imports(a, 0);
	sees(a, 3 * MIB);
	CHECK_EQ(a->slot[0].limit, 19 * MIB);
}

/*
 * NVML charges no process with its managed pages. So pages that have room and were never touched
 * hide no overhead, and neither do pages without room.
 */
TEST(unified_memory_is_not_held_against_what_nvml_says)
{
	begin();
	struct fake *a = limited("40m", 20 * MIB);

	a->slot[0].managed = 18 * MIB;
	a->slot[0].paged = 4 * MIB;
	imports(a, 8 * MIB);
	for (unsigned i = 0; i < 3; i++)
		sees(a, 2 * MIB + MIB + 8 * MIB);
	CHECK_EQ(a->slot[0].others, 9 * MIB);
	need(a, 8 * MIB);
	settle(&w);
	CHECK_EQ(a->slot[0].answer, 0);
	a->slot[0].managed = 1000 * MIB; /* of 20 */
	fake_memory(&w, a, 0);
	sees(a, 3 * MIB);
	sees(a, 3 * MIB);
	CHECK_EQ(a->slot[0].others, 3 * MIB);
}

TEST(beside_an_eighth_of_the_gpu_nobody_is_believed_to_have_more_than_was_imported)
{
	begin();
	struct fake *a = limited("40m", 8 * MIB);

	imports(a, 4 * MIB);
	sees(a, 60 * MIB);
	sees(a, 60 * MIB);
	CHECK_EQ(a->slot[0].others, 12 * MIB);
}

TEST(who_imports_more_is_looked_at_soon_until_two_samples_after_that_have_seen_it)
{
	begin();
	struct fake *a = limited("40m", 2 * MIB);

	sees(a, 3 * MIB);
	sees(a, 3 * MIB);
	CHECK_EQ(td_overhead_wants_ns(&w.node, w.now, w.now), TD_NEVER);
	w.now += 10 * TD_NS_PER_S;
	imports(a, 8 * MIB);
	CHECK_EQ(td_overhead_wants_ns(&w.node, w.now, w.now), w.now + 50 * TD_NS_PER_MS);
	sees(a, 3 * MIB); /* it was taken before that */
	sees(a, 11 * MIB);
	CHECK_EQ(td_overhead_wants_ns(&w.node, w.now, w.now), w.now + 50 * TD_NS_PER_MS);
	sees(a, 11 * MIB);
	CHECK_EQ(td_overhead_wants_ns(&w.node, w.now, w.now), TD_NEVER);
	/* It has imported without a pause: each sample counts with the one before. */
	imports(a, 16 * MIB);
	sees(a, 19 * MIB);
	imports(a, 24 * MIB);
	sees(a, 27 * MIB);
	CHECK_EQ(a->slot[0].others, 17 * MIB);
	CHECK(td_overhead_wants_ns(&w.node, w.now, w.now) != TD_NEVER);
}

TEST(who_imports_where_nvml_does_not_tell_is_not_looked_at_for_ever)
{
	begin();
	struct fake *a = limited("40m", 2 * MIB);

	w.now += 10 * TD_NS_PER_S;
	imports(a, 8 * MIB);
	CHECK(td_overhead_wants_ns(&w.node, w.now, w.now) != TD_NEVER);
	CHECK_EQ(td_overhead_wants_ns(&w.node, w.now, w.now + 3 * TD_NS_PER_S), TD_NEVER);
	CHECK_EQ(td_node_set_job(&w.node, td_identity_local(1000), "a", "mem", "none", w.now, NULL),
		0);
	CHECK_EQ(td_overhead_wants_ns(&w.node, w.now, w.now), TD_NEVER);
}

/*
 * Returns a program that has imported so much, which no sample has seen, and asks for 12 MiB of its
 * 40.
 */
static struct fake *asks_beside(uint64_t imported)
{
	begin();
	struct fake *a = limited("40m", 2 * MIB);

	sees(a, 3 * MIB);
	sees(a, 3 * MIB);
	imports(a, imported);
	settle(&w);
	CHECK_EQ(a->slot[0].limit, 39 * MIB - imported);
	need(a, 12 * MIB);
	settle(&w);
	return a;
}

TEST(imports_count_until_it_is_known_whose_they_are_and_who_asks_meanwhile_waits)
{
	struct fake *a = asks_beside(30 * MIB);

	CHECK_EQ(a->slot[0].answer, -1);
	sees(a, 3 * MIB);
	sees(a, 3 * MIB);
	CHECK_EQ(a->slot[0].answer, -1);
	sees(a, 3 * MIB);
	CHECK_EQ(a->slot[0].answer, 1); /* their maker has them */
	CHECK_EQ(a->slot[0].limit, 39 * MIB);
	a = asks_beside(30 * MIB);
	sees(a, 33 * MIB);
	sees(a, 33 * MIB);
	sees(a, 33 * MIB);
	CHECK_EQ(a->slot[0].answer, 0);
}

TEST(who_asks_for_what_fits_beside_imports_does_not_wait)
{
	CHECK_EQ(asks_beside(20 * MIB)->slot[0].answer, 1);
}

TEST(nor_does_who_asks_for_what_is_beyond_the_limit_anyway)
{
	begin();
	struct fake *a = limited("40m", 2 * MIB);

	imports(a, 30 * MIB);
	need(a, 39 * MIB);
	settle(&w);
	CHECK_EQ(a->slot[0].answer, 0);
}

TEST(nobody_waits_for_more_than_a_second_for_what_nvml_does_not_tell)
{
	struct fake *a = asks_beside(30 * MIB);
	uint64_t wakeup = td_node_step(&w.node, w.now);

	CHECK(wakeup > w.now && wakeup <= w.now + TD_NS_PER_S);
	w.now += TD_NS_PER_S;
	imports(a, 31 * MIB);
	settle(&w);
	CHECK_EQ(a->slot[0].answer, 1);
}

TEST(who_has_imports_that_were_not_seen_is_looked_at_when_its_patience_ends)
{
	begin();
	w.now += 100 * TD_NS_PER_S;
	struct fake *a = limited("40m", 2 * MIB);
	uint64_t wakeup;

	sees(a, 3 * MIB);
	sees(a, 3 * MIB);
	imports(a, 10 * MIB);
	settle(&w);
	wakeup = td_overhead_step(&w.node, w.now);
	CHECK(wakeup > w.now && wakeup <= w.now + 2 * TD_NS_PER_S);
}

TEST(imports_of_one_process_count_for_all_of_its_job)
{
	begin();
	struct fake *a = limited("40m", 2 * MIB), *b = &w.fakes[1];

	fake_hello(&w, b, "a", TD_BACKEND_PLAIN, false);
	fake_attach(&w, b, 0, 0, 2 * MIB);
	fake_want(&w, b);
	imports(a, 30 * MIB);
	settle(&w);
	need(b, 12 * MIB);
	settle(&w);
	CHECK_EQ(b->slot[0].answer, -1);
	fake_dies(&w, a);
	settle(&w);
	CHECK_EQ(b->slot[0].answer, 1);
}

TEST(without_a_hard_limit_imports_count_nowhere)
{
	begin();
	struct fake *a = limited("none", 2 * MIB);
	uint64_t before = a->slot[0].limit;

	imports(a, 30 * MIB);
	settle(&w);
	CHECK_EQ(a->slot[0].limit, before);
	need(a, 40 * MIB);
	settle(&w);
	CHECK_EQ(a->slot[0].answer, 1);
}

/* a has 16 MiB open of b's 18, in a job with 40, and NVML has said that they are b's. */
static struct fake *has_open(void)
{
	begin();
	struct fake *a = limited("40m", 2 * MIB), *b = &w.fakes[1];

	fake_hello(&w, b, "a", TD_BACKEND_PLAIN, false);
	fake_attach(&w, b, 0, 0, 18 * MIB);
	fake_want(&w, b);
	imports(a, 16 * MIB);
	for (unsigned i = 0; i < 3; i++)
		sees(a, 3 * MIB);
	CHECK_EQ(a->slot[0].others, 19 * MIB); /* b's, and its own context */
	return b;
}

static int asks_for_24(struct fake *f)
{
	need(f, 24 * MIB);
	settle(&w);
	return f->slot[0].answer;
}

static void frees(struct fake *f, uint64_t bytes, uint64_t given_up)
{
	f->slot[0].demanded -= bytes;
	f->slot[0].resident = f->slot[0].demanded;
	f->slot[0].given_up += given_up;
	fake_memory(&w, f, 0);
	settle(&w);
}

TEST(what_its_maker_gives_up_counts_where_it_is_open_until_two_samples_have_been_about_it)
{
	struct fake *b = has_open(), *a = &w.fakes[0];

	w.now += 10 * TD_NS_PER_S;
	CHECK_EQ(td_overhead_wants_ns(&w.node, w.now, w.now), TD_NEVER);
	frees(b, 16 * MIB, 16 * MIB);
	CHECK_EQ(td_overhead_wants_ns(&w.node, w.now, w.now), w.now + 50 * TD_NS_PER_MS);
	CHECK_EQ(asks_for_24(a), -1);
	sees(a, 3 * MIB); /* taken before that */
	sees(a, 19 * MIB);
	CHECK_EQ(a->slot[0].answer, -1);
	sees(a, 19 * MIB);
	CHECK_EQ(a->slot[0].answer, 0);
	CHECK_EQ(a->slot[0].others, 19 * MIB); /* b's 2, and 17 */
	/* It was closed meanwhile, or belongs to another process. */
	b = has_open();
	frees(b, 16 * MIB, 16 * MIB);
	CHECK_EQ(asks_for_24(a), -1);
	for (unsigned i = 0; i < 3; i++)
		sees(a, 3 * MIB);
	CHECK_EQ(a->slot[0].answer, 1);
}

/*
 * Memory that was closed before that, and not reported yet, is not memory that its maker gave up.
 */
TEST(and_so_it_does_where_something_else_has_been_closed_meanwhile)
{
	struct fake *b = has_open(), *a = &w.fakes[0];

	imports(a, 32 * MIB);
	for (unsigned i = 0; i < 3; i++)
		sees(a, 3 * MIB);
	frees(b, 16 * MIB, 16 * MIB);
	imports(a, 16 * MIB);
	CHECK_EQ(asks_for_24(a), -1);
	/* Where all of it was known it is so still. */
	b = has_open();
	imports(a, 8 * MIB);
	CHECK_EQ(asks_for_24(a), 0); /* b has 18 */
	frees(b, 16 * MIB, 0);
	CHECK_EQ(asks_for_24(a), 1);
}

TEST(and_so_does_what_its_maker_leaves_behind)
{
	struct fake *b = has_open(), *a = &w.fakes[0];

	fake_dies(&w, b);
	settle(&w);
	CHECK_EQ(asks_for_24(a), -1);
	for (unsigned i = 0; i < 3; i++)
		sees(a, 19 * MIB);
	CHECK_EQ(a->slot[0].answer, 0);
}

TEST(what_nobody_was_given_is_free_at_once)
{
	struct fake *b = has_open();

	frees(b, 16 * MIB, 0);
	CHECK_EQ(asks_for_24(&w.fakes[0]), 1);
	b = has_open();
	frees(b, 16 * MIB, 2 * MIB);
	CHECK_EQ(asks_for_24(&w.fakes[0]), 1);
}
