/* Schedulers on one state with one engine, which outlive each of them. The clock is a number. */
#include "test.h"

#include "base/time.h"
#include "cluster/engine/local.h"
#include "cluster/sched/scheduler.h"
#include "cluster/state/memory.h"

#define S    TD_NS_PER_S
#define JOBS 64u

static struct td_memory_store *store;
static struct td_state *state[2];
static struct td_scheduler *sched[2];
static struct td_local local;
static uint64_t now;

static void open_scheduler(uint32_t k)
{
	struct td_scheduler_options options = {
		.brain = td_brain_default, .lease_s = 10, .period_ns = S};

	options.name = k ? "second" : "first";
	options.brain.shape.nodes_max = 4;
	options.brain.shape.node_gpus_max = 4;
	options.brain.shape.jobs_max = JOBS;
	options.brain.shape.kinds_max = 4;
	options.brain.repeat_ns = S;
	state[k] = td_memory_open(store);
	CHECK(state[k]);
	sched[k] = td_scheduler_new(&options, &local.engine, state[k]);
	CHECK(sched[k]);
}

/* Ends the scheduler like a kill: it gives nothing back. */
static void close_scheduler(uint32_t k)
{
	td_scheduler_free(sched[k]);
	td_state_free(state[k]);
	sched[k] = NULL;
	state[k] = NULL;
}

static void end(void)
{
	close_scheduler(0);
	close_scheduler(1);
	td_memory_store_free(store);
	td_local_deinit(&local);
	store = NULL;
}

static void begin(void)
{
	end();
	now = S;
	store = td_memory_store_new();
	CHECK(store);
	CHECK_EQ(td_local_init(&local, JOBS, 4), 0);
	td_local_node(&local, "node1", 2);
	td_local_node(&local, "node2", 2);
}

static void pass(uint32_t seconds)
{
	for (; seconds; seconds--, now += S)
		for (uint32_t k = 0; k < 2; k++)
			if (sched[k])
				(void)td_scheduler_turn(sched[k], now);
}

static struct td_local_job *submit(const char *id, uint32_t gpus)
{
	struct td_brain_request request = {.kind = "k", .gpus = gpus, .uid = 7, .guaranteed = true};
	struct td_local_job *job;

	snprintf(request.id, sizeof(request.id), "%s", id);
	job = td_local_submit(&local, &request);
	CHECK(job);
	return job;
}

TEST(a_job_is_placed_and_written_down)
{
	struct td_local_job *job;
	struct td_state_item item = {0};

	begin();
	job = submit("1", 1);
	open_scheduler(0);
	pass(3);
	CHECK_EQ(job->state, TD_LOCAL_RUNS);
	CHECK_EQ(job->starts, 1);
	CHECK_EQ(td_state_get(state[0], "/tandem/v1/assign/1", &item), 0);
	CHECK(strstr(item.value, "{\"epoch\": 1, \"revision\": "));
	CHECK(strstr(item.value, "\"guest\": false, \"places\": [{\"node\": \"node"));
	CHECK(strstr(item.value, "}], \"guaranteed\": true, \"job\": \"local.1\", \"uid\": 7}"));
	td_state_item_deinit(&item);
	/* An assignment that is over is deleted some time later. */
	job->state = TD_LOCAL_ENDED;
	pass(70);
	CHECK_EQ(td_state_get(state[0], "/tandem/v1/assign/1", &item), TD_STATE_ABSENT);
	end();
}

TEST(a_job_that_waits_says_why)
{
	struct td_local_job *job;

	begin();
	job = submit("1", 5);
	open_scheduler(0);
	pass(3);
	CHECK_EQ(job->state, TD_LOCAL_WAITS);
	CHECK_STR(job->why, "it asks for more GPUs than the nodes that are up have");
	td_local_node(&local, "node3", 4);
	pass(3);
	CHECK_EQ(job->state, TD_LOCAL_RUNS);
	end();
}

