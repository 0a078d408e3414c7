/* The length of turns, and each program's part; turns_world.h has the programs and their GPU. */
#include "unit/policy/node/turns_world.h"

TEST(two_that_always_compute_come_to_lose_a_hundredth_and_turns_only_grow)
{
	for (uint64_t h = 100 * MS; h < 3 * S; h *= 3) {
		struct program *a, *b;
		uint64_t before = 0;

		begin(h);
		a = add(S, 0, 0);
		b = add(S, 0, 7 * S);
		for (int i = 0; i < 20; i++) {
			uint64_t turns = b->turns;

			while (b->turns == turns)
				run_for(h);
			CHECK(b->turn_ns + w.drain_ns >= before);
			before = b->turn_ns;
		}
		CHECK(before >= 98 * h && before <= 101 * h);
		measure();
		run_for(2000 * h);
		CHECK(share(a) + share(b) >= 980000);
		CHECK(share(a) + 60000 > share(b) && share(b) + 60000 > share(a));
		while (!works(a) && !works(b))
			run_for(h);
		CHECK_EQ(w.grants[works(b)].turn_reason, TD_TURN_LONG);
	}
}

TEST(turns_are_no_longer_than_quantum_long_and_all_are_short_without_a_share_for_long_ones)
{
	struct program *a;

	begin(S);
	w.options.quantum_long_ns = 20 * S;
	a = add(S, 0, 0);
	add(S, 0, 0);
	run_for(1000 * S);
	CHECK(a->turn_ns >= 19 * S && a->turn_ns <= 20 * S + w.drain_ns);
	w.options.swap_share_long_ppm = 0;
	run_for(200 * S);
	CHECK(a->turn_ns >= 9 * S && a->turn_ns <= 9 * S + w.drain_ns);
}

/* Then that holds for short ones, and what they are to pay for, too. */
TEST(no_turn_is_longer_than_quantum_long_where_that_is_less_than_quantum)
{
	struct program *a, *b;

	begin(3 * S);
	w.options.quantum_ns = 100 * S;
	w.options.quantum_long_ns = 5 * S;
	a = add(S, 0, 0);
	b = add(S, 0, 0);
	for (unsigned i = 0; i < 100; i++) {
		run_for(S);
		CHECK(w.grants[0].turn_ns <= 5 * S && w.grants[1].turn_ns <= 5 * S);
	}
	CHECK(a->turns > 2 && a->turn_ns <= 5 * S + w.drain_ns);
	CHECK(b->turns > 2 && b->turn_ns <= 5 * S + w.drain_ns);
}

/* One turn that pays for its hand-over, and what it did not pay of its last. */
TEST(who_wants_the_gpu_for_a_moment_waits_for_two_short_turns_at_most)
{
	static const uint64_t thinks_ms[] = {
		200, 1000, 3100, 5000, 8990, 17700, 30000, 61000, 99500, 150000};

	for (uint64_t h = 100 * MS; h < 3 * S; h *= 3) {
		for (unsigned i = 0; i < sizeof(thinks_ms) / sizeof(*thinks_ms); i++) {
			uint64_t short_ns = 9 * h, think_ns = thinks_ms[i] * MS;
			struct program *batch, *moment;

			begin(h);
			batch = add(S, 0, 0);
			moment = add(100 * MS, think_ns, 1700 * h);
			run_for(1600 * h);
			measure();
			run_for(3000 * h);
			if (think_ns < 2 * h)
				/*
				 * the policy waits out such pauses, so the program has the GPU all
				 * the time
				 */
				continue;
			CHECK(moment->wait_ns <= 2 * short_ns + h + MS);
			if (think_ns > 2 * short_ns)
				CHECK(moment->wait_ns <= h + MS);
			CHECK(share(batch) >= 450000);
			CHECK(swapping() <= 101000);
			CHECK(share(batch) + share(moment) >= 890000);
		}
	}
}

