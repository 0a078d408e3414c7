/* Evaluates linear models, MLPs, forests and SVRs; see predict.h. */
#include "policy/algo/fit/predict.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static double linear(const struct td_predictor *p, const double *x)
{
	double y = p->coefficients[p->inputs];

	for (uint32_t i = 0; i < p->inputs; i++)
		y += p->coefficients[i] * x[i];
	return y;
}

typedef double pair_of_doubles __attribute__((vector_size(2 * sizeof(double))));

#define ROWS 4u

/*
 * Multiplies some rows with x, with four sums per row: a single sum would wait for each addition.
 */
static inline __attribute__((always_inline)) void multiply(
	const double *rows, uint32_t count, const double *x, uint32_t n, double *ret)
{
	pair_of_doubles sums[ROWS][2] = {{{0}}}, a, b;
	uint32_t i = 0;

	for (; i + 4 <= n; i += 4) {
		for (uint32_t half = 0; half < 2; half++) {
			memcpy(&b, x + i + 2 * half, sizeof(b));
			for (uint32_t r = 0; r < count; r++) {
				memcpy(&a, rows + (size_t)r * n + i + 2 * half, sizeof(a));
				sums[r][half] += a * b;
			}
		}
	}
	for (; i < n; i++)
		for (uint32_t r = 0; r < count; r++)
			sums[r][0][0] += rows[(size_t)r * n + i] * x[i];
	for (uint32_t r = 0; r < count; r++)
		ret[r] = (sums[r][0][0] + sums[r][0][1]) + (sums[r][1][0] + sums[r][1][1]);
}

static double mlp(const struct td_predictor *p, const double *x)
{
	double values[2][TD_PREDICT_WIDTH_MAX];
	const double *in = x, *weights = p->coefficients;
	uint32_t in_width = p->inputs;

	for (uint32_t l = 0; l < p->layers; l++) {
		uint32_t width = p->widths[l], o = 0;
		const double *biases = weights + (size_t)width * in_width;
		double *out = values[l & 1];

		for (; o + ROWS <= width; o += ROWS)
			multiply(weights + (size_t)o * in_width, ROWS, in, in_width, out + o);
		for (; o < width; o++)
			multiply(weights + (size_t)o * in_width, 1, in, in_width, out + o);
		for (o = 0; o < width; o++) {
			out[o] = biases[o] + out[o];
			if (l + 1 < p->layers && out[o] < 0)
				out[o] = 0;
		}
		weights = biases + width;
		in = out;
		in_width = width;
	}
	return in[0];
}

static double forest(const struct td_predictor *p, const double *x)
{
	double sum = 0;

	for (uint32_t t = 0; t < p->tree_count; t++) {
		const struct td_tree_node *node = &p->nodes[p->roots[t]];

		while (node->input >= 0)
			node = &p->nodes[node->left + !(x[node->input] <= node->value)];
		sum += node->value;
	}
	return sum / p->tree_count;
}

#define LANES 8u

/*
 * Sends several points down a tree side by side. One point alone waits for each node to arrive
 * before it knows the next, and its end is mispredicted. A point at a leaf stays there until the
 * others have arrived.
 */
static void forest_lanes(
	const struct td_predictor *p, const double *x, uint32_t lanes, double *ret_y)
{
	double sums[LANES] = {0};

	for (uint32_t t = 0; t < p->tree_count; t++) {
		uint32_t at[LANES], inner;

		for (uint32_t l = 0; l < lanes; l++)
			at[l] = p->roots[t];
		do {
			inner = 0;
			for (uint32_t l = 0; l < lanes; l++) {
				const struct td_tree_node *node = &p->nodes[at[l]];
				uint32_t is_inner = node->input >= 0;
				double value =
					x[l * p->inputs + (is_inner ? (uint32_t)node->input : 0)];
				uint32_t next = node->left + !(value <= node->value);

				at[l] = is_inner ? next : at[l];
				inner |= is_inner;
			}
		} while (inner);
		for (uint32_t l = 0; l < lanes; l++)
			sums[l] += p->nodes[at[l]].value;
	}
	for (uint32_t l = 0; l < lanes; l++)
		ret_y[l] = p->target_shift + p->target_scale * (sums[l] / p->tree_count);
}

