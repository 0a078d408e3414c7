/* Besteffort jobs are exchanged between GPUs (node/pairing.h); the policy is the test. */
#include "unit/daemon/action_world.h"

#include <fcntl.h>
#include <unistd.h>

#include "daemon/node/pairing.h"
#include "unit/profile/made_speeds.h"

static char folder[] = "/tmp/test_node_pairing.XXXXXX";
static bool is_made;

static void write_speeds(const char *gpu)
{
	struct td_speed_kind kind = make_kind(gpu);
	const struct td_speed_file file = {1, &kind};
	char path[64];
	void *bytes;
	size_t size;
	FILE *out;

	CHECK_EQ(td_speed_file_to_bytes(&file, &bytes, &size), 0);
	snprintf(path, sizeof(path), "%s/" TD_SPEED_FILE, folder);
	(void)unlink(path);
	out = fopen(path, "w");
	CHECK(out && fwrite(bytes, 1, size, out) == size && !fclose(out));
	free(bytes);
}

static void start(void)
{
	begin_actions();
	planner.exchanges = true;
	if (!is_made)
		CHECK(mkdtemp(folder));
	is_made = true;
	write_speeds("A GPU");
	snprintf(w.node.options.profiles, sizeof(w.node.options.profiles), "%s", folder);
	td_node_options_changed(&w.node, w.now, "profiles");
}

static void ask_place(struct fake *f, const char *candidates)
{
	f->placed_count = 0;
	for (uint32_t i = 0; candidates[i]; i++) {
		struct td_msg msg = {.type = TD_MSG_TYPE_place};

		msg.place.count = 1;
		msg.place.index = i;
		msg.place.candidates = (uint32_t)strlen(candidates);
		memset(msg.place.gpu, candidates[i] - '0' + 1, 16);
		CHECK_EQ(say(&w, f, &msg), 0);
	}
	CHECK_EQ(f->placed_count, 1);
}

/* A supervised job whose GPU the daemon has chosen. */
static struct fake *job_on(unsigned i, const char *job, const char *candidates)
{
	struct fake *f = &w.fakes[i];

	fake_hello(&w, f, job, TD_BACKEND_PLAIN, false);
	ask_place(f, candidates);
	fake_attach(&w, f, 0, (uint8_t)(f->placed[0] - 1), MIB);
	f->process->can = TD_CAN_LEAVE;
	for (uint32_t g = 0; g < w.node.gpu_count; g++)
		strcpy(w.node.gpus[g].name, "A GPU");
	fake_want(&w, f);
	step();
	return f;
}

/* A job without a supervisor, so that the other GPU is in use, too. */
static struct fake *stay_on(unsigned i, const char *job, uint8_t gpu)
{
	struct fake *f = &w.fakes[i];

	fake_hello(&w, f, job, TD_BACKEND_PLAIN, false);
	fake_attach(&w, f, 0, gpu, MIB);
	for (uint32_t g = 0; g < w.node.gpu_count; g++)
		strcpy(w.node.gpus[g].name, "A GPU");
	step();
	return f;
}

static const struct td_client_view *view_of(const struct fake *f)
{
	for (uint32_t i = 0; i < w.node.shown_count; i++)
		if (w.node.shown[i]->process == f->process)
			return &w.node.views[i];
	return NULL;
}

static void plan_exchange(const struct fake *f, uint32_t gpu)
{
	plans(TD_ACTION_RESTART, f);
	planned[0].gpu = gpu;
	planned[0].why = TD_MOVE_PAIRED;
	planned[0].from_ppm = 400000;
	planned[0].to_ppm = 850000;
}

static void end_exchange(struct fake *f, uint64_t number)
{
	ordered(number, TD_ORDERED_RUNNING, "");
	says_leaving(f, TD_LEAVING_ENDS);
	fake_dies(&w, f);
	planned_count = 0;
	step();
}

TEST(a_policy_that_exchanges_jobs_is_shown_what_it_needs)
{
	struct fake *a, *b;

	start();
	(void)supervised("heavy", 1);
	a = job_on(0, "heavy", "01");
	b = stay_on(1, "quiet", 1);
	CHECK_EQ(view_of(a)->restarts_on, 3);
	CHECK_EQ(view_of(b)->restarts_on, 0);
	CHECK(view_of(a)->profile && view_of(a)->profile->alone->alone_s > 1.9);
	CHECK(view_of(b)->profile->alone->sm_activity < 0.2);
	CHECK(w.node.gpu_views[0].speeds &&
		w.node.gpu_views[0].speeds == w.node.gpu_views[1].speeds);
	/* Other policies are not bothered. */
	planner.exchanges = false;
	step();
	CHECK(!view_of(a)->restarts_on && !view_of(a)->profile && !w.node.gpu_views[0].speeds);
}

