/*
 * Ten models are made and packed by protobuf-c, unpacked by it again and counted from its structs,
 * and compared with what td_onnx_layers() reads out of the same bytes.
 */
#include <stdbool.h>

#include "onnx/onnx.h"
#include "subset.pb-c.h"
#include "test.h"

#define NODES   300
#define WEIGHTS 40

static uint64_t state;

static uint32_t draw(uint32_t below)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((state >> 33) % below);
}

/* NULL for none: protobuf-c frees no empty array. */
static void *array(size_t count)
{
	return count ? calloc(count, sizeof(void *)) : NULL;
}

static char *text(const char *prefix, uint32_t number)
{
	char *ret = malloc(32);

	snprintf(ret, 32, "%s%u", prefix, number);
	return ret;
}

/* Operators with the kind that each has with a weight, and without one. -1: it is no layer. */
static const struct {
	const char *name;
	int with, without;
} known[] = {
	{"Conv", TD_LAYER_CONVOLUTION, TD_LAYER_CONVOLUTION},
	{"MatMul", TD_LAYER_LINEAR, -1},
	{"Gemm", TD_LAYER_FULLY_CONNECTED, TD_LAYER_FULLY_CONNECTED},
	{"Relu", TD_LAYER_ACTIVATION, TD_LAYER_ACTIVATION},
	{"Gather", TD_LAYER_EMBEDDING, -1},
	{"Flatten", TD_LAYER_FLATTEN, TD_LAYER_FLATTEN},
	{"Add", -1, -1},
	{"Shape", -1, -1},
	{"BatchNormalization", TD_LAYER_BATCH_NORM, TD_LAYER_BATCH_NORM},
	{"AveragePool", TD_LAYER_POOLING, TD_LAYER_POOLING},
	{"GRU", TD_LAYER_OTHER, TD_LAYER_OTHER},
	{"If", -1, -1},
};
#define KNOWN (sizeof(known) / sizeof(known[0]))

static Onnx__Graph *make_graph(unsigned depth, bool has_weights);

static Onnx__Attribute *make_attribute(unsigned depth)
{
	Onnx__Attribute *a = malloc(sizeof(*a));

	onnx__attribute__init(a);
	a->name = text("attribute", draw(5));
	switch (draw(4)) {
	case 0:
		a->has_f = true;
		a->f = 0.5f;
		break;
	case 1:
		a->n_floats = 7;
		a->floats = calloc(7, sizeof(float));
		break;
	case 2:
		a->has_i = true;
		a->i = -(int64_t)draw(1000);
		break;
	default:
		if (depth < 3)
			a->g = make_graph(depth + 1, false);
	}
	return a;
}

static Onnx__Node *make_node(unsigned depth, uint32_t functions)
{
	Onnx__Node *node = malloc(sizeof(*node));

	onnx__node__init(node);
	node->n_input = draw(4);
	node->input = array(node->n_input);
	for (size_t i = 0; i < node->n_input; i++)
		node->input[i] = draw(3) ? text("x", draw(NODES)) : text("w", draw(WEIGHTS));
	node->n_output = 1;
	node->output = array(1);
	node->output[0] = text("x", draw(NODES));
	node->name = text("node ", draw(1000));
	if (functions && !draw(8)) {
		node->op_type = text("function", draw(functions));
		node->domain = text("local", 0);
	} else {
		node->op_type = strdup(known[draw(KNOWN)].name);
	}
	node->n_attribute = draw(20) ? draw(2) : 3;
	node->attribute = array(node->n_attribute);
	for (size_t i = 0; i < node->n_attribute; i++)
		node->attribute[i] = make_attribute(depth);
	return node;
}

static Onnx__Node **make_nodes(size_t count, unsigned depth, uint32_t functions)
{
	Onnx__Node **nodes = array(count);

	for (size_t i = 0; i < count; i++)
		nodes[i] = make_node(depth, functions);
	return nodes;
}

