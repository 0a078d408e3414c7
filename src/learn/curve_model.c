/*
 * Learns a number of latency curves; see curve_model.h.
 *
 * The mean is a perceptron whose weights are written down, not trained. With x = log2 of the batch,
 * u = a sum of the layers by weights that tell companies apart, knots at the batches x_k, and c_k
 * and e_k the changes of slope there,
 *
 *   near_i       = F |u - u_i|, of two units; 0 beside company i, else more than log2 of any batch
 *   mean(x)      = m_1 + sum of c_k relu(x - x_k)
 *   more_i(x)    = d_1 relu(1 - near_i) + sum of e_k relu(x - x_k - near_i)
 *
 * more_i is what company i differs by from the mean, and 0 beside all others.
 */
#include "learn/curve_model.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "learn/internal.h"
#include "policy/algo/fit/mudi_curve.h"

#define FAR       64.0
#define KNOTS_MAX 64u
/* Companies beyond this width are not told apart from the mean: a curve has to be quick to tell. */
#define WIDTH_MAX     256u
#define COMPANIES_MAX 64u
/* The candidates: the forms of models, then the mean. */
#define MEAN       TD_PREDICTOR_N
#define CANDIDATES (TD_PREDICTOR_N + 1)

/* Any odd numbers of 32 bits: few sums of counts times them are equal. */
static const double weights_of_layers[TD_MUDI_LAYERS] = {2654435769, 1640531527, 3266489917,
	668265263, 374761393, 2246822519, 3432918353, 461845907, 1812433253, 1103515245, 1664525};

/* A number over log2 of the batch: lines between knots, flat beyond them. */
struct line {
	uint32_t count;
	double x[KNOTS_MAX], y[KNOTS_MAX], rows[KNOTS_MAX];
};

static double sum_of_layers(const double *row)
{
	double sum = 0;

	for (uint32_t k = 0; k < TD_MUDI_LAYERS; k++)
		sum += row[k];
	return sum;
}

static bool is_alone(const double *row)
{
	return !(sum_of_layers(row) > 0);
}

static bool is_same(const double *a, const double *b)
{
	for (uint32_t k = 0; k < TD_MUDI_LAYERS; k++)
		if (a[k] < b[k] || a[k] > b[k])
			return false;
	return true;
}

/* Adds a row to its knot; y is a sum so far. The knots ascend. */
static int add(struct line *line, double x, double y)
{
	uint32_t k = 0;

	while (k < line->count && line->x[k] < x)
		k++;
	if (k == line->count || line->x[k] > x) {
		if (line->count == KNOTS_MAX)
			return -ERANGE;
		for (uint32_t i = line->count++; i > k; i--) {
			line->x[i] = line->x[i - 1];
			line->y[i] = line->y[i - 1];
			line->rows[i] = line->rows[i - 1];
		}
		line->x[k] = x;
		line->y[k] = line->rows[k] = 0;
	}
	line->y[k] += y;
	line->rows[k]++;
	return 0;
}

/* Averages the rows of one company, or, with NULL, those of all but the service alone. */
static int average(const struct td_dataset *data, const double *company, struct line *ret)
{
	int r = 0;

	ret->count = 0;
	for (uint32_t i = 0; i < data->count && !r; i++) {
		const double *row = data->x + (size_t)i * data->inputs;

		if (company ? is_same(row, company) : !is_alone(row))
			r = add(ret, row[TD_MUDI_LAYERS], data->y[i]);
	}
	for (uint32_t k = 0; k < ret->count; k++)
		ret->y[k] /= ret->rows[k];
	return r;
}

static double value_at(const struct line *line, double x)
{
	uint32_t k = 0;

	while (k < line->count && line->x[k] < x)
		k++;
	if (!k)
		return line->y[0];
	if (k == line->count)
		return line->y[k - 1];
	return line->y[k - 1] +
	       (line->y[k] - line->y[k - 1]) * (x - line->x[k - 1]) / (line->x[k] - line->x[k - 1]);
}

