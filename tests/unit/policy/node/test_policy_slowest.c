/*
 * A guaranteed job of several processes: which process's steps count, and that the job keeps its
 * speed by them.
 */
#include "test.h"

#include "policy/node/beside/slowest.h"
#include "policy/system/antman.h"
#include "policy_random.h"

#define MS  1000000ull
#define GIB (1ull << 30)

static struct td_slowest slowest;
static struct td_client_view clients[16];
static struct td_gpu_view gpu = {.capacity_bytes = 32 * GIB};
static struct td_view view = {&gpu, clients, 1, 0, TD_HAS_ALL};

static void start(uint32_t processes)
{
	memset(&slowest, 0, sizeof(slowest));
	memset(clients, 0, sizeof(clients));
	view.client_count = processes;
	for (uint32_t i = 0; i < processes; i++)
		clients[i] = (struct td_client_view){
			.id = 10 + i, .group = 3, .class = TD_CLASS_GUARANTEED, .weight = 1};
}

/* A step of the i-th process; the lead afterwards. */
static uint32_t finish(uint32_t i, uint64_t ns)
{
	clients[i].steps++;
	clients[i].step_ns = ns;
	return td_slowest_step(&slowest, &view, 0, 3);
}

TEST(nobody_leads_before_a_step)
{
	start(2);
	CHECK_EQ(td_slowest_step(&slowest, &view, 0, 3), UINT32_MAX);
	CHECK_EQ(finish(1, 100 * MS), 1);
	CHECK_EQ(td_slowest_step(&slowest, &view, 1, 3), UINT32_MAX); /* not on that GPU */
}

TEST(the_slowest_leads_once_that_is_certain)
{
	start(2);
	for (int i = 0; i < 7; i++) {
		CHECK_EQ(finish(0, 100 * MS), 0);
		CHECK_EQ(finish(1, 200 * MS), 0);
	}
	finish(0, 100 * MS);
	CHECK_EQ(finish(1, 200 * MS), 1);
	for (int i = 0; i < 50; i++) {
		CHECK_EQ(finish(0, 100 * MS), 1);
		CHECK_EQ(finish(0, 100 * MS), 1);
		CHECK_EQ(finish(1, 200 * MS), 1);
	}
}

TEST(of_equals_none_takes_turns_whatever_their_noise)
{
	uint64_t seed = 7;

	start(4);
	for (uint32_t i = 0; i < 20000; i++)
		CHECK_EQ(finish(i % 4, (uint64_t)(100e6 * (1 + 0.1 * random_normal(&seed)))), 0);
}

TEST(one_that_has_stopped_is_not_waited_for_and_leads_again_when_it_goes_on)
{
	start(2);
	for (int i = 0; i < 8; i++) {
		finish(1, 10 * MS);
		finish(0, 100 * MS);
	}
	CHECK_EQ(finish(0, 100 * MS), 0);
	for (int i = 0; i < 39; i++)
		CHECK_EQ(finish(1, 10 * MS), 0);
	CHECK_EQ(finish(1, 10 * MS), 1);
	CHECK_EQ(finish(0, 100 * MS), 0); /* it is still the slower one */
}

TEST(who_has_gone_does_not_lead)
{
	start(2);
	for (int i = 0; i < 16; i++) {
		finish(1, 100 * MS);
		CHECK_EQ(finish(0, 200 * MS), i < 7 ? 1u : 0u);
	}
	clients[0] = clients[1];
	view.client_count = 1;
	CHECK_EQ(td_slowest_step(&slowest, &view, 0, 3), 0);
	CHECK_EQ(slowest.lead, 11);
	/* nor another job */
	clients[0].group = 4;
	CHECK_EQ(td_slowest_step(&slowest, &view, 0, 3), UINT32_MAX);
}

TEST(more_processes_than_are_compared_do_no_harm)
{
	start(16);
	for (int i = 0; i < 400; i++)
		CHECK(finish((uint32_t)i % 16, (100 + (uint64_t)i % 16) * MS) < TD_SLOWEST_MAX);
}

/* -- whole jobs under the policies, on a fake clock -- */

#define RANKS 4

struct rank {
	double alone_ms, left_ms;
	uint64_t began_ns;
	bool waits; /* at the end of its step, for the others */
};

static struct {
	const struct td_policy *policy;
	void *state;
	struct td_grant grants[16];
	struct td_plan plan;
	uint64_t now, seed;
	struct rank ranks[RANKS];
	uint32_t count; /* of ranks */
	bool together;  /* they wait for each other */
	double bears, slows, noise;
} w;

static void decide(void)
{
	const struct td_policy_options options = {
		.enabled = true, .quantum_ns = 1000 * MS, .window_ns = 2 * MS};

	w.plan = (struct td_plan){.grants = w.grants, .next_wakeup_ns = TD_NEVER};
	w.policy->step(w.state, &options, &view, w.now, &w.plan);
}

static double duty(void)
{
	uint32_t ppm = w.grants[w.count].duty_ppm;

	return ppm ? ppm / 1e6 : 1;
}

static double speed(void)
{
	double excess = duty() - w.bears;

	return 1 / (1 + (excess > 0 ? w.slows * excess : 0));
}

static void begin_step(struct rank *rank, struct td_client_view *client)
{
	rank->left_ms = rank->alone_ms * (1 + w.noise * random_normal(&w.seed));
	rank->began_ns = client->step_began_ns = w.now;
	rank->waits = false;
}

