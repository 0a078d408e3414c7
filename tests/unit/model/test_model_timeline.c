/* Who is served when: slices of 100 ns, switches of 10 ns, expectations worked out by hand. */
#include "test.h"

#include "model/gpu_spec.h"
#include "model/timeline.h"

static const struct td_gpu_spec spec = {.slice_ns = 100, .switch_ns = 10};

struct fixture {
	struct td_timeline tl;
	struct td_timeline_context a, b;
	struct td_op op[8];
	struct td_done done;
};

static void setup(struct fixture *f)
{
	memset(f, 0, sizeof(*f));
	td_timeline_init(&f->tl, &spec, 1000);
	td_timeline_context_add(&f->tl, &f->a);
	td_timeline_context_add(&f->tl, &f->b);
}

/* Begins op i on engine, of known length. */
static void begin(struct fixture *f, struct td_timeline_context *ctx, int i, enum td_engine engine,
	uint64_t length_ns)
{
	td_timeline_begin(&f->tl, ctx, &f->op[i], engine);
	td_timeline_set_length(&f->tl, &f->op[i], length_ns);
}

static void begin_kernel(
	struct fixture *f, struct td_timeline_context *ctx, int i, uint64_t length_ns)
{
	begin(f, ctx, i, TD_ENGINE_COMPUTE, length_ns);
}

static void nothing_until(struct fixture *f, uint64_t now_ns)
{
	CHECK_EQ(td_timeline_advance(&f->tl, now_ns, &f->done), 0);
	CHECK_EQ(td_timeline_now(&f->tl), now_ns);
}

/* Expects op i to be the next to end, seen by a caller who comes much later. */
static void next_ends(struct fixture *f, int i, uint64_t start_ns, uint64_t end_ns)
{
	CHECK_EQ(td_timeline_advance(&f->tl, 1000000, &f->done), 1);
	CHECK_EQ(f->done.op - f->op, i);
	CHECK_EQ(f->done.start_ns, start_ns);
	CHECK_EQ(f->done.end_ns, end_ns);
	CHECK_EQ(td_timeline_now(&f->tl), end_ns);
	CHECK(!f->op[i].context);
}

TEST(an_operation_without_length_ends_at_once)
{
	struct fixture f;

	setup(&f);
	begin_kernel(&f, &f.a, 0, 0);
	CHECK_EQ(td_timeline_next_event(&f.tl), 1000);
	next_ends(&f, 0, 1000, 1000);
}

TEST(an_operation_ends_after_its_length)
{
	struct fixture f;

	setup(&f);
	begin_kernel(&f, &f.a, 0, 250);
	CHECK_EQ(td_timeline_next_event(&f.tl), 1000);
	nothing_until(&f, 1249);
	CHECK_EQ(td_timeline_next_event(&f.tl), 1250);
	next_ends(&f, 0, 1000, 1250);
	CHECK_EQ(f.done.served_ns, 250);
	CHECK_EQ(f.done.lag_ns, 0);
	nothing_until(&f, 2000);
	CHECK_EQ(td_timeline_next_event(&f.tl), TD_NEVER_NS);
}

TEST(a_context_alone_is_never_cut)
{
	struct fixture f;

	setup(&f);
	begin_kernel(&f, &f.a, 0, 1000);
	nothing_until(&f, 1001);
	CHECK_EQ(td_timeline_next_event(&f.tl), 2000);
	next_ends(&f, 0, 1000, 2000);
	CHECK_EQ(f.tl.engines[TD_ENGINE_COMPUTE].switches, 0);
}

TEST(operations_of_a_context_are_served_in_order)
{
	struct fixture f;

	setup(&f);
	begin_kernel(&f, &f.a, 0, 30);
	begin_kernel(&f, &f.a, 1, 20);
	begin_kernel(&f, &f.a, 2, 0);
	next_ends(&f, 0, 1000, 1030);
	next_ends(&f, 1, 1030, 1050);
	next_ends(&f, 2, 1050, 1050);
}

/*
 * a 1000-1100, switch, b 1110-1210, switch, a 1220-1320, switch, b 1330-1430, switch,
 * a 1440-1490 (done), switch, b 1500-1550 (done)
 */
