/* The engine of Slurm before a slurmctld of this file: what it tells the brain, and orders. */
#include "test.h"

#include <errno.h>
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <stdlib.h>
#include <time.h>

#include "slurm/comment.h"
#include "slurm/engine.h"

#define JOBS 4u
#define S    1000000000ull

/* --- slurmctld --- */

static slurm_job_info_t jobs[JOBS];
static node_info_t nodes[2];
static partition_info_t partition;
static uint32_t updates, requeues, kills, requeue_flags;
static struct {
	uint32_t job, priority;
	char node[64], comment[TD_SLURM_COMMENT_MAX];
	time_t begin;
} last;

void slurm_init(const char *conf)
{
	(void)conf;
}

int slurm_get_errno(void)
{
	return ESLURM_INVALID_JOB_ID;
}

char *slurm_strerror(int number)
{
	static char text[] = "so it is";

	(void)number;
	return text;
}

int slurm_load_jobs(time_t since, job_info_msg_t **ret, uint16_t flags)
{
	(void)since;
	(void)flags;
	*ret = calloc(1, sizeof(**ret));
	(*ret)->record_count = JOBS;
	(*ret)->job_array = jobs;
	return 0;
}

void slurm_free_job_info_msg(job_info_msg_t *message)
{
	free(message);
}

int slurm_load_node(time_t since, node_info_msg_t **ret, uint16_t flags)
{
	(void)since;
	(void)flags;
	*ret = calloc(1, sizeof(**ret));
	(*ret)->record_count = 2;
	(*ret)->node_array = nodes;
	return 0;
}

void slurm_free_node_info_msg(node_info_msg_t *message)
{
	free(message);
}

int slurm_load_partitions(time_t since, partition_info_msg_t **ret, uint16_t flags)
{
	(void)since;
	(void)flags;
	*ret = calloc(1, sizeof(**ret));
	(*ret)->record_count = 1;
	(*ret)->partition_array = &partition;
	return 0;
}

void slurm_free_partition_info_msg(partition_info_msg_t *message)
{
	free(message);
}

void slurm_init_job_desc_msg(job_desc_msg_t *message)
{
	*message = (job_desc_msg_t){.priority = NO_VAL};
}

int slurm_update_job(job_desc_msg_t *message)
{
	slurm_job_info_t *job = NULL;

	for (uint32_t k = 0; k < JOBS; k++)
		if (jobs[k].job_id == message->job_id)
			job = &jobs[k];
	if (!job)
		return -1;
	updates++;
	last.job = message->job_id;
	last.priority = message->priority;
	last.begin = message->begin_time;
	snprintf(last.node, sizeof(last.node), "%s", message->req_nodes ? message->req_nodes : "");
	snprintf(last.comment, sizeof(last.comment), "%s", message->admin_comment);
	free(job->admin_comment);
	job->admin_comment = strdup(message->admin_comment);
	if (message->priority != NO_VAL)
		job->priority = message->priority == INFINITE ? 1000 : message->priority;
	return 0;
}

int slurm_requeue(uint32_t job, uint32_t flags)
{
	(void)job;
	requeues++;
	requeue_flags = flags;
	return 0;
}

int slurm_kill_job(uint32_t job, uint16_t signal, uint16_t flags)
{
	(void)job;
	(void)signal;
	(void)flags;
	kills++;
	return 0;
}

/* --- a cluster --- */

static struct td_brain *brain;
static struct td_engine *engine;
static struct td_brain_order orders[8];
static uint32_t count;

static void add(uint32_t at, const char *spec, bool batch)
{
	static char main_name[] = "main";
	char text[TD_SLURM_COMMENT_MAX];

	snprintf(text, sizeof(text), "tandem=%s epoch=0 why: it has just come", spec);
	jobs[at] = (slurm_job_info_t){.job_id = 10 + at,
		.job_state = JOB_PENDING,
		.batch_flag = batch,
		.partition = main_name,
		.admin_comment = strdup(text)};
}

