/*
 * The node and its executor with fake peers on a fake clock: hand-overs, the ledger, deaths,
 * restarts.
 */
#include "base/err.h"
#include "daemon/node/gpus.h"
#include "unit/daemon/node_world.h"

#define MS 1000000ull

TEST(a_first_job_gets_the_gpu_at_once)
{
	world_init(&w);
	struct fake *a = program(0, "a", 48 * MIB);

	CHECK(!is_open(a));
	fake_want(&w, a);
	settle(&w);
	CHECK(is_open(a));
	CHECK_EQ(a->word, 0);
	CHECK_EQ(a->slot[0].resident, 48 * MIB);
}

TEST(names_are_fit_for_others_terminals)
{
	begin();
	struct fake *a = program(0, "a\n\033[31m", 24 * MIB);

	CHECK_STR(a->process->name, "a??[31m");
	CHECK_STR(a->process->job->name, "a??[31m");
}

TEST(two_jobs_that_fit_run_side_by_side)
{
	begin();
	struct fake *a = program(0, "a", 24 * MIB), *b = program(1, "b", 24 * MIB);

	fake_want(&w, a);
	fake_want(&w, b);
	settle(&w);
	CHECK(is_open(a) && is_open(b));
}

TEST(two_jobs_that_do_not_fit_take_turns_and_only_what_is_needed_moves)
{
	begin();
	struct fake *a = program(0, "a", 48 * MIB), *b = program(1, "b", 48 * MIB);

	fake_want(&w, a);
	settle(&w);
	w.now += MS;
	fake_want(&w, b);
	uint64_t wakeup = settle(&w);
	CHECK(is_open(a) && !is_open(b));
	CHECK(wakeup != TD_NEVER);
	w.now = wakeup;
	settle(&w);
	CHECK(!is_open(a) && is_open(b));
	CHECK_EQ(a->slot[0].out, 32 * MIB);
	CHECK_EQ(b->slot[0].resident, 48 * MIB);
	CHECK(within_capacity(&w));
	w.now = settle(&w);
	settle(&w);
	CHECK(is_open(a) && !is_open(b));
	CHECK(w.events[TD_EVENT_OPENED] == 3);
}

static uint64_t last_value_bytes(enum td_event_kind kind)
{
	for (uint64_t n = w.node.events.next - 1; n; n--)
		if (td_events_get(&w.node.events, n)->kind == kind)
			return td_events_get(&w.node.events, n)->value_bytes;
	return 0;
}

TEST(memory_that_leaves_in_pieces_is_one_event_with_all_of_them)
{
	begin();
	struct fake *a = program(0, "a", 48 * MIB), *b = program(1, "b", 48 * MIB);

	fake_want(&w, a);
	settle(&w);
	a->slow = true;
	fake_want(&w, b);
	w.now = settle(&w);
	settle(&w);
	fake_act(&w, a); /* drained */
	settle(&w);
	CHECK_EQ(a->slot[0].limit, 16 * MIB);
	while (a->slot[0].resident > a->slot[0].limit) {
		CHECK_EQ(w.events[TD_EVENT_SHRUNK], 0);
		a->slot[0].resident -= 8 * MIB;
		a->slot[0].out += 8 * MIB;
		fake_memory(&w, a, 0);
	}
	CHECK_EQ(w.events[TD_EVENT_SHRUNK], 1);
	CHECK_EQ(last_value_bytes(TD_EVENT_SHRUNK), 32 * MIB);
	fake_memory(&w, a, 0);
	CHECK_EQ(w.events[TD_EVENT_SHRUNK], 1);
	/* The next time only what is new. */
	a->slow = false;
	w.now = settle(&w);
	w.now = settle(&w);
	settle(&w);
	CHECK_EQ(w.events[TD_EVENT_SHRUNK], 3);
	CHECK_EQ(last_value_bytes(TD_EVENT_SHRUNK), 32 * MIB);
}

TEST(what_left_the_gpu_under_another_daemon_is_no_news)
{
	begin();
	struct fake *a = &w.fakes[0];

	fake_hello(&w, a, "a", TD_BACKEND_SWAP, true);
	a->slot[0].out = 32 * MIB;
	fake_attach(&w, a, 0, 0, 48 * MIB);
	settle(&w);
	CHECK_EQ(w.events[TD_EVENT_SHRUNK], 0);
	CHECK_EQ(w.events[TD_EVENT_RETURNED], 1);
}

