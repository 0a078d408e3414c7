/*
 * Trains random forests of regression trees (Breiman). Each tree has a bootstrap sample. Each split
 * is the best over a random third of the inputs, by the least sum of squared errors on both sides.
 * Trees are written breadth first, with the children side by side, so a node needs one index and
 * evaluation only goes forwards.
 */
#include "learn/internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

struct pair {
	double x, y;
};

struct growing {
	const struct td_dataset *data;
	const struct td_learn_options *options;
	struct td_rng *rng;
	uint32_t *samples; /* samples of the tree; each node has those from..to */
	struct pair *pairs;
	uint32_t inputs[TD_PREDICT_INPUTS_MAX];
	struct open_node {
		uint32_t from, to, depth;
	} * open; /* one per node of the tree */
	struct td_tree_node *nodes;
	uint32_t count;
};

struct cut {
	double gain, threshold;
	int32_t input;
};

static int by_x(const void *a, const void *b)
{
	const struct pair *p = a, *q = b;

	if (p->x < q->x || p->x > q->x)
		return p->x < q->x ? -1 : 1;
	return (p->y > q->y) - (p->y < q->y);
}

static double sample_x(const struct growing *g, uint32_t k, uint32_t input)
{
	return g->data->x[(size_t)g->samples[k] * g->data->inputs + input];
}

/*
 * Finds the best cut of a node's samples by one input, and keeps it in *best if it is better. Gain
 * is by how much the sum of squared errors falls.
 */
static void try_input(
	struct growing *g, uint32_t from, uint32_t to, uint32_t input, struct cut *best)
{
	uint32_t n = to - from, least = g->options->leaf_min;
	double sum = 0, left = 0;

	for (uint32_t k = 0; k < n; k++) {
		g->pairs[k] = (struct pair){
			sample_x(g, from + k, input), g->data->y[g->samples[from + k]]};
		sum += g->pairs[k].y;
	}
	qsort(g->pairs, n, sizeof(*g->pairs), by_x);
	for (uint32_t k = 1; k < n; k++) {
		double right, gain;

		left += g->pairs[k - 1].y;
		if (!(g->pairs[k - 1].x < g->pairs[k].x) || k < least || n - k < least)
			continue;
		right = sum - left;
		gain = left * left / k + right * right / (n - k) - sum * sum / n;
		if (gain > best->gain) {
			double middle = g->pairs[k - 1].x + (g->pairs[k].x - g->pairs[k - 1].x) / 2;

			*best = (struct cut){gain,
				middle < g->pairs[k].x ? middle : g->pairs[k - 1].x,
				(int32_t)input};
		}
	}
}

static struct cut find_cut(struct growing *g, uint32_t from, uint32_t to)
{
	uint32_t tried = (g->data->inputs + 2) / 3;
	struct cut best = {.gain = 1e-12, .input = -1};

	td_rng_shuffle(g->rng, g->inputs, g->data->inputs);
	/* The other inputs are tried only if no input of the first third can cut. */
	for (uint32_t k = 0; k < g->data->inputs && (k < tried || best.input < 0); k++)
		try_input(g, from, to, g->inputs[k], &best);
	return best;
}

static double mean_of(const struct growing *g, uint32_t from, uint32_t to)
{
	double sum = 0;

	for (uint32_t k = from; k < to; k++)
		sum += g->data->y[g->samples[k]];
	return sum / (to - from);
}

/* Moves the samples up to the threshold to the front. Returns the index of the first other one. */
static uint32_t part(struct growing *g, uint32_t from, uint32_t to, const struct cut *cut)
{
	uint32_t middle = from;

	for (uint32_t k = from; k < to; k++) {
		uint32_t sample = g->samples[k];

		if (!(sample_x(g, k, (uint32_t)cut->input) <= cut->threshold))
			continue;
		g->samples[k] = g->samples[middle];
		g->samples[middle++] = sample;
	}
	return middle;
}

/*
 * Grows a tree. Indices are relative to the tree. It has at most 2 count - 1 nodes, since each
 * split leaves a sample on either side.
 */
