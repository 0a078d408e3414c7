/* Kernels side by side: shares, caps, bandwidth, and their ends on the timeline. All by hand. */
#include "test.h"

#include <math.h>

#include "model/gpu_spec.h"
#include "model/spatial.h"
#include "model/timeline.h"

static bool near(double a, double b)
{
	return fabs(a - b) < 1e-9;
}

/* Half of the GPU each, and everything that another leaves. */
static const struct td_spatial_user whole = {1, 1, 0}, half = {0.5, 1, 0}, small = {0.2, 1, 0};

TEST(a_kernel_alone_has_the_speed_one)
{
	const struct td_spatial_user full = {1, 1, 1};
	double speed;

	td_spatial_speeds(&full, 1, &speed);
	CHECK(near(speed, 1));
}

TEST(kernels_that_fit_together_do_not_slow_each_other_down)
{
	const struct td_spatial_user users[3] = {half, small, {0.3, 1, 0.4}};
	double speeds[3];

	td_spatial_speeds(users, 3, speeds);
	for (int i = 0; i < 3; i++)
		CHECK(near(speeds[i], 1));
}

TEST(beyond_the_gpu_the_smallest_needs_are_met_first)
{
	const struct td_spatial_user users[3] = {whole, whole, small};
	double speeds[3];

	/* 0.2 for the small one; 0.4 of 1 for each of the others. */
	td_spatial_speeds(users, 3, speeds);
	CHECK(near(speeds[0], 0.4) && near(speeds[1], 0.4) && near(speeds[2], 1));
}

TEST(a_cap_slows_down_only_who_needs_more)
{
	const struct td_spatial_user users[2] = {{1, 0.25, 0}, {0.25, 0.25, 0}};
	double speeds[2];

	td_spatial_speeds(users, 2, speeds);
	CHECK(near(speeds[0], 0.25) && near(speeds[1], 1));
}

TEST(what_a_capped_kernel_leaves_goes_to_the_other)
{
	const struct td_spatial_user users[2] = {{1, 0.25, 0}, whole};
	double speeds[2];

	td_spatial_speeds(users, 2, speeds);
	CHECK(near(speeds[0], 0.25) && near(speeds[1], 0.75));
}

TEST(bandwidth_is_shared_like_the_sms)
{
	/* Both fit on the SMs. They ask for 0.8 and 0.6 of the bandwidth: 0.5 each is given. */
	const struct td_spatial_user users[2] = {{0.5, 1, 0.8}, {0.5, 1, 0.6}};
	/* At half speed each asks for 0.5: there is enough. */
	const struct td_spatial_user large[2] = {{1, 1, 1}, {1, 1, 1}};
	double speeds[2];

	td_spatial_speeds(users, 2, speeds);
	CHECK(near(speeds[0], 0.5 / 0.8) && near(speeds[1], 0.5 / 0.6));
	td_spatial_speeds(large, 2, speeds);
	CHECK(near(speeds[0], 0.5) && near(speeds[1], 0.5));
}

TEST(a_copy_within_the_device_needs_bandwidth_only)
{
	const struct td_spatial_user users[2] = {{0, 1, 1}, {1, 1, 0.5}};
	double speeds[2];

	td_spatial_speeds(users, 2, speeds);
	CHECK(near(speeds[0], 0.5) && near(speeds[1], 1));
}

TEST(spare_speed_is_what_nobody_else_wants)
{
	CHECK(near(td_spatial_spare_speed(&half, 1, &half), 1));
	CHECK(near(td_spatial_spare_speed(&half, 1, &whole), 0.5));
	CHECK(near(td_spatial_spare_speed(&whole, 1, &half), 0));
	CHECK(near(td_spatial_spare_speed(NULL, 0, &whole), 1));
}

TEST(shares_are_whole_units_of_two_sms)
{
	const struct td_gpu_spec *a100 = td_gpu_spec_find("a100"), *tiny = td_gpu_spec_find("tiny");
	struct td_gpu_spec odd = *a100;

	CHECK_EQ(a100->sm_count, 108);
	CHECK_EQ(td_spatial_sms_of_percentage(a100, 100), 108);
	CHECK_EQ(td_spatial_sms_of_percentage(a100, 50), 54);
	/* 25.3 of 54 units */
	CHECK_EQ(td_spatial_sms_of_percentage(a100, 47), 50);
	CHECK_EQ(td_spatial_sms_of_percentage(a100, 1), 2);
	CHECK_EQ(td_spatial_sms_of_affinity(a100, 51), 52);
	CHECK_EQ(td_spatial_sms_of_affinity(a100, 1), 2);
	CHECK_EQ(td_spatial_sms_of_affinity(a100, 500), 108);
	CHECK_EQ(td_spatial_sms_of_percentage(tiny, 10), 2);
	/* All of an odd number, not twice the half. */
	odd.sm_count = 5;
	CHECK_EQ(td_spatial_sms_of_percentage(&odd, 100), 5);
}