TEST(another_one_takes_over_and_starts_nothing_twice)
{
	struct td_local_job *job, *other;

	begin();
	job = submit("1", 2);
	open_scheduler(0);
	open_scheduler(1);
	pass(3);
	CHECK(td_scheduler_brain(sched[0]) && !td_scheduler_brain(sched[1]));
	CHECK_EQ(job->state, TD_LOCAL_RUNS);
	close_scheduler(0);
	other = submit("2", 2);
	pass(15);
	CHECK(td_scheduler_brain(sched[1]));
	CHECK_EQ(job->starts, 1);
	CHECK_EQ(job->epoch, 1);
	CHECK_EQ(other->state, TD_LOCAL_RUNS);
	CHECK(other->revision > job->revision);
	CHECK(strcmp(other->node[0], job->node[0]));
	end();
}

TEST(who_gives_the_lead_back_is_followed_at_once)
{
	begin();
	open_scheduler(0);
	open_scheduler(1);
	pass(3);
	td_scheduler_resign(sched[0], now);
	pass(3);
	CHECK(td_scheduler_brain(sched[1]) && !td_scheduler_brain(sched[0]));
	end();
}

TEST(a_leader_of_the_past_places_nothing)
{
	struct td_local_job *job;

	begin();
	open_scheduler(0);
	pass(3);
	/* It does not turn for longer than its lease, and another one leads. */
	open_scheduler(1);
	now += 20 * S;
	(void)td_scheduler_turn(sched[1], now);
	job = submit("1", 1);
	now -= 15 * S; /* its own clock has not seen that */
	(void)td_scheduler_turn(sched[0], now);
	CHECK_EQ(job->state, TD_LOCAL_WAITS);
	CHECK(!td_scheduler_brain(sched[0]));
	now += 16 * S;
	pass(1);
	CHECK_EQ(job->starts, 1);
	end();
}

static const struct td_engine_kind *local_kind;
static char gone[TD_NAME_MAX];

/* While the first one sees a node away for a moment, the second one begins to lead. */
static int is_overtaken(struct td_engine *engine, struct td_brain *brain, uint64_t now_ns)
{
	int r = local_kind->submitted(engine, brain, now_ns);

	if (*gone) {
		td_local_node(&local, gone, 2);
		*gone = 0;
		(void)td_scheduler_turn(sched[1], now_ns + 20 * S);
	}
	return r;
}

TEST(a_leader_of_the_past_sends_nobody_back)
{
	struct td_local_job *job;
	struct td_engine_kind kind;

	begin();
	local_kind = local.engine.kind;
	kind = *local_kind;
	kind.submitted = is_overtaken;
	local.engine.kind = &kind;
	job = submit("1", 1);
	open_scheduler(0);
	pass(3);
	open_scheduler(1);
	snprintf(gone, sizeof(gone), "%s", job->node[0]);
	td_local_node(&local, gone, 0);
	(void)td_scheduler_turn(sched[0], now);
	CHECK(td_scheduler_brain(sched[1]) && !td_scheduler_brain(sched[0]));
	CHECK_EQ(job->state, TD_LOCAL_RUNS);
	CHECK_EQ(job->starts, 1);
	local.engine.kind = local_kind;
	end();
}

TEST(without_its_state_it_places_nothing_and_what_runs_runs_on)
{
	struct td_local_job *job, *other;

	begin();
	job = submit("1", 1);
	open_scheduler(0);
	pass(3);
	td_memory_cut(state[0], true);
	other = submit("2", 1);
	pass(30);
	CHECK_EQ(job->state, TD_LOCAL_RUNS);
	CHECK_EQ(other->state, TD_LOCAL_WAITS);
	td_memory_cut(state[0], false);
	pass(15);
	CHECK_EQ(other->state, TD_LOCAL_RUNS);
	CHECK_EQ(job->starts, 1);
	end();
}

TEST(an_engine_that_is_away_loses_nothing)
{
	struct td_local_job *job;

	begin();
	open_scheduler(0);
	pass(3);
	job = submit("1", 1);
	pass(1);
	local.is_away = true;
	pass(60);
	local.is_away = false;
	pass(3);
	CHECK_EQ(job->state, TD_LOCAL_RUNS);
	CHECK_EQ(job->starts, 1);
	end();
}

TEST(jobs_of_a_node_that_goes_are_started_again)
{
	struct td_local_job *job;
	char node[TD_NAME_MAX];

	begin();
	job = submit("1", 1);
	open_scheduler(0);
	pass(3);
	strcpy(node, job->node[0]);
	td_local_node(&local, node, 0);
	pass(3);
	CHECK_EQ(job->state, TD_LOCAL_RUNS);
	CHECK_EQ(job->epoch, 2);
	CHECK(strcmp(job->node[0], node));
	CHECK_EQ(local.twice, 0);
	end();
}

