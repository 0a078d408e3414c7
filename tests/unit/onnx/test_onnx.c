/* The layers of ONNX models, written byte by byte. test_onnx_oracle.c reads larger ones. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "onnx/names.h"
#include "onnx/onnx.h"
#include "onnx/wire.h"
#include "test.h"
#include "unit/onnx/build.h"

static uint32_t counts[TD_LAYER_KINDS];
static struct td_onnx_error error;

/* A node with up to two inputs; "" is none. */
static struct built node(const char *op, const char *input, const char *second, const char *output)
{
	struct built to = {.size = 0};

	if (*input)
		put_text(&to, 1, input);
	if (*second)
		put_text(&to, 1, second);
	put_text(&to, 2, output);
	put_text(&to, 4, op);
	return to;
}

static void put_weight(struct built *graph, const char *name)
{
	struct built tensor = {.size = 0};

	put_number(&tensor, 1, 1024);
	put_text(&tensor, 8, name);
	put_bytes(&tensor, 9, "12345678", 8);
	put_message(graph, 5, &tensor);
}

static void put_node(struct built *graph, uint32_t number, const char *op, const char *input,
	const char *second, const char *output)
{
	struct built message = node(op, input, second, output);

	put_message(graph, number, &message);
}

static struct built model_of(const struct built *graph)
{
	struct built to = {.size = 0};

	put_number(&to, 1, 8);
	put_text(&to, 2, "a test");
	put_message(&to, 7, graph);
	return to;
}

static int read_model(const struct built *model)
{
	memset(counts, 0xff, sizeof(counts));
	return td_onnx_layers(model->bytes, model->size, counts, &error);
}

static int read_graph(const struct built *graph)
{
	struct built model = model_of(graph);

	return read_model(&model);
}

TEST(every_kind_is_counted)
{
	struct built graph = {.size = 0};

	put_weight(&graph, "w");
	put_node(&graph, 1, "Conv", "x", "w", "a");
	put_node(&graph, 1, "Conv", "a", "w", "b");
	put_node(&graph, 1, "MatMul", "b", "w", "c");
	put_node(&graph, 1, "Relu", "c", "", "d");
	put_node(&graph, 1, "Gather", "w", "d", "e");
	put_node(&graph, 1, "Flatten", "e", "", "f");
	put_node(&graph, 1, "BatchNormalization", "f", "w", "g");
	put_node(&graph, 1, "Gemm", "g", "w", "h");
	put_node(&graph, 1, "MaxPool", "h", "", "i");
	put_node(&graph, 1, "LSTM", "i", "w", "j");
	put_node(&graph, 1, "Add", "j", "w", "k");
	CHECK_EQ(read_graph(&graph), 0);
	CHECK_EQ(counts[TD_LAYER_CONVOLUTION], 2);
	CHECK_EQ(counts[TD_LAYER_LINEAR], 1);
	CHECK_EQ(counts[TD_LAYER_ACTIVATION], 1);
	CHECK_EQ(counts[TD_LAYER_EMBEDDING], 1);
	CHECK_EQ(counts[TD_LAYER_ENCODER], 0);
	CHECK_EQ(counts[TD_LAYER_DECODER], 0);
	CHECK_EQ(counts[TD_LAYER_FLATTEN], 1);
	CHECK_EQ(counts[TD_LAYER_BATCH_NORM], 1);
	CHECK_EQ(counts[TD_LAYER_FULLY_CONNECTED], 1);
	CHECK_EQ(counts[TD_LAYER_POOLING], 1);
	CHECK_EQ(counts[TD_LAYER_OTHER], 1);
}

TEST(a_product_of_activations_is_no_linear_layer)
{
	struct built graph = {.size = 0};

	put_node(&graph, 1, "MatMul", "query", "key", "scores");
	put_node(&graph, 1, "Gather", "x", "indices", "rows");
	CHECK_EQ(read_graph(&graph), 0);
	CHECK_EQ(counts[TD_LAYER_LINEAR], 0);
	CHECK_EQ(counts[TD_LAYER_EMBEDDING], 0);
	CHECK_EQ(counts[TD_LAYER_OTHER], 0);
}

