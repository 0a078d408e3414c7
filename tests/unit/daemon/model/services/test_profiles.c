/* A directory of profiles as the daemon keeps it, and what policies are shown of it. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit/daemon/node_world.h"
#include "unit/profile/made_profile.h"

#include "daemon/model/services/profiles.h"
#include "daemon/node/gpus.h"
#include "daemon/node/learning.h"

static char folder[] = "/tmp/tandem-profiles-XXXXXX", path[96];
static struct td_service_page page, service_page;
static unsigned reports;
static char last[256];

static void note(void *arg, const char *sentence)
{
	(void)arg;
	reports++;
	snprintf(last, sizeof(last), "%s", sentence);
}

static const char *at(const char *file)
{
	snprintf(path, sizeof(path), "%s/%s", folder, file);
	return path;
}

static void write_bytes(const char *to, const void *bytes, size_t size)
{
	FILE *file = fopen(to, "w");

	if (!file || fwrite(bytes, 1, size, file) != size || fclose(file))
		abort();
}

static void write_profile(const char *file, const char *gpu, double latency_s)
{
	struct td_service_profile made = make_profile(gpu, latency_s);
	void *bytes;
	size_t size;

	CHECK_EQ(td_service_profile_to_bytes(&made, &bytes, &size), 0);
	/* Another file in its place, as a campaign writes it. */
	write_bytes(at("new"), bytes, size);
	free(bytes);
	char from[sizeof(path)];

	memcpy(from, path, sizeof(from));
	CHECK_EQ(rename(from, at(file)), 0);
}

static void make_folder(void)
{
	memcpy(folder + strlen(folder) - 6, "XXXXXX", 6);
	CHECK(mkdtemp(folder) != NULL);
	reports = 0;
}

static void remove_folder(void)
{
	static const char *const files[] = {"api.profile", "bad.profile", "x y.profile", "readme"};

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		(void)unlink(at(files[i]));
	CHECK_EQ(rmdir(folder), 0);
}

TEST(good_files_are_read_and_bad_ones_are_reported_once)
{
	struct td_profiles profiles;
	struct td_profile_entry *entry;

	make_folder();
	write_profile("api.profile", "Software GPU", 0.02);
	write_bytes(at("bad.profile"), "nonsense", 8);
	write_bytes(at("readme"), "nonsense", 8);
	td_profiles_init(&profiles, note, NULL);
	td_profiles_open(&profiles, folder);
	CHECK_EQ(profiles.good_count, 1);
	CHECK_EQ(reports, 1);
	CHECK(strstr(last, "\"bad.profile\" cannot be used: it is not a profile"));
	CHECK(!td_profiles_take(&profiles, "bad") && !td_profiles_take(&profiles, "none"));
	CHECK(!td_profiles_take(&profiles, "../api") && reports == 1);
	entry = td_profiles_take(&profiles, "api");
	CHECK(entry && !strcmp(entry->learnt.gpu, "Software GPU"));
	td_profiles_drop(entry);
	write_bytes(at("x y.profile"), "nonsense", 8);
	td_profiles_open(&profiles, "none");
	CHECK_EQ(profiles.good_count, 0);
	CHECK(!td_profiles_take(&profiles, "api"));
	td_profiles_open(&profiles, folder);
	CHECK(reports == 3);
	td_profiles_open(&profiles, "/nowhere/at/all");
	CHECK(strstr(last, "\"/nowhere/at/all\" cannot be used: No such file"));
	td_profiles_deinit(&profiles);
	remove_folder();
}

TEST(a_new_file_is_used_from_then_on_and_the_old_profile_lives_as_long_as_its_user)
{
	const double layers[TD_MUDI_LAYERS] = {0};
	struct td_profile_entry *before, *after;
	struct td_profiles profiles;

	make_folder();
	write_profile("api.profile", "Software GPU", 0.02);
	td_profiles_init(&profiles, note, NULL);
	td_profiles_open(&profiles, folder);
	before = td_profiles_take(&profiles, "api");
	write_profile("api.profile", "Software GPU", 0.05);
	after = td_profiles_take(&profiles, "api");
	CHECK(before && after && before != after);
	CHECK(td_mudi_curve(&before->curves, layers, 8).knee_y < 0.03);
	CHECK(td_mudi_curve(&after->curves, layers, 8).knee_y > 0.04);
	CHECK(td_profiles_take(&profiles, "api") == after);
	CHECK_EQ(profiles.good_count, 1);
	td_profiles_drop(before);
	td_profiles_drop(after);
	/* It is gone: who uses it keeps it. */
	CHECK_EQ(unlink(at("api.profile")), 0);
	CHECK(!td_profiles_take(&profiles, "api"));
	CHECK(td_mudi_curve(&after->curves, layers, 8).knee_y > 0.04);
	td_profiles_drop(after);
	CHECK(symlink("/etc/passwd", at("api.profile")) == 0);
	CHECK(!td_profiles_take(&profiles, "api"));
	td_profiles_deinit(&profiles);
	remove_folder();
}