TEST(a_job_that_cannot_be_sent_back_stays)
{
	struct td_local_job *job;
	struct td_brain_request least = {.id = "1", .kind = "k", .gpus = 4};

	begin();
	job = td_local_submit(&local, &least);
	open_scheduler(0);
	pass(3);
	CHECK_EQ(job->state, TD_LOCAL_RUNS);
	local.is_stuck = true;
	td_local_node(&local, "node2", 0);
	pass(30);
	CHECK_EQ(job->state, TD_LOCAL_RUNS);
	CHECK_EQ(job->epoch, 1);
	CHECK_EQ(job->starts, 1);
	end();
}

/* --- kills at random --- */

static uint64_t draw(uint64_t *seed, uint64_t below)
{
	*seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
	return (*seed >> 33) % below;
}

/* No GPU has two holders, and no job more than one placement. */
static void check_places(void)
{
	for (uint32_t a = 0; a < JOBS; a++)
		for (uint32_t b = 0; b < a; b++)
			for (uint32_t k = 0; k < local.job[a].request.gpus; k++)
				for (uint32_t l = 0; l < local.job[b].request.gpus; l++)
					if (local.job[a].state == TD_LOCAL_RUNS &&
						local.job[b].state == TD_LOCAL_RUNS &&
						local.job[a].gpu[k] == local.job[b].gpu[l])
						CHECK(strcmp(local.job[a].node[k],
							local.job[b].node[l]));
	CHECK_EQ(local.twice, 0);
}

static void disturb(uint64_t *seed, uint32_t *submitted)
{
	static const char *const nodes[] = {"node1", "node2", "node3", "node4"};
	uint32_t k = (uint32_t)draw(seed, 2);
	char id[16];

	switch (draw(seed, 8)) {
	case 0:
		if (sched[k])
			close_scheduler(k);
		break;
	case 1:
	case 2:
		if (!sched[k])
			open_scheduler(k);
		break;
	case 3: local.is_away = draw(seed, 2); break;
	case 4:
		if (sched[k])
			td_memory_cut(state[k], draw(seed, 2));
		break;
	case 5: td_local_node(&local, nodes[draw(seed, 4)], (uint32_t)draw(seed, 4)); break;
	case 6:
		for (uint32_t j = 0; j < JOBS; j++)
			if (local.job[j].state == TD_LOCAL_RUNS && !draw(seed, 3))
				local.job[j].state = TD_LOCAL_ENDED;
		break;
	default:
		if (*submitted % 40 < 39) {
			snprintf(id, sizeof(id), "j%u", *submitted);
			if (draw(seed, 2))
				(void)submit(id, 1 + (uint32_t)draw(seed, 3));
		}
		++*submitted;
	}
}

TEST(kills_at_random_lose_no_job_and_start_none_twice)
{
	for (uint64_t run = 1; run <= 20; run++) {
		uint64_t seed = run;
		uint32_t submitted = 0;

		begin();
		for (int k = 0; k < 400; k++) {
			uint32_t free_jobs = 0;

			for (uint32_t j = 0; j < JOBS; j++)
				free_jobs += local.job[j].state == TD_LOCAL_ABSENT;
			if (free_jobs)
				disturb(&seed, &submitted);
			pass((uint32_t)draw(&seed, 6));
			check_places();
		}
		/* When all is well again, every job has its turn. */
		local.is_away = false;
		for (uint32_t k = 0; k < 2; k++) {
			if (!sched[k])
				open_scheduler(k);
			td_memory_cut(state[k], false);
		}
		td_local_node(&local, "node1", 4);
		td_local_node(&local, "node2", 4);
		for (int k = 0; k < 200; k++) {
			pass(30);
			check_places();
			for (uint32_t j = 0; j < JOBS; j++)
				if (local.job[j].state == TD_LOCAL_RUNS)
					local.job[j].state = TD_LOCAL_ENDED;
		}
		pass(3);
		for (uint32_t j = 0; j < JOBS; j++)
			CHECK_EQ(local.job[j].state, TD_LOCAL_ABSENT);
		end();
	}
}
