/* A user's limits for a job, memory and time, with fake peers on a fake clock. */
#include "base/err.h"
#include "unit/daemon/node_world.h"

#define MS 1000000ull

TEST(a_job_of_one_process_reserves_its_limit)
{
	begin();
	struct fake *a = plain_program(0, "a", 8 * MIB);

	limit("a", "20m");
	settle(&w);
	CHECK_EQ(a->slot[0].limit, 20 * MIB);
	CHECK_EQ(a->slot[0].quota, 20 * MIB);
	CHECK_STR(a->mem, "20m");
	need(a, 13 * MIB);
	settle(&w);
	CHECK_EQ(a->slot[0].answer, 0);
	need(a, 12 * MIB);
	settle(&w);
	CHECK_EQ(a->slot[0].answer, 1);
}

TEST(a_share_is_of_the_capacity)
{
	begin();
	struct fake *a = plain_program(0, "a", 8 * MIB);
	struct td_err err = {0};

	CHECK_EQ(td_options_set(&w.node.options, "gpu.capacity", "32m", NULL), 0);
	limit("a", "50%");
	settle(&w);
	CHECK_EQ(a->slot[0].quota, 16 * MIB);
	limit("a", "none");
	CHECK_EQ(a->slot[0].quota, UINT64_MAX);
	CHECK_EQ(td_node_set_job(&w.node, td_identity_local(1000), "a", "mem", "50%%", w.now, &err),
		-EINVAL);
	CHECK(strstr(err.msg, "50%%") != NULL);
	CHECK_EQ(td_node_set_job(&w.node, td_identity_local(1000), "a", "mem", "0", w.now, &err),
		-ERANGE);
}

TEST(a_gpu_where_nothing_is_left_keeps_nobody_from_opening)
{
	begin();
	struct fake *a = &w.fakes[0], *b = &w.fakes[1];

	fake_hello(&w, a, "a", TD_BACKEND_SWAP, false);
	limit("a", "8m");
	fake_attach(&w, a, 0, 1, 8 * MIB);
	fake_want(&w, a);
	settle(&w);
	fake_hello(&w, b, "a", TD_BACKEND_SWAP, false);
	fake_attach(&w, b, 0, 0, 0);
	fake_want(&w, b);
	b->slow = true;
	settle(&w);
	fake_attach(&w, b, 1, 1, 0); /* while it is let in */
	b->slow = false;
	settle(&w);
	CHECK_EQ(b->process->phase, TD_PHASE_OPEN);
	CHECK_EQ(b->slot[1].limit, 0);
}

TEST(processes_of_a_job_share_its_limit)
{
	begin();
	struct fake *a = plain_program(0, "a", 4 * MIB);

	limit("a", "20m");
	struct fake *b = plain_program(1, "a", 4 * MIB);

	CHECK_STR(a->mem, "20m");
	settle(&w);
	CHECK(charged("a") <= 20 * MIB);
	CHECK(a->slot[0].limit > 4 * MIB && b->slot[0].limit > 4 * MIB);
	CHECK_EQ(b->slot[0].others, 4 * MIB);
	/* Memory that the other reserved in advance is called back. */
	need(b, 12 * MIB);
	settle(&w);
	CHECK_EQ(b->slot[0].answer, 1);
	CHECK(charged("a") <= 20 * MIB);
	need(a, 1);
	settle(&w);
	CHECK_EQ(a->slot[0].answer, 0);
	CHECK_EQ(w.events[TD_EVENT_REFUSED], 1);
	/* Another job is not concerned. */
	struct fake *c = plain_program(2, "c", 4 * MIB);

	need(c, 20 * MIB);
	settle(&w);
	CHECK_EQ(c->slot[0].answer, 1);
}

TEST(what_one_has_freed_another_of_its_job_can_have_at_once)
{
	begin();
	struct fake *a = plain_program(0, "a", 10 * MIB);

	limit("a", "20m");
	struct fake *b = plain_program(1, "a", 10 * MIB);

	settle(&w);
	a->slow = true;
	a->slot[0].demanded = a->slot[0].resident = 2 * MIB; /* not reported yet */
	need(b, 8 * MIB);
	settle(&w);
	CHECK_EQ(b->slot[0].answer, -1);
	a->slow = false;
	settle(&w);
	CHECK_EQ(b->slot[0].answer, 1);
	CHECK(charged("a") <= 20 * MIB);
}

