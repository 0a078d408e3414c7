/* Learners on functions that they should find, choice, determinism, and the store. */
#include "test.h"

#include <errno.h>
#include <math.h>
#include <unistd.h>

#include "profile/blob.h"
#include "learn/internal.h"
#include "learn/store.h"
#include "policy_random.h"

#define COUNT  400
#define INPUTS 4

static double x[COUNT * INPUTS], y[COUNT];
static uint32_t groups[COUNT];
static struct td_dataset data = {x, y, COUNT, INPUTS};
static struct td_learn_options options;

static double plane(const double *v)
{
	return 3 + 2 * v[0] - 5 * v[1] + 0.25 * v[3];
}

/* A shape like that of sharing: a product of a saturation and a share. */
static double speed(const double *v)
{
	return v[3] / (0.3 + v[3]) / (1 + 2 * v[0] * v[1]);
}

static double steps(const double *v)
{
	return (v[0] > 0.5 ? 4 : 1) + (v[2] > 0.3 ? 2 : 0);
}

/* Five groups of samples that have nothing in common. */
static void sample(double (*f)(const double *), double noise, uint64_t seed)
{
	options = td_learn_default;
	for (uint32_t i = 0; i < COUNT; i++) {
		for (uint32_t k = 0; k < INPUTS; k++)
			x[i * INPUTS + k] = random_unit(&seed);
		y[i] = f(x + i * INPUTS) + noise * random_normal(&seed);
		groups[i] = i % 5;
	}
}

/* Root mean square error on points that the learner has not seen. */
static double error_of(const struct td_model *model, double (*f)(const double *))
{
	uint64_t seed = 4711;
	double sum = 0;

	for (int i = 0; i < 1000; i++) {
		double v[INPUTS];

		for (int k = 0; k < INPUTS; k++)
			v[k] = random_unit(&seed);
		sum += pow(td_predict(&model->predictor, v) - f(v), 2);
	}
	return sqrt(sum / 1000);
}

TEST(linear_finds_a_plane)
{
	struct td_model model;

	sample(plane, 0, 1);
	options.ridge = 1e-9;
	CHECK_EQ(td_learn_linear(&data, &options, &model), 0);
	CHECK(error_of(&model, plane) < 1e-6);
	td_model_deinit(&model);
}

/* By hand: 1, 3 and 8 have the mean 4 and the deviation sqrt(26 / 3). */
TEST(inputs_and_targets_are_standardised_by_mean_and_deviation)
{
	static double two_inputs[] = {1, 7, 3, 7, 8, 7}, targets[] = {10, 20, 60};
	const struct td_dataset three = {two_inputs, targets, 3, 2};
	struct td_model model;

	CHECK_EQ(td_model_init(&model, TD_PREDICTOR_LINEAR, &three, 3, 0), 0);
	CHECK(fabs(model.predictor.shift[0] - 4) < 1e-12);
	CHECK(fabs(model.predictor.scale[0] - sqrt(26 / 3.)) < 1e-12);
	CHECK(fabs(model.predictor.shift[1] - 7) < 1e-12);
	CHECK(fabs(model.predictor.scale[1] - 1) < 1e-12); /* a constant */
	CHECK(fabs(model.predictor.target_shift - 30) < 1e-12);
	CHECK(fabs(model.predictor.target_scale - sqrt(1400 / 3.)) < 1e-12);
	td_model_deinit(&model);
}

TEST(a_constant_input_and_equal_ones_do_no_harm)
{
	struct td_model model;

	sample(plane, 0, 2);
	for (uint32_t i = 0; i < COUNT; i++) {
		x[i * INPUTS + 2] = 7;
		x[i * INPUTS + 3] = x[i * INPUTS];
		y[i] = 4 * x[i * INPUTS];
	}
	CHECK_EQ(td_learn_linear(&data, &options, &model), 0);
	CHECK(fabs(td_predict(&model.predictor, (const double[]){0.5, 0.1, 7, 0.5}) - 2) < 0.01);
	td_model_deinit(&model);
}

TEST(the_mlp_learns_a_speed)
{
	struct td_model model;

	sample(speed, 0.01, 3);
	CHECK_EQ(td_learn_mlp(&data, &options, &model), 0);
	CHECK(error_of(&model, speed) < 0.03);
	CHECK_EQ(model.predictor.layers, 3);
	td_model_deinit(&model);
}

/*
 * One step of descent on one sample, by hand: y' = w x + b from 0, standardised, no hidden layer.
 */