static void grow(struct growing *g)
{
	g->count = 1;
	g->open[0] = (struct open_node){0, g->data->count, 0};
	for (uint32_t n = 0; n < g->count; n++) {
		struct open_node o = g->open[n];
		struct cut cut = {.input = -1};
		uint32_t middle;

		if (o.depth < g->options->depth_max && o.to - o.from >= 2 * g->options->leaf_min)
			cut = find_cut(g, o.from, o.to);
		g->nodes[n] = (struct td_tree_node){mean_of(g, o.from, o.to), -1, 0};
		if (cut.input < 0)
			continue;
		g->nodes[n] = (struct td_tree_node){cut.threshold, cut.input, g->count};
		middle = part(g, o.from, o.to, &cut);
		g->open[g->count++] = (struct open_node){o.from, middle, o.depth + 1};
		g->open[g->count++] = (struct open_node){middle, o.to, o.depth + 1};
	}
}

/* Appends the grown tree to the forest. */
static int append(struct td_tree_node **forest, uint32_t *count, const struct growing *g)
{
	struct td_tree_node *all = realloc(*forest, ((size_t)*count + g->count) * sizeof(*all));

	if (!all)
		return -ENOMEM;
	*forest = all;
	for (uint32_t n = 0; n < g->count; n++) {
		all[*count + n] = g->nodes[n];
		if (g->nodes[n].input >= 0)
			all[*count + n].left += *count;
	}
	*count += g->count;
	return 0;
}

/* Copies the forest into one block of the model: scales without effect, nodes, roots. */
static int put_together(const struct td_dataset *data, const struct td_tree_node *nodes,
	uint32_t node_count, const uint32_t *roots, uint32_t trees, struct td_model *ret_model)
{
	size_t scales = 2 * (size_t)data->inputs * sizeof(double);
	size_t node_bytes = node_count * sizeof(*nodes);
	char *memory = malloc(scales + node_bytes + trees * sizeof(*roots));
	double *shift = (double *)memory;

	if (!memory)
		return -ENOMEM;
	for (uint32_t i = 0; i < data->inputs; i++) {
		shift[i] = 0;
		shift[data->inputs + i] = 1;
	}
	memcpy(memory + scales, nodes, node_bytes);
	memcpy(memory + scales + node_bytes, roots, trees * sizeof(*roots));
	*ret_model = (struct td_model){.memory = memory};
	ret_model->predictor = (struct td_predictor){
		.form = TD_PREDICTOR_FOREST,
		.inputs = data->inputs,
		.shift = shift,
		.scale = shift + data->inputs,
		.target_scale = 1,
		.nodes = (struct td_tree_node *)(memory + scales),
		.roots = (uint32_t *)(memory + scales + node_bytes),
		.node_count = node_count,
		.tree_count = trees,
	};
	return 0;
}

int td_learn_forest(const struct td_dataset *data, const struct td_learn_options *options,
	struct td_model *ret_model)
{
	td_auto_free struct td_tree_node *forest = NULL;
	td_auto_free struct td_tree_node *nodes = NULL;
	td_auto_free struct open_node *open = NULL;
	td_auto_free struct pair *pairs = NULL;
	td_auto_free uint32_t *samples = NULL;
	td_auto_free uint32_t *roots = NULL;
	struct growing g = {.data = data, .options = options};
	uint32_t count = 0;
	struct td_rng rng;
	int r = td_dataset_check(data);

	if (r < 0)
		return r;
	if (!options->trees || !options->leaf_min)
		return -EINVAL;
	g.nodes = nodes = malloc(2 * (size_t)data->count * sizeof(*nodes));
	g.open = open = malloc(2 * (size_t)data->count * sizeof(*open));
	g.pairs = pairs = malloc(data->count * sizeof(*pairs));
	g.samples = samples = malloc(data->count * sizeof(*samples));
	roots = malloc(options->trees * sizeof(*roots));
	if (!nodes || !open || !pairs || !samples || !roots)
		return -ENOMEM;
	td_rng_init(&rng, options->seed);
	g.rng = &rng;
	for (uint32_t t = 0; t < options->trees; t++) {
		for (uint32_t k = 0; k < data->count; k++)
			samples[k] = td_rng_below(&rng, data->count);
		grow(&g);
		roots[t] = count;
		r = append(&forest, &count, &g);
		if (r < 0)
			return r;
	}
	return put_together(data, forest, count, roots, options->trees, ret_model);
}
