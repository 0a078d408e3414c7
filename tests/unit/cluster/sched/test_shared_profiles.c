/* Profiles in a state in memory decide where the brain puts jobs. */
#include "test.h"

#include <stdlib.h>

#include "base/time.h"
#include "cluster/sched/profiles.h"
#include "cluster/state/memory.h"
#include "profile/service.h"
#include "profile/speed_file.h"

#define S      TD_NS_PER_S
#define LAYERS "1,2,3,4,5,6,7,8,9,10,11"

static struct td_memory_store *store;
static struct td_state *state;
static struct td_brain *brain;
static struct td_shared_profiles profiles;
static struct td_brain_order orders[8];
static uint64_t now;

static void put(const char *key, const void *value, size_t length)
{
	const struct td_state_write write = {.key = key, .value = value, .length = length};

	CHECK_EQ(td_state_put(state, &write, NULL), 0);
}

static void begin(const struct td_brain_policy *policy)
{
	struct td_brain_params params = td_brain_default;
	struct td_brain_node node = {.name = "node1", .gpus = 2};

	params.policy = policy;
	params.shape.nodes_max = params.shape.node_gpus_max = 2;
	params.shape.jobs_max = params.shape.kinds_max = 8;
	params.silent_ns = 0;
	store = td_memory_store_new();
	state = td_memory_open(store);
	brain = td_brain_new(&params);
	CHECK(store && state && brain);
	CHECK_EQ(td_shared_profiles_init(&profiles, state), 0);
	CHECK_EQ(td_brain_node_seen(brain, &node, 0), 0);
	td_brain_gpu_is(brain, "node1", 0, "a GPU");
	td_brain_gpu_is(brain, "node1", 1, "a GPU");
	td_brain_lead(brain, 1);
	now = 0;
}

static void end(void)
{
	td_shared_profiles_deinit(&profiles);
	td_brain_free(brain);
	td_state_free(state);
	td_memory_store_free(store);
}

static void submit(const char *id, const char *program, bool online)
{
	struct td_brain_request request = {.gpus = 1, .guaranteed = online};

	strcpy(request.id, id);
	strcpy(request.program, program);
	CHECK_EQ(td_brain_submit(brain, &request, now), 0);
}

/* Lets the brain decide in an hour. Returns the index of the GPU of a job; -1: it waits. */
static int gpu_of(const char *id)
{
	struct td_brain_place place;
	uint32_t count;

	now += 3600 * S;
	(void)td_state_turn(state, now);
	td_shared_profiles_look(&profiles, brain, now);
	count = td_brain_step(brain, now, orders, 8);
	for (uint32_t k = 0; k < count; k++)
		td_brain_ran(brain, orders[k].id, orders[k].epoch, now);
	return td_brain_places(brain, td_brain_find(brain, id), &place) ? (int)place.gpu : -1;
}

/* A linear model whose prediction is a number less one input. */
static void make_model(
	struct td_model *model, uint32_t inputs, uint32_t input, double by, double at)
{
	double *numbers = calloc(3 * inputs + 1, sizeof(*numbers));

	CHECK(numbers);
	for (uint32_t k = 0; k < inputs; k++)
		numbers[inputs + k] = 1;
	numbers[2 * inputs + input] = by;
	numbers[3 * inputs] = at;
	*model = (struct td_model){.predictor = {.form = TD_PREDICTOR_LINEAR,
					   .inputs = inputs,
					   .shift = numbers,
					   .scale = numbers + inputs,
					   .target_scale = 1,
					   .coefficients = numbers + 2 * inputs,
					   .coefficient_count = inputs + 1},
		.memory = numbers};
}

/* Programs "busy" and "quiet", and jobs that are slower beside busy ones. */
static void put_speeds(const char *gpu)
{
	static struct td_speed_program programs[] = {{"busy", {0.9, 0.6, 0.4, 0.1}},
		{"quiet", {0.1, 0.1, 0.1, 0.1}}, {"calmer", {0.867, 0.6, 0.4, 0.1}},
		{"train", {0.8, 0.7, 0.5, 0.1}}};
	struct td_speed_kind kind = {.count = 4, .programs = programs};
	struct td_speed_file file = {1, &kind};
	void *bytes;
	size_t size;

	strcpy(kind.gpu, gpu);
	make_model(&kind.model, TD_MUXFLOW_INPUTS, 0, -0.9, 1);
	CHECK_EQ(td_speed_file_to_bytes(&file, &bytes, &size), 0);
	put("/tandem/v1/profile/node7/muxflow.speeds", bytes, size);
	free(bytes);
	td_model_deinit(&kind.model);
}