TEST(a_weight_may_be_made_from_another_and_lie_behind_its_use)
{
	struct built graph = {.size = 0};

	put_node(&graph, 1, "Transpose", "w", "", "turned");
	put_node(&graph, 1, "MatMul", "x", "turned", "a");
	put_node(&graph, 1, "Constant", "", "", "constant");
	put_node(&graph, 1, "Cast", "constant", "", "cast");
	put_node(&graph, 1, "MatMul", "a", "cast", "b");
	put_node(&graph, 1, "Transpose", "b", "", "c");
	put_node(&graph, 1, "MatMul", "b", "c", "d");
	put_weight(&graph, "w");
	CHECK_EQ(read_graph(&graph), 0);
	CHECK_EQ(counts[TD_LAYER_LINEAR], 2);
}

TEST(a_sparse_weight_is_a_weight)
{
	struct built graph = {.size = 0}, values = {.size = 0}, sparse = {.size = 0};

	put_text(&values, 8, "w");
	put_message(&sparse, 1, &values);
	put_message(&graph, 15, &sparse);
	put_node(&graph, 1, "MatMul", "x", "w", "a");
	CHECK_EQ(read_graph(&graph), 0);
	CHECK_EQ(counts[TD_LAYER_LINEAR], 1);
}

TEST(graphs_within_nodes_are_counted)
{
	struct built inner = {.size = 0}, branch = {.size = 0}, outer = {.size = 0},
		     graph = {.size = 0};

	put_weight(&graph, "w");
	put_node(&inner, 1, "MatMul", "x", "w", "y");
	put_text(&branch, 1, "then_branch");
	put_message(&branch, 6, &inner);
	outer = node("If", "condition", "", "z");
	put_message(&outer, 5, &branch);
	put_message(&graph, 1, &outer);
	CHECK_EQ(read_graph(&graph), 0);
	CHECK_EQ(counts[TD_LAYER_LINEAR], 1);
}

static void put_function(struct built *model, const char *name, const char *op, unsigned calls)
{
	struct built function = {.size = 0};

	put_text(&function, 1, name);
	put_text(&function, 10, "local");
	for (unsigned i = 0; i < calls; i++) {
		struct built call = node(op, "x", "", "y");

		if (!strcmp(op, "Block") || !strcmp(op, "TransformerEncoderLayer"))
			put_text(&call, 7, "local");
		put_message(&function, 7, &call);
	}
	put_message(model, 25, &function);
}

static void put_call(struct built *graph, const char *name)
{
	struct built call = node(name, "x", "", "y");

	put_text(&call, 7, "local");
	put_message(graph, 1, &call);
}

TEST(functions_are_counted_at_each_call)
{
	struct built graph = {.size = 0}, model;

	put_call(&graph, "TransformerEncoderLayer");
	put_call(&graph, "TransformerEncoderLayer");
	put_call(&graph, "TransformerDecoderLayer");
	model = model_of(&graph);
	put_function(&model, "TransformerEncoderLayer", "Block", 3);
	put_function(&model, "TransformerDecoderLayer", "Block", 1);
	put_function(&model, "Block", "Relu", 2);
	CHECK_EQ(read_model(&model), 0);
	CHECK_EQ(counts[TD_LAYER_ENCODER], 2);
	CHECK_EQ(counts[TD_LAYER_DECODER], 1);
	CHECK_EQ(counts[TD_LAYER_ACTIVATION], 2 * 3 * 2 + 2);
	CHECK_EQ(counts[TD_LAYER_OTHER], 0);
}