/* Makes `line` the difference to `mean`, which bends at the knots of both. */
static int subtract(struct line *line, const struct line *mean)
{
	struct line difference = {0};
	int r = 0;

	for (uint32_t k = 0; k < line->count && !r; k++)
		r = add(&difference, line->x[k], 0);
	for (uint32_t k = 0; k < mean->count && !r; k++)
		r = add(&difference, mean->x[k], 0);
	for (uint32_t k = 0; k < difference.count; k++)
		difference.y[k] = value_at(line, difference.x[k]) - value_at(mean, difference.x[k]);
	*line = difference;
	return r;
}

/* Returns the change of the slope at a knot. */
static double bend(const struct line *line, uint32_t k)
{
	double before = 0, after = 0;

	if (k)
		before = (line->y[k] - line->y[k - 1]) / (line->x[k] - line->x[k - 1]);
	if (k + 1 < line->count)
		after = (line->y[k + 1] - line->y[k]) / (line->x[k + 1] - line->x[k]);
	return after - before;
}

/* The mean, and what each company differs by from it. */
struct table {
	struct line mean, more[COMPANIES_MAX];
	const double *rows[COMPANIES_MAX]; /* a row of each company */
	uint32_t companies, width;         /* width: of the second hidden layer */
};

/* Lists a company, if it is new and the width allows it. */
static int list_company(const struct td_dataset *data, const double *row, struct table *t)
{
	struct line *more = &t->more[t->companies];
	int r;

	for (uint32_t i = 0; i < t->companies; i++)
		if (is_same(t->rows[i], row))
			return 0;
	if (t->companies == COMPANIES_MAX)
		return 0;
	r = average(data, row, more);
	r = r ? r : subtract(more, &t->mean);
	if (r || t->width + more->count + 1 > WIDTH_MAX)
		return r;
	t->width += more->count + 1;
	t->rows[t->companies++] = row;
	return 0;
}

/* The service alone comes first, because its curve is needed most. */
static int tabulate(const struct td_dataset *data, struct table *t)
{
	int r = average(data, NULL, &t->mean);

	/* Only the service alone was measured. */
	if (!r && !t->mean.count)
		r = average(data, data->x, &t->mean);
	t->width = t->mean.count;
	for (int alone = 1; alone >= 0; alone--)
		for (uint32_t i = 0; i < data->count && !r; i++) {
			const double *row = data->x + (size_t)i * data->inputs;

			if (is_alone(row) == alone)
				r = list_company(data, row, t);
		}
	return r;
}

/* The places of the weights in the model: [unit][input] of each layer, then its biases. */
struct places {
	double *first, *first_biases, *second, *second_biases, *out;
	uint32_t inputs; /* of the second layer */
};

/* The first layer: the batch, then two units for the distance to each company. */
static void put_first(const struct table *t, const struct places *at)
{
	at->first[TD_MUDI_LAYERS] = 1;
	for (uint32_t i = 0; i < t->companies; i++) {
		double u = 0;

		for (uint32_t k = 0; k < TD_MUDI_LAYERS; k++)
			u += weights_of_layers[k] * t->rows[i][k];
		for (uint32_t side = 0; side < 2; side++) {
			double *in = at->first + (size_t)(1 + 2 * i + side) * TD_MUDI_INPUTS;

			for (uint32_t k = 0; k < TD_MUDI_LAYERS; k++)
				in[k] = side ? -weights_of_layers[k] : weights_of_layers[k];
			at->first_biases[1 + 2 * i + side] = side ? u : -u;
		}
	}
}

/* A unit of the second layer: relu(batch x + bias - near), which counts `out` times. */
struct unit {
	double batch, bias, out;
	uint32_t company; /* COMPANIES_MAX: of none */
};