TEST(muxflow_matches_by_the_profiles_of_the_state)
{
	for (int other = 0; other < 2; other++) { /* either GPU may be the quiet one */
		begin(&td_brain_muxflow);
		put_speeds("a GPU");
		submit("s1", other ? "quiet" : "busy", true);
		CHECK_EQ(gpu_of("s1"), 0);
		submit("s2", other ? "busy" : "quiet", true);
		CHECK_EQ(gpu_of("s2"), 1);
		submit("job", "train", false);
		CHECK_EQ(gpu_of("job"), !other);
		end();
	}
}

TEST(kinds_of_gpus_that_nobody_has_any_more_make_room_for_others)
{
	struct td_brain_node node = {.name = "node2", .gpus = 1};
	char name[TD_NAME_MAX];

	begin(&td_brain_muxflow);
	put_speeds("a new GPU");
	for (uint32_t k = 0; k < 3 * TD_GUEST_GPU_KINDS; k++) {
		CHECK_EQ(td_brain_node_seen(brain, &node, now), 0);
		snprintf(name, sizeof(name), "an old GPU, %u", k);
		td_brain_gpu_is(brain, node.name, 0, name);
		if (k % 2)
			td_brain_node_left(brain, node.name, now);
	}
	td_brain_gpu_is(brain, "node1", 0, "a new GPU");
	td_brain_gpu_is(brain, "node1", 1, "a new GPU");
	submit("s1", "busy", true);
	CHECK_EQ(gpu_of("s1"), 0);
	submit("s2", "quiet", true);
	CHECK_EQ(gpu_of("s2"), 1);
	submit("job", "train", false);
	CHECK_EQ(gpu_of("job"), 1);
	end();
}

TEST(who_has_no_profile_waits_beside_services_and_says_so)
{
	begin(&td_brain_muxflow);
	put_speeds("another GPU");
	submit("s1", "quiet", true);
	CHECK_EQ(gpu_of("s1"), 0);
	submit("job", "train", false);
	CHECK_EQ(gpu_of("job"), 1); /* nobody holds that one */
	submit("late", "train", false);
	CHECK_EQ(gpu_of("late"), -1);
	CHECK_EQ(td_brain_why(brain, td_brain_find(brain, "late")), TD_WHY_PROFILE);
	put_speeds("a GPU");
	CHECK_EQ(gpu_of("late"), 0);
	submit("later", "train", false);
	CHECK_EQ(gpu_of("later"), -1);
	CHECK_EQ(td_brain_why(brain, td_brain_find(brain, "later")), TD_WHY_MATCHING);
	put("/tandem/v1/profile/node7/muxflow.speeds", "junk", 4);
	CHECK_EQ(gpu_of("later"), -1);
	CHECK_EQ(td_brain_why(brain, td_brain_find(brain, "later")), TD_WHY_PROFILE);
	end();
}

/* The curves of a service whose slopes are `steep`. */
static void put_service(const char *key, double steep)
{
	struct td_service_profile profile = {
		.gpu = "a GPU", .batch_min = 16, .batch_max = 512, .curve_count = 1};
	void *bytes;
	size_t size;

	make_model(&profile.models[TD_PROFILE_LEFT_SLOPE], TD_MUDI_INPUTS, 1, -steep, -steep);
	make_model(&profile.models[TD_PROFILE_RIGHT_SLOPE], TD_MUDI_INPUTS, 1, -steep, -steep);
	make_model(&profile.models[TD_PROFILE_KNEE_SHARE], TD_MUDI_INPUTS, 1, 0, 0.5);
	make_model(&profile.models[TD_PROFILE_KNEE_LATENCY], TD_MUDI_INPUTS, 1, 0, 0.01);
	CHECK_EQ(td_service_profile_to_bytes(&profile, &bytes, &size), 0);
	put(key, bytes, size);
	free(bytes);
	td_service_profile_deinit(&profile);
}

