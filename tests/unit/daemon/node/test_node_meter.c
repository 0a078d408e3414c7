/* Whom the node measures, and what policies get to see of it. */
#include "test.h"

#include "unit/daemon/fake_node.h"
#include "daemon/node/gpus.h"

#define MS  1000000ull
#define PPM 1000000u

static struct world w;
static struct td_meter_page meters[FAKES_MAX];

static struct fake *program(unsigned i, const char *job)
{
	struct fake *f = &w.fakes[i];

	fake_hello(&w, f, job, TD_BACKEND_PLAIN, false);
	memset(&meters[i], 0, sizeof(meters[i]));
	f->process->meter = &meters[i];
	fake_attach(&w, f, 0, 0, MIB);
	fake_want(&w, f);
	return f;
}

static void set(const char *value)
{
	CHECK_EQ(td_options_set(&w.node.options, "meter", value, NULL), 0);
	td_node_options_changed(&w.node, w.now, "meter");
	settle(&w);
}

/* So much later it has used so much. */
static void use(
	unsigned i, uint64_t elapsed_ns, uint64_t used_ns, uint64_t active_ns, uint64_t core_ns)
{
	atomic_fetch_add(&meters[i].gpu_ns, used_ns);
	atomic_fetch_add(&meters[i].used_ns[0], used_ns);
	atomic_fetch_add(&meters[i].active_ns[0], active_ns);
	atomic_fetch_add(&meters[i].core_ns[0], core_ns);
	w.now += elapsed_ns;
	settle(&w);
}

static const struct td_client_view *view_of(const struct fake *f)
{
	for (uint32_t i = 0; i < w.node.shown_count; i++)
		if (w.node.shown[i]->process == f->process)
			return &w.node.views[i];
	return NULL;
}

TEST(nobody_is_measured_where_no_policy_asks_for_it)
{
	struct fake *a;

	world_init(&w);
	a = program(0, "a");
	settle(&w);
	CHECK_EQ(a->word, 0);
	CHECK_EQ(a->pacing.window_ns, 0);
	use(0, 200 * MS, 100 * MS, 100 * MS, 100 * MS);
	CHECK_EQ(view_of(a)->sm_activity_ppm, 0);
	CHECK_EQ(view_of(a)->core_ppm, 0);
	CHECK_EQ(w.node.gpu_views[0].known & TD_HAS(SM_ACTIVITY), 0);
}

TEST(turned_on_it_measures_only_and_is_turned_off_again)
{
	struct fake *a;

	world_init(&w);
	a = program(0, "a");
	set("on");
	CHECK_EQ(a->word & TD_WORD_FLAGS, TD_WORD_WINDOW);
	CHECK_EQ(a->pacing.window_ns, TD_WINDOW_METER);
	set("off");
	CHECK_EQ(a->word, 0);
	CHECK_EQ(a->pacing.window_ns, 0);
}

TEST(policies_see_what_a_program_uses)
{
	struct fake *a;

	world_init(&w);
	a = program(0, "a");
	set("on");
	use(0, 100 * MS, 50 * MS, 20 * MS, 200 * MS);
	CHECK_EQ(view_of(a)->sm_activity_ppm, PPM / 5);
	CHECK_EQ(view_of(a)->core_ppm, 2 * PPM);
	CHECK_EQ(view_of(a)->gpu_time_ns, 1 + 50 * MS);
	CHECK(w.node.gpu_views[0].known & TD_HAS(SM_ACTIVITY));
	CHECK_EQ(w.node.gpu_views[0].sm_activity_ppm, PPM / 5);
}

static bool mps_is_on(void *arg, const uint8_t *uuid, struct td_mps_seen *ret)
{
	(void)arg, (void)uuid;
	*ret = (struct td_mps_seen){.state = TD_MPS_ON, .can_serve = true};
	return true;
}