TEST(without_hidden_layers_the_mlp_is_a_line)
{
	struct td_model model;

	sample(plane, 0, 4);
	options.hidden_layers = 0;
	options.decay = 0;
	CHECK_EQ(td_learn_mlp(&data, &options, &model), 0);
	CHECK(error_of(&model, plane) < 1e-3);
	td_model_deinit(&model);
}

TEST(the_forest_learns_steps)
{
	struct td_model model;

	sample(steps, 0.05, 5);
	CHECK_EQ(td_learn_forest(&data, &options, &model), 0);
	CHECK(error_of(&model, steps) < 0.35);
	td_model_deinit(&model);
}

TEST(many_points_are_predicted_as_one_by_one)
{
	double each[37][TD_PREDICT_INPUTS_MAX], found[37], points[37 * TD_PREDICT_INPUTS_MAX];
	uint64_t seed = 9;

	for (enum td_predictor_form form = 0; form < TD_PREDICTOR_N; form++) {
		struct td_model model;
		uint32_t inputs;

		int r;

		sample(steps, 0.05, 5);
		r = td_learn(form, &data, &options, &model);
		if (r == -ENOSYS && form == TD_PREDICTOR_SVR)
			continue; /* built without libsvm */
		CHECK_EQ(r, 0);
		inputs = model.predictor.inputs;
		for (uint32_t k = 0; k < 37; k++)
			for (uint32_t i = 0; i < inputs; i++)
				points[k * inputs + i] = each[k][i] = random_unit(&seed) * 3 - 1;
		for (uint32_t count = 0; count <= 37; count += 1 + count / 3) {
			td_predict_many(&model.predictor, points, count, found);
			for (uint32_t k = 0; k < count; k++) {
				double one = td_predict(&model.predictor, each[k]);

				CHECK(!memcmp(&found[k], &one, sizeof(one)));
			}
		}
		td_model_deinit(&model);
	}
}

/*
 * With a rate at which the weights run away, and two equal inputs: neither model may win, nor be
 * returned.
 */
TEST(a_training_that_diverges_is_no_model_and_is_never_chosen)
{
	struct td_learn_options wild = options;
	struct td_learn_report report;
	struct td_model model;

	sample(steps, 0.05, 5);
	wild.rate = 1e3;
	CHECK_EQ(td_learn_mlp(&data, &wild, &model), -ERANGE);
	CHECK_EQ(td_learn_best(&data, groups, &wild, &model, &report), 0);
	CHECK(report.chosen != TD_PREDICTOR_MLP && isinf(report.error[TD_PREDICTOR_MLP]));
	CHECK(isfinite(td_predict(&model.predictor, data.x)));
	td_model_deinit(&model);
}

TEST(an_undetermined_line_is_refused)
{
	const double twins[] = {1, 1, 2, 2, 3, 3, 4, 4}, same[] = {1, 2, 3, 5};
	const struct td_dataset collinear = {twins, same, 4, 2};
	struct td_learn_options no_ridge = options;
	struct td_model model;

	no_ridge.ridge = 0;
	CHECK_EQ(td_learn_linear(&collinear, &no_ridge, &model), -ERANGE);
	CHECK_EQ(td_learn_linear(&collinear, &options, &model), 0);
	td_model_deinit(&model);
}

TEST(one_deep_tree_repeats_what_it_has_seen)
{
	struct td_model model;
	double worst = 0;

	sample(speed, 0, 6);
	options.trees = 1;
	options.depth_max = 40;
	options.leaf_min = 1;
	CHECK_EQ(td_learn_forest(&data, &options, &model), 0);
	for (uint32_t i = 0, same = 0; i < COUNT; i++) {
		double off = fabs(td_predict(&model.predictor, x + i * INPUTS) - y[i]);

		same += off < 1e-12;
		worst = fmax(worst, off);
		CHECK(i + 1 < COUNT || same > COUNT / 2); /* a bootstrap sees 63 % */
	}
	CHECK(worst < 0.6);
	td_model_deinit(&model);
}

TEST(support_vectors_learn_a_speed)
{
	struct td_model model;
	int r;

	sample(speed, 0.01, 7);
	r = td_learn_svr(&data, &options, &model);
	if (r == -ENOSYS)
		SKIP("built without libsvm");
	CHECK_EQ(r, 0);
	CHECK(error_of(&model, speed) < 0.03);
	td_model_deinit(&model);
}