TEST(two_equal_contexts_get_half_each)
{
	struct fixture f;

	setup(&f);
	begin_kernel(&f, &f.a, 0, 250);
	begin_kernel(&f, &f.b, 1, 250);
	next_ends(&f, 0, 1000, 1490);
	CHECK_EQ(f.a.on[TD_ENGINE_COMPUTE].busy_ns, 250);
	CHECK_EQ(f.b.on[TD_ENGINE_COMPUTE].busy_ns, 200);
	next_ends(&f, 1, 1110, 1550);
	CHECK_EQ(f.tl.engines[TD_ENGINE_COMPUTE].busy_ns, 500);
	CHECK_EQ(f.tl.engines[TD_ENGINE_COMPUTE].switches, 5);
	CHECK_EQ(f.tl.engines[TD_ENGINE_COMPUTE].switching_ns, 50);
}

TEST(a_newcomer_waits_one_slice_at_most)
{
	struct fixture f;

	setup(&f);
	begin_kernel(&f, &f.a, 0, 10000);
	nothing_until(&f, 1550); /* long past a slice, but alone */
	begin_kernel(&f, &f.b, 1, 5);
	next_ends(&f, 1, 1660, 1665); /* slice 1550-1650, switch */
}

TEST(a_turn_ends_early_when_there_is_no_more_work)
{
	struct fixture f;

	setup(&f);
	begin_kernel(&f, &f.a, 0, 30);
	begin_kernel(&f, &f.b, 1, 30);
	next_ends(&f, 0, 1000, 1030);
	next_ends(&f, 1, 1040, 1070);
}

TEST(a_successor_that_begins_at_once_keeps_the_turn)
{
	struct fixture f;

	setup(&f);
	begin_kernel(&f, &f.a, 0, 30);
	begin_kernel(&f, &f.b, 1, 30);
	next_ends(&f, 0, 1000, 1030);
	begin_kernel(&f, &f.a, 2, 30);
	next_ends(&f, 2, 1030, 1060);
	next_ends(&f, 1, 1070, 1100);
}

TEST(a_successor_does_not_outlive_the_turn)
{
	struct fixture f;

	setup(&f);
	begin_kernel(&f, &f.a, 0, 100);
	begin_kernel(&f, &f.b, 1, 30);
	next_ends(&f, 0, 1000, 1100);
	begin_kernel(&f, &f.a, 2, 30);
	next_ends(&f, 1, 1110, 1140);
	next_ends(&f, 2, 1150, 1180);
}

static void begin_queued(struct fixture *f, struct td_timeline_context *ctx, int i,
	uint64_t length_ns, uint64_t since_ns)
{
	td_timeline_begin_queued(&f->tl, ctx, &f->op[i], TD_ENGINE_COMPUTE, since_ns, 20);
	if (length_ns)
		td_timeline_set_length(&f->tl, &f->op[i], length_ns);
}

TEST(a_successor_that_is_heard_of_late_has_begun_before)
{
	struct fixture f;

	setup(&f);
	begin_kernel(&f, &f.a, 0, 50);
	next_ends(&f, 0, 1000, 1050);
	nothing_until(&f, 1065);
	begin_queued(&f, &f.a, 1, 50, 1050);
	next_ends(&f, 1, 1050, 1100);
	CHECK_EQ(f.done.served_ns, 50);
	CHECK_EQ(f.done.lag_ns, 0);
	CHECK_EQ(f.a.on[TD_ENGINE_COMPUTE].busy_ns, 100);
	/* not earlier than it was there, nor by more than was allowed */
	nothing_until(&f, 1115);
	begin_queued(&f, &f.a, 2, 50, 1110);
	next_ends(&f, 2, 1110, 1160);
	nothing_until(&f, 1300);
	begin_queued(&f, &f.a, 3, 50, 1160);
	next_ends(&f, 3, 1280, 1330);
	/* nor for longer than it takes: 10 of 15, and 7 of them before it was told how long */
	nothing_until(&f, 1345);
	begin_queued(&f, &f.a, 4, 0, 1330);
	nothing_until(&f, 1352);
	td_timeline_set_length(&f.tl, &f.op[4], 10);
	next_ends(&f, 4, 1342, 1352);
	CHECK_EQ(f.done.lag_ns, 0);
	CHECK_EQ(f.a.on[TD_ENGINE_COMPUTE].busy_ns, 50 + 50 + 50 + 50 + 10);
}