TEST(one_that_does_not_answer_is_not_waited_for_for_ever)
{
	begin();
	struct fake *a = plain_program(0, "a", 10 * MIB);

	limit("a", "20m");
	struct fake *b = plain_program(1, "a", 4 * MIB);

	settle(&w);
	a->slow = true;
	need(b, 8 * MIB);
	uint64_t wakeup = settle(&w);

	CHECK_EQ(b->slot[0].answer, -1);
	CHECK(wakeup <= w.now + 1000 * MS);
	w.now = wakeup;
	settle(&w);
	CHECK_EQ(b->slot[0].answer, 0);
	/* It has ended, and its memory with it. */
	fake_dies(&w, a);
	need(b, 8 * MIB);
	settle(&w);
	CHECK_EQ(b->slot[0].answer, 1);
}

TEST(a_lower_limit_takes_nothing_away)
{
	begin();
	struct fake *a = plain_program(0, "a", 16 * MIB);

	limit("a", "8m");
	settle(&w);
	CHECK_EQ(a->slot[0].limit, 16 * MIB);
	need(a, 1 * MIB);
	settle(&w);
	CHECK_EQ(a->slot[0].answer, 0);
	a->slot[0].demanded = a->slot[0].resident = 2 * MIB;
	fake_memory(&w, a, 0);
	settle(&w);
	CHECK_EQ(a->slot[0].limit, 8 * MIB);
}

/*
 * Behind the gate bytes are left off the device without a new limit; they count in the job's limit
 * all the same.
 */
TEST(a_waiting_program_keeps_to_its_jobs_limit)
{
	begin();
	struct fake *a = program(0, "a", 48 * MIB), *b = program(1, "b", 40 * MIB);

	fake_want(&w, a);
	settle(&w);
	limit("b", "44m");
	fake_want(&w, b);
	settle(&w);
	CHECK(is_open(a) && !is_open(b));
	need(b, 4 * MIB);
	settle(&w);
	CHECK_EQ(b->slot[0].answer, 2);
	need(b, 1);
	settle(&w);
	CHECK_EQ(b->slot[0].answer, 0);
}

/* Two ask at once: what is no use to the first, the second gets. */
TEST(what_does_not_suffice_for_one_of_a_job_is_left_to_another)
{
	begin();
	struct fake *a = plain_program(0, "a", 8 * MIB);

	limit("a", "20m");
	struct fake *b = plain_program(1, "a", 8 * MIB);

	settle(&w);
	need(a, 6 * MIB);
	need(b, 3 * MIB);
	settle(&w);
	CHECK_EQ(a->slot[0].answer, 0);
	CHECK_EQ(b->slot[0].answer, 1);
	CHECK(charged("a") <= 20 * MIB);
}

/* Its advance reservation is not lost to its job while it drains. */
TEST(one_that_drains_gives_back_what_it_holds_in_advance)
{
	begin();
	struct fake *a = program(0, "a", 4 * MIB), *b, *c;

	limit("a", "60m");
	b = program(1, "a", 40 * MIB);
	c = program(2, "c", 48 * MIB);
	fake_want(&w, a);
	fake_want(&w, b);
	settle(&w);
	CHECK(is_open(a) && is_open(b));
	CHECK(a->slot[0].limit > 5 * MIB);
	fake_want(&w, c);
	a->slow = true;
	w.now += 30000 * MS;
	settle(&w);
	CHECK(a->draining && !is_open(b));
	need(b, 15 * MIB);
	(void)td_node_step(&w.node, w.now);
	CHECK(a->slot[0].limit <= 5 * MIB);
	fake_memory(&w, a, 0);
	settle(&w);
	CHECK_EQ(b->slot[0].answer, 2);
	CHECK(charged("a") <= 60 * MIB);
}