TEST(nobody_opens_before_the_holder_has_drained)
{
	begin();
	struct fake *a = program(0, "a", 48 * MIB), *b = program(1, "b", 48 * MIB);

	fake_want(&w, a);
	settle(&w);
	fake_want(&w, b);
	a->slow = true;
	w.now += 30000 * MS;
	settle(&w);
	CHECK(!is_open(a) && !is_open(b));
	CHECK(a->draining);
	a->slow = false;
	settle(&w);
	CHECK(is_open(b));
}

TEST(a_holder_that_dies_frees_everything_at_once)
{
	for (int phase = 0; phase < 3; phase++) {
		begin();
		struct fake *a = program(0, "a", 48 * MIB), *b = program(1, "b", 48 * MIB);

		fake_want(&w, a);
		settle(&w);
		fake_want(&w, b);
		if (phase == 1) { /* while draining */
			a->slow = true;
			w.now += 30000 * MS;
			settle(&w);
		} else if (phase == 2) { /* while the other fills */
			b->slow = true;
			w.now += 30000 * MS;
			settle(&w);
			b->slow = false;
		}
		fake_dies(&w, a);
		settle(&w);
		CHECK(is_open(b));
		CHECK_EQ(b->slot[0].resident, 48 * MIB);
	}
}

TEST(a_stuck_drain_reopens_the_gate_and_is_tried_again)
{
	begin();
	struct fake *a = program(0, "a", 48 * MIB), *b = program(1, "b", 48 * MIB);
	struct td_msg stuck = {.type = TD_MSG_TYPE_stuck};

	fake_want(&w, a);
	settle(&w);
	fake_want(&w, b);
	a->slow = true;
	w.now += 30000 * MS;
	settle(&w);
	CHECK_EQ(say(&w, a, &stuck), 0);
	a->draining = false;
	settle(&w);
	CHECK(is_open(a) && !is_open(b));
	CHECK_EQ(w.events[TD_EVENT_STUCK], 1);
	a->slow = false;
	w.now += 60000 * MS;
	settle(&w);
	CHECK(is_open(b));
}

TEST(a_drain_of_an_earlier_closing_proves_nothing)
{
	begin();
	struct fake *a = program(0, "a", 48 * MIB), *b = program(1, "b", 40 * MIB);
	struct td_msg late = {.type = TD_MSG_TYPE_drained}, stuck = {.type = TD_MSG_TYPE_stuck};

	fake_want(&w, a);
	settle(&w);
	a->slow = true;
	fake_want(&w, b);
	w.now += 60000 * MS;
	settle(&w);
	CHECK(a->draining);
	late.drained.word = a->word;
	CHECK_EQ(say(&w, a, &stuck), 0);
	settle(&w); /* given up */
	CHECK(is_open(a));
	w.now += 2 * w.node.options.drain_deadline_ns;
	settle(&w); /* and tried again */
	CHECK(!is_open(a));
	CHECK_EQ(say(&w, a, &late), 0);
	settle(&w);
	CHECK_EQ(a->process->phase, TD_PHASE_DRAINING);
	CHECK(!is_open(b));
	late.drained.word = a->word;
	CHECK_EQ(say(&w, a, &late), 0);
	CHECK_EQ(a->process->phase, TD_PHASE_CLOSED);
}

/* It may have drained just now, and be moving its memory: work must not find that gone. */
TEST(a_process_that_does_not_answer_a_drain_is_reported_and_stays_closed)
{
	begin();
	struct fake *a = program(0, "a", 48 * MIB), *b = program(1, "b", 48 * MIB);

	fake_want(&w, a);
	settle(&w);
	fake_want(&w, b);
	a->slow = true;
	w.now += 30000 * MS;
	settle(&w);
	w.now += 2 * w.node.options.drain_deadline_ns;
	settle(&w);
	CHECK(!is_open(a) && !is_open(b));
	CHECK_EQ(w.events[TD_EVENT_STUCK], 1);
	CHECK_EQ(w.events[TD_EVENT_UNRESPONSIVE], 1);
	a->slow = false;
	settle(&w);
	CHECK(!is_open(a) && is_open(b));
}