static void say_service(struct fake *f, const char *name)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_service};

	snprintf(msg.service.name, sizeof(msg.service.name), "%s", name);
	CHECK_EQ(td_node_message(&w.node, f->process, &msg, w.now), 0);
}

TEST(policies_see_the_curves_of_a_service_on_its_gpu_and_the_layers_of_training)
{
	static struct td_policy asks;
	struct fake *api, *training;

	make_folder();
	begin();
	asks = *td_policy_find("timeshare");
	asks.needs = TD_HAS(PROFILES);
	w.node.options.policy = &asks;
	api = program(0, "api", MIB);
	training = program(1, "train", MIB);
	write_profile("api.profile", w.node.gpus[0].name, 0.02);
	CHECK(!(w.node.options.has & TD_HAS(PROFILES)));
	CHECK_EQ(td_options_set(&w.node.options, "profiles", folder, NULL), 0);
	td_node_options_changed(&w.node, w.now, "profiles");
	CHECK(w.node.options.has & TD_HAS(PROFILES) && w.node.policy == &asks);
	training->process->service_page = &page;
	say_service(api, "api");
	(void)td_node_step(&w.node, w.now);
	CHECK(w.node.views[0].has & TD_HAS(PROFILES));
	CHECK(w.node.views[0].profile && w.node.views[0].profile->service);
	/* It has told no layers. */
	CHECK(!w.node.views[1].profile);
	atomic_store(&page.layers[1], 7);
	(void)td_node_step(&w.node, w.now);
	CHECK(w.node.views[1].profile && !w.node.views[1].profile->service);
	CHECK(w.node.views[1].profile->layers[1] > 6.5 && w.node.views[1].profile->layers[1] < 7.5);
	/* Measured on another GPU. */
	write_profile("api.profile", "GPU of another kind", 0.02);
	say_service(api, "api");
	(void)td_node_step(&w.node, w.now);
	CHECK(!w.node.views[0].profile);
	/* The directory has gone: a service keeps what it has. */
	write_profile("api.profile", w.node.gpus[0].name, 0.02);
	say_service(api, "api");
	CHECK_EQ(td_options_set(&w.node.options, "profiles", "none", NULL), 0);
	td_node_options_changed(&w.node, w.now, "profiles");
	(void)td_node_step(&w.node, w.now);
	CHECK(!(w.node.options.has & TD_HAS(PROFILES)));
	CHECK(w.node.views[0].profile && w.node.views[0].profile->service);
	td_node_deinit(&w.node);
	remove_folder();
}

static bool mps_is_on(void *arg, const uint8_t *uuid, struct td_mps_seen *ret)
{
	(void)arg;
	(void)uuid;
	*ret = (struct td_mps_seen){.state = TD_MPS_ON, .can_serve = true};
	return true;
}

/* Steps for so long, with ten batches of 20 ms a second. */
static void pass(unsigned seconds)
{
	for (unsigned i = 0; i < 4 * seconds; i++) {
		w.now += 250000000;
		atomic_fetch_add(
			&service_page.batches[td_histogram_bucket(20000000) / 2], i % 2 ? 3 : 2);
		(void)td_node_step(&w.node, w.now);
	}
}

static struct fake *begin_to_learn(struct td_policy *asks)
{
	struct td_nvml_gpu listed = {.total_bytes = 64 * MIB};
	struct fake *api, *training;