TEST(the_best_form_is_chosen_by_cross_validation)
{
	struct td_learn_report report;
	struct td_model model;

	sample(plane, 0.3, 8);
	options.epochs = 60;
	CHECK_EQ(td_learn_best(&data, groups, &options, &model, &report), 0);
	CHECK_EQ(report.chosen, TD_PREDICTOR_LINEAR);
	CHECK_EQ(model.predictor.form, TD_PREDICTOR_LINEAR);
	td_model_deinit(&model);
	sample(steps, 0.05, 9);
	options.epochs = 60;
	CHECK_EQ(td_learn_best(&data, groups, &options, &model, &report), 0);
	CHECK(report.chosen != TD_PREDICTOR_LINEAR);
	for (int form = 0; form < TD_PREDICTOR_N; form++)
		CHECK(report.error[report.chosen] <= report.error[form]);
	td_model_deinit(&model);
}

/*
 * Five tasks with a number each, six batches and three noisy samples of each pair, as Mudi profiles
 * them. The target is a line of the number, but for one batch of each task. A sample that is left
 * out has twins of its task in the training, which a flexible form repeats. A task that is left out
 * has none, and a line is best.
 */
static void sample_tasks(uint64_t seed)
{
	options = td_learn_default;
	options.epochs = 60;
	data.count = 0;
	for (uint32_t look = 0; look < 3; look++) {
		for (uint32_t task = 0; task < 5; task++) {
			for (uint32_t batch = 0; batch < 6; batch++, data.count++) {
				double *at = x + data.count * INPUTS;

				at[0] = task * task;
				at[1] = batch;
				at[2] = at[3] = 0;
				y[data.count] = 2 * at[0] + (batch == task ? 3 : 0) +
						0.01 * random_normal(&seed);
				groups[data.count] = task;
			}
		}
	}
}

TEST(who_is_to_predict_unseen_tasks_is_chosen_by_tasks_left_out)
{
	struct td_learn_report report;
	struct td_model model;

	sample_tasks(21);
	CHECK_EQ(td_learn_best(&data, groups, &options, &model, &report), 0);
	CHECK_EQ(report.chosen, TD_PREDICTOR_LINEAR);
	/* A task that was never seen, between two that were. */
	CHECK(fabs(td_predict(&model.predictor, (const double[]){6, 5, 0, 0}) - 12) < 2);
	td_model_deinit(&model);
	data.count = COUNT;
}

static int same_models(const struct td_model *a, const struct td_model *b)
{
	void *bytes[2];
	size_t size[2];
	int same;

	CHECK_EQ(td_model_to_blob(a, &bytes[0], &size[0]), 0);
	CHECK_EQ(td_model_to_blob(b, &bytes[1], &size[1]), 0);
	same = size[0] == size[1] && !memcmp(bytes[0], bytes[1], size[0]);
	free(bytes[0]);
	free(bytes[1]);
	return same;
}

TEST(a_seed_gives_one_model_and_another_seed_another)
{
	for (int form = 0; form < TD_PREDICTOR_N; form++) {
		struct td_model first, second;
		int r;

		sample(speed, 0.02, 10);
		options.epochs = 20;
		r = td_learn((enum td_predictor_form)form, &data, &options, &first);
		if (r == -ENOSYS)
			continue;
		CHECK_EQ(r, 0);
		CHECK_EQ(td_learn((enum td_predictor_form)form, &data, &options, &second), 0);
		CHECK(same_models(&first, &second));
		td_model_deinit(&second);
		options.seed++;
		CHECK_EQ(td_learn((enum td_predictor_form)form, &data, &options, &second), 0);
		if (form == TD_PREDICTOR_MLP || form == TD_PREDICTOR_FOREST)
			CHECK(!same_models(&first, &second));
		td_model_deinit(&first);
		td_model_deinit(&second);
	}
}

TEST(more_data_improves_every_form)
{
	for (int form = 0; form < TD_PREDICTOR_N; form++) {
		struct td_dataset few = {x, y, 40, INPUTS};
		struct td_model model;
		double before;
		int r;

		sample(speed, 0.02, 11);
		r = td_learn((enum td_predictor_form)form, &few, &options, &model);
		if (r == -ENOSYS)
			continue;
		CHECK_EQ(r, 0);
		before = error_of(&model, speed);
		CHECK_EQ(td_learn_update(&model, &data, &options), 0);
		CHECK(error_of(&model, speed) < before);
		td_model_deinit(&model);
	}
}