/* It had work in flight when it came, of which the daemon did not know. */
TEST(who_cannot_drain_while_it_counts_as_closed_is_closed_anew)
{
	begin();
	struct fake *a = program(0, "a", 48 * MIB);
	struct td_msg stuck = {.type = TD_MSG_TYPE_stuck};
	uint32_t word = a->word;

	CHECK(!is_open(a));
	CHECK_EQ(say(&w, a, &stuck), 0);
	CHECK(!is_open(a) && a->word != word);
	CHECK_EQ(a->process->phase, TD_PHASE_CLOSED);
}

TEST(who_comes_with_memory_and_is_not_let_in_gives_it_back)
{
	begin();
	struct fake *a = program(0, "a", 64 * MIB), *b;

	fake_want(&w, a);
	settle(&w);
	b = program(1, "b", 0);
	/* taken without a daemon */
	b->slot[0].limit = b->slot[0].demanded = b->slot[0].resident = 24 * MIB;
	fake_memory(&w, b, 0);
	fake_want(&w, b);
	settle(&w);
	CHECK(is_open(a) && !is_open(b));
	CHECK_EQ(b->slot[0].resident, 0);
}

/*
 * A condition that it waits for may depend on its admission, and nothing else makes the daemon step
 * again.
 */
TEST(the_next_step_follows_an_opening_at_once)
{
	begin();
	struct fake *a = program(0, "a", 8 * MIB);
	uint64_t wakeup = TD_NEVER;

	fake_want(&w, a);
	for (int i = 0; i < 12 && !is_open(a); i++) {
		wakeup = td_node_step(&w.node, w.now);
		if (!is_open(a))
			fake_act(&w, a);
	}
	CHECK(is_open(a));
	CHECK(wakeup <= w.now);
	CHECK(td_node_step(&w.node, w.now) > w.now);
}

/*
 * Room that was kept for it may go to others, or to its own memory: it may be filled without a
 * report.
 */
TEST(the_next_step_follows_a_refusal_at_once)
{
	begin();
	struct fake *a = program(0, "a", 8 * MIB);

	limit("a", "10m");
	fake_want(&w, a);
	settle(&w);
	need(a, 4 * MIB);
	CHECK(td_node_step(&w.node, w.now) <= w.now);
	CHECK_EQ(a->slot[0].answer, 0);
	CHECK(td_node_step(&w.node, w.now) > w.now);
}

/*
 * All run at once, or by a plan that gives it less than it asks for: nobody makes room, and the
 * driver moves pages.
 */
TEST(who_pages_itself_beside_others_waits_for_no_room_that_nobody_makes)
{
	static const char *const policies[] = {"timeshare", "antman"};

	for (unsigned p = 0; p < 2; p++) {
		struct fake *a = &w.fakes[0], *b = &w.fakes[1];

		begin();
		CHECK_EQ(td_options_set(&w.node.options, "policy", policies[p], NULL), 0);
		td_node_options_changed(&w.node, w.now, "policy");
		for (unsigned i = 0; i < 2; i++) {
			fake_hello(&w, &w.fakes[i], i ? "b" : "a", TD_BACKEND_MANAGED, false);
			fake_attach(&w, &w.fakes[i], 0, 0, i ? 0 : 62 * MIB);
			fake_want(&w, &w.fakes[i]);
		}
		settle(&w);
		CHECK(is_open(a) && is_open(b));
		for (unsigned i = 0; i < 2; i++) {
			need(b, 4 * MIB);
			settle(&w);
			CHECK_EQ(b->slot[0].answer, 1);
			b->slot[0].resident = b->slot[0].demanded;
			fake_memory(&w, b, 0);
		}
		need(b, 60 * MIB);
		settle(&w);
		CHECK_EQ(b->slot[0].answer, 0);
	}
}

TEST(a_job_on_two_gpus_opens_on_both_or_none)
{
	begin();
	struct fake *a = program(0, "a", 48 * MIB), *both = &w.fakes[1];

	fake_hello(&w, both, "both", TD_BACKEND_SWAP, false);
	fake_attach(&w, both, 0, 0, 48 * MIB);
	fake_attach(&w, both, 1, 1, 48 * MIB);
	fake_want(&w, a);
	settle(&w);
	fake_want(&w, both);
	settle(&w);
	CHECK(!is_open(both));
	CHECK_EQ(both->slot[1].resident, 0);
	w.now += 30000 * MS;
	settle(&w);
	CHECK(is_open(both));
	CHECK_EQ(both->slot[0].resident, 48 * MIB);
	CHECK_EQ(both->slot[1].resident, 48 * MIB);
}

