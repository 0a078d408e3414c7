/* Writes models as bytes and reads them; see blob.h. */
#include "profile/blob.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC   0x746400006d6f6400ull
#define VERSION 1u

enum {
	W_MAGIC,
	W_FORM,
	W_INPUTS,
	W_LAYERS,
	W_TREES,
	W_NODES,
	W_COEFFICIENTS,
	W_VECTORS,
	W_TARGET_SHIFT,
	W_TARGET_SCALE,
	W_GAMMA,
	W_RHO,
	W_WIDTHS,
	W_HEADER = W_WIDTHS + TD_PREDICT_LAYERS_MAX,
};

#define NUMBERS_MAX (1ull << 28)

static uint64_t from_double(double value)
{
	uint64_t word;

	memcpy(&word, &value, sizeof(word));
	return htole64(word);
}

static double to_double(uint64_t word)
{
	double value;

	word = le64toh(word);
	memcpy(&value, &word, sizeof(value));
	return value;
}

static uint64_t *put_doubles(uint64_t *at, const double *values, uint64_t count)
{
	for (uint64_t k = 0; k < count; k++)
		*at++ = from_double(values[k]);
	return at;
}

static uint64_t vector_numbers(const struct td_predictor *p)
{
	return p->form == TD_PREDICTOR_SVR ? p->coefficient_count * p->inputs : 0;
}

static void put_header(uint64_t *words, const struct td_predictor *p)
{
	words[W_MAGIC] = htole64(MAGIC | VERSION);
	words[W_FORM] = htole64((uint64_t)p->form);
	words[W_INPUTS] = htole64(p->inputs);
	words[W_LAYERS] = htole64(p->layers);
	words[W_TREES] = htole64(p->tree_count);
	words[W_NODES] = htole64(p->node_count);
	words[W_COEFFICIENTS] = htole64(p->coefficient_count);
	words[W_VECTORS] = htole64(vector_numbers(p));
	words[W_TARGET_SHIFT] = from_double(p->target_shift);
	words[W_TARGET_SCALE] = from_double(p->target_scale);
	words[W_GAMMA] = from_double(p->gamma);
	words[W_RHO] = from_double(p->rho);
	for (uint32_t l = 0; l < TD_PREDICT_LAYERS_MAX; l++)
		words[W_WIDTHS + l] = htole64(p->widths[l]);
}

int td_model_to_blob(const struct td_model *model, void **ret_bytes, size_t *ret_size)
{
	const struct td_predictor *p = &model->predictor;
	size_t words = W_HEADER + 2 * (size_t)p->inputs + p->coefficient_count + vector_numbers(p) +
		       3 * (size_t)p->node_count + p->tree_count;
	uint64_t *all = malloc(words * sizeof(*all)), *at = all + W_HEADER;

	if (!all)
		return -ENOMEM;
	put_header(all, p);
	at = put_doubles(at, p->shift, p->inputs);
	at = put_doubles(at, p->scale, p->inputs);
	at = put_doubles(at, p->coefficients, p->coefficient_count);
	at = put_doubles(at, p->vectors, vector_numbers(p));
	for (uint32_t n = 0; n < p->node_count; n++) {
		*at++ = from_double(p->nodes[n].value);
		*at++ = htole64((uint64_t)(int64_t)p->nodes[n].input);
		*at++ = htole64(p->nodes[n].left);
	}
	for (uint32_t t = 0; t < p->tree_count; t++)
		*at++ = htole64(p->roots[t]);
	*ret_bytes = all;
	*ret_size = words * sizeof(*all);
	return 0;
}

struct sizes {
	uint64_t form, inputs, layers, trees, nodes, coefficients, vectors;
};

/* Reads the sizes of a blob from its header. Returns false if they do not fit `count` words. */
static bool read_sizes(const uint64_t *words, size_t count, struct sizes *s)
{
	if (count < W_HEADER || le64toh(words[W_MAGIC]) != (MAGIC | VERSION))
		return false;
	*s = (struct sizes){le64toh(words[W_FORM]), le64toh(words[W_INPUTS]),
		le64toh(words[W_LAYERS]), le64toh(words[W_TREES]), le64toh(words[W_NODES]),
		le64toh(words[W_COEFFICIENTS]), le64toh(words[W_VECTORS])};
	if (s->form >= TD_PREDICTOR_N || !s->inputs || s->inputs > TD_PREDICT_INPUTS_MAX ||
		s->layers > TD_PREDICT_LAYERS_MAX || s->trees > NUMBERS_MAX ||
		s->nodes > NUMBERS_MAX || s->coefficients > NUMBERS_MAX || s->vectors > NUMBERS_MAX)
		return false;
	if (s->vectors != (s->form == TD_PREDICTOR_SVR ? s->coefficients * s->inputs : 0))
		return false;
	return count ==
	       W_HEADER + 2 * s->inputs + s->coefficients + s->vectors + 3 * s->nodes + s->trees;
}