TEST(the_layers_of_a_program_are_shown_beside_its_figures_alone_and_go_when_nobody_asks)
{
	static struct td_service_page page;
	struct fake *a;

	start();
	planner.uses |= TD_HAS(PROFILES);
	a = job_on(0, "heavy", "01");
	(void)stay_on(1, "quiet", 1);
	a->process->service_page = &page;
	atomic_store(&page.layers[1], 7);
	w.node.profiles.good_count++;
	step();
	CHECK(view_of(a)->profile && view_of(a)->profile->alone);
	CHECK(view_of(a)->profile->layers[1] > 6.5);
	w.node.profiles.good_count--;
	step();
	CHECK(view_of(a)->profile && view_of(a)->profile->alone);
	CHECK(view_of(a)->profile->layers[1] == 0);
	a->process->service_page = NULL;
}

TEST(a_job_is_started_again_where_the_policy_wants_it)
{
	struct fake *boss, *a, *again;
	const struct td_act *act;

	start();
	boss = supervised("heavy", 1);
	a = job_on(0, "heavy", "01");
	(void)stay_on(1, "quiet", 1);
	CHECK_EQ(a->placed[0], 1);
	plan_exchange(a, 1);
	step();
	act = act_of(a, TD_ACTION_RESTART);
	CHECK(act && act->state == TD_ACTION_ASKED && boss->orders == 1);
	CHECK_STR(act->reason,
		"from GPU 0, where it runs at 40%, to GPU 1, where it is to run at 85% of its "
		"speed alone");
	CHECK_STR(boss->order.reason, "it goes to GPU 1, planned by policy planner");
	end_exchange(a, boss->order.number);
	(void)supervised("heavy", 2);
	again = job_on(2, "heavy", "01");
	CHECK_EQ(again->placed[0], 2);
	CHECK(strstr(explained(&w, again), "Its job was started again on GPU 1"));
	/* Only the next start is bound. */
	fake_dies(&w, again);
	CHECK_EQ(job_on(3, "heavy", "01")->placed[0], 1);
}

TEST(a_refused_exchange_binds_nobody)
{
	struct fake *boss, *a;

	start();
	boss = supervised("heavy", 1);
	a = job_on(0, "heavy", "01");
	(void)stay_on(1, "quiet", 1);
	plan_exchange(a, 1);
	step();
	CHECK(supervisor->bound.is_set);
	ordered(boss->order.number, TD_ORDERED_REFUSED, "it ends already");
	CHECK(!supervisor->bound.is_set);
}

TEST(a_gpu_that_cannot_be_used_by_then_is_not_taken)
{
	struct fake *boss, *a;

	start();
	boss = supervised("heavy", 1);
	a = job_on(0, "heavy", "01");
	(void)stay_on(1, "quiet", 1);
	plan_exchange(a, 1);
	step();
	end_exchange(a, boss->order.number);
	/* It may use others only, now. */
	CHECK_EQ(job_on(2, "heavy", "02")->placed[0], 1);
	CHECK(!supervisor->bound.is_set);
}

TEST(explain_says_why_a_job_is_not_exchanged)
{
	struct fake *a;

	start();
	a = job_on(0, "heavy", "01");
	(void)stay_on(1, "quiet", 1);
	CHECK(strstr(td_pairing_obstacle(&w.node, a->process), "nobody can start it again"));
	CHECK(strstr(explained(&w, a), "Its job stays on its GPU"));
	(void)supervised("heavy", 1);
	td_supervisors_judge(&w.node, a->process->job);
	CHECK(!td_pairing_obstacle(&w.node, a->process));
	CHECK(!strstr(explained(&w, a), "Its job stays on its GPU"));
	strcpy(w.node.gpus[0].name, "another GPU");
	CHECK(strstr(td_pairing_obstacle(&w.node, a->process), "speeds on its kind of GPU"));
	strcpy(w.node.gpus[0].name, "A GPU");
	strcpy(a->process->name, "stranger");
	td_profiles_look_speeds(&w.node.profiles);
	CHECK(!td_pairing_obstacle(&w.node, a->process)); /* the file is the same */
	write_speeds("A GPU");
	td_profiles_look_speeds(&w.node.profiles);
	CHECK(strstr(td_pairing_obstacle(&w.node, a->process), "its name is none"));
	a->process->candidate_count = 0;
	CHECK(strstr(td_pairing_obstacle(&w.node, a->process), "tandem run --gpu any"));
	w.node.options.muxflow.exchange_ns = 0;
	CHECK(!td_pairing_obstacle(&w.node, a->process));
}
