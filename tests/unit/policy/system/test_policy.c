/* The policies on a fake clock. */
#include "unit/policy/policy_world.h"

TEST(nvshare_grants_one_job_at_a_time_first_come_first_served)
{
	start("nvshare", 1);
	struct td_client_view *a = add(1, 0, GIB), *b = add(2, 0, GIB), *c = add(3, 0, GIB);

	want(b);
	node.now += MS;
	want(a);
	node.now += MS;
	want(c);
	settle();
	CHECK_EQ(gate_of(b), TD_GATE_OPEN);
	CHECK_EQ(gate_of(a), TD_GATE_CLOSED);
	CHECK_EQ(gate_of(c), TD_GATE_CLOSED);
	node.now += 1000 * MS;
	settle();
	CHECK_EQ(gate_of(a), TD_GATE_OPEN);
	CHECK_EQ(gate_of(b), TD_GATE_CLOSED);
	node.now += 1000 * MS;
	settle();
	CHECK_EQ(gate_of(c), TD_GATE_OPEN);
	node.now += 1000 * MS;
	settle();
	CHECK_EQ(gate_of(b), TD_GATE_OPEN);
}

TEST(no_hand_over_while_nobody_waits)
{
	start("nvshare", 1);
	struct td_client_view *a = add(1, 0, GIB), *b = add(2, 0, GIB);

	want(a);
	settle();
	CHECK_EQ(node.plan.next_wakeup_ns, (long long)TD_NEVER);
	node.now += 100000 * MS;
	settle();
	CHECK_EQ(gate_of(a), TD_GATE_OPEN);
	want(b);
	step();
	CHECK_EQ(gate_of(a), TD_GATE_CLOSED);
}

TEST(a_waiting_job_makes_the_daemon_wake_at_the_end_of_the_quantum)
{
	start("nvshare", 1);
	struct td_client_view *a = add(1, 0, GIB), *b = add(2, 0, GIB);

	want(a);
	settle();
	uint64_t opened = a->phase_since_ns;
	node.now += 300 * MS;
	want(b);
	step();
	CHECK_EQ(gate_of(a), TD_GATE_OPEN);
	CHECK_EQ(node.plan.next_wakeup_ns, opened + 1000 * MS);
	CHECK(node.grants[0].others_wait);
	CHECK_EQ(node.grants[0].window_ns, 0);
}

TEST(a_turn_begins_when_all_memory_has_come_however_long_that_takes)
{
	start("nvshare", 1);
	struct td_client_view *a = add(1, 0, GIB), *b = add(2, 0, GIB);

	want(a);
	step();
	a->phase = TD_PHASE_FILLING;
	a->phase_since_ns = node.now;
	a->resident_bytes = 0;
	want(b);
	for (unsigned i = 0; i < 10; i++) {
		step();
		CHECK_EQ(gate_of(a), TD_GATE_OPEN);
		node.now += 900 * MS;
		a->resident_bytes += GIB / 16;
	}
	/* Nothing comes any more: others are not kept for ever. */
	step();
	CHECK_EQ(gate_of(a), TD_GATE_OPEN);
	CHECK_EQ(node.plan.next_wakeup_ns, node.now + 1000 * MS);
	node.now += 1000 * MS;
	step();
	CHECK_EQ(gate_of(a), TD_GATE_CLOSED);
}

TEST(who_fills_gives_way_to_one_whose_memory_turns_out_not_to_leave)
{
	start("tandem", 1);
	struct td_client_view *a = add(1, 0, 10 * GIB), *b = add(2, 0, 10 * GIB);

	want(a);
	settle();
	a->phase = TD_PHASE_CLOSED;
	a->resident_bytes = 10 * GIB;
	b->phase = TD_PHASE_FILLING;
	b->phase_since_ns = node.now;
	want(b);
	node.now += MS;
	a->movable = false;
	a->wants_since_ns = node.now;
	step();
	CHECK_EQ(gate_of(b), TD_GATE_CLOSED);
	carry_out();
	step();
	CHECK_EQ(gate_of(a), TD_GATE_OPEN);
	CHECK_EQ(gate_of(b), TD_GATE_CLOSED);
}

TEST(work_in_flight_is_bounded_only_while_an_online_job_waits)
{
	start("tandem", 2);
	struct td_client_view *a = add(1, 0, 12 * GIB), *b = add(2, 0, 12 * GIB),
			      *elsewhere = add(3, 1, GIB);

	want(a);
	want(elsewhere);
	settle();
	want(b);
	step();
	CHECK(node.grants[0].others_wait);
	CHECK_EQ(node.grants[0].window_ns, 0);
	b->class = TD_CLASS_ONLINE;
	step();
	CHECK_EQ(node.grants[0].window_ns, 2 * MS);
	CHECK_EQ(node.grants[2].window_ns, 0);
	b->wants = false;
	step();
	CHECK_EQ(node.grants[0].window_ns, 0);
}