static void world(const char *policy, uint32_t ranks, bool together, uint64_t seed)
{
	start(ranks + 1);
	free(w.state);
	memset(&w, 0, sizeof(w));
	w.policy = td_policy_find(policy);
	w.state = calloc(1, w.policy->state_bytes);
	w.now = 1000 * MS;
	w.seed = seed;
	w.count = ranks;
	w.together = together;
	w.noise = 0.002;
	w.bears = 0.2 + 0.4 * random_unit(&w.seed);
	w.slows = 0.2 + 0.6 * random_unit(&w.seed);
	for (uint32_t i = 0; i <= ranks; i++) {
		clients[i].wants = true;
		clients[i].phase = TD_PHASE_OPEN;
		clients[i].demanded_bytes = clients[i].resident_bytes = GIB;
	}
	clients[ranks].group = 4;
	clients[ranks].class = TD_CLASS_BESTEFFORT;
	for (uint32_t i = 0; i < ranks; i++) {
		clients[i].slack_ppm = 50000;
		w.ranks[i].alone_ms = 60 + 40 * random_unit(&w.seed);
		begin_step(&w.ranks[i], &clients[i]);
	}
	decide();
}

static void end_step(uint32_t i)
{
	clients[i].steps++;
	clients[i].step_ns = w.now - w.ranks[i].began_ns;
	begin_step(&w.ranks[i], &clients[i]);
}

static bool all_wait(void)
{
	for (uint32_t i = 0; i < w.count; i++)
		if (!w.ranks[i].waits)
			return false;
	return true;
}

/*
 * Runs to the next event: a rank has done its step's work, or the policy wakes. Returns the rank
 * whose step ended, the last of all where they wait; RANKS: none.
 */
static uint32_t advance(void)
{
	double next_ms = 1e12;
	uint32_t who = RANKS;

	for (uint32_t i = 0; i < w.count; i++) {
		if (w.ranks[i].waits || w.ranks[i].left_ms / speed() >= next_ms)
			continue;
		next_ms = w.ranks[i].left_ms / speed();
		who = i;
	}
	if (w.plan.next_wakeup_ns != TD_NEVER &&
		(double)(w.plan.next_wakeup_ns - w.now) / 1e6 < next_ms) {
		next_ms = (double)(w.plan.next_wakeup_ns - w.now) / 1e6;
		who = RANKS;
	}
	for (uint32_t i = 0; i < w.count; i++)
		if (!w.ranks[i].waits)
			w.ranks[i].left_ms -= next_ms * speed();
	w.now += (uint64_t)(next_ms * 1e6) + 1;
	if (who == RANKS)
		return who;
	w.ranks[who].waits = true;
	if (w.together && !all_wait())
		return RANKS;
	for (uint32_t i = 0; i < w.count; i++)
		if (w.together || i == who)
			end_step(i);
	return who;
}

struct seen {
	uint32_t steps, late;
	double duty;
};

/* Steps of the job: of its slowest process, or of all where they wait for each other. */
static struct seen live(uint32_t steps)
{
	struct seen seen = {0};
	uint64_t began = w.now;
	double slowest_ms = 0, all = 0;
	uint32_t the_slowest = 0;

	for (uint32_t i = 0; i < w.count; i++)
		if (w.ranks[i].alone_ms > slowest_ms) {
			slowest_ms = w.ranks[i].alone_ms;
			the_slowest = i;
		}
	while (seen.steps < steps) {
		uint64_t before = w.now;
		double had = duty();
		uint32_t who = advance();

		all += had * (double)(w.now - before);
		if (who == the_slowest || (who != RANKS && w.together)) {
			seen.steps++;
			seen.late += (double)clients[the_slowest].step_ns / 1e6 > 1.05 * slowest_ms;
		}
		decide();
	}
	seen.duty = all / (double)(w.now - began);
	return seen;
}

static void check_speed(const char *policy, uint32_t ranks, bool together, uint64_t seed)
{
	struct seen seen;
	double bearable;

	world(policy, ranks, together, seed);
	(void)live(600);
	seen = live(1500);
	bearable = w.bears + 0.05 / w.slows < 1 ? w.bears + 0.05 / w.slows : 1;
	if (seen.late > 30 || seen.duty < 0.5 * bearable)
		test_fail(__FILE__, __LINE__, "%s, %u ranks, seed %d: %u late, duty %.3f of %.3f",
			policy, ranks, (int)seed, seen.late, seen.duty, bearable);
}

TEST(a_job_of_several_processes_keeps_its_speed_and_is_one_job)
{
	for (uint64_t seed = 1; seed <= 12; seed++)
		for (uint32_t ranks = 1; ranks <= RANKS; ranks++) {
			check_speed("antman", ranks, true, seed);
			check_speed("antman", ranks, false, seed);
			check_speed("tandem", ranks, true, seed);
			check_speed("tandem", ranks, false, seed);
		}
}

TEST(a_helper_that_made_a_few_steps_holds_nobody_up)
{
	struct seen seen;

	world("antman", 3, false, 5);
	w.bears = 0.5;
	(void)live(100);
	for (uint32_t i = 1; i < 3; i++)
		w.ranks[i].waits = true; /* for good */
	w.ranks[0].alone_ms = 90;
	for (int i = 0; i < 2000; i++) {
		advance();
		decide();
	}
	w.count = 1; /* the duty is the besteffort client's, who is now not the one behind */
	clients[1] = clients[3];
	view.client_count = 2;
	seen = live(500);
	CHECK(seen.duty > 0.4);
	CHECK(seen.late <= 10);
}

TEST(two_jobs_have_no_steps_in_common_and_mean_the_floor)
{
	world("antman", 2, true, 5);
	clients[1].group = 5;
	(void)live(100);
	CHECK_EQ(w.grants[2].duty_ppm, 10000); /* a fifth of the slack */
}