TEST(who_always_computes_has_a_short_turn_where_the_next_stayed_to_the_end_of_its_own)
{
	struct program *moment;

	begin(S);
	add(S, 0, 0);
	moment = add(9 * S, 20 * S, 1000 * S);
	run_for(500 * S);
	measure();
	run_for(3000 * S);
	CHECK(moment->wait_ns <= 9 * S + S + MS);
}

/*
 * Under no pattern does a program get more than one that is always busy, or shorten the others'
 * turns, or make swapping exceed its share.
 */
TEST(nobody_gains_by_pretending)
{
	static const uint64_t bursts_ms[] = {50, 1000, 5000, 8900, 9000, 20000, 60000, 98900},
			      thinks_ms[] = {1, 10, 500, 990, 1500, 5000, 9000, 18000, 40000};

	for (unsigned i = 0; i < 8; i++) {
		for (unsigned j = 0; j < 9; j++) {
			struct program *honest, *cheat;

			begin(S);
			honest = add(S, 0, 0);
			cheat = add(bursts_ms[i] * MS, thinks_ms[j] * MS, 300 * S);
			run_for(1000 * S);
			measure();
			run_for(10000 * S);
			CHECK(got_ns(cheat) <= got_ns(honest) + 200 * S);
			CHECK(share(honest) >= 440000);
			if (thinks_ms[j] > 1000)
				CHECK(swapping() <= 101000);
		}
	}
}

/* One program after the other, each of a new name, has no more of the GPU than one that stays. */
TEST(nobody_gains_by_coming_anew)
{
	for (uint64_t burst_ns = 2 * S; burst_ns < 500 * S; burst_ns *= 3) {
		struct program *stays, *renews;

		begin(S);
		stays = add(S, 0, 0);
		renews = add(burst_ns, 0, 300 * S);
		renews->renews = true;
		run_for(1000 * S);
		measure();
		run_for(20000 * S);
		CHECK(got_ns(renews) <= got_ns(stays) + got_ns(stays) / 10);
		CHECK(swapping() <= 101000);
	}
}

TEST(a_moment_of_idleness_before_its_turn_ends_makes_nobody_a_small_user)
{
	struct program *honest, *cheat;

	begin(S);
	honest = add(S, 0, 0);
	cheat = add(400 * S, 10 * MS, 0);
	cheat->cheats = true;
	run_for(2000 * S);
	measure();
	run_for(10000 * S);
	CHECK(share(honest) + share(cheat) >= 970000);
	CHECK(got_ns(cheat) <= got_ns(honest) + 200 * S);
	CHECK(cheat->wait_ns > 50 * S); /* as long as the other one's turn */
}

/* Beside one that wants it for a moment, too, whenever that comes. */
TEST(time_is_in_proportion_to_the_weights)
{
	static const uint64_t thinks_s[] = {0, 5, 20, 47, 100, 180, 250, 400};
	static const uint32_t weights[] = {2, 3, 5};

	for (unsigned k = 0; k < sizeof(thinks_s) / sizeof(*thinks_s); k++) {
		struct program *p[3];
		uint64_t all = 0;

		begin(S);
		for (int i = 0; i < 3; i++) {
			p[i] = add(S, 0, (uint64_t)i * 30 * S);
			p[i]->client->weight = weights[i];
		}
		if (thinks_s[k])
			add(100 * MS, thinks_s[k] * S, 0)->client->weight = 2;
		run_for(3000 * S);
		measure();
		run_for(60000 * S);
		for (int i = 0; i < 3; i++)
			all += got_ns(p[i]);
		for (int i = 0; i < 3; i++) {
			uint64_t due = all / 10 * weights[i];

			CHECK(got_ns(p[i]) > due - due / 50 && got_ns(p[i]) < due + due / 50);
		}
		CHECK(swapping() <= (thinks_s[k] ? 101000 : 12000));
	}
}

/*
 * It always comes a minute after it left, which would always cut the same program's turn if nothing
 * were made up for.
 */