/* The new share does not convert the time that was charged before. */
TEST(another_share_of_the_sms_is_no_work)
{
	struct td_nvml_gpu listed = {.total_bytes = 64 * MIB};
	struct td_client *client;
	struct fake *a;

	world_init(&w);
	w.node.io.mps = mps_is_on;
	a = program(0, "a");
	memcpy(listed.uuid, w.node.gpus[0].uuid, sizeof(listed.uuid));
	td_gpus_seen(&w.node, &listed, 1, w.now);
	client = td_client_at(w.node.clients.next);
	client->sm_share_ppm = PPM / 4;
	set("on");
	for (int i = 0; i < 50; i++)
		use(0, 100 * MS, 80 * MS, 80 * MS, 80 * MS);
	CHECK_EQ(view_of(a)->sm_activity_ppm, PPM / 5);
	CHECK_EQ(view_of(a)->sm_need_ppm, PPM / 4);
	client->sm_share_ppm = 0;
	use(0, 100 * MS, 20 * MS, 5 * MS, 5 * MS);
	CHECK_EQ(view_of(a)->sm_activity_ppm, PPM / 20);
	CHECK_EQ(view_of(a)->sm_need_ppm, PPM / 4);
	CHECK_EQ(view_of(a)->core_ppm, PPM / 20);
}

TEST(a_program_that_does_nothing_is_known_to)
{
	struct fake *a;

	world_init(&w);
	a = program(0, "a");
	set("on");
	use(0, 100 * MS, 0, 0, 0);
	CHECK_EQ(view_of(a)->sm_activity_ppm, 1);
	CHECK_EQ(w.node.gpu_views[0].sm_activity_ppm, 0);
	CHECK(w.node.gpu_views[0].known & TD_HAS(SM_ACTIVITY));
}

TEST(the_activity_of_a_gpu_is_that_of_all_and_no_more_than_the_gpu)
{
	world_init(&w);
	CHECK_EQ(td_options_set(&w.node.options, "enabled", "off", NULL), 0);
	(void)program(0, "a");
	(void)program(1, "b");
	set("on");
	atomic_fetch_add(&meters[1].active_ns[0], 30 * MS);
	use(0, 100 * MS, 40 * MS, 40 * MS, 0);
	CHECK_EQ(w.node.gpu_views[0].sm_activity_ppm, 7 * PPM / 10);
	atomic_fetch_add(&meters[1].active_ns[0], 90 * MS);
	use(0, 100 * MS, 90 * MS, 90 * MS, 0);
	CHECK_EQ(w.node.gpu_views[0].sm_activity_ppm, PPM);
}

TEST(contexts_that_take_turns_have_no_more_than_all_of_the_time)
{
	struct fake *a, *b;

	world_init(&w);
	CHECK_EQ(td_options_set(&w.node.options, "enabled", "off", NULL), 0);
	a = program(0, "a");
	b = program(1, "b");
	set("on");
	CHECK_EQ(a->pacing.rivals, TD_RIVALS);
	/* Each has taken the other's turns for its own. */
	atomic_fetch_add(&meters[1].used_ns[0], 100 * MS);
	atomic_fetch_add(&meters[1].active_ns[0], 50 * MS);
	use(0, 100 * MS, 100 * MS, 100 * MS, 0);
	CHECK_EQ(view_of(a)->sm_activity_ppm, PPM / 2);
	CHECK_EQ(view_of(b)->sm_activity_ppm, PPM / 4);
	CHECK_EQ(w.node.gpu_views[0].sm_activity_ppm, 3 * PPM / 4);
}

TEST(a_duty_keeps_its_own_word_and_is_measured)
{
	struct fake *a;

	world_init(&w);
	a = program(0, "a");
	CHECK_EQ(td_node_set_job(&w.node, td_identity_local(1000), "a", "duty", "50%", w.now, NULL),
		0);
	set("on");
	CHECK_EQ(a->word & TD_WORD_FLAGS, TD_WORD_DUTY);
	use(0, 100 * MS, 50 * MS, 50 * MS, 0);
	CHECK_EQ(view_of(a)->sm_activity_ppm, PPM / 2);
}

/* Work of a kind that the program has not submitted before waits, or is under way. */
TEST(policies_see_what_is_new_to_a_program)
{
	struct fake *a;

	world_init(&w);
	a = program(0, "a");
	atomic_store(&meters[0].fresh, TD_FRESH_BIT_WAITS | 3u << TD_FRESH_TRIES_SHIFT);
	settle(&w);
	CHECK_EQ(view_of(a)->fresh, TD_FRESH_TOLD | TD_FRESH_WAITS);
	CHECK_EQ(view_of(a)->tries, 3);
	atomic_store(&meters[0].fresh, TD_FRESH_BIT_IN_FLIGHT);
	settle(&w);
	CHECK_EQ(view_of(a)->fresh, TD_FRESH_TOLD | TD_FRESH_IN_FLIGHT);
	CHECK_EQ(view_of(a)->tries, 0);
}