TEST(nobodys_time_is_taken_by_a_successor_that_is_heard_of_late)
{
	struct fixture f;

	setup(&f);
	begin_kernel(&f, &f.a, 0, 50);
	next_ends(&f, 0, 1000, 1050);
	begin_kernel(&f, &f.b, 1, 5);
	nothing_until(&f, 1062);
	begin_queued(&f, &f.a, 2, 50, 1050);
	next_ends(&f, 1, 1060, 1065);
	next_ends(&f, 2, 1075, 1125);
	/* nor by one of another context, or behind another of its own */
	nothing_until(&f, 1140);
	begin_queued(&f, &f.b, 3, 50, 1130);
	next_ends(&f, 3, 1150, 1200);
	nothing_until(&f, 1210);
	begin_kernel(&f, &f.b, 4, 30);
	begin_queued(&f, &f.b, 5, 50, 1200);
	next_ends(&f, 4, 1210, 1240);
	next_ends(&f, 5, 1240, 1290);
	/* nor while one of another stream was served */
	begin_kernel(&f, &f.b, 6, 30);
	next_ends(&f, 6, 1290, 1320);
	nothing_until(&f, 1325);
	begin_queued(&f, &f.b, 7, 50, 1310);
	next_ends(&f, 7, 1320, 1370);
}

TEST(coming_back_after_another_costs_a_switch_and_alone_none)
{
	struct fixture f;

	setup(&f);
	begin_kernel(&f, &f.a, 0, 10);
	next_ends(&f, 0, 1000, 1010);
	nothing_until(&f, 1100);
	begin_kernel(&f, &f.a, 1, 10);
	next_ends(&f, 1, 1100, 1110);
	nothing_until(&f, 1200);
	begin_kernel(&f, &f.b, 2, 10);
	next_ends(&f, 2, 1210, 1220);
}

TEST(a_length_may_come_while_the_operation_is_served)
{
	struct fixture f;

	setup(&f);
	td_timeline_begin(&f.tl, &f.a, &f.op[0], TD_ENGINE_COMPUTE);
	nothing_until(&f, 1040);
	CHECK_EQ(td_timeline_next_event(&f.tl), TD_NEVER_NS);
	CHECK_EQ(td_timeline_served_ns(&f.op[0]), 40);
	td_timeline_set_length(&f.tl, &f.op[0], 70);
	next_ends(&f, 0, 1000, 1070);
	CHECK_EQ(f.done.lag_ns, 0);
}

TEST(a_length_that_comes_too_late_ends_it_at_once_with_a_lag)
{
	struct fixture f;

	setup(&f);
	td_timeline_begin(&f.tl, &f.a, &f.op[0], TD_ENGINE_COMPUTE);
	nothing_until(&f, 1040);
	td_timeline_set_length(&f.tl, &f.op[0], 25);
	next_ends(&f, 0, 1000, 1040);
	CHECK_EQ(f.done.served_ns, 25);
	CHECK_EQ(f.done.lag_ns, 15);
}

TEST(an_operation_out_of_turn_ends_too_when_its_length_is_reached)
{
	struct fixture f;

	setup(&f);
	td_timeline_begin(&f.tl, &f.a, &f.op[0], TD_ENGINE_COMPUTE);
	begin_kernel(&f, &f.b, 1, 1000);
	nothing_until(&f, 1150); /* a had 1000-1100; b is served now */
	CHECK(td_timeline_is_running(&f.tl, &f.b, TD_ENGINE_COMPUTE));
	td_timeline_set_length(&f.tl, &f.op[0], 100);
	next_ends(&f, 0, 1000, 1150);
	CHECK_EQ(f.done.lag_ns, 0);
	next_ends(&f, 1, 1110, 2110); /* alone from here on */
}

TEST(copies_of_both_directions_and_kernels_overlap)
{
	struct fixture f;

	setup(&f);
	begin_kernel(&f, &f.a, 0, 50);
	begin(&f, &f.a, 1, TD_ENGINE_HTOD, 50);
	begin(&f, &f.a, 2, TD_ENGINE_DTOH, 40);
	begin(&f, &f.a, 3, TD_ENGINE_DTOH, 40);
	next_ends(&f, 2, 1000, 1040);
	next_ends(&f, 0, 1000, 1050);
	next_ends(&f, 1, 1000, 1050);
	next_ends(&f, 3, 1040, 1080);
}

TEST(a_long_copy_does_not_block_another_context)
{
	struct fixture f;

	setup(&f);
	begin(&f, &f.a, 0, TD_ENGINE_HTOD, 1000);
	begin(&f, &f.b, 1, TD_ENGINE_HTOD, 50);
	next_ends(&f, 1, 1100, 1150);
	next_ends(&f, 0, 1000, 2050);
}