TEST(an_idle_holder_is_released_early)
{
	start("nvshare", 1);
	struct td_client_view *a = add(1, 0, GIB), *b = add(2, 0, GIB);

	want(a);
	settle();
	want(b);
	node.now += 10 * MS;
	idle(a);
	settle();
	CHECK_EQ(gate_of(a), TD_GATE_CLOSED);
	CHECK_EQ(gate_of(b), TD_GATE_OPEN);
}

TEST(an_idle_holder_without_rivals_is_armed)
{
	start("tandem", 1);
	struct td_client_view *a = add(1, 0, GIB);

	want(a);
	settle();
	idle(a);
	step();
	CHECK_EQ(gate_of(a), TD_GATE_ARMED);
}

TEST(a_draining_holder_keeps_others_out)
{
	start("nvshare", 1);
	struct td_client_view *a = add(1, 0, GIB), *b = add(2, 0, GIB);

	want(a);
	settle();
	want(b);
	node.now += 1000 * MS;
	step();
	CHECK_EQ(gate_of(a), TD_GATE_CLOSED);
	enter(a, TD_PHASE_DRAINING);
	node.now += 5000 * MS;
	step();
	CHECK_EQ(gate_of(a), TD_GATE_CLOSED);
	CHECK_EQ(gate_of(b), TD_GATE_CLOSED);
}

TEST(a_job_on_two_gpus_gets_both_or_none_and_is_not_overtaken)
{
	start("nvshare", 2);
	struct td_client_view *a = add(1, 0, GIB), *b0 = add(2, 0, GIB), *b1 = add(2, 1, GIB),
			      *c = add(3, 1, GIB);

	want(a);
	settle();
	node.now += MS;
	want(b0);
	node.now += MS;
	want(c);
	settle();
	CHECK_EQ(gate_of(a), TD_GATE_OPEN);
	CHECK_EQ(gate_of(b0), TD_GATE_CLOSED);
	CHECK_EQ(gate_of(b1), TD_GATE_CLOSED);
	CHECK_EQ(gate_of(c), TD_GATE_CLOSED); /* would delay the job before it */
	node.now += 1000 * MS;
	settle();
	CHECK_EQ(gate_of(b0), TD_GATE_OPEN);
	CHECK_EQ(gate_of(b1), TD_GATE_OPEN);
	CHECK_EQ(gate_of(c), TD_GATE_CLOSED);
}

TEST(jobs_on_different_gpus_do_not_wait_for_each_other)
{
	start("nvshare", 2);
	struct td_client_view *a = add(1, 0, GIB), *b = add(2, 1, GIB);

	want(a);
	want(b);
	settle();
	CHECK_EQ(gate_of(a), TD_GATE_OPEN);
	CHECK_EQ(gate_of(b), TD_GATE_OPEN);
}

TEST(switched_off_everybody_runs)
{
	start("nvshare", 1);
	node.options.enabled = false;
	struct td_client_view *a = add(1, 0, 12 * GIB), *b = add(2, 0, 12 * GIB);

	a->pages_itself = b->pages_itself = true;
	want(a);
	want(b);
	settle();
	CHECK_EQ(gate_of(a), TD_GATE_OPEN);
	CHECK_EQ(gate_of(b), TD_GATE_OPEN);
}

TEST(tandem_has_no_lock_while_memory_fits)
{
	start("tandem", 1);
	struct td_client_view *a = add(1, 0, 8 * GIB), *b = add(2, 0, 8 * GIB);

	want(a);
	want(b);
	settle();
	CHECK_EQ(gate_of(a), TD_GATE_OPEN);
	CHECK_EQ(gate_of(b), TD_GATE_OPEN);
	CHECK_EQ(node.plan.next_wakeup_ns, (long long)TD_NEVER);
}

TEST(tandem_takes_turns_when_memory_does_not_fit)
{
	start("tandem", 1);
	node.gpus[0].handover_ns = 10 * MS;
	struct td_client_view *a = add(1, 0, 12 * GIB), *b = add(2, 0, 12 * GIB);

	want(a);
	node.now += MS;
	want(b);
	settle();
	CHECK_EQ(gate_of(a), TD_GATE_OPEN);
	CHECK_EQ(gate_of(b), TD_GATE_CLOSED);
	/* share 10 %: 10 ms of hand-over buys 90 ms of turn */
	CHECK_EQ(node.plan.next_wakeup_ns, a->phase_since_ns + 90 * MS);
	node.now += 90 * MS;
	step();
	carry_out();
	step();
	CHECK_EQ(gate_of(b), TD_GATE_OPEN);
	CHECK_EQ(node.grants[1].limit_bytes, 12 * GIB);
	CHECK_EQ(node.grants[0].limit_bytes, 4 * GIB); /* only as much as b needs has to go */
}