static const struct td_gpu_spec spec = {.slice_ns = 100, .switch_ns = 10};

/* a and b are members of a group, c has turns of its own. */
struct fixture {
	struct td_timeline tl;
	struct td_timeline_context leader, a, b, c;
	struct td_op op[4];
	struct td_done done;
};

static void setup(struct fixture *f)
{
	memset(f, 0, sizeof(*f));
	td_timeline_init(&f->tl, &spec, 1000);
	td_timeline_context_add(&f->tl, &f->leader);
	td_timeline_context_add(&f->tl, &f->a);
	td_timeline_context_add(&f->tl, &f->b);
	td_timeline_context_add(&f->tl, &f->c);
	td_timeline_join(&f->tl, &f->a, &f->leader, 1);
	td_timeline_join(&f->tl, &f->b, &f->leader, 1);
}

static void begin(struct fixture *f, struct td_timeline_context *ctx, int i, uint64_t length_ns,
	double need, double bandwidth)
{
	td_timeline_begin(&f->tl, ctx, &f->op[i], TD_ENGINE_COMPUTE);
	td_timeline_set_load(&f->tl, &f->op[i], need, bandwidth);
	td_timeline_set_length(&f->tl, &f->op[i], length_ns);
}

static void next_ends(struct fixture *f, int i, uint64_t start_ns, uint64_t end_ns)
{
	CHECK_EQ(td_timeline_advance(&f->tl, 1000000, &f->done), 1);
	CHECK_EQ(f->done.op - f->op, i);
	CHECK_EQ(f->done.start_ns, start_ns);
	CHECK_EQ(f->done.end_ns, end_ns);
}

TEST(members_that_fit_together_end_as_if_they_were_alone)
{
	struct fixture f;

	setup(&f);
	begin(&f, &f.a, 0, 300, 0.5, 0);
	begin(&f, &f.b, 1, 200, 0.5, 0);
	next_ends(&f, 1, 1000, 1200);
	next_ends(&f, 0, 1000, 1300);
	/* The GPU was busy for 300 ns, not for 500. */
	CHECK_EQ(f.tl.engines[TD_ENGINE_COMPUTE].busy_ns, 300);
	CHECK_EQ(f.tl.engines[TD_ENGINE_COMPUTE].switches, 0);
}

TEST(members_that_do_not_fit_slow_each_other_down_while_both_run)
{
	struct fixture f;

	setup(&f);
	begin(&f, &f.a, 0, 300, 1, 0);
	begin(&f, &f.b, 1, 100, 1, 0);
	/* Half the speed until b has its 100; a has had 100 then, and the rest alone. */
	next_ends(&f, 1, 1000, 1200);
	next_ends(&f, 0, 1000, 1400);
}

TEST(a_newcomer_changes_the_speed_from_its_first_instant_on)
{
	struct fixture f;

	setup(&f);
	begin(&f, &f.a, 0, 300, 1, 0);
	CHECK_EQ(td_timeline_advance(&f.tl, 1100, &f.done), 0);
	begin(&f, &f.b, 1, 300, 1, 0);
	CHECK_EQ(td_timeline_next_event(&f.tl), 1100);
	/* a: 100 alone, 200 at half speed. b: 200 at half speed, 200 left at full. */
	next_ends(&f, 0, 1000, 1500);
	next_ends(&f, 1, 1100, 1600);
}

TEST(a_cap_holds_without_others)
{
	struct fixture f;

	setup(&f);
	td_timeline_join(&f.tl, &f.a, &f.leader, 0.25);
	begin(&f, &f.a, 0, 100, 1, 0);
	next_ends(&f, 0, 1000, 1400);
}

TEST(thirds_end_at_the_first_instant_at_which_they_are_done)
{
	struct fixture f;

	setup(&f);
	td_timeline_join(&f.tl, &f.a, &f.leader, 1.0 / 3);
	begin(&f, &f.a, 0, 100, 1, 0);
	/* The speed is kept as 0.333333. */
	next_ends(&f, 0, 1000, 1301);
}