static void put_unit(const struct places *at, uint32_t unit, struct unit is)
{
	double *in = at->second + (size_t)unit * at->inputs;

	in[0] = is.batch;
	if (is.company < COMPANIES_MAX)
		in[1 + 2 * is.company] = in[2 + 2 * is.company] = -FAR;
	at->second_biases[unit] = is.bias;
	at->out[unit] = is.out;
}

static void put_second(const struct table *t, const struct places *at)
{
	uint32_t unit = 0;

	for (uint32_t k = 0; k < t->mean.count; k++)
		put_unit(at, unit++,
			(struct unit){1, -t->mean.x[k], bend(&t->mean, k), COMPANIES_MAX});
	for (uint32_t i = 0; i < t->companies; i++) {
		const struct line *more = &t->more[i];

		for (uint32_t k = 0; k < more->count; k++)
			put_unit(at, unit++, (struct unit){1, -more->x[k], bend(more, k), i});
		put_unit(at, unit++, (struct unit){0, 1, more->y[0], i});
	}
	at->out[unit] = t->mean.y[0]; /* the last layer's bias */
}

static int make_model(const struct td_dataset *data, const struct table *t, struct td_model *ret)
{
	uint32_t first = 1 + 2 * t->companies;
	size_t before = (size_t)first * (TD_MUDI_INPUTS + 1);
	size_t all = before + (size_t)t->width * (first + 1) + t->width + 1;
	struct td_model model;
	struct places at;
	int r = td_model_init(&model, TD_PREDICTOR_MLP, data, all, 0);

	if (r)
		return r;
	at.first = td_model_coefficients(&model);
	at.first_biases = at.first + (size_t)first * TD_MUDI_INPUTS;
	at.second = at.first + before;
	at.second_biases = at.second + (size_t)t->width * first;
	at.out = at.second_biases + t->width;
	at.inputs = first;
	/* The inputs and the target are taken as they are. */
	for (uint32_t k = 0; k < TD_MUDI_INPUTS; k++) {
		((double *)model.memory)[k] = 0;
		((double *)model.memory)[TD_MUDI_INPUTS + k] = 1;
	}
	model.predictor.target_shift = 0;
	model.predictor.target_scale = 1;
	model.predictor.layers = 3;
	model.predictor.widths[0] = first;
	model.predictor.widths[1] = t->width;
	model.predictor.widths[2] = 1;
	put_first(t, &at);
	put_second(t, &at);
	*ret = model;
	return 0;
}

int td_curve_model_mean(const struct td_dataset *data, struct td_model *ret_model)
{
	td_auto_free struct table *table = calloc(1, sizeof(*table));
	int r;

	if (!table)
		return -ENOMEM;
	if (data->inputs != TD_MUDI_INPUTS || td_dataset_check(data))
		return -EINVAL;
	r = tabulate(data, table);
	return r ? r : make_model(data, table, ret_model);
}

/* -- the choice -- */

struct choice {
	const struct td_dataset *data;
	const uint32_t *groups;
	const struct td_learn_options *options;
	double *x, *y; /* room for the rows without a neighbour */
	/* Mean square of each candidate's errors beside each neighbour left out. */
	double *squares[CANDIDATES];
	uint32_t neighbours;
	double total[CANDIDATES]; /* sum of the squares of all rows; INFINITY: it has failed */
	uint32_t rows;
};

static int train(unsigned candidate, const struct td_dataset *data,
	const struct td_learn_options *options, struct td_model *ret_model)
{
	return candidate == MEAN
		       ? td_curve_model_mean(data, ret_model)
		       : td_learn((enum td_predictor_form)candidate, data, options, ret_model);
}

static uint32_t copy_others(const struct choice *c, uint32_t group)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->data->count; i++) {
		if (c->groups[i] == group)
			continue;
		memcpy(c->x + (size_t)n * c->data->inputs, c->data->x + (size_t)i * c->data->inputs,
			c->data->inputs * sizeof(*c->x));
		c->y[n++] = c->data->y[i];
	}
	return n;
}