TEST(an_allocation_waits_until_room_is_made)
{
	begin();
	struct fake *a = program(0, "a", 40 * MIB), *b = program(1, "b", 16 * MIB);

	fake_want(&w, a);
	fake_want(&w, b);
	settle(&w);
	need(a, 20 * MIB);
	settle(&w);
	/* a is the older one: b gives way */
	CHECK_EQ(a->slot[0].answer, 1);
	CHECK(is_open(a) && !is_open(b));
	CHECK(within_capacity(&w));
}

TEST(an_allocation_beyond_the_gpu_is_refused)
{
	begin();
	struct fake *a = program(0, "a", 40 * MIB);

	fake_want(&w, a);
	settle(&w);
	need(a, 25 * MIB);
	settle(&w);
	CHECK_EQ(a->slot[0].answer, 0);
	CHECK(is_open(a));
	CHECK_EQ(w.events[TD_EVENT_REFUSED], 1);
}

TEST(an_allocation_with_the_gate_closed_stays_off_the_device)
{
	begin();
	struct fake *a = program(0, "a", 40 * MIB);

	need(a, 8 * MIB);
	settle(&w);
	/* wanting memory is wanting the GPU: nobody else does, so it opens and the answer is yes */
	CHECK_EQ(a->slot[0].answer, 1);
	struct fake *b = program(1, "b", 48 * MIB);
	fake_want(&w, a);
	settle(&w);
	need(b, 4 * MIB);
	settle(&w);
	CHECK_EQ(b->slot[0].answer, 2);
}

TEST(after_a_restart_the_holder_keeps_holding)
{
	begin();
	struct fake *a = &w.fakes[0], *b = &w.fakes[1];

	w.node.settle_ns = w.now + 50 * MS;
	fake_hello(&w, b, "b", TD_BACKEND_SWAP, false);
	fake_attach(&w, b, 0, 0, 48 * MIB);
	fake_want(&w, b);
	CHECK_EQ(settle(&w), w.node.settle_ns);
	CHECK(!is_open(b));
	fake_hello(&w, a, "a", TD_BACKEND_SWAP, true);
	a->slot[0].resident = 48 * MIB;
	fake_attach(&w, a, 0, 0, 48 * MIB);
	w.now += 50 * MS;
	settle(&w);
	CHECK(is_open(a) && !is_open(b));
	CHECK(within_capacity(&w));
}

TEST(nonsense_costs_the_sender_its_connection_only)
{
	begin();
	struct fake *a = program(0, "a", 8 * MIB);
	struct td_msg msg = {.type = TD_MSG_TYPE_used};

	msg.used.slot = 7;
	CHECK(say(&w, a, &msg) < 0);
	msg.type = TD_MSG_TYPE_welcome;
	CHECK(say(&w, a, &msg) < 0);
	msg.type = TD_MSG_TYPE_attach;
	msg.attach.slot = 0;
	CHECK(say(&w, a, &msg) < 0); /* twice */
	msg.attach.slot = 99;
	CHECK(say(&w, a, &msg) < 0);
}

TEST(a_paused_job_closes_and_others_may_not_pause_it)
{
	begin();
	struct fake *a = program(0, "a", 8 * MIB);
	struct td_err err = {0};

	fake_want(&w, a);
	settle(&w);
	CHECK(td_node_set_job(&w.node, td_identity_local(1001), "a", "paused", "on", w.now, &err) <
		0);
	CHECK_STR(err.msg, "there is no job \"a\": see tandem ps");
	CHECK(td_node_set_job(
		      &w.node, td_identity_local(1000), "a", "paused", "perhaps", w.now, &err) < 0);
	CHECK(strstr(err.msg, "\"perhaps\""));
	CHECK_EQ(
		td_node_set_job(&w.node, td_identity_local(1000), "a", "paused", "on", w.now, &err),
		0);
	settle(&w);
	CHECK(!is_open(a));
	CHECK_EQ(td_node_set_job(
			 &w.node, td_identity_local(1000), "a", "paused", "off", w.now, &err),
		0);
	settle(&w);
	CHECK(is_open(a));
	CHECK(td_node_set_job(
		      &w.node, td_identity_local(1000), "zebra", "paused", "on", w.now, &err) < 0);
	CHECK(strstr(err.msg, "zebra"));
}

