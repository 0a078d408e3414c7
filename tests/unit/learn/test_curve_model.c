/* The model of a number of a service's curves: the mean, and what is better than it. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "test.h"

#include "learn/curve_model.h"
#include "policy/algo/fit/mudi_curve.h"

#define NEIGHBOURS 6
#define ROWS       (NEIGHBOURS * 3)

static double x[ROWS * TD_MUDI_INPUTS], y[ROWS];
static uint32_t groups[ROWS];
static const struct td_dataset all = {x, y, ROWS, TD_MUDI_INPUTS};

/* The first neighbour is nobody; the others have layers. The batches are 1, 4 and 16. */
static void fill(double (*number)(uint32_t neighbour, double log2_batch))
{
	memset(x, 0, sizeof(x));
	for (uint32_t i = 0; i < ROWS; i++) {
		uint32_t n = i / 3;
		double *row = x + (size_t)i * TD_MUDI_INPUTS;

		row[0] = 3 * n;
		row[4] = n ? n * n % 5 + 1 : 0;
		row[TD_MUDI_LAYERS] = 2 * (i % 3);
		y[i] = number(n, row[TD_MUDI_LAYERS]);
		groups[i] = n;
	}
}

static double predict(const struct td_model *model, double conv, double log2_batch)
{
	double row[TD_MUDI_INPUTS] = {conv};

	row[TD_MUDI_LAYERS] = log2_batch;
	return td_predict(&model->predictor, row);
}

static double unrelated(uint32_t neighbour, double log2_batch)
{
	static const double by[NEIGHBOURS] = {0, 5, -4, 3, -5, 1};

	return neighbour ? 20 + by[neighbour] + log2_batch : 7 + 2 * log2_batch;
}

static double by_layers(uint32_t neighbour, double log2_batch)
{
	return 10.0 * neighbour + log2_batch;
}

TEST(the_mean_is_for_neighbours_that_were_not_measured)
{
	struct td_model model;

	fill(unrelated);
	CHECK_EQ(td_curve_model_mean(&all, &model), 0);
	CHECK_EQ(td_predictor_check(&model.predictor), 0);
	for (uint32_t b = 0; b < 3; b++) {
		CHECK(fabs(predict(&model, 0, 2 * b) - (7 + 4 * b)) < 1e-9);
		CHECK(fabs(predict(&model, 1, 2 * b) - (20 + 2 * b)) < 1e-9);
		CHECK(fabs(predict(&model, 1000, 2 * b) - (20 + 2 * b)) < 1e-9);
	}
	/* Lines between the batches, flat beyond them. */
	CHECK(fabs(predict(&model, 5, 1) - 21) < 1e-9);
	CHECK(fabs(predict(&model, 0, 3) - 13) < 1e-9);
	CHECK(fabs(predict(&model, 5, 9) - 24) < 1e-9);
	CHECK(fabs(predict(&model, 0, 9) - 15) < 1e-9);
	td_model_deinit(&model);
}

TEST(one_that_was_measured_has_its_own)
{
	struct td_model model;
	double near[TD_MUDI_INPUTS];

	fill(unrelated);
	CHECK_EQ(td_curve_model_mean(&all, &model), 0);
	for (uint32_t i = 0; i < ROWS; i++)
		CHECK(fabs(td_predict(&model.predictor, x + (size_t)i * TD_MUDI_INPUTS) - y[i]) <
			1e-9);
	/* One layer of any kind more is another neighbour. */
	for (uint32_t k = 0; k < TD_MUDI_LAYERS; k++) {
		memcpy(near, x + 3 * TD_MUDI_INPUTS, sizeof(near));
		near[k]++;
		CHECK(fabs(td_predict(&model.predictor, near) - 20) < 1e-9);
	}
	td_model_deinit(&model);
}

TEST(layers_that_tell_nothing_are_ignored)
{
	struct td_model model, mean;
	double error;

	fill(unrelated);
	CHECK_EQ(td_curve_model_learn(&all, groups, &td_learn_default, &model, &error), 0);
	CHECK_EQ(td_curve_model_mean(&all, &mean), 0);
	for (double conv = 0; conv < 20; conv++)
		CHECK(fabs(predict(&model, conv, 2) - predict(&mean, conv, 2)) < 1e-9);
	/* Without one neighbour the mean of the others is off by 5/4 of what that one differs. */
	CHECK(fabs(error - sqrt(76 / 5.0) * 5 / 4) < 1e-9);
	td_model_deinit(&model);
	td_model_deinit(&mean);
}

TEST(companies_beyond_the_width_are_the_means)
{
	enum { MANY = 80 };
	static double many[MANY * TD_MUDI_INPUTS], numbers[MANY];
	const struct td_dataset data = {many, numbers, MANY, TD_MUDI_INPUTS};
	struct td_model model;

	for (uint32_t i = 0; i < MANY; i++) {
		many[(size_t)i * TD_MUDI_INPUTS + 2] = MANY - 1 - i; /* nobody is the last */
		numbers[i] = i % 2 ? 4 : 2;
	}
	CHECK_EQ(td_curve_model_mean(&data, &model), 0);
	CHECK(model.predictor.widths[1] <= 256);
	CHECK(fabs(td_predict(&model.predictor, many + (MANY - 1) * TD_MUDI_INPUTS) - 4) < 1e-9);
	CHECK(fabs(td_predict(&model.predictor, many) - 2) < 1e-9);
	CHECK(fabs(td_predict(&model.predictor, many + (MANY - 2) * TD_MUDI_INPUTS) - 3) < 0.1);
	td_model_deinit(&model);
}

TEST(layers_that_tell_much_are_followed)
{
	struct td_model model;
	double error;

	fill(by_layers);
	CHECK_EQ(td_curve_model_learn(&all, groups, &td_learn_default, &model, &error), 0);
	CHECK(error < 5);
	CHECK(predict(&model, 15, 2) - predict(&model, 3, 2) > 20);
	td_model_deinit(&model);
}

TEST(the_mean_of_one_kind_of_rows_is_for_all)
{
	struct td_model model;
	const struct td_dataset alone = {x, y, 3, TD_MUDI_INPUTS},
				beside = {x + 3 * TD_MUDI_INPUTS, y + 3, 3, TD_MUDI_INPUTS};

	fill(unrelated);
	CHECK_EQ(td_curve_model_mean(&alone, &model), 0);
	CHECK(fabs(predict(&model, 9, 2) - 11) < 1e-9);
	td_model_deinit(&model);
	CHECK_EQ(td_curve_model_mean(&beside, &model), 0);
	CHECK(fabs(predict(&model, 0, 2) - 27) < 1e-9);
	td_model_deinit(&model);
}

TEST(nobody_to_judge_by_is_refused)
{
	const struct td_dataset alone = {x, y, 3, TD_MUDI_INPUTS};
	struct td_model model;
	double error = 3;

	fill(unrelated);
	CHECK_EQ(td_curve_model_learn(&alone, groups, &td_learn_default, &model, &error), -EINVAL);
	CHECK(error > 2);
}