TEST(what_cannot_be_learnt_from_is_refused)
{
	struct td_dataset one = {x, y, 1, INPUTS}, wide = {x, y, COUNT, TD_PREDICT_INPUTS_MAX + 1};
	struct td_learn_report report;
	struct td_model model;

	sample(plane, 0, 12);
	for (int form = 0; form < TD_PREDICTOR_N; form++) {
		int r = td_learn((enum td_predictor_form)form, &one, &options, &model);

		CHECK(r == -EINVAL || r == -ENOSYS);
		r = td_learn((enum td_predictor_form)form, &wide, &options, &model);
		CHECK(r == -EINVAL || r == -ENOSYS);
		y[3] = NAN;
		r = td_learn((enum td_predictor_form)form, &data, &options, &model);
		CHECK(r == -EINVAL || r == -ENOSYS);
		y[3] = 1;
	}
	for (uint32_t i = 0; i < COUNT; i++)
		groups[i] = 7;
	CHECK_EQ(td_learn_best(&data, groups, &options, &model, &report), -EINVAL);
	groups[3] = 8; /* one sample is left without the others */
	CHECK_EQ(td_learn_best(&data, groups, &options, &model, &report), -EINVAL);
}

TEST(a_training_that_is_stopped_leaves_nothing_and_an_update_the_model_as_it_was)
{
	static const volatile sig_atomic_t stopped = 1;
	struct td_model model = {.memory = NULL};
	double before;

	sample(speed, 0.01, 3);
	CHECK_EQ(td_learn_mlp(&data, &options, &model), 0);
	before = error_of(&model, speed);
	options.stop = &stopped;
	CHECK_EQ(td_learn_update(&model, &data, &options), -EINTR);
	CHECK(error_of(&model, speed) == before);
	td_model_deinit(&model);
	model.memory = NULL;
	CHECK_EQ(td_learn_mlp(&data, &options, &model), -EINTR);
	CHECK(!model.memory);
}

TEST(every_form_survives_as_bytes)
{
	for (int form = 0; form < TD_PREDICTOR_N; form++) {
		struct td_model model, back;
		void *bytes;
		size_t size;
		int r;

		sample(speed, 0.02, 13);
		options.epochs = 5;
		r = td_learn((enum td_predictor_form)form, &data, &options, &model);
		if (r == -ENOSYS)
			continue;
		CHECK_EQ(td_model_to_blob(&model, &bytes, &size), 0);
		CHECK_EQ(td_model_from_blob(bytes, size, &back), 0);
		for (uint32_t i = 0; i < COUNT; i++) {
			double a = td_predict(&model.predictor, x + i * INPUTS);
			double b = td_predict(&back.predictor, x + i * INPUTS);

			CHECK(!memcmp(&a, &b, sizeof(a)));
		}
		td_model_deinit(&back);
		CHECK_EQ(td_model_from_blob(bytes, size - 8, &back), -EINVAL);
		((unsigned char *)bytes)[0] ^= 2; /* another version */
		CHECK_EQ(td_model_from_blob(bytes, size, &back), -EINVAL);
		td_model_deinit(&model);
		free(bytes);
	}
}

TEST(a_tree_that_points_backwards_is_refused)
{
	const double shift[] = {0}, scale[] = {1};
	struct td_tree_node nodes[] = {{0.5, 0, 1}, {1, -1, 0}, {2, -1, 0}};
	const uint32_t roots[] = {0};
	struct td_predictor p = {.form = TD_PREDICTOR_FOREST,
		.inputs = 1,
		.shift = shift,
		.scale = scale,
		.target_scale = 1,
		.nodes = nodes,
		.roots = roots,
		.node_count = 3,
		.tree_count = 1};

	CHECK_EQ(td_predictor_check(&p), 0);
	CHECK(fabs(td_predict(&p, (const double[]){0.5}) - 1) < 1e-12);
	CHECK(fabs(td_predict(&p, (const double[]){0.6}) - 2) < 1e-12);
	nodes[0].left = 0;
	CHECK_EQ(td_predictor_check(&p), -EINVAL);
	nodes[0].left = 2; /* its neighbour is beyond the end */
	CHECK_EQ(td_predictor_check(&p), -EINVAL);
	nodes[0].left = 1;
	nodes[0].input = 1;
	CHECK_EQ(td_predictor_check(&p), -EINVAL);
}

static struct td_store *open_store(const char *path)
{
	struct td_store *store;
	int r = td_store_open(path, &store);

	if (r == -ENOSYS)
		SKIP("built without SQLite");
	CHECK_EQ(r, 0);
	return store;
}