static void begin(void)
{
	static char names[2][8] = {"node1", "node2"}, gres[] = "gpu:1,tandem:500",
		    main_name[] = "main";
	static int32_t both[] = {0, 1, -1};
	struct td_brain_params params = td_brain_default;

	for (uint32_t k = 0; k < JOBS; k++) {
		free(jobs[k].admin_comment);
		jobs[k] = (slurm_job_info_t){.job_id = 1000 + k, .job_state = JOB_COMPLETE};
	}
	for (uint32_t k = 0; k < 2; k++)
		nodes[k] = (node_info_t){
			.name = names[k], .gres = gres, .node_state = NODE_STATE_IDLE};
	partition =
		(partition_info_t){.name = main_name, .state_up = PARTITION_UP, .node_inx = both};
	updates = requeues = kills = 0;
	if (engine)
		engine->kind->free(engine);
	td_brain_free(brain);
	params.shape.jobs_max = 16;
	params.shape.nodes_max = 4;
	brain = td_brain_new(&params);
	engine = td_slurm_engine_new(0);
	CHECK(brain && engine);
	td_brain_lead(brain, 1);
}

/* Tells the brain what is so, and takes its orders. */
static void look(uint64_t now)
{
	CHECK_EQ(engine->kind->submitted(engine, brain, now), 0);
	count = td_brain_step(brain, now, orders, 8);
}

static int place(const struct td_brain_order *order)
{
	struct td_brain_place places[TD_GANG_MAX];
	const struct td_placement placement = {.id = order->id,
		.epoch = order->epoch,
		.guest = order->guest,
		.places = places,
		.count = td_brain_places(brain, order->job, places)};

	return engine->kind->place(engine, &placement);
}

static const struct td_brain_job *known(const char *id)
{
	return td_brain_job(brain, td_brain_find(brain, id));
}

/* A job that runs in its first placement. */
static void begin_with_one(const char *spec, bool batch)
{
	begin();
	add(0, spec, batch);
	look(S);
	CHECK_EQ(count, 1);
	CHECK_EQ(place(&orders[0]), 0);
	jobs[0].job_state = JOB_RUNNING;
	look(2 * S);
	CHECK_EQ(count, 0);
	CHECK_EQ(known("10")->phase, TD_BRAIN_RUNNING);
}

TEST(a_job_is_placed_by_one_update_of_its_record)
{
	begin_with_one("0.5", true);
	CHECK_EQ(updates, 1);
	CHECK_EQ(last.job, 10);
	CHECK_EQ(last.priority, INFINITE);
	CHECK_STR(last.node, "node2");
	CHECK_STR(last.comment, "tandem=0.5 epoch=1 on=node2:0 run=0 guest");
	CHECK(last.begin <= time(NULL) && last.begin + 60 > time(NULL));
	jobs[0].job_state = JOB_COMPLETE;
	look(3 * S);
	CHECK(!known("10"));
}

/* It has to leave nothing but a look of slurmctld at its queue: a user may have held it since. */
TEST(a_placement_that_is_ordered_again_sets_the_comment_alone)
{
	begin();
	add(0, "0.5", true);
	look(S);
	CHECK_EQ(place(&orders[0]), 0);
	look(S + S / 2);
	jobs[0].eligible_time = time(NULL) + 60;
	CHECK_EQ(place(&orders[0]), 0);
	CHECK_EQ(updates, 1); /* it may not start yet */
	jobs[0].eligible_time = time(NULL);
	CHECK_EQ(place(&orders[0]), 0);
	CHECK_EQ(updates, 2);
	CHECK_EQ(last.priority, NO_VAL);
	CHECK_STR(last.node, "");
	CHECK_STR(last.comment, "tandem=0.5 epoch=1 on=node2:0 run=0 guest");
	jobs[0].job_state = JOB_RUNNING;
	look(2 * S);
	CHECK_EQ(place(&orders[0]), 0);
	CHECK_EQ(updates, 2);
}