TEST(an_operator_of_another_domain_is_not_the_function)
{
	struct built graph = {.size = 0}, model;

	put_node(&graph, 1, "Block", "x", "", "y");
	model = model_of(&graph);
	put_function(&model, "Block", "Relu", 2);
	CHECK_EQ(read_model(&model), 0);
	CHECK_EQ(counts[TD_LAYER_ACTIVATION], 0);
	CHECK_EQ(counts[TD_LAYER_OTHER], 1);
}

TEST(counts_that_double_at_each_level_take_no_time_and_stop)
{
	struct built graph = {.size = 0}, model;
	char name[16], called[16];

	put_call(&graph, "f0");
	model = model_of(&graph);
	for (unsigned i = 0; i < 28; i++) {
		struct built function = {.size = 0};

		snprintf(name, sizeof(name), "f%u", i);
		snprintf(called, sizeof(called), "f%u", i + 1);
		put_text(&function, 1, name);
		put_text(&function, 10, "local");
		for (unsigned k = 0; k < 8; k++) {
			struct built call = node(i == 27 ? "Relu" : called, "x", "", "y");

			if (i < 27)
				put_text(&call, 7, "local");
			put_message(&function, 7, &call);
		}
		put_message(&model, 25, &function);
	}
	CHECK_EQ(read_model(&model), 0);
	CHECK_EQ(counts[TD_LAYER_ACTIVATION], UINT32_MAX);
}

TEST(a_function_that_calls_itself_is_refused)
{
	struct built graph = {.size = 0}, model;

	put_call(&graph, "Block");
	model = model_of(&graph);
	put_function(&model, "Block", "Block", 1);
	CHECK_EQ(read_model(&model), -EBADMSG);
	CHECK_STR(error.why, "a function calls itself");
}

TEST(graphs_that_lie_too_deep_are_refused)
{
	struct built inner = {.size = 0};

	put_node(&inner, 1, "Relu", "x", "", "y");
	for (unsigned i = 0; i < 32; i++) {
		struct built attribute = {.size = 0}, outer = node("If", "c", "", "z");

		put_message(&attribute, 6, &inner);
		put_message(&outer, 5, &attribute);
		inner.size = 0;
		put_message(&inner, 1, &outer);
		if (i == 30)
			CHECK_EQ(read_graph(&inner), 0);
	}
	CHECK_EQ(counts[TD_LAYER_ACTIVATION], 1);
	CHECK_EQ(read_graph(&inner), -EBADMSG);
	CHECK_STR(error.why, "graphs lie more than 32 deep in each other");
}