static struct td_nvml_gpu listed(uint32_t index, uint8_t uuid)
{
	struct td_nvml_gpu gpu = {.index = index, .known = TD_GPU_KNOWS_MEMORY, .used_bytes = 5};

	memset(gpu.uuid, uuid, sizeof(gpu.uuid));
	return gpu;
}

TEST(gpus_have_nvmls_numbers_and_others_those_behind)
{
	/* Its third GPU has no UUID. The node uses 9, 2, 8, in this order. */
	const struct td_nvml_gpu first[] = {listed(0, 1), listed(1, 2), listed(3, 4)};
	const struct td_nvml_gpu later[] = {listed(0, 2), listed(1, 1), listed(3, 4)};

	begin();
	fake_hello(&w, &w.fakes[0], "a", TD_BACKEND_PLAIN, false);
	fake_hello(&w, &w.fakes[1], "b", TD_BACKEND_PLAIN, false);
	fake_attach(&w, &w.fakes[0], 0, 8, MIB);
	fake_attach(&w, &w.fakes[0], 1, 1, MIB);
	fake_attach(&w, &w.fakes[1], 0, 7, MIB);
	for (uint32_t i = 0; i < 3; i++)
		CHECK_EQ(td_gpu_number(&w.node, i), i);
	CHECK_EQ(td_gpu_number(&w.node, 3), TD_GPU_ANY);
	td_gpus_seen(&w.node, first, 3, w.now);
	CHECK_EQ(td_gpu_number(&w.node, 0), 4);
	CHECK_EQ(td_gpu_number(&w.node, 1), 1);
	CHECK_EQ(td_gpu_number(&w.node, 2), 5);
	/* without NVML for a while */
	td_gpus_seen(&w.node, NULL, 0, w.now);
	CHECK_EQ(td_gpu_number(&w.node, 1), 1);
	CHECK_EQ(td_gpus_find(&w.node, first[0].uuid)->known, 0);
	CHECK_EQ(w.events[TD_EVENT_LOST], 0);
	/* two were exchanged */
	td_gpus_seen(&w.node, later, 3, w.now);
	CHECK_EQ(td_gpu_number(&w.node, 1), 0);
	CHECK_EQ(w.node.listed_count, 3);
	for (uint32_t i = 0; i < 3; i++)
		CHECK_EQ(w.node.listed[i].index, later[i].index);
}

TEST(a_gpu_that_is_lost_is_an_event_once)
{
	struct td_nvml_gpu gpus[] = {listed(0, 1), listed(1, 2)};

	begin();
	td_gpus_seen(&w.node, gpus, 2, w.now);
	gpus[1].lost = true;
	td_gpus_seen(&w.node, gpus, 2, w.now);
	td_gpus_seen(&w.node, gpus, 2, w.now);
	CHECK_EQ(w.events[TD_EVENT_LOST], 1);
	CHECK(w.node.listed[1].lost && !w.node.listed[0].lost);
	CHECK_EQ(td_events_get(&w.node.events, 1)->gpu, 1);
	CHECK(strstr(td_events_get(&w.node.events, 1)->detail, "GPU-02020202-"));
	gpus[1].lost = false;
	td_gpus_seen(&w.node, gpus, 2, w.now);
	CHECK(!w.node.listed[1].lost);
	/*
	 * some drivers report nothing at all for a lost GPU, and a GPU may be lost from the
	 * beginning
	 */
	td_gpus_seen(&w.node, gpus, 1, w.now);
	CHECK_EQ(w.events[TD_EVENT_LOST], 2);
	CHECK(w.node.listed[1].lost);
	gpus[0] = listed(2, 3);
	gpus[0].lost = true;
	td_gpus_seen(&w.node, gpus, 1, w.now);
	CHECK_EQ(w.events[TD_EVENT_LOST], 4);
}