TEST(without_slices_turns_change_between_operations)
{
	static const struct td_gpu_spec unsliced = {.switch_ns = 10};
	struct fixture f;

	setup(&f);
	td_timeline_init(&f.tl, &unsliced, 1000);
	begin_kernel(&f, &f.a, 0, 500);
	begin_kernel(&f, &f.a, 1, 500);
	begin_kernel(&f, &f.b, 2, 500);
	next_ends(&f, 0, 1000, 1500);
	next_ends(&f, 2, 1510, 2010);
	next_ends(&f, 1, 2020, 2520);
}

TEST(a_context_removed_while_served_frees_its_turn)
{
	struct fixture f;

	setup(&f);
	begin_kernel(&f, &f.a, 0, 1000);
	begin(&f, &f.a, 2, TD_ENGINE_HTOD, 1000);
	begin_kernel(&f, &f.b, 1, 50);
	nothing_until(&f, 1020);
	td_timeline_context_remove(&f.tl, &f.a);
	CHECK(!f.op[0].context && !f.op[2].context);
	next_ends(&f, 1, 1020, 1070); /* nothing to save: no switch */
	nothing_until(&f, 9000);
}

TEST(a_context_removed_during_the_switch_to_it_frees_its_turn)
{
	struct fixture f;

	setup(&f);
	begin_kernel(&f, &f.a, 0, 150);
	begin_kernel(&f, &f.b, 1, 50);
	nothing_until(&f, 1105);
	td_timeline_context_remove(&f.tl, &f.b);
	next_ends(&f, 0, 1000, 1155);
}

TEST(a_late_end_of_a_removed_context_is_not_reported)
{
	struct fixture f;

	setup(&f);
	td_timeline_begin(&f.tl, &f.a, &f.op[0], TD_ENGINE_COMPUTE);
	nothing_until(&f, 1040);
	td_timeline_set_length(&f.tl, &f.op[0], 25);
	td_timeline_context_remove(&f.tl, &f.a);
	nothing_until(&f, 2000);
}

TEST(a_cancelled_operation_is_not_reported)
{
	struct fixture f;

	setup(&f);
	begin_kernel(&f, &f.a, 0, 300);
	begin_kernel(&f, &f.a, 1, 40);
	begin_kernel(&f, &f.b, 2, 40);
	nothing_until(&f, 1010);
	td_timeline_cancel(&f.tl, &f.op[2]); /* waiting, its context's only one */
	td_timeline_cancel(&f.tl, &f.op[2]);
	nothing_until(&f, 1110);
	td_timeline_cancel(&f.tl, &f.op[0]); /* being served */
	next_ends(&f, 1, 1110, 1150);
	nothing_until(&f, 9000);
}

TEST(time_never_goes_back)
{
	struct fixture f;

	setup(&f);
	begin_kernel(&f, &f.a, 0, 10);
	CHECK_EQ(td_timeline_advance(&f.tl, 500, &f.done), 0);
	CHECK_EQ(td_timeline_now(&f.tl), 1000);
}

/* A kernel that stalls 30 ns at each multiple of 20 ns of progress. */
static uint64_t stall_every_20(void *arg, uint64_t progress_ns, uint64_t *ret_next_ns)
{
	++*(int *)arg;
	*ret_next_ns = progress_ns + 20 < 100 ? progress_ns + 20 : TD_NEVER_NS;
	return 30;
}

TEST(stalls_add_to_the_service_and_use_up_the_turn)
{
	struct fixture f;
	int calls = 0;

	setup(&f);
	td_timeline_begin(&f.tl, &f.a, &f.op[0], TD_ENGINE_COMPUTE);
	td_timeline_set_length_stalling(&f.tl, &f.op[0], 100, stall_every_20, &calls);
	begin_kernel(&f, &f.b, 1, 40);
	nothing_until(&f, 1099);
	CHECK_EQ(calls, 2); /* at 0 and 20; the third falls due when the turn is over */
	next_ends(&f, 1, 1110, 1150);
	CHECK_EQ(calls, 2);
	next_ends(&f, 0, 1000, 1310);
	CHECK_EQ(calls, 5);
	CHECK_EQ(f.done.served_ns, 250);
}

/* Five stalls of 30 ns, all due at the start. */
static uint64_t stall_five_times(void *arg, uint64_t progress_ns, uint64_t *ret_next_ns)
{
	*ret_next_ns = ++*(int *)arg < 5 ? progress_ns : TD_NEVER_NS;
	return 30;
}