TEST(a_batch_job_is_queued_again_and_srun_is_not)
{
	begin_with_one("0.5", true);
	CHECK_EQ(engine->kind->requeue(engine, "10", 1, "others come first"), 0);
	CHECK_EQ(requeues, 1);
	CHECK_EQ(requeue_flags, JOB_REQUEUE_HOLD | JOB_RUNNING);
	CHECK_STR(last.comment, "tandem=0.5 epoch=1 why: others come first");
	CHECK(!known("10")->request.stays);
	begin_with_one("0.5", false);
	CHECK_EQ(engine->kind->requeue(engine, "10", 1, "others come first"), -EOPNOTSUPP);
	CHECK_EQ(requeues, 0);
	CHECK_EQ(updates, 1);
	CHECK(known("10")->request.stays);
	/* An order about another placement does nothing. */
	CHECK_EQ(engine->kind->requeue(engine, "10", 2, "others come first"), 0);
	CHECK_EQ(engine->kind->stop(engine, "10", 2), 0);
	CHECK_EQ(kills, 0);
	CHECK_EQ(engine->kind->stop(engine, "10", 1), 0);
	CHECK_EQ(kills, 1);
}

TEST(a_job_that_slurm_has_queued_again_loses_its_placement)
{
	begin_with_one("0.5", true);
	jobs[0].job_state = JOB_PENDING;
	jobs[0].restart_cnt = 1;
	look(3 * S);
	CHECK_EQ(count, 2);
	CHECK_EQ(orders[0].verb, TD_ORDER_REQUEUE);
	CHECK_EQ(orders[1].verb, TD_ORDER_PLACE);
	CHECK_EQ(orders[1].epoch, 2);
	CHECK_EQ(engine->kind->requeue(engine, "10", 1, "x"), 0);
	CHECK_EQ(requeues, 0);
	CHECK_EQ(last.priority, 0);
	CHECK_EQ(place(&orders[1]), 0);
	CHECK_STR(last.comment, "tandem=0.5 epoch=2 on=node2:0 run=1 guest");
	CHECK(last.begin > time(NULL)); /* its node would refuse it in the same second */
}

/* Each of two nodes has one GPU, and three jobs want a whole one. */
TEST(a_job_that_is_leaving_its_node_holds_its_gpu)
{
	static const uint32_t ends[] = {JOB_COMPLETE, JOB_CANCELLED, JOB_NODE_FAIL, JOB_PENDING};

	for (uint32_t k = 0; k < 4; k++) {
		begin_with_one("1,class=guaranteed", true);
		add(1, "1,class=guaranteed", true);
		look(3 * S);
		CHECK_EQ(count, 1);
		CHECK_EQ(place(&orders[0]), 0);
		jobs[1].job_state = JOB_RUNNING;
		add(2, "1,class=guaranteed", true);
		jobs[0].job_state = ends[k] | JOB_COMPLETING;
		look(4 * S);
		CHECK(known("10"));
		CHECK_EQ(known("10")->phase, TD_BRAIN_RUNNING);
		CHECK_EQ(known("12")->phase, TD_BRAIN_WAITING);
		look(60 * S);
		CHECK_EQ(known("12")->phase, TD_BRAIN_WAITING);
		/* An order about it finds nothing to do. */
		updates = 0;
		if (ends[k] != JOB_PENDING)
			CHECK_EQ(engine->kind->upgrade(engine, "10", known("10")->epoch), 0);
		CHECK_EQ(updates, 0);
		jobs[0].job_state = ends[k] == JOB_PENDING ? JOB_CANCELLED : ends[k];
		look(61 * S);
		CHECK(!known("10"));
		CHECK_EQ(known("12")->phase, TD_BRAIN_PLACED);
	}
}

TEST(a_job_that_is_leaving_a_dead_node_holds_nothing)
{
	begin_with_one("0.5", true);
	jobs[0].job_state = JOB_NODE_FAIL | JOB_COMPLETING;
	nodes[1].node_state = NODE_STATE_DOWN;
	look(3 * S);
	CHECK(!known("10"));
}

TEST(a_scheduler_that_starts_anew_adopts_what_runs)
{
	begin();
	add(0, "1,class=guaranteed", true);
	free(jobs[0].admin_comment);
	jobs[0].admin_comment = strdup("tandem=1,class=guaranteed epoch=4 on=node2:0 run=0");
	jobs[0].job_state = JOB_RUNNING;
	look(S);
	CHECK_EQ(count, 0);
	CHECK_EQ(known("10")->phase, TD_BRAIN_RUNNING);
	CHECK_EQ(known("10")->epoch, 4);
}