TEST(growth_beyond_the_gpu_closes_the_newest)
{
	start("tandem", 1);
	struct td_client_view *a = add(1, 0, 4 * GIB), *b = add(2, 0, 4 * GIB);

	want(a);
	settle();
	node.now += 100 * MS;
	want(b);
	settle();
	CHECK_EQ(gate_of(b), TD_GATE_OPEN);
	a->demanded_bytes = 14 * GIB;
	step();
	CHECK_EQ(gate_of(a), TD_GATE_OPEN);
	CHECK_EQ(gate_of(b), TD_GATE_CLOSED);
}

TEST(tandem_waits_for_a_short_pause_and_not_for_a_long_one)
{
	start("tandem", 1);
	node.gpus[0].handover_ns = 10 * MS;
	struct td_client_view *a = add(1, 0, 12 * GIB), *b = add(2, 0, 12 * GIB);

	want(a);
	settle();
	want(b);
	settle();
	idle(a);
	step();
	CHECK_EQ(gate_of(a), TD_GATE_ARMED);
	CHECK_EQ(node.plan.next_wakeup_ns, node.now + 10 * MS);
	node.now += 10 * MS;
	settle();
	CHECK_EQ(gate_of(a), TD_GATE_CLOSED);
	/* it comes back after 200 ms: next time it is not waited for */
	node.now += 190 * MS;
	want(a);
	settle();
	idle(b);
	node.now += 10 * MS;
	settle();
	CHECK_EQ(gate_of(a), TD_GATE_OPEN);
	want(b);
	idle(a);
	settle();
	CHECK_EQ(gate_of(a), TD_GATE_CLOSED);
	CHECK_EQ(gate_of(b), TD_GATE_OPEN);
}

TEST(a_paused_job_is_closed_and_never_opened)
{
	start("tandem", 1);
	struct td_client_view *a = add(1, 0, GIB);

	want(a);
	settle();
	a->paused = true;
	settle();
	CHECK_EQ(gate_of(a), TD_GATE_CLOSED);
	node.now += 10000 * MS;
	settle();
	CHECK_EQ(gate_of(a), TD_GATE_CLOSED);
	a->paused = false;
	settle();
	CHECK_EQ(gate_of(a), TD_GATE_OPEN);
}

TEST(victims_are_idle_ones_first_then_the_largest)
{
	start("tandem", 1);
	struct td_client_view *a = add(1, 0, 3 * GIB), *b = add(2, 0, 5 * GIB),
			      *c = add(3, 0, 4 * GIB), *d = add(4, 0, 10 * GIB);

	a->resident_bytes = 3 * GIB;
	b->resident_bytes = 5 * GIB;
	c->resident_bytes = 4 * GIB;
	want(b);
	b->paused = true; /* wants, but may not: closed with memory */
	want(d);
	step();
	CHECK_EQ(gate_of(d), TD_GATE_OPEN);
	/*
	 * 22 GiB on 16: six must go; c (idle, largest idle) loses 4, a (idle) 2, b (wants) nothing
	 */
	CHECK_EQ(node.grants[c - node.clients].limit_bytes, 0);
	CHECK_EQ(node.grants[a - node.clients].limit_bytes, GIB);
	CHECK_EQ(node.grants[b - node.clients].limit_bytes, 5 * GIB);
	CHECK_EQ(node.grants[d - node.clients].limit_bytes, 10 * GIB);
}

TEST(memory_that_cannot_move_counts_against_the_others)
{
	start("tandem", 1);
	struct td_client_view *a = add(1, 0, 8 * GIB), *b = add(2, 0, 12 * GIB);

	a->movable = false;
	a->resident_bytes = 8 * GIB;
	want(a);
	settle();
	want(b);
	node.now += 100000 * MS;
	settle();
	/* closing a frees nothing, so it is not closed for b */
	CHECK_EQ(gate_of(a), TD_GATE_OPEN);
	CHECK_EQ(gate_of(b), TD_GATE_CLOSED);
}