/* Adds the errors of one candidate beside one neighbour, trained with the `others`. */
static int judge(
	struct choice *c, unsigned candidate, uint32_t group, const struct td_dataset *others)
{
	struct td_model model;
	double sum = 0;
	uint32_t rows = 0;
	int r = train(candidate, others, c->options, &model);

	if (r == -ENOSYS || r == -ERANGE) {
		c->total[candidate] = INFINITY;
		return 0;
	}
	if (r)
		return r;
	for (uint32_t i = 0; i < c->data->count; i++) {
		const double *row = c->data->x + (size_t)i * c->data->inputs;

		if (c->groups[i] != group)
			continue;
		sum += pow(td_predict(&model.predictor, row) - c->data->y[i], 2);
		rows++;
	}
	td_model_deinit(&model);
	c->squares[candidate][c->neighbours] = sum / rows;
	c->total[candidate] += sum;
	return 0;
}

static int leave_out(struct choice *c, uint32_t group)
{
	const struct td_dataset others = {c->x, c->y, copy_others(c, group), c->data->inputs};
	int r = others.count < 2 ? -EINVAL : 0;

	for (unsigned candidate = 0; candidate < CANDIDATES && !r; candidate++)
		if (isfinite(c->total[candidate]))
			r = judge(c, candidate, group, &others);
	c->neighbours++;
	c->rows += c->data->count - others.count;
	return r;
}

/* Is the candidate better than the mean by more than one standard error of the difference? */
static bool is_clearly_better(const struct choice *c, unsigned candidate)
{
	double gain = 0, variance = 0, n = c->neighbours;

	if (c->neighbours < 2 || !(c->total[candidate] < c->total[MEAN]))
		return false;
	for (uint32_t i = 0; i < c->neighbours; i++)
		gain += (c->squares[MEAN][i] - c->squares[candidate][i]) / n;
	for (uint32_t i = 0; i < c->neighbours; i++)
		variance += pow(c->squares[MEAN][i] - c->squares[candidate][i] - gain, 2) / (n - 1);
	return gain > sqrt(variance / n);
}

static unsigned best_of(const struct choice *c)
{
	unsigned best = 0;

	for (unsigned candidate = 1; candidate < MEAN; candidate++)
		if (c->total[candidate] < c->total[best])
			best = candidate;
	return !isfinite(c->total[MEAN]) || is_clearly_better(c, best) ? best : MEAN;
}

/* Is a row the first of its neighbour? */
static bool leads(const uint32_t *groups, uint32_t row)
{
	for (uint32_t i = 0; i < row; i++)
		if (groups[i] == groups[row])
			return false;
	return true;
}

int td_curve_model_learn(const struct td_dataset *data, const uint32_t *groups,
	const struct td_learn_options *options, struct td_model *ret_model, double *ret_error)
{
	struct choice c = {.data = data, .groups = groups, .options = options};
	td_auto_free double *memory = NULL;
	unsigned chosen;
	int r = td_dataset_check(data);

	if (r || data->inputs != TD_MUDI_INPUTS)
		return r ? r : -EINVAL;
	memory = calloc((size_t)data->count * (data->inputs + 1 + CANDIDATES), sizeof(*memory));
	if (!memory)
		return -ENOMEM;
	c.x = memory;
	c.y = c.x + (size_t)data->count * data->inputs;
	for (unsigned candidate = 0; candidate < CANDIDATES; candidate++)
		c.squares[candidate] = c.y + (size_t)data->count * (candidate + 1);
	for (uint32_t i = 0; i < data->count && !r; i++)
		if (leads(groups, i) && !is_alone(data->x + (size_t)i * data->inputs))
			r = leave_out(&c, groups[i]);
	if (r || !c.neighbours)
		return r ? r : -EINVAL;
	chosen = best_of(&c);
	r = train(chosen, data, options, ret_model);
	if (!r)
		*ret_error = sqrt(c.total[chosen] / c.rows);
	return r;
}