static Onnx__Graph *make_graph(unsigned depth, bool has_weights)
{
	Onnx__Graph *graph = malloc(sizeof(*graph));

	onnx__graph__init(graph);
	graph->n_node = depth ? 5 : NODES;
	graph->node = make_nodes(graph->n_node, depth, 4);
	graph->n_initializer = has_weights ? WEIGHTS / 2 : 0;
	graph->initializer = array(graph->n_initializer);
	for (size_t i = 0; i < graph->n_initializer; i++) {
		Onnx__Tensor *tensor = malloc(sizeof(*tensor));

		onnx__tensor__init(tensor);
		tensor->name = text("w", (uint32_t)i * 2);
		tensor->has_raw_data = true;
		tensor->raw_data.len = draw(10000);
		tensor->raw_data.data = calloc(tensor->raw_data.len + 1, 1);
		graph->initializer[i] = tensor;
	}
	return graph;
}

static void make_model(Onnx__Model *model)
{
	onnx__model__init(model);
	model->has_ir_version = true;
	model->ir_version = 8;
	model->graph = make_graph(0, true);
	model->n_functions = 4;
	model->functions = array(4);
	for (uint32_t i = 0; i < 4; i++) {
		Onnx__Function *function = malloc(sizeof(*function));

		onnx__function__init(function);
		function->name = text("function", i);
		function->domain = text("local", 0);
		function->n_node = 20;
		/* One calls only those before it. */
		function->node = make_nodes(20, 3, i);
		model->functions[i] = function;
	}
}

/* -- counting, from protobuf-c's structs -- */

static const Onnx__Model *counted;

static bool is_weight(const char *name)
{
	for (size_t i = 0; i < counted->graph->n_initializer; i++)
		if (!strcmp(counted->graph->initializer[i]->name, name))
			return true;
	return false;
}

static void count_nodes(
	size_t n, Onnx__Node *const *nodes, bool in_function, uint32_t counts[TD_LAYER_KINDS]);

static void count_node(const Onnx__Node *node, bool in_function, uint32_t counts[TD_LAYER_KINDS])
{
	bool has_weight = false;

	for (size_t i = 0; i < node->n_input; i++)
		has_weight |= in_function || is_weight(node->input[i]);
	for (size_t i = 0; node->domain && i < counted->n_functions; i++)
		if (!strcmp(counted->functions[i]->name, node->op_type))
			count_nodes(counted->functions[i]->n_node, counted->functions[i]->node,
				true, counts);
	for (size_t i = 0; !node->domain && i < KNOWN; i++)
		if (!strcmp(known[i].name, node->op_type)) {
			int kind = has_weight ? known[i].with : known[i].without;

			if (kind >= 0)
				counts[kind]++;
		}
	for (size_t i = 0; i < node->n_attribute; i++)
		if (node->attribute[i]->g)
			count_nodes(node->attribute[i]->g->n_node, node->attribute[i]->g->node,
				in_function, counts);
}

static void count_nodes(
	size_t n, Onnx__Node *const *nodes, bool in_function, uint32_t counts[TD_LAYER_KINDS])
{
	for (size_t i = 0; i < n; i++)
		count_node(nodes[i], in_function, counts);
}

TEST(ten_models_have_the_layers_that_protobuf_c_finds)
{
	for (state = 1; state <= 10;) {
		uint32_t expected[TD_LAYER_KINDS] = {0}, counts[TD_LAYER_KINDS];
		uint64_t seed = state;
		struct td_onnx_error error;
		Onnx__Model *made = malloc(sizeof(*made)), *read;
		uint8_t *bytes;
		size_t size;

		make_model(made);
		size = onnx__model__get_packed_size(made);
		bytes = malloc(size);
		CHECK_EQ(onnx__model__pack(made, bytes), size);
		read = onnx__model__unpack(NULL, size, bytes);
		CHECK(read);
		counted = read;
		count_nodes(read->graph->n_node, read->graph->node, false, expected);
		CHECK_EQ(td_onnx_layers(bytes, size, counts, &error), 0);
		for (unsigned i = 0; i < TD_LAYER_KINDS; i++)
			CHECK_EQ(counts[i], expected[i]);
		CHECK(counts[TD_LAYER_LINEAR] > 5 && counts[TD_LAYER_EMBEDDING] > 5);
		CHECK(counts[TD_LAYER_ACTIVATION] > 20);
		onnx__model__free_unpacked(read, NULL);
		onnx__model__free_unpacked(made, NULL);
		free(bytes);
		state = seed + 1;
	}
}