TEST(who_is_cut_short_is_made_up_for)
{
	for (uint64_t think_s = 2; think_s < 200; think_s += 9) {
		struct program *a, *b;

		begin(S);
		a = add(S, 0, 0);
		b = add(S, 0, 10 * S);
		add(200 * MS, think_s * S, 400 * S);
		run_for(1000 * S);
		measure();
		run_for(20000 * S);
		CHECK(got_ns(a) <= got_ns(b) + 300 * S);
		CHECK(got_ns(b) <= got_ns(a) + 300 * S);
	}
}

/* Each time all of them come they leave a debt that the next turn is to pay, up to `quantum`. */
TEST(small_users_together_leave_the_others_their_part)
{
	for (uint64_t quantum_ns = 30 * S; quantum_ns <= 90 * S; quantum_ns += 60 * S) {
		struct program *batch, *other;

		begin(S);
		w.options.quantum_ns = quantum_ns;
		batch = add(S, 0, 0);
		other = add(S, 0, 0);
		for (unsigned i = 0; i < 5; i++)
			add(300 * MS + i * 50 * MS, 3 * S + i * 700 * MS, 300 * S + i * S);
		run_for(1000 * S);
		measure();
		run_for(5000 * S);
		CHECK(share(batch) + share(other) >= 800000);
		CHECK(swapping() <= (quantum_ns > 7 * 9 * S ? 101000 : 150000));
		for (unsigned i = 2; i < 7; i++)
			CHECK(w.programs[i].wait_ns <= quantum_ns + 9 * S + 7 * (S + S));
	}
}

static struct td_turn_bounds of_nine_seconds(const struct td_lock_group *group,
	const struct td_view *view, const struct td_policy_options *options)
{
	(void)group, (void)view, (void)options;
	return (struct td_turn_bounds){.short_ns = 9 * S, .long_ns = 9 * S, .most_ns = 30 * S};
}

static uint64_t no_patience_ns(const struct td_lock_group *group, const struct td_lock_group *head,
	const struct td_view *view, const struct td_policy_options *options)
{
	(void)head;
	(void)group, (void)view, (void)options;
	return 0;
}

/*
 * Another program is to be closed for it, and goes on because its work does not end. It is to be
 * closed again, which the node does not try for a while; then it ends.
 */
TEST(a_drain_that_does_not_end_is_no_hand_over)
{
	static const struct td_lock_rules rules = {.exclusive = true,
		.enforce = true,
		.turns = of_nine_seconds,
		.patience_ns = no_patience_ns};
	struct td_lock *lock = calloc(1, sizeof(*lock));
	struct program *stuck, *next;
	unsigned asked = 0;

	begin(S);
	stuck = add(0, 0, 0);
	next = add(0, 0, 0);
	stuck->client->wants = next->client->wants = true;
	next->client->resident_bytes = next->client->demanded_bytes;
	for (unsigned drains = 0; drains < 3; drains++) {
		enter(stuck, TD_PHASE_OPEN);
		(void)td_lock_step(lock, &rules, &w.options, &w.view, w.now);
		CHECK(lock->groups[0].open && !lock->groups[1].use.displaces);
		for (unsigned i = 0; i < 40; i++) {
			w.now += S / 2;
			(void)td_lock_step(lock, &rules, &w.options, &w.view, w.now);
			asked += lock->groups[0].closing;
			CHECK_EQ(lock->groups[1].use.displaces, lock->groups[0].closing);
			CHECK_EQ(lock->owed_ns[0], 0);
		}
		enter(stuck, TD_PHASE_DRAINING);
		w.now += S;
		(void)td_lock_step(lock, &rules, &w.options, &w.view, w.now);
		CHECK(lock->groups[1].use.displaces);
	}
	CHECK(asked > 60);
	enter(stuck, TD_PHASE_OPEN);
	(void)td_lock_step(lock, &rules, &w.options, &w.view, w.now);
	w.clients[0] = w.clients[1];
	w.view.client_count = 1;
	w.now += S;
	(void)td_lock_step(lock, &rules, &w.options, &w.view, w.now);
	CHECK(lock->groups[0].open);
	CHECK_EQ(lock->owed_ns[0], 0);
	free(lock);
}