TEST(what_is_no_model_is_refused_with_the_place)
{
	struct built graph = {.size = 0}, model;

	put_node(&graph, 1, "Relu", "x", "", "y");
	model = model_of(&graph);
	CHECK_EQ(td_onnx_layers("", 0, counts, &error), -EBADMSG);
	CHECK_STR(error.why, "it has no ir_version");
	CHECK_EQ(td_onnx_layers(model.bytes, 2, counts, &error), -EBADMSG);
	CHECK_STR(error.why, "it has no graph");
	for (size_t size = 3; size < model.size; size++) {
		CHECK_EQ(td_onnx_layers(model.bytes, size, counts, &error), -EBADMSG);
		CHECK(error.offset <= size);
	}
	CHECK_EQ(td_onnx_layers(model.bytes, model.size - 1, counts, &error), -EBADMSG);
	CHECK_STR(error.why, "a field is longer than the message around it");
	CHECK_EQ(error.offset, 10);
	CHECK_EQ(td_onnx_layers("\x0b", 1, counts, &error), -EBADMSG);
	CHECK_STR(error.why, "a field has no type that protocol buffers know");
	CHECK_EQ(td_onnx_layers("\x02", 1, counts, &error), -EBADMSG);
	CHECK_STR(error.why, "the number of a field is not from 1 to 536870911");
	CHECK_EQ(td_onnx_layers("\x09"
				"1234567",
			 8, counts, &error),
		-EBADMSG);
	CHECK_STR(error.why, "the message ends within a number of 8 bytes");
	CHECK_EQ(td_onnx_layers("\x0d"
				"123",
			 4, counts, &error),
		-EBADMSG);
	CHECK_STR(error.why, "the message ends within a number of 4 bytes");
	CHECK_EQ(td_onnx_layers(
			 "\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 12, counts, &error),
		-EBADMSG);
	CHECK_STR(error.why, "a number does not end");
}

TEST(numbers_of_all_widths_are_skipped)
{
	static const char bytes[] = "\x0d"
				    "1234"
				    "\x09"
				    "12345678"
				    "\x10\xff\x01";
	struct td_span message = {(const uint8_t *)bytes, (const uint8_t *)bytes + 17};
	struct td_field field;
	const char *why;

	CHECK_EQ(td_wire_next(&message, &field, &why), 1);
	CHECK_EQ(field.wire, TD_WIRE_32);
	CHECK_EQ(field.value, 0x34333231);
	CHECK_EQ(td_wire_next(&message, &field, &why), 1);
	CHECK_EQ(field.wire, TD_WIRE_64);
	CHECK_EQ(field.value, 0x3837363534333231);
	CHECK_EQ(td_wire_next(&message, &field, &why), 1);
	CHECK_EQ(field.number, 2);
	CHECK_EQ(field.value, 255);
	CHECK_EQ(td_wire_next(&message, &field, &why), 0);
}

TEST(a_set_of_names_grows)
{
	struct td_names names = {0};

	CHECK(!td_names_has(&names, 1));
	for (uint64_t i = 1; i <= 5000; i++)
		CHECK_EQ(td_names_add(&names, i * 0x100000001), 0);
	CHECK_EQ(td_names_add(&names, 0x100000001), 0);
	CHECK_EQ(names.used, 5000);
	for (uint64_t i = 1; i <= 5000; i++)
		CHECK(td_names_has(&names, i * 0x100000001));
	CHECK(!td_names_has(&names, 5001 * 0x100000001ull));
	td_names_free(&names);
}

/* The weights of two gigabytes are a hole in the file, and nobody reads them. */
TEST(a_file_of_two_gigabytes_is_walked)
{
	uint64_t weights = 1ull << 31;
	struct built graph = {.size = 0}, tensor = {.size = 0}, model = {.size = 0};
	char path[] = "/tmp/tandem-onnx-XXXXXX";
	int fd = mkstemp(path);

	CHECK(fd >= 0);
	put_text(&tensor, 8, "w");
	put_varint(&tensor, 9 << 3 | 2);
	put_varint(&tensor, weights);
	put_node(&graph, 1, "MatMul", "x", "w", "y");
	put_varint(&graph, 5 << 3 | 2);
	put_varint(&graph, tensor.size + weights);
	memcpy(graph.bytes + graph.size, tensor.bytes, tensor.size);
	graph.size += tensor.size;
	put_number(&model, 1, 8);
	put_varint(&model, 7 << 3 | 2);
	put_varint(&model, graph.size + weights);
	CHECK_EQ(write(fd, model.bytes, model.size), model.size);
	CHECK_EQ(write(fd, graph.bytes, graph.size), graph.size);
	CHECK_EQ(ftruncate(fd, (off_t)(model.size + graph.size + weights)), 0);
	CHECK_EQ(td_onnx_layers_of_file(path, counts, &error), 0);
	CHECK_EQ(counts[TD_LAYER_LINEAR], 1);
	CHECK_EQ(ftruncate(fd, (off_t)(model.size + graph.size + weights - 1)), 0);
	CHECK_EQ(td_onnx_layers_of_file(path, counts, &error), -EBADMSG);
	CHECK_EQ(ftruncate(fd, 0), 0);
	CHECK_EQ(td_onnx_layers_of_file(path, counts, &error), -EBADMSG);
	close(fd);
	unlink(path);
	CHECK_EQ(td_onnx_layers_of_file(path, counts, &error), -ENOENT);
	CHECK_EQ(td_onnx_layers_of_file("/tmp", counts, &error), -EINVAL);
}