TEST(service_beyond_the_length_pays_for_stalls)
{
	struct fixture f;
	int calls = 0;

	setup(&f);
	td_timeline_begin(&f.tl, &f.a, &f.op[0], TD_ENGINE_COMPUTE);
	nothing_until(&f, 1180);
	td_timeline_set_length_stalling(&f.tl, &f.op[0], 100, stall_five_times, &calls);
	CHECK_EQ(td_timeline_served_ns(&f.op[0]), 180);
	next_ends(&f, 0, 1000, 1250); /* 150 ns of stalls, of which 80 were served */
	CHECK_EQ(calls, 5);
	CHECK_EQ(f.done.served_ns, 250);
	CHECK_EQ(f.done.lag_ns, 0);
}

TEST(service_beyond_length_and_stalls_is_lag)
{
	struct fixture f;
	int calls = 0;

	setup(&f);
	td_timeline_begin(&f.tl, &f.a, &f.op[0], TD_ENGINE_COMPUTE);
	nothing_until(&f, 1300);
	td_timeline_set_length_stalling(&f.tl, &f.op[0], 100, stall_five_times, &calls);
	next_ends(&f, 0, 1000, 1300);
	CHECK_EQ(f.done.served_ns, 250);
	CHECK_EQ(f.done.lag_ns, 50);
}

struct totals {
	uint64_t served_ns, done, last_end_ns, hash;
};

static uint64_t draw(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return *seed >> 33;
}

static void collect(struct fixture *f, struct totals *t, uint64_t now_ns)
{
	while (td_timeline_advance(&f->tl, now_ns, &f->done)) {
		CHECK(f->done.end_ns >= f->done.start_ns + f->done.served_ns);
		CHECK(f->done.end_ns >= t->last_end_ns);
		t->done++;
		t->served_ns += f->done.served_ns + f->done.lag_ns;
		t->last_end_ns = f->done.end_ns;
		t->hash = t->hash * 31 + f->done.end_ns + (uint64_t)(f->done.op - f->op);
	}
}

static uint64_t busy_of(const struct fixture *f, const struct td_timeline_context *ctx)
{
	uint64_t sum = 0;

	for (int e = 0; e < TD_ENGINE_N; e++)
		sum += ctx ? ctx->on[e].busy_ns : f->tl.engines[e].busy_ns;
	return sum;
}

/* Eight slots, random work, lengths known at once or later, cancellations. */
static struct totals random_run(uint64_t seed)
{
	struct totals t = {0};
	struct fixture f;
	uint64_t now_ns = 1000;

	setup(&f);
	for (int n = 0; n < 20000; n++) {
		struct td_op *op = &f.op[draw(&seed) % 8];

		if (!op->context && draw(&seed) % 4 == 0) {
			td_timeline_begin_queued(&f.tl, draw(&seed) % 2 ? &f.a : &f.b, op,
				TD_ENGINE_COMPUTE, now_ns - draw(&seed) % 100, 20);
		} else if (!op->context) {
			td_timeline_begin(&f.tl, draw(&seed) % 2 ? &f.a : &f.b, op,
				(enum td_engine)(draw(&seed) % TD_ENGINE_N));
		} else if (draw(&seed) % 16 == 0) {
			t.served_ns += td_timeline_served_ns(op);
			td_timeline_cancel(&f.tl, op);
		}
		if (op->context && op->length_ns == TD_NEVER_NS && draw(&seed) % 2)
			td_timeline_set_length(&f.tl, op, draw(&seed) % 300);
		now_ns += draw(&seed) % 60;
		collect(&f, &t, now_ns);
		CHECK(td_timeline_next_event(&f.tl) > now_ns);
	}
	for (int i = 0; i < 8; i++)
		if (f.op[i].context && f.op[i].length_ns == TD_NEVER_NS)
			td_timeline_set_length(&f.tl, &f.op[i], 10);
	collect(&f, &t, now_ns + 100000);
	CHECK_EQ(td_timeline_next_event(&f.tl), TD_NEVER_NS);
	CHECK_EQ(t.served_ns, busy_of(&f, NULL));
	CHECK_EQ(t.served_ns, busy_of(&f, &f.a) + busy_of(&f, &f.b));
	return t;
}

TEST(service_given_is_service_received)
{
	for (uint64_t seed = 1; seed <= 10; seed++)
		CHECK(random_run(seed).done > 4000);
}

TEST(same_input_gives_same_output)
{
	CHECK(random_run(7).hash == random_run(7).hash);
	CHECK(random_run(7).hash != random_run(8).hash);
}