/* It was to replace another one, and then no longer wanted the GPU. */
TEST(who_gives_up_waiting_leaves_nothing_to_be_paid_for)
{
	struct td_lock *lock = calloc(1, sizeof(*lock));

	lock->groups[0] = (struct td_lock_group){.gpus = 1,
		.weight = 1,
		.lightest = 1,
		.bounds = {.short_ns = 9 * S, .long_ns = 99 * S, .most_ns = 30 * S}};
	lock->count = 1;
	lock->groups[0].use.displaces = true;
	td_use_pass(lock, S);
	td_use_begin(lock, &lock->groups[0]);
	CHECK_EQ(lock->owed_ns[0], 0);
	free(lock);
}

TEST(who_was_busy_for_hours_is_a_small_user_once_it_has_been_idle_for_a_long_turn)
{
	struct program *batch, *was;

	begin(S);
	batch = add(S, 0, 0);
	was = add(100 * MS, 30 * S, 0);
	was->until_ns = w.now + 7200 * S;
	run_for(7200 * S + 600 * S);
	measure();
	run_for(2000 * S);
	CHECK(was->wait_ns <= S + MS);
	CHECK(share(batch) >= 880000);
}

TEST(of_those_that_wait_behind_others_the_least_use_counts)
{
	struct program *last;

	begin(S);
	for (int i = 0; i < 3; i++)
		add(S, 0, 0);
	last = add(100 * MS, 77 * S, 2000 * S);
	run_for(2000 * S);
	measure();
	run_for(10000 * S);
	CHECK(last->wait_ns > 0 && last->wait_ns <= 3 * (9 * S + S) + 9 * S);
	CHECK(w.handovers > 0);
}

/* It may be idle for longer than the patience, but not for as long as it computes. */
TEST(who_uses_more_than_it_is_idle_for_is_no_small_user)
{
	struct program *cheat;

	begin(S);
	add(S, 0, 0);
	cheat = add(60 * S, 3 * S, 0);
	run_for(1000 * S);
	measure();
	run_for(5000 * S);
	CHECK(cheat->wait_ns > 60 * S);
	CHECK(swapping() <= 20000);
}

TEST(an_even_pace_is_that_of_the_one_that_came_last)
{
	struct program *a, *b;

	begin(S);
	a = add(S, 0, 0);
	b = add(S, 0, 1000 * S);
	run_for(1000 * S + 25 * S);
	measure();
	run_for(4000 * S);
	CHECK(got_ns(a) <= got_ns(b) + 100 * S && got_ns(b) <= got_ns(a) + 100 * S);
}

TEST(those_that_would_not_be_let_in_shorten_nobodys_turn)
{
	struct program *a;

	begin(S);
	a = add(S, 0, 0);
	add(S, 0, 0)->client->class = TD_CLASS_GUARANTEED;
	add(100 * MS, 10 * S, 0);
	a->client->class = TD_CLASS_GUARANTEED;
	run_for(2000 * S);
	CHECK(a->turn_ns >= 98 * S);
}