TEST(a_jobs_settings_are_shown_as_they_are_typed)
{
	static const char *const typed[][2] = {{"class", "online"}, {"upgrade", "guaranteed"},
		{"weight", "7"}, {"mem", "40%"}, {"mem-soft", "30%"}, {"duty", "2.5%"},
		{"slack", "0.5%"}, {"batch", "16"}, {"paused", "on"}};
	struct td_job_settings settings = {.class = TD_CLASS_BESTEFFORT, .weight = 1};
	struct td_option_row row;
	struct td_err err;
	size_t i;

	CHECK(td_job_row(&settings, 3, &row));
	CHECK_STR(row.value, "none");
	for (i = 0; i < sizeof(typed) / sizeof(typed[0]); i++) {
		CHECK_EQ(td_job_set(&settings, typed[i][0], typed[i][1], NULL), 0);
		CHECK(td_job_row(&settings, i, &row));
		CHECK_STR(row.key, typed[i][0]);
		CHECK_STR(row.value, typed[i][1]);
		CHECK_EQ(td_job_set(&settings, row.key, row.value, NULL), 0);
	}
	CHECK(!td_job_row(&settings, i, &row));
	CHECK_EQ(td_job_set(&settings, "wait", "1", &err), -EINVAL);
	CHECK(strstr(err.msg, "\"wait\"") && strstr(err.msg, "batch or paused"));
	CHECK_EQ(td_job_set(&settings, "share", "30%", &err), -EOPNOTSUPP);
	CHECK(strstr(err.msg, "tandem share"));
}

TEST(switching_the_policy_live_takes_effect)
{
	begin();
	struct fake *a = program(0, "a", 8 * MIB), *b = program(1, "b", 8 * MIB);

	fake_want(&w, a);
	fake_want(&w, b);
	settle(&w);
	CHECK(is_open(a) && is_open(b));
	CHECK_EQ(td_options_set(&w.node.options, "policy", "nvshare", NULL), 0);
	td_node_options_changed(&w.node, w.now, "policy=nvshare");
	settle(&w);
	CHECK(is_open(a) != is_open(b));
	td_node_deinit(&w.node);
}

TEST(a_gpu_is_claimed_with_its_first_client_and_given_back_with_the_last)
{
	begin();
	struct fake *a = program(0, "a", 8 * MIB);

	CHECK_EQ(w.claims, 1);
	program(1, "b", 8 * MIB);
	CHECK_EQ(w.claims, 1);
	fake_dies(&w, a);
	CHECK_EQ(w.claims, 1);
	fake_dies(&w, &w.fakes[1]);
	CHECK_EQ(w.claims, 0);
}

TEST(a_process_on_a_foreign_gpu_is_let_go_on_all_its_gpus)
{
	begin();
	struct fake *a = program(0, "a", 48 * MIB), *both = &w.fakes[1];
	struct td_msg msg = {.type = TD_MSG_TYPE_ask};

	fake_want(&w, a);
	settle(&w);
	w.foreign = 1;
	fake_hello(&w, both, "both", TD_BACKEND_SWAP, false);
	fake_attach(&w, both, 0, 0, 48 * MIB);
	fake_want(&w, both);
	CHECK(!is_open(both));
	fake_attach(&w, both, 1, 1, 48 * MIB);
	/* Its memory is not on the device yet. */
	CHECK(!is_open(both));
	msg.type = TD_MSG_TYPE_ready;
	msg.ready.slot = 1;
	CHECK_EQ(say(&w, both, &msg), 0);
	CHECK(!is_open(both));
	fails(both, 0); /* it cannot come back */
	CHECK(is_open(both));
	msg = (struct td_msg){.type = TD_MSG_TYPE_ask};
	CHECK_EQ(both->slot[0].limit, UINT64_MAX);
	CHECK_EQ(both->slot[1].limit, UINT64_MAX);
	CHECK_EQ(w.events[TD_EVENT_FOREIGN], 1);
	CHECK_EQ(w.claims, 1);
	CHECK_STR(td_process_state(both->process), "foreign");
	msg.ask.slot = 1;
	msg.ask.bytes = 1024 * MIB;
	both->slot[1].answer = -1;
	CHECK_EQ(say(&w, both, &msg), 0);
	CHECK_EQ(both->slot[1].answer, 1);
	/* The others go on among themselves. */
	settle(&w);
	CHECK(is_open(a) && is_open(both));
	/* When the GPU is nobody's any more it is asked to come back. */
	msg = (struct td_msg){.type = TD_MSG_TYPE_used};
	CHECK_EQ(say(&w, both, &msg), 0);
	w.foreign = -1;
	CHECK_EQ(say(&w, both, &msg), -ECONNRESET);
	CHECK_EQ(w.claims, 1);
	fake_dies(&w, both);
	CHECK_EQ(w.claims, 1);
}
