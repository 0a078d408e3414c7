/* Trains support vector regression by libsvm (epsilon-SVR, radial basis) and copies its vectors. */
#include "learn/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#ifdef TD_HAVE_LIBSVM

#include <libsvm/svm.h>

static void say_nothing(const char *text)
{
	(void)text;
}

/* Makes the sparse rows that libsvm expects. Each ends with index -1. */
static void make_rows(const double *x, uint32_t count, uint32_t inputs, struct svm_node *nodes,
	struct svm_node **rows)
{
	for (uint32_t i = 0; i < count; i++) {
		rows[i] = nodes + (size_t)i * (inputs + 1);
		for (uint32_t k = 0; k < inputs; k++)
			rows[i][k] = (struct svm_node){(int)k + 1, x[(size_t)i * inputs + k]};
		rows[i][inputs] = (struct svm_node){-1, 0};
	}
}

static int copy_vectors(const struct svm_model *svm, const struct td_dataset *data, double gamma,
	struct td_model *ret_model)
{
	uint32_t vectors = (uint32_t)svm->l;
	struct td_model model;
	double *coefficients, *at;
	int r = td_model_init(
		&model, TD_PREDICTOR_SVR, data, vectors, (size_t)vectors * data->inputs);

	if (r < 0)
		return r;
	coefficients = td_model_coefficients(&model);
	at = coefficients + vectors;
	for (uint32_t v = 0; v < vectors; v++) {
		coefficients[v] = svm->sv_coef[0][v];
		for (uint32_t k = 0; k < data->inputs; k++)
			*at++ = svm->SV[v][k].value;
	}
	model.predictor.gamma = gamma;
	model.predictor.rho = svm->rho[0];
	*ret_model = model;
	return 0;
}

int td_learn_svr(const struct td_dataset *data, const struct td_learn_options *options,
	struct td_model *ret_model)
{
	struct svm_parameter parameter = {
		.svm_type = EPSILON_SVR,
		.kernel_type = RBF,
		.gamma = 1. / (data->inputs ? data->inputs : 1),
		.C = options->cost,
		.p = options->tube,
		.eps = 1e-3,
		.cache_size = 16,
		.shrinking = 1,
	};
	td_auto_free struct svm_node *nodes = NULL;
	td_auto_free struct svm_node **rows = NULL;
	td_auto_free double *x = NULL;
	td_auto_free double *y = NULL;
	struct svm_problem problem;
	struct svm_model *svm;
	struct td_model scales;
	int r = td_dataset_check(data);

	if (r < 0)
		return r;
	nodes = malloc((size_t)data->count * (data->inputs + 1) * sizeof(*nodes));
	rows = malloc(data->count * sizeof(struct svm_node *));
	x = malloc((size_t)data->count * data->inputs * sizeof(*x));
	y = malloc(data->count * sizeof(*y));
	if (!nodes || !rows || !x || !y)
		return -ENOMEM;
	r = td_model_init(&scales, TD_PREDICTOR_SVR, data, 0, 0);
	if (r < 0)
		return r;
	td_model_standardise(&scales, data, x, y);
	td_model_deinit(&scales);
	make_rows(x, data->count, data->inputs, nodes, rows);
	problem = (struct svm_problem){.l = (int)data->count, .y = y, .x = rows};
	if (svm_check_parameter(&problem, &parameter))
		return -EINVAL;
	svm_set_print_string_function(say_nothing);
	svm = svm_train(&problem, &parameter);
	if (!svm)
		return -ENOMEM;
	r = copy_vectors(svm, data, parameter.gamma, ret_model);
	svm_free_and_destroy_model(&svm);
	return r;
}

#else

int td_learn_svr(const struct td_dataset *data, const struct td_learn_options *options,
	struct td_model *ret_model)
{
	(void)data;
	(void)options;
	(void)ret_model;
	return -ENOSYS;
}

#endif