	make_folder();
	begin();
	w.node.io.mps = mps_is_on;
	*asks = *td_policy_find("timeshare");
	asks->needs = TD_HAS(PROFILES);
	w.node.options.policy = asks;
	memset(&page, 0, sizeof(page));
	memset(&service_page, 0, sizeof(service_page));
	atomic_store(&page.layers[1], 7);
	atomic_store(&service_page.batch, 8);
	api = program(0, "api", MIB);
	training = program(1, "train", MIB);
	memcpy(listed.uuid, w.node.gpus[0].uuid, sizeof(listed.uuid));
	td_gpus_seen(&w.node, &listed, 1, w.now);
	write_profile("api.profile", w.node.gpus[0].name, 0.02);
	CHECK_EQ(td_options_set(&w.node.options, "profiles", folder, NULL), 0);
	td_node_options_changed(&w.node, w.now, "profiles");
	training->process->service_page = &page;
	api->process->service_page = &service_page;
	say_service(api, "api");
	(void)td_node_step(&w.node, w.now);
	api->process->phase = training->process->phase = TD_PHASE_OPEN;
	return training;
}

TEST(a_service_beside_training_with_known_layers_yields_lessons_when_it_parts)
{
	static struct td_policy asks;
	struct fake *training = begin_to_learn(&asks);
	const struct td_lesson *lesson = &w.node.lessons.waiting[0];

	pass(6);
	CHECK_EQ(w.node.lessons.count, 1);
	CHECK(lesson->batch == 8 && lesson->share_ppm == TD_PPM && lesson->layers[1] == 7);
	CHECK(!strcmp(lesson->service, "api") && !strcmp(lesson->gpu, w.node.gpus[0].name));
	CHECK(lesson->latency_ns > 18000000 && lesson->latency_ns < 22000000);
	CHECK(td_lessons_due_ns(&w.node.lessons, w.now) > w.now);
	fake_dies(&w, training);
	pass(1);
	CHECK_EQ(td_lessons_due_ns(&w.node.lessons, w.now), w.now);
	td_node_deinit(&w.node);
	remove_folder();
}

TEST(unknown_layers_a_small_duty_or_the_option_off_teach_nothing)
{
	static struct td_policy asks;
	struct fake *training = begin_to_learn(&asks);

	atomic_store(&page.layers[1], 0);
	(void)td_node_step(&w.node, w.now);
	training->process->phase = w.fakes[0].process->phase = TD_PHASE_OPEN;
	pass(6);
	atomic_store(&page.layers[1], 7);
	(void)td_node_step(&w.node, w.now);
	training->process->phase = w.fakes[0].process->phase = TD_PHASE_OPEN;
	w.node.options.learn = false;
	pass(6);
	w.node.options.learn = true;
	for (unsigned i = 0; i < 24; i++) {
		/* The plan has set no duty: it is what an earlier one has left. */
		training->process->pacing.duty_ppm = 300000;
		w.now += 250000000;
		atomic_fetch_add(&service_page.batches[40], 9);
		(void)td_learning_look(&w.node, w.now);
	}
	CHECK_EQ(w.node.lessons.count, 0);
	td_node_deinit(&w.node);
	remove_folder();
}

/* Nobody reads the layers any more, so those that were read last are not taken for the present. */
TEST(a_policy_that_asks_for_no_profiles_teaches_nothing)
{
	static struct td_policy asks;
	struct fake *training = begin_to_learn(&asks);

	w.node.options.policy = td_policy_find("timeshare");
	td_node_options_changed(&w.node, w.now, "policy");
	atomic_store(&page.layers[1], 0);
	(void)td_node_step(&w.node, w.now);
	training->process->phase = w.fakes[0].process->phase = TD_PHASE_OPEN;
	pass(6);
	CHECK_EQ(w.node.lessons.count, 0);
	td_node_deinit(&w.node);
	remove_folder();
}

TEST(a_service_that_runs_takes_the_newer_curves)
{
	static struct td_policy asks;
	const double layers[TD_MUDI_LAYERS] = {0, 7};
	struct td_curve curve;

	(void)begin_to_learn(&asks);
	pass(1);
	write_profile("api.profile", w.node.gpus[0].name, 0.05);
	td_learning_learnt(&w.node, w.now);
	(void)td_node_step(&w.node, w.now);
	curve = td_mudi_curve(w.node.views[0].profile->service, layers, 8);
	CHECK(curve.knee_y > 0.049 && curve.knee_y < 0.051);
	td_learning_failed(&w.node, "it ended with status 125", w.now);
	td_node_deinit(&w.node);
	remove_folder();
}