TEST(mudi_selects_by_the_curves_and_layers_of_the_state)
{
	for (int other = 0; other < 2; other++) {
		begin(&td_brain_mudi);
		put_service("/tandem/v1/profile/node1/flat.profile", 0.01);
		put_service("/tandem/v1/profile/node2/steep.profile", 1);
		submit("s1", other ? "flat" : "steep", true);
		CHECK_EQ(gpu_of("s1"), 0);
		submit("s2", other ? "steep" : "flat", true);
		CHECK_EQ(gpu_of("s2"), 1);
		submit("job", "train", false);
		CHECK_EQ(gpu_of("job"), -1);
		CHECK_EQ(td_brain_why(brain, td_brain_find(brain, "job")), TD_WHY_PROFILE);
		put("/tandem/v1/profile/node3/train.layers", LAYERS, strlen(LAYERS));
		CHECK_EQ(gpu_of("job"), !other);
		end();
	}
}

TEST(a_brain_that_begins_to_lead_is_told_all)
{
	begin(&td_brain_mudi);
	put_service("/tandem/v1/profile/node1/flat.profile", 0.01);
	put("/tandem/v1/profile/node3/train.layers", LAYERS, strlen(LAYERS));
	(void)td_shared_profiles_turn(&profiles, S);
	submit("s1", "flat", true);
	submit("s2", "flat", true);
	submit("job", "train", false);
	CHECK(gpu_of("job") >= 0);
	end();
}

TEST(what_did_not_change_is_not_read_again)
{
	const void *told;

	begin(&td_brain_mudi);
	put_service("/tandem/v1/profile/node1/flat.profile", 0.01);
	(void)gpu_of("none");
	told = profiles.set;
	CHECK(told && td_brain_knows(brain) == told);
	(void)td_shared_profiles_turn(&profiles, S);
	(void)gpu_of("none");
	CHECK(profiles.set == told);
	put("/tandem/v1/profile/node3/train.layers", LAYERS, strlen(LAYERS));
	(void)td_shared_profiles_turn(&profiles, S);
	(void)gpu_of("none");
	CHECK(profiles.set != told && td_brain_knows(brain) == profiles.set);
	end();
}

/* Users choose the names of jobs. There are 8 kinds in this brain. */
TEST(names_that_come_and_go_take_the_place_of_no_program)
{
	char name[16];

	begin(&td_brain_mudi);
	put("/tandem/v1/profile/node3/train.layers", LAYERS, strlen(LAYERS));
	put_service("/tandem/v1/profile/node1/flat.profile", 0.01);
	for (uint32_t k = 0; k < 20; k++) {
		snprintf(name, sizeof(name), "run-%u", k);
		submit(name, name, false);
		(void)gpu_of(name);
		td_brain_ended(brain, name, now);
	}
	submit("s1", "flat", true);
	submit("s2", "flat", true);
	submit("job", "train", false);
	CHECK(gpu_of("job") >= 0);
	end();
}

/* A job runs beside a busy service, and a GPU comes whose service leaves it this much more. */
static int gpu_after_a_better_one_came(const char *better, bool stays)
{
	struct td_brain_request request = {
		.gpus = 1, .id = "job", .program = "train", .stays = stays};
	int gpu;

	begin(&td_brain_muxflow);
	put_speeds("a GPU");
	submit("s1", "busy", true);
	submit("s2", "busy", true);
	CHECK_EQ(gpu_of("s2"), 1);
	CHECK_EQ(td_brain_submit(brain, &request, now), 0);
	gpu = gpu_of("job");
	CHECK(gpu >= 0);
	td_brain_ended(brain, gpu ? "s1" : "s2", now);
	submit("s3", better, true);
	CHECK_EQ(gpu_of("s3"), !gpu); /* the service comes after the matching of that hour */
	return gpu_of("job") == gpu ? 0 : 1;
}

TEST(muxflow_moves_a_job_where_that_is_worth_a_restart)
{
	const struct td_brain_job *job;

	CHECK_EQ(gpu_after_a_better_one_came("quiet", false), 1);
	job = td_brain_job(brain, td_brain_find(brain, "job"));
	CHECK_EQ(job->epoch, 2); /* moved once, and no more */
	CHECK_EQ(job->phase, TD_BRAIN_RUNNING);
	end();
	CHECK_EQ(gpu_after_a_better_one_came("quiet", true), 0);
	end();
	/* It is a little faster there, but not by what the restart costs. */
	CHECK_EQ(gpu_after_a_better_one_came("calmer", false), 0);
	end();
}