TEST(a_report_from_before_the_answer_takes_nothing_back)
{
	begin();
	struct fake *a = program(0, "a", 48 * MIB), *b = program(1, "b", 30 * MIB);
	uint64_t demanded;
	uint32_t before, seq;

	fake_want(&w, a);
	settle(&w);
	limit("b", "44m");
	struct fake *c = program(2, "b", 4 * MIB);

	fake_want(&w, b);
	fake_want(&w, c);
	settle(&w);
	CHECK(!is_open(b) && !is_open(c));
	b->slow = true;
	before = b->slot[0].seq;
	need(b, 8 * MIB);
	settle(&w);
	CHECK_EQ(b->slot[0].answer, 2);
	/* This one was on its way: it knows neither of the answer nor of the GRANT behind it. */
	demanded = b->slot[0].demanded;
	seq = b->slot[0].seq;
	b->slot[0].demanded = 30 * MIB;
	b->slot[0].seq = before;
	fake_memory(&w, b, 0);
	b->slot[0].demanded = demanded;
	b->slot[0].seq = seq;
	need(c, 8 * MIB);
	w.now += 1500 * MS;
	settle(&w);
	CHECK_EQ(c->slot[0].answer, 0);
	CHECK(b->slot[0].demanded + c->slot[0].demanded <= 44 * MIB);
	/* Once it has reported for that GRANT, what it says is what counts. */
	b->slow = false;
	b->slot[0].demanded = 2 * MIB;
	settle(&w);
	need(c, 8 * MIB);
	settle(&w);
	CHECK(c->slot[0].answer > 0);
}

/*
 * The answer's bytes are in a report that precedes the PLAN: until the next report they count
 * twice, and are granted once.
 */
TEST(a_report_with_what_was_just_granted_does_not_raise_a_limit)
{
	begin();
	struct fake *a = program(0, "a", 48 * MIB), *b = program(1, "b", 30 * MIB);
	uint32_t before;

	fake_want(&w, a);
	settle(&w);
	limit("b", "44m");
	fake_want(&w, b);
	settle(&w);
	CHECK(!is_open(b));
	b->slow = true;
	before = b->slot[0].seq;
	need(b, 12 * MIB);
	settle(&w);
	CHECK_EQ(b->slot[0].answer, 2);
	CHECK_EQ(b->slot[0].demanded, 42 * MIB);
	b->slot[0].seq = before;
	fake_memory(&w, b, 0);
	fake_dies(&w, a);
	settle(&w);
	CHECK(b->slot[0].opening);
	CHECK(b->slot[0].limit <= 44 * MIB);
}

/*
 * A report that was on its way before the answer says less, also where the limit comes after the
 * answer.
 */
TEST(what_was_granted_before_there_was_a_limit_counts)
{
	begin();
	struct fake *a = program(0, "a", 48 * MIB), *b = program(1, "b", 30 * MIB),
		    *c = program(2, "b", 4 * MIB);
	uint32_t before;

	fake_want(&w, a);
	settle(&w);
	fake_want(&w, b);
	fake_want(&w, c);
	settle(&w);
	b->slow = true;
	before = b->slot[0].seq;
	need(b, 8 * MIB);
	settle(&w);
	CHECK_EQ(b->slot[0].answer, 2);
	b->slot[0].demanded = 30 * MIB;
	b->slot[0].seq = before;
	fake_memory(&w, b, 0);
	limit("b", "44m");
	need(c, 8 * MIB);
	w.now += 1500 * MS;
	settle(&w);
	CHECK_EQ(c->slot[0].answer, 0);
}

TEST(bytes_beyond_reason_are_neither_granted_nor_counted_around)
{
	begin();
	struct fake *a = plain_program(0, "a", 8 * MIB);

	limit("a", "20m");
	struct fake *b = plain_program(1, "a", 8 * MIB), *liar = plain_program(2, "c", UINT64_MAX);

	settle(&w);
	need(a, UINT64_MAX - 4 * MIB);
	settle(&w);
	CHECK_EQ(a->slot[0].answer, 0);
	need(liar, UINT64_MAX);
	settle(&w);
	CHECK_EQ(liar->slot[0].answer, 0);
	b->slot[0].demanded = UINT64_MAX - 6 * MIB;
	fake_memory(&w, b, 0);
	need(a, 4 * MIB);
	w.now += 1500 * MS;
	settle(&w);
	CHECK_EQ(a->slot[0].answer, 0);
}