TEST(tandem_closes_the_less_protected_at_once_and_the_more_protected_only_when_idle)
{
	start("tandem", 1);
	node.gpus[0].handover_ns = 10 * MS;
	struct td_client_view *a = add(1, 0, 12 * GIB), *early = add(2, 0, 12 * GIB),
			      *service = add(3, 0, 12 * GIB), *job = add(4, 0, 12 * GIB);

	service->class = TD_CLASS_ONLINE;
	job->class = TD_CLASS_GUARANTEED;
	want(a);
	settle();
	CHECK_EQ(gate_of(a), TD_GATE_OPEN);
	want(early);
	node.now += MS;
	want(job);
	node.now += MS;
	want(service); /* the last to come, the first to go */
	settle();
	CHECK_EQ(gate_of(a), TD_GATE_CLOSED);
	CHECK_EQ(gate_of(service), TD_GATE_OPEN);
	node.now += 100000 * MS;
	settle();
	CHECK_EQ(gate_of(service), TD_GATE_OPEN);
	CHECK_EQ(gate_of(job), TD_GATE_CLOSED);
	idle(service);
	node.now += 10 * MS;
	settle();
	CHECK_EQ(gate_of(job), TD_GATE_OPEN);
	CHECK_EQ(gate_of(early), TD_GATE_CLOSED);
	want(service);
	settle();
	CHECK_EQ(gate_of(service), TD_GATE_OPEN);
	CHECK_EQ(gate_of(job), TD_GATE_CLOSED);
}

TEST(turns_are_in_proportion_to_the_weights)
{
	start("tandem", 1);
	node.gpus[0].handover_ns = 10 * MS;
	struct td_client_view *a = add(1, 0, 12 * GIB), *b = add(2, 0, 12 * GIB);

	a->weight = 6;
	b->weight = 2;
	want(a);
	node.now += MS;
	want(b);
	settle();
	CHECK_EQ(node.plan.next_wakeup_ns, a->phase_since_ns + 3 * 90 * MS);
	node.now += 3 * 90 * MS;
	settle();
	CHECK_EQ(gate_of(b), TD_GATE_OPEN);
	CHECK_EQ(node.plan.next_wakeup_ns, b->phase_since_ns + 90 * MS);
	a->weight = 1000; /* but no longer than quantum */
	node.now += 90 * MS;
	settle();
	CHECK_EQ(gate_of(a), TD_GATE_OPEN);
	CHECK_EQ(node.plan.next_wakeup_ns, a->phase_since_ns + 1000 * MS);
}

TEST(time_sharing_runs_everybody_that_pages_itself_or_fits_and_closes_nobody)
{
	start("timeshare", 1);
	struct td_client_view *a = add(1, 0, 12 * GIB), *b = add(2, 0, 12 * GIB),
			      *c = add(3, 0, 12 * GIB);

	a->pages_itself = b->pages_itself = true;
	want(a);
	want(b);
	settle();
	node.now += 100000 * MS;
	want(c);
	settle();
	CHECK_EQ(gate_of(a), TD_GATE_OPEN);
	CHECK_EQ(gate_of(b), TD_GATE_OPEN);
	CHECK_EQ(gate_of(c), TD_GATE_OPEN);
	a->pages_itself = b->pages_itself =
		false; /* as if they had been let in one after the other */
	enter(b, TD_PHASE_CLOSED);
	enter(c, TD_PHASE_CLOSED);
	node.now += 100000 * MS;
	settle();
	CHECK_EQ(gate_of(a), TD_GATE_OPEN);
	CHECK_EQ(gate_of(b), TD_GATE_CLOSED);
	idle(a);
	settle();
	CHECK_EQ(gate_of(a), TD_GATE_CLOSED);
	CHECK_EQ(gate_of(b), TD_GATE_OPEN);
}

TEST(priority_time_sharing_puts_online_before_guaranteed_before_the_rest)
{
	start("priority", 1);
	struct td_client_view *a = add(1, 0, GIB), *b = add(2, 0, GIB), *c = add(3, 0, GIB);

	b->class = TD_CLASS_ONLINE;
	c->class = TD_CLASS_GUARANTEED;
	want(a);
	want(b);
	want(c);
	settle();
	CHECK_EQ(node.grants[0].priority, 0);
	CHECK_EQ(node.grants[1].priority, 1);
	CHECK_EQ(node.grants[2].priority, 2);
	for (int i = 0; i < 3; i++)
		CHECK(node.grants[i].gate == TD_GATE_OPEN && !node.grants[i].duty_ppm);
}

TEST(same_view_same_plan)
{
	struct td_grant first[3];

	for (int round = 0; round < 2; round++) {
		start("tandem", 1);
		for (uint32_t i = 0; i < 3; i++)
			want(add(i + 1, 0, 7 * GIB));
		settle();
		if (!round)
			memcpy(first, node.grants, sizeof(first));
	}
	CHECK(!memcmp(first, node.grants, sizeof(first)));
}

TEST(a_thousand_clients_on_eight_gpus_fit_one_step)
{
	start("tandem", 8);
	for (uint32_t i = 0; i < TD_CLIENT_MAX; i++)
		want(add(i + 1, i % 8, 6 * GIB));
	settle();
	for (uint32_t g = 0; g < 8; g++) {
		uint32_t open = 0;

		for (uint32_t i = g; i < TD_CLIENT_MAX; i += 8)
			open += node.grants[i].gate == TD_GATE_OPEN;
		CHECK_EQ(open, 2);
	}
}
