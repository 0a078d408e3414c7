/* Which predictors are refused: each condition alone, for a predictor that is right otherwise. */
#include "test.h"

#include <errno.h>
#include <math.h>

#include "policy/algo/fit/predict.h"

static double shift[TD_PREDICT_INPUTS_MAX + 1], scale[TD_PREDICT_INPUTS_MAX + 1];
static double numbers[TD_PREDICT_INPUTS_MAX + 2], vectors[4];
static struct td_tree_node nodes[5];
static uint32_t roots[2];

/* Returns a predictor of two inputs that is accepted. */
static struct td_predictor right(enum td_predictor_form form)
{
	struct td_predictor p = {.form = form,
		.inputs = 2,
		.shift = shift,
		.scale = scale,
		.target_scale = 1,
		.coefficients = numbers,
		.coefficient_count = 3,
		.vectors = vectors,
		.gamma = 1,
		.nodes = nodes,
		.node_count = 5,
		.roots = roots,
		.tree_count = 2};

	for (uint32_t i = 0; i <= TD_PREDICT_INPUTS_MAX; i++) {
		shift[i] = numbers[i] = 0;
		scale[i] = 1;
	}
	/* A tree of a root with two leaves, and one of two leaves of which only one is used. */
	nodes[0] = (struct td_tree_node){0.5, 1, 1};
	nodes[1] = nodes[2] = nodes[3] = nodes[4] = (struct td_tree_node){1, -1, 0};
	roots[0] = 0;
	roots[1] = 4;
	vectors[0] = vectors[1] = vectors[2] = vectors[3] = 0;
	if (form == TD_PREDICTOR_MLP) {
		/* Three outputs of two inputs and a bias, then one of three and a bias. */
		p.layers = 2;
		p.widths[0] = 3;
		p.widths[1] = 1;
		p.coefficient_count = 13;
	}
	if (form == TD_PREDICTOR_SVR)
		p.coefficient_count = 2;
	return p;
}

/* Checks that the predictor is accepted as it is, and refused after the statement. */
#define REFUSED_WITH(form, ...)                                                                    \
	do {                                                                                       \
		struct td_predictor p = right(form);                                               \
                                                                                                   \
		CHECK_EQ(td_predictor_check(&p), 0);                                               \
		__VA_ARGS__;                                                                       \
		CHECK_EQ(td_predictor_check(&p), -EINVAL);                                         \
	} while (0)

TEST(a_predictor_of_any_form_needs_inputs_that_can_be_scaled)
{
	for (int form = 0; form < TD_PREDICTOR_N; form++) {
		REFUSED_WITH((enum td_predictor_form)form, p.inputs = 0);
		REFUSED_WITH((enum td_predictor_form)form, p.inputs = TD_PREDICT_INPUTS_MAX + 1);
		REFUSED_WITH((enum td_predictor_form)form, scale[1] = 0);
		REFUSED_WITH((enum td_predictor_form)form, scale[0] = (double)NAN);
		REFUSED_WITH((enum td_predictor_form)form, shift[1] = (double)INFINITY);
		REFUSED_WITH((enum td_predictor_form)form, p.target_shift = (double)NAN);
		REFUSED_WITH((enum td_predictor_form)form, p.target_scale = (double)INFINITY);
		REFUSED_WITH((enum td_predictor_form)form, p.form = TD_PREDICTOR_N);
	}
}

TEST(a_linear_one_has_a_weight_for_each_input_and_a_bias)
{
	REFUSED_WITH(TD_PREDICTOR_LINEAR, p.coefficient_count = 2);
	REFUSED_WITH(TD_PREDICTOR_LINEAR, p.coefficient_count = 4);
	REFUSED_WITH(TD_PREDICTOR_LINEAR, numbers[2] = (double)NAN);
}

TEST(a_perceptron_has_all_weights_of_its_layers_and_ends_in_one_output)
{
	REFUSED_WITH(TD_PREDICTOR_MLP, p.layers = 0);
	REFUSED_WITH(TD_PREDICTOR_MLP, p.layers = TD_PREDICT_LAYERS_MAX + 1);
	REFUSED_WITH(TD_PREDICTOR_MLP, p.widths[0] = 0);
	REFUSED_WITH(TD_PREDICTOR_MLP, p.widths[0] = TD_PREDICT_WIDTH_MAX + 1);
	REFUSED_WITH(TD_PREDICTOR_MLP, p.widths[1] = 2; p.coefficient_count = 17);
	REFUSED_WITH(TD_PREDICTOR_MLP, p.coefficient_count = 12);
	REFUSED_WITH(TD_PREDICTOR_MLP, p.coefficient_count = 14);
	REFUSED_WITH(TD_PREDICTOR_MLP, numbers[12] = (double)INFINITY);
}

TEST(a_tree_points_forwards_and_stays_inside)
{
	REFUSED_WITH(TD_PREDICTOR_FOREST, p.tree_count = 0);
	REFUSED_WITH(TD_PREDICTOR_FOREST, roots[1] = 5);
	REFUSED_WITH(TD_PREDICTOR_FOREST, nodes[3].value = (double)NAN);
	REFUSED_WITH(TD_PREDICTOR_FOREST, nodes[2].input = -2);
	REFUSED_WITH(TD_PREDICTOR_FOREST, nodes[0].input = 2);
	REFUSED_WITH(TD_PREDICTOR_FOREST, nodes[0].left = 0);
	REFUSED_WITH(TD_PREDICTOR_FOREST, nodes[0].left = 4); /* its neighbour is beyond the end */
}

TEST(the_index_that_a_leaf_has_does_not_matter)
{
	struct td_predictor p = right(TD_PREDICTOR_FOREST);

	nodes[3].left = 0;
	nodes[4].left = 9;
	CHECK_EQ(td_predictor_check(&p), 0);
}

TEST(support_vectors_are_finite)
{
	REFUSED_WITH(TD_PREDICTOR_SVR, p.gamma = (double)NAN);
	REFUSED_WITH(TD_PREDICTOR_SVR, p.rho = (double)INFINITY);
	REFUSED_WITH(TD_PREDICTOR_SVR, numbers[1] = (double)NAN);
	REFUSED_WITH(TD_PREDICTOR_SVR, vectors[3] = (double)NAN);
}

/* A forest is evaluated for several points at once, and the last ones may be fewer. */
TEST(any_number_of_points_is_predicted_each_by_itself)
{
	for (int form = 0; form < TD_PREDICTOR_N; form++) {
		struct td_predictor p = right((enum td_predictor_form)form);
		double points[2 * 64], results[41];

		nodes[2].value = 3;
		numbers[0] = vectors[0] = 1;
		numbers[1] = vectors[3] = -2;
		for (uint32_t i = 0; i < 2 * 64; i++)
			points[i] = i * 7 % 5 / 4.;
		for (uint32_t count = 0; count <= 40; count++) {
			for (uint32_t i = 0; i <= 40; i++)
				results[i] = -7;
			td_predict_many(&p, points, count, results);
			for (uint32_t i = 0; i <= 40; i++)
				CHECK(i < count ? results[i] == td_predict(&p, points + 2 * i)
						: results[i] == -7);
		}
	}
}