TEST(a_scheduler_that_starts_anew_adopts_what_is_leaving)
{
	static const uint32_t ends[] = {JOB_COMPLETE, JOB_CANCELLED, JOB_PENDING};

	for (uint32_t k = 0; k < 3; k++) {
		begin();
		add(0, "1,class=guaranteed", true);
		free(jobs[0].admin_comment);
		jobs[0].admin_comment =
			strdup("tandem=1,class=guaranteed epoch=4 on=node2:0 run=0");
		jobs[0].job_state = ends[k] | JOB_COMPLETING;
		add(1, "1,class=guaranteed", true);
		add(2, "1,class=guaranteed", true);
		look(S);
		CHECK_EQ(count, 1); /* the other node has room for one */
		CHECK_STR(orders[0].id, "11");
		CHECK_EQ(place(&orders[0]), 0);
		CHECK_STR(last.node, "node1");
		CHECK(known("10"));
		CHECK_EQ(known("10")->epoch, 4);
		CHECK_EQ(known("12")->phase, TD_BRAIN_WAITING);
		jobs[1].job_state = JOB_RUNNING;
		jobs[0].job_state = ends[k] == JOB_PENDING ? JOB_CANCELLED : ends[k];
		look(2 * S);
		CHECK(!known("10"));
		CHECK_EQ(known("12")->phase, TD_BRAIN_PLACED);
	}
}

TEST(a_job_that_ran_between_two_looks_holds_its_gpu_while_it_is_leaving)
{
	begin();
	add(0, "1,class=guaranteed", true);
	look(S);
	CHECK_EQ(place(&orders[0]), 0);
	jobs[0].job_state = JOB_COMPLETE | JOB_COMPLETING;
	add(1, "1,class=guaranteed", true);
	add(2, "1,class=guaranteed", true);
	look(2 * S);
	CHECK(known("10"));
	CHECK_EQ(known("10")->phase, TD_BRAIN_RUNNING);
	CHECK_EQ(known("12")->phase, TD_BRAIN_WAITING);
	jobs[0].job_state = JOB_COMPLETE;
	look(3 * S);
	CHECK(!known("10"));
	CHECK_EQ(known("12")->phase, TD_BRAIN_PLACED);
}

/* Whether job 10 is placed if it depends so on job 11, which is in this state. */
static bool is_placed(const char *dependency, uint32_t state)
{
	char text[128];

	begin();
	add(0, "0.5", true);
	snprintf(text, sizeof(text), "%s", dependency);
	jobs[0].dependency = text;
	jobs[1] = (slurm_job_info_t){.job_id = 11, .job_state = state};
	look(S);
	jobs[0].dependency = NULL;
	CHECK_EQ(count, known("10") != NULL);
	return count;
}

TEST(a_job_gets_no_place_before_the_jobs_that_it_waits_for)
{
	CHECK(!is_placed("afterok:11(unfulfilled)", JOB_RUNNING));
	CHECK(!is_placed("afterany:11(unfulfilled)", JOB_PENDING));
	CHECK(!is_placed("afterany:99(unfulfilled),afterany:11(unfulfilled)", JOB_RUNNING));
	CHECK(!is_placed("afterany:99:11", JOB_RUNNING));
	CHECK(is_placed("afterok:11(unfulfilled)", JOB_COMPLETE));
	CHECK(is_placed("afterany:11(unfulfilled)", JOB_FAILED));
	CHECK(is_placed("afternotok:11(unfulfilled)", JOB_TIMEOUT));
	CHECK(is_placed("afterok:99(unfulfilled)", JOB_RUNNING)); /* gone for long */
	CHECK(is_placed("after:11(unfulfilled)", JOB_PENDING));
}

TEST(a_job_whose_dependency_has_failed_gets_no_place)
{
	CHECK(!is_placed("afterok:11(unfulfilled)", JOB_FAILED));
	CHECK(!is_placed("afterok:11(unfulfilled)", JOB_CANCELLED));
	CHECK(!is_placed("afternotok:11(unfulfilled)", JOB_COMPLETE));
	CHECK(!is_placed("afterok:99(failed)", JOB_RUNNING));
}