TEST(a_slot_that_comes_again_shows_nothing_of_the_last_one)
{
	begin();
	struct fake *a = plain_program(0, "a", 4 * MIB);
	struct td_msg detach = {.type = TD_MSG_TYPE_detach};

	limit("a", "20m");
	struct fake *b = plain_program(1, "a", 4 * MIB);

	settle(&w);
	CHECK_EQ(b->slot[0].others, 4 * MIB);
	CHECK_EQ(say(&w, b, &detach), 0);
	fake_dies(&w, a);
	fake_attach(&w, b, 0, 0, 1 * MIB);
	settle(&w);
	CHECK_EQ(b->slot[0].others, 0);
}

/* -- duty -- */

TEST(a_duty_is_shown_to_the_program_and_changed_while_it_runs)
{
	begin();
	struct fake *a = program(0, "a", 8 * MIB), *b = program(1, "b", 8 * MIB);
	uint32_t word;

	fake_want(&w, a);
	settle(&w);
	CHECK_EQ(a->word, 0);
	CHECK_EQ(td_node_set_job(&w.node, td_identity_local(1000), "a", "duty", "30%", w.now, NULL),
		0);
	settle(&w);
	CHECK_EQ(a->word & TD_WORD_FLAGS, TD_WORD_DUTY);
	CHECK_EQ(a->pacing.duty_ppm, 300000);
	CHECK_EQ(a->pacing.rivals, 0);
	word = a->word;
	settle(&w);
	CHECK_EQ(a->word, word);
	/*
	 * Another program is there, so the measured time is not its time alone. A program that
	 * sleeps checks again.
	 */
	fake_want(&w, b);
	settle(&w);
	CHECK_EQ(a->pacing.rivals, 1);
	CHECK(a->word != word && (a->word & TD_WORD_FLAGS) == TD_WORD_DUTY);
	CHECK_EQ(b->word, 0);
	CHECK_EQ(
		td_node_set_job(&w.node, td_identity_local(1000), "a", "duty", "none", w.now, NULL),
		0);
	settle(&w);
	CHECK_EQ(a->word, 0);
}

TEST(a_duty_that_makes_no_sense_is_quoted)
{
	static const char *const values[] = {"-1", "0", "0.5%", "101%", "50%%", "9e99", ""};
	struct td_err err = {0};

	begin();
	program(0, "a", 8 * MIB);
	for (unsigned i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		CHECK(td_node_set_job(&w.node, td_identity_local(1000), "a", "duty", values[i],
			      w.now, &err) < 0);
		CHECK(strstr(err.msg, values[i]) != NULL);
	}
	CHECK_EQ(w.fakes[0].process->job->settings.duty_ppm, 0);
}

TEST(a_gpu_that_was_exchanged_while_nobody_used_it_has_its_new_size)
{
	begin();
	struct fake *a = program(0, "a", 8 * MIB);

	CHECK_EQ(a->slot[0].capacity, 64 * MIB);
	fake_dies(&w, a);
	w.gpu_bytes = 32 * MIB;
	a = program(0, "a", 8 * MIB);
	CHECK_EQ(a->slot[0].capacity, 32 * MIB);
	/* Who says less while it is used is not believed. */
	w.gpu_bytes = 16 * MIB;
	struct fake *b = program(1, "b", 8 * MIB);

	CHECK_EQ(b->slot[0].capacity, 32 * MIB);
	CHECK_EQ(w.node.gpu_count, 1);
}

TEST(explain_tells_who_waits_its_duty)
{
	begin();
	for (unsigned i = 0; i < 2; i++) {
		fake_hello(&w, &w.fakes[i], i ? "b" : "a", TD_BACKEND_SWAP, false);
		fake_attach(&w, &w.fakes[i], 0, 0, 40 * MIB);
		fake_want(&w, &w.fakes[i]);
		if (!i)
			settle(&w);
	}
	CHECK_EQ(td_node_set_job(&w.node, td_identity_local(1000), "b", "duty", "30%", w.now, NULL),
		0);
	CHECK_STR(td_process_state(w.fakes[1].process), "waiting");
	CHECK(strstr(explained(&w, &w.fakes[1]),
		      "Once its turn begins, its duty is 30% of the GPU's time.") != NULL);
}