TEST(memory_bound_members_share_the_bandwidth)
{
	struct fixture f;

	setup(&f);
	begin(&f, &f.a, 0, 100, 0.5, 1);
	begin(&f, &f.b, 1, 100, 0.5, 1);
	next_ends(&f, 0, 1000, 1200);
	next_ends(&f, 1, 1000, 1200);
}

TEST(a_group_has_the_turns_of_one_context)
{
	struct fixture f;

	setup(&f);
	begin(&f, &f.a, 0, 150, 0.5, 0);
	begin(&f, &f.b, 1, 150, 0.5, 0);
	begin(&f, &f.c, 2, 50, 1, 0);
	/* 100 for the group, a switch, 50 for c, a switch, 50 for the group. */
	next_ends(&f, 2, 1110, 1160);
	next_ends(&f, 0, 1000, 1220);
	next_ends(&f, 1, 1000, 1220);
}

TEST(an_end_at_the_end_of_a_turn_is_told_then)
{
	struct fixture f;

	setup(&f);
	begin(&f, &f.a, 0, 100, 0.5, 0);
	begin(&f, &f.b, 1, 150, 0.5, 0);
	begin(&f, &f.c, 2, 50, 1, 0);
	next_ends(&f, 0, 1000, 1100);
	next_ends(&f, 2, 1110, 1160);
	next_ends(&f, 1, 1000, 1220);
}

TEST(a_late_kernel_is_paid_for_with_what_nobody_used)
{
	struct fixture f;

	setup(&f);
	begin(&f, &f.b, 1, 1000, 0.5, 0);
	begin(&f, &f.a, 0, 100, 0.5, 0);
	next_ends(&f, 0, 1000, 1100);
	CHECK_EQ(td_timeline_advance(&f.tl, 1150, &f.done), 0);
	/* Its next operation could have begun at 1100, on SMs that b did not want. */
	td_timeline_begin_queued(&f.tl, &f.a, &f.op[0], TD_ENGINE_COMPUTE, 1100, 1000);
	td_timeline_set_load(&f.tl, &f.op[0], 0.5, 0);
	td_timeline_set_length(&f.tl, &f.op[0], 100);
	next_ends(&f, 0, 1100, 1200);
	next_ends(&f, 1, 1000, 2000);
	CHECK_EQ(f.tl.engines[TD_ENGINE_COMPUTE].busy_ns, 1000);
}

TEST(a_late_kernel_is_not_paid_for_twice)
{
	struct fixture f;

	setup(&f);
	begin(&f, &f.b, 1, 1000, 1, 0);
	begin(&f, &f.a, 0, 100, 1, 0);
	next_ends(&f, 0, 1000, 1200);
	CHECK_EQ(td_timeline_advance(&f.tl, 1250, &f.done), 0);
	td_timeline_begin_queued(&f.tl, &f.a, &f.op[0], TD_ENGINE_COMPUTE, 1200, 1000);
	td_timeline_set_length(&f.tl, &f.op[0], 100);
	/* b had the whole GPU meanwhile. */
	next_ends(&f, 0, 1250, 1450);
}

TEST(a_member_that_goes_gives_its_share_back)
{
	struct fixture f;

	setup(&f);
	begin(&f, &f.a, 0, 300, 1, 0);
	begin(&f, &f.b, 1, 300, 1, 0);
	CHECK_EQ(td_timeline_advance(&f.tl, 1200, &f.done), 0);
	td_timeline_context_remove(&f.tl, &f.b);
	next_ends(&f, 0, 1000, 1400);
	td_timeline_context_remove(&f.tl, &f.a);
	begin(&f, &f.c, 2, 50, 1, 0);
	next_ends(&f, 2, 1410, 1460);
}

TEST(an_unknown_length_is_served_at_the_shared_speed)
{
	struct fixture f;

	setup(&f);
	begin(&f, &f.a, 0, 1000, 1, 0);
	td_timeline_begin(&f.tl, &f.b, &f.op[1], TD_ENGINE_COMPUTE);
	CHECK_EQ(td_timeline_advance(&f.tl, 1100, &f.done), 0);
	CHECK_EQ(td_timeline_served_ns(&f.op[1]), 50);
	td_timeline_set_length(&f.tl, &f.op[1], 100);
	next_ends(&f, 1, 1000, 1200);
	next_ends(&f, 0, 1000, 2100);
}