TEST(profiles_samples_and_models_are_kept)
{
	char directory[] = "/tmp/tandem-learn-XXXXXX", path[64];
	struct td_model model, back;
	struct td_store *store;
	double *xs, *ys, value;
	uint32_t count, inputs;

	CHECK(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/profiles.db", directory);
	store = open_store(path);
	CHECK_EQ(td_store_get_profile(store, "T4", "bert", "sm", &value), -ENOENT);
	CHECK_EQ(td_store_put_profile(store, "T4", "bert", "sm", 0.4, 1), 0);
	CHECK_EQ(td_store_put_profile(store, "T4", "bert", "sm", 0.5, 2), 0);
	CHECK_EQ(td_store_get_samples(store, "speed", "T4", &xs, &ys, &count, &inputs), -ENOENT);
	sample(speed, 0, 14);
	CHECK_EQ(td_store_add_sample(store, "speed", "T4", x, 2, 9), 0); /* of an older layout */
	for (uint32_t i = 0; i < 100; i++)
		CHECK_EQ(
			td_store_add_sample(store, "speed", "T4", x + i * INPUTS, INPUTS, y[i]), 0);
	CHECK_EQ(td_learn_linear(&data, &options, &model), 0);
	CHECK_EQ(td_store_put_model(store, "speed", "T4", &model, 3), 0);
	td_store_close(store);

	store = open_store(path);
	CHECK_EQ(td_store_get_profile(store, "T4", "bert", "sm", &value), 0);
	CHECK(fabs(value - 0.5) < 1e-12);
	CHECK_EQ(td_store_get_samples(store, "speed", "T4", &xs, &ys, &count, &inputs), 0);
	CHECK(count == 100 && inputs == INPUTS);
	CHECK(!memcmp(xs, x, 100 * INPUTS * sizeof(*x)) && !memcmp(ys, y, 100 * sizeof(*y)));
	CHECK_EQ(td_store_get_model(store, "speed", "A10", &back), -ENOENT);
	CHECK_EQ(td_store_get_model(store, "speed", "T4", &back), 0);
	CHECK(same_models(&model, &back));
	free(xs);
	free(ys);
	/* The newest stay; another target is not touched. */
	CHECK_EQ(td_store_add_sample(store, "other", "T4", x, INPUTS, 5), 0);
	CHECK_EQ(td_store_trim_samples(store, "speed", "T4", 7), 0);
	CHECK_EQ(td_store_get_samples(store, "speed", "T4", &xs, &ys, &count, &inputs), 0);
	CHECK(count == 7 && !memcmp(ys, y + 93, 7 * sizeof(*y)));
	free(xs);
	free(ys);
	CHECK_EQ(td_store_get_samples(store, "other", "T4", &xs, &ys, &count, &inputs), 0);
	CHECK_EQ(count, 1);
	td_store_close(store);
	td_model_deinit(&model);
	td_model_deinit(&back);
	free(xs);
	free(ys);
	CHECK(!unlink(path) && !rmdir(directory));
}

TEST(who_only_reads_makes_and_changes_nothing)
{
	char directory[] = "/tmp/tandem-learn-XXXXXX", path[64];
	struct td_store *store;
	double *xs, *ys;
	uint32_t count, inputs;
	int r;

	CHECK(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/profiles.db", directory);
	r = td_store_open_to_read(path, &store);
	CHECK(access(path, F_OK));
	if (r == -ENOSYS)
		SKIP("built without SQLite");
	CHECK_EQ(r, -ENOENT);
	store = open_store(path);
	sample(speed, 0, 14);
	CHECK_EQ(td_store_add_sample(store, "speed", "T4", x, INPUTS, y[0]), 0);
	td_store_close(store);
	CHECK_EQ(td_store_open_to_read(path, &store), 0);
	CHECK_EQ(td_store_get_samples(store, "speed", "T4", &xs, &ys, &count, &inputs), 0);
	CHECK(count == 1 && inputs == INPUTS);
	CHECK_EQ(td_store_add_sample(store, "speed", "T4", x, INPUTS, y[0]), -EIO);
	td_store_close(store);
	free(xs);
	free(ys);
	CHECK(!unlink(path) && !rmdir(directory));
}

TEST(a_file_that_is_no_database_is_refused)
{
	char path[] = "/tmp/tandem-learn-XXXXXX";
	int fd = mkstemp(path);
	struct td_store *store;
	int r;

	CHECK(fd >= 0);
	for (int k = 0; k < 200; k++)
		CHECK(write(fd, "no database at all. ", 20) == 20);
	close(fd);
	r = td_store_open(path, &store);
	if (r != -ENOSYS)
		CHECK_EQ(td_store_open_to_read(path, &store), r);
	unlink(path);
	if (r == -ENOSYS)
		SKIP("built without SQLite");
	CHECK_EQ(r, -EIO);
}