TEST(a_turn_is_no_longer_than_its_holders_long_one)
{
	struct td_lock *lock = calloc(1, sizeof(*lock));
	struct td_lock_group holder = {.weight = 2,
		.lightest = 1,
		.use.used_before_ns = 500 * S,
		.bounds = {.short_ns = 9 * S, .long_ns = 99 * S, .most_ns = 30 * S}};
	struct td_lock_group head = {.pressing_ns = 400 * S, .use.had_ns = 50 * S};

	CHECK_EQ(td_turn(lock, &holder, &head, 0).ns, 2 * 99 * S);
	CHECK_EQ(td_turn(lock, &holder, &head, 0).reason, TD_TURN_LONG);
	holder.use.had_before_ns = 80 * S;
	CHECK_EQ(td_turn(lock, &holder, &head, 0).ns, 2 * (99 - 30) * S);
	CHECK_EQ(td_turn(lock, &holder, &head, 0).reason, TD_TURN_AHEAD);
	head.pressing_ns = S;
	CHECK_EQ(td_turn(lock, &holder, &head, 0).ns, 18 * S);
	CHECK_EQ(td_turn(lock, &holder, &head, 0).reason, TD_TURN_SHORT);
	head.pressing_ns = 400 * S;
	holder.use.used_before_ns = S;
	CHECK_EQ(td_turn(lock, &holder, &head, 0).ns, 18 * S);
	CHECK_EQ(td_turn(lock, &holder, &head, 0).reason, TD_TURN_NEW);
	free(lock);
}

TEST(only_what_moves_memory_is_paid_for)
{
	struct td_lock *lock = calloc(1, sizeof(*lock));
	struct td_lock_group g = {.gpus = 2,
		.weight = 1,
		.lightest = 1,
		.resident_bytes = 5 * GIB,
		.bounds = {.short_ns = 9 * S, .most_ns = 30 * S}};

	g.on[1].demand_bytes = 5 * GIB;
	td_use_begin(lock, &g);
	CHECK_EQ(lock->owed_ns[1], 0);
	g.on[1].demand_bytes = 6 * GIB; /* some of its own comes back */
	td_use_begin(lock, &g);
	CHECK_EQ(lock->owed_ns[1], 9 * S);
	CHECK_EQ(lock->owed_ns[0], 0);
	g.on[1].demand_bytes = 5 * GIB;
	g.use.displaces = true; /* others' has to go */
	td_use_begin(lock, &g);
	CHECK_EQ(lock->owed_ns[1], 18 * S);
	td_use_begin(lock, &g);
	CHECK_EQ(lock->owed_ns[1], 18 * S);
	free(lock);
}

/* A turn of the heavy one is three times as long, and its use is then. */
TEST(use_counts_by_weight)
{
	struct td_lock *lock = calloc(1, sizeof(*lock));

	lock->groups[0] = (struct td_lock_group){
		.gpus = 1, .weight = 6, .lightest = 2, .use.used_ns = 60 * S};
	lock->queue_count = lock->count = 1;
	td_use_press(lock, false);
	CHECK_EQ(lock->groups[0].pressing_ns, 20 * S);
	td_use_begin(lock, &lock->groups[0]);
	CHECK_EQ(lock->groups[0].use.used_before_ns, 20 * S);
	free(lock);
}

TEST(who_shares_another_gpu_with_somebody_slower_is_not_held_back_for_long)
{
	struct td_lock *lock = calloc(1, sizeof(*lock));
	static struct td_client_view clients[3];

	for (uint32_t i = 0; i < 3; i++) {
		clients[i].gpu = i == 2;
		clients[i].weight = 1;
		lock->groups[i] = (struct td_lock_group){.id = i,
			.gpus = 1u << clients[i].gpu,
			.wants = true,
			.weight = 1,
			.lightest = 1,
			.bounds.long_ns = 99 * S};
		lock->groups[i].use.wanted = true;
	}
	lock->count = 3;
	lock->groups[0].use.had_ns = 5000 * S;
	lock->groups[2].use.had_ns = 10 * S;
	lock->groups[1].gpus = 3;
	td_use_compare(lock);
	CHECK_EQ(lock->groups[0].use.had_ns, 5000 * S);
	CHECK_EQ(lock->groups[1].use.had_ns, (5000 - 99) * S);
	lock->groups[2].use.wanted = false; /* comes back: it has missed nothing */
	td_use_compare(lock);
	CHECK_EQ(lock->groups[2].use.had_ns, (5000 - 99) * S);
	free(lock);
}