TEST(explain_tells_what_a_job_is_held_to)
{
	begin();
	struct fake *a = plain_program(0, "a", 4 * MIB);

	plain_program(1, "a", 8 * MIB);
	settle(&w);
	CHECK(!strstr(explained(&w, a), "duty") && !strstr(explained(&w, a), "limit"));
	CHECK_EQ(td_node_set_job(&w.node, td_identity_local(1000), "a", "duty", "30%", w.now, NULL),
		0);
	limit("a", "20m");
	settle(&w);
	CHECK(strstr(explained(&w, a), "Its duty is 30% of the GPU's time.") != NULL);
	CHECK(strstr(explained(&w, a), "Its job has 12.0 MiB of its limit of 20.0 MiB on GPU 0.") !=
		NULL);
	limit("a", "2m");
	settle(&w);
	CHECK(strstr(explained(&w, a),
		      "Its job has 12.0 MiB on GPU 0, more than its limit of 2.0 MiB. It gets no "
		      "more until it has freed enough. Free memory, or raise the limit: tandem set "
		      "a mem=SIZE.") != NULL);
	limit("a", "20m");
	CHECK_EQ(td_node_set_job(&w.node, td_identity_local(1000), "a", "weight", "3", w.now, NULL),
		0);
	CHECK(strstr(explained(&w, a), "Its weight is 3. Its duty is 30%") != NULL);
}

TEST(what_is_set_for_a_job_is_told_to_its_processes_and_to_no_others)
{
	begin();
	struct fake *a = plain_program(0, "a", 4 * MIB), *b = plain_program(1, "a", 4 * MIB),
		    *c = plain_program(2, "c", 4 * MIB);

	CHECK_EQ(td_node_set_job(
			 &w.node, td_identity_local(1000), "101", "weight", "5", w.now, NULL),
		0);
	CHECK_EQ(a->settings_told, 1);
	CHECK_EQ(b->settings_told, 1);
	CHECK_EQ(c->settings_told, 0);
}

TEST(a_weight_beyond_what_may_be_set_is_not_believed)
{
	struct td_msg_hello hello = {.class = TD_CLASS_BESTEFFORT, .weight = UINT32_MAX};

	begin();
	strcpy(hello.job, "greedy");
	CHECK_EQ(td_node_hello(&w.node, &w.fakes[0], 100, td_identity_local(1000), &hello, w.now)
			 ->job->settings.weight,
		1000);
}

/* -- the backend -- */

static int chooses(struct fake *f, uint8_t kind, uint8_t reason, const char *library)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_backend};

	msg.backend.kind = kind;
	msg.backend.reason = reason;
	strcpy(msg.backend.library, library);
	return say(&w, f, &msg);
}

TEST(a_backend_is_chosen_before_there_is_memory_and_why_it_stays_may_be_told_later)
{
	struct fake *f = &w.fakes[0];

	begin();
	fake_hello(&w, f, "a", TD_BACKEND_PLAIN, false);
	f->spills = true;
	CHECK_EQ(chooses(f, TD_BACKEND_N, 0, ""), -EPROTO);
	CHECK_EQ(chooses(f, TD_BACKEND_SWAP, TD_BACKEND_REASON_N, ""), -EPROTO);
	CHECK_EQ(f->process->backend, TD_BACKEND_PLAIN);
	CHECK_EQ(chooses(f, TD_BACKEND_PLAIN, TD_BACKEND_CANNOT, ""), 0);
	CHECK(strstr(explained(&w, f), "cannot map memory"));
	CHECK_EQ(chooses(f, TD_BACKEND_SWAP, 0, ""), 0);
	CHECK(!strstr(explained(&w, f), "auto"));
	fake_attach(&w, f, 0, 0, 8 * MIB);
	CHECK(td_container_of(f->process->clients.next, struct td_client, of_process)->spills);
	CHECK_EQ(chooses(f, TD_BACKEND_PLAIN, TD_BACKEND_REGISTERS, "libucp.so"), -EPROTO);
	CHECK_EQ(chooses(f, TD_BACKEND_SWAP, TD_BACKEND_REGISTERS, "lib\033ucp.so"), 0);
	CHECK(strstr(explained(&w, f), "lib?ucp.so is open"));
}