static double svr(const struct td_predictor *p, const double *x)
{
	double sum = -p->rho;

	for (uint64_t k = 0; k < p->coefficient_count; k++) {
		const double *vector = p->vectors + k * p->inputs;
		double square = 0;

		for (uint32_t i = 0; i < p->inputs; i++)
			square += (x[i] - vector[i]) * (x[i] - vector[i]);
		sum += p->coefficients[k] * exp(-p->gamma * square);
	}
	return sum;
}

static void standardise(const struct td_predictor *p, const double *x, double *ret_standard)
{
	for (uint32_t i = 0; i < p->inputs; i++)
		ret_standard[i] = (x[i] - p->shift[i]) / p->scale[i];
}

double td_predict(const struct td_predictor *p, const double *x)
{
	double standard[TD_PREDICT_INPUTS_MAX], y = 0;

	standardise(p, x, standard);
	switch (p->form) {
	case TD_PREDICTOR_LINEAR: y = linear(p, standard); break;
	case TD_PREDICTOR_MLP: y = mlp(p, standard); break;
	case TD_PREDICTOR_FOREST: y = forest(p, standard); break;
	case TD_PREDICTOR_SVR: y = svr(p, standard); break;
	case TD_PREDICTOR_N: break;
	}
	return p->target_shift + p->target_scale * y;
}

void td_predict_many(const struct td_predictor *p, const double *x, uint32_t count, double *ret_y)
{
	double standard[LANES * TD_PREDICT_INPUTS_MAX];

	for (uint32_t k = 0; k < count; k += LANES) {
		uint32_t lanes = count - k < LANES ? count - k : LANES;

		for (uint32_t l = 0; l < lanes; l++) {
			const double *point = x + (size_t)(k + l) * p->inputs;

			if (p->form == TD_PREDICTOR_FOREST)
				standardise(p, point, standard + l * p->inputs);
			else
				ret_y[k + l] = td_predict(p, point);
		}
		if (p->form == TD_PREDICTOR_FOREST)
			forest_lanes(p, standard, lanes, ret_y + k);
	}
}

static bool are_finite(const double *numbers, uint64_t count)
{
	for (uint64_t k = 0; k < count; k++)
		if (!isfinite(numbers[k]))
			return false;
	return true;
}

static bool is_mlp(const struct td_predictor *p)
{
	uint64_t count = 0;
	uint32_t in = p->inputs;

	if (!p->layers || p->layers > TD_PREDICT_LAYERS_MAX || p->widths[p->layers - 1] != 1)
		return false;
	for (uint32_t l = 0; l < p->layers; l++) {
		if (!p->widths[l] || p->widths[l] > TD_PREDICT_WIDTH_MAX)
			return false;
		count += (uint64_t)p->widths[l] * (in + 1);
		in = p->widths[l];
	}
	return count == p->coefficient_count;
}

static bool is_forest(const struct td_predictor *p)
{
	for (uint32_t t = 0; t < p->tree_count; t++)
		if (p->roots[t] >= p->node_count)
			return false;
	for (uint32_t n = 0; n < p->node_count; n++) {
		const struct td_tree_node *node = &p->nodes[n];

		if (!isfinite(node->value) || node->input < -1 ||
			(node->input >= 0 &&
				((uint32_t)node->input >= p->inputs || node->left <= n ||
					node->left >= p->node_count - 1)))
			return false;
	}
	return p->tree_count > 0;
}

int td_predictor_check(const struct td_predictor *p)
{
	bool ok = p->inputs && p->inputs <= TD_PREDICT_INPUTS_MAX && isfinite(p->target_shift) &&
		  isfinite(p->target_scale);

	for (uint32_t i = 0; ok && i < p->inputs; i++)
		ok = isfinite(p->shift[i]) && isfinite(p->scale[i]) && fabs(p->scale[i]) > 0;
	if (!ok)
		return -EINVAL;
	switch (p->form) {
	case TD_PREDICTOR_LINEAR:
		ok = p->coefficient_count == p->inputs + 1 &&
		     are_finite(p->coefficients, p->coefficient_count);
		break;
	case TD_PREDICTOR_MLP:
		ok = is_mlp(p) && are_finite(p->coefficients, p->coefficient_count);
		break;
	case TD_PREDICTOR_FOREST: ok = is_forest(p); break;
	case TD_PREDICTOR_SVR:
		ok = isfinite(p->gamma) && isfinite(p->rho) &&
		     are_finite(p->coefficients, p->coefficient_count) &&
		     are_finite(p->vectors, p->coefficient_count * p->inputs);
		break;
	case TD_PREDICTOR_N: return -EINVAL;
	}
	return ok ? 0 : -EINVAL;
}