/* Returns false if a number does not fit its field. */
static bool read_nodes(
	const uint64_t *at, const struct sizes *s, struct td_tree_node *nodes, uint32_t *roots)
{
	for (uint64_t n = 0; n < s->nodes; n++, at += 3) {
		int64_t input = (int64_t)le64toh(at[1]);
		uint64_t left = le64toh(at[2]);

		if (input < -1 || input > INT32_MAX || left > UINT32_MAX)
			return false;
		nodes[n].value = to_double(at[0]);
		nodes[n].input = (int32_t)input;
		nodes[n].left = (uint32_t)left;
	}
	for (uint64_t t = 0; t < s->trees; t++, at++) {
		if (le64toh(*at) > UINT32_MAX)
			return false;
		roots[t] = (uint32_t)le64toh(*at);
	}
	return true;
}

/* Returns false if a number does not fit its field. */
static bool read_predictor(
	const uint64_t *words, const struct sizes *s, char *memory, struct td_predictor *p)
{
	uint64_t doubles = 2 * s->inputs + s->coefficients + s->vectors;
	double *numbers = (double *)memory;
	struct td_tree_node *nodes = (struct td_tree_node *)(numbers + doubles);
	uint32_t *roots = (uint32_t *)(nodes + s->nodes);

	for (uint64_t k = 0; k < doubles; k++)
		numbers[k] = to_double(words[W_HEADER + k]);
	if (!read_nodes(words + W_HEADER + doubles, s, nodes, roots))
		return false;
	*p = (struct td_predictor){
		.form = (enum td_predictor_form)s->form,
		.inputs = (uint32_t)s->inputs,
		.shift = numbers,
		.scale = numbers + s->inputs,
		.target_shift = to_double(words[W_TARGET_SHIFT]),
		.target_scale = to_double(words[W_TARGET_SCALE]),
		.coefficients = numbers + 2 * s->inputs,
		.coefficient_count = s->coefficients,
		.layers = (uint32_t)s->layers,
		.nodes = nodes,
		.roots = roots,
		.node_count = (uint32_t)s->nodes,
		.tree_count = (uint32_t)s->trees,
		.vectors = numbers + 2 * s->inputs + s->coefficients,
		.gamma = to_double(words[W_GAMMA]),
		.rho = to_double(words[W_RHO]),
	};
	for (uint32_t l = 0; l < TD_PREDICT_LAYERS_MAX; l++) {
		uint64_t width = le64toh(words[W_WIDTHS + l]);

		if (width > UINT32_MAX)
			return false;
		p->widths[l] = (uint32_t)width;
	}
	return true;
}

int td_model_from_blob(const void *bytes, size_t size, struct td_model *ret_model)
{
	size_t count = size / sizeof(uint64_t);
	struct td_predictor p;
	uint64_t *words;
	struct sizes s;
	char *memory;
	int r = -EINVAL;

	if (size % sizeof(uint64_t) || count < W_HEADER)
		return -EINVAL;
	words = malloc(size); /* an aligned copy, since the bytes may not be aligned */
	if (!words)
		return -ENOMEM;
	memcpy(words, bytes, size);
	if (!read_sizes(words, count, &s))
		goto err_words;
	memory = malloc((2 * s.inputs + s.coefficients + s.vectors) * sizeof(double) +
			s.nodes * sizeof(struct td_tree_node) + s.trees * sizeof(uint32_t));
	r = -ENOMEM;
	if (!memory)
		goto err_words;
	r = read_predictor(words, &s, memory, &p) ? td_predictor_check(&p) : -EINVAL;
	if (r < 0)
		free(memory);
	else
		*ret_model = (struct td_model){p, memory};
err_words:
	free(words);
	return r;
}
