/* See onnx.h. The numbers of fields are those of onnx.proto (IR version 10). */
#include "onnx/onnx.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "onnx/names.h"
#include "onnx/wire.h"

enum { MODEL_IR_VERSION = 1, MODEL_GRAPH = 7, MODEL_FUNCTIONS = 25 };
enum { GRAPH_NODE = 1, GRAPH_INITIALIZER = 5, GRAPH_SPARSE_INITIALIZER = 15 };
enum { SPARSE_VALUES = 1 };
enum { TENSOR_NAME = 8 };
enum { NODE_INPUT = 1, NODE_OUTPUT = 2, NODE_OPERATOR = 4, NODE_ATTRIBUTE = 5, NODE_DOMAIN = 7 };
enum { ATTRIBUTE_GRAPH = 6, ATTRIBUTE_GRAPHS = 11 };
enum { FUNCTION_NAME = 1, FUNCTION_NODE = 7, FUNCTION_DOMAIN = 10 };

#define DEPTH_MAX     32u
#define FUNCTIONS_MAX 65536u

enum when { ALWAYS, WEIGHTS, NEVER, PASSES, WEIGHT };

static const struct op {
	const char *name;
	enum td_layer_kind kind;
	enum when when;
} operators[] = {
#define OPERATOR(name, kind, when) {name, TD_LAYER_##kind, when},
#include "onnx/operators.def"
#undef OPERATOR
};

static const struct op unknown = {"", TD_LAYER_OTHER, ALWAYS};

typedef uint64_t counts_t[TD_LAYER_KINDS];

struct function {
	uint64_t name, domain; /* hashes */
	struct td_span body;
	enum { UNCOUNTED, COUNTING, COUNTED } state;
	counts_t counts; /* of one call */
};

struct reader {
	const uint8_t *start;
	struct td_names weights;
	struct function *functions;
	uint32_t function_count, function_room;
	bool in_function;
	unsigned depth;
	struct td_onnx_error error;
};

/* A node as far as a count needs it. */
struct node {
	uint64_t name, domain; /* of the operator */
	const struct op *op;
	bool first_is_weight, any_is_weight;
};

static int bad(struct reader *reader, const uint8_t *at, const char *why)
{
	reader->error = (struct td_onnx_error){(uint64_t)(at - reader->start), why};
	return -EBADMSG;
}

/* As td_wire_next(), and keeps the error. */
static int next(struct reader *reader, struct td_span *message, struct td_field *ret)
{
	const char *why = NULL;
	int r = td_wire_next(message, ret, &why);

	return r < 0 ? bad(reader, message->at, why) : r;
}

/* Fields of another type than the one that ONNX gives them are skipped, as protobuf does. */
static bool is(const struct td_field *field, uint32_t number)
{
	return field->number == number && field->wire == TD_WIRE_BYTES;
}

static bool equals(struct td_span span, const char *text)
{
	size_t length = strlen(text);

	return (size_t)(span.end - span.at) == length && memcmp(span.at, text, length) == 0;
}

static bool ends_with(struct td_span span, const char *text)
{
	size_t length = strlen(text);

	return (size_t)(span.end - span.at) >= length &&
	       memcmp(span.end - length, text, length) == 0;
}

static void add(counts_t to, const counts_t from)
{
	for (unsigned i = 0; i < TD_LAYER_KINDS; i++)
		to[i] = from[i] > UINT64_MAX - to[i] ? UINT64_MAX : to[i] + from[i];
}

static void add_one(counts_t to, enum td_layer_kind kind)
{
	to[kind] += to[kind] < UINT64_MAX;
}

static const struct op *find_operator(struct td_span name)
{
	for (size_t i = 0; i < sizeof(operators) / sizeof(operators[0]); i++)
		if (equals(name, operators[i].name))
			return &operators[i];
	return &unknown;
}

static int add_weight(struct reader *reader, struct td_span name)
{
	int r = td_names_add(&reader->weights, td_name_hash(name));

	return r == -E2BIG ? bad(reader, name.at, "there are more than 16777216 weights") : r;
}

static int read_initializer(struct reader *reader, struct td_span tensor)
{
	struct td_field field;
	int r;

	while ((r = next(reader, &tensor, &field)) > 0)
		if (is(&field, TENSOR_NAME)) {
			r = add_weight(reader, field.bytes);
			if (r)
				return r;
		}
	return r;
}

static int read_sparse_initializer(struct reader *reader, struct td_span tensor)
{
	struct td_field field;
	int r;

	while ((r = next(reader, &tensor, &field)) > 0)
		if (is(&field, SPARSE_VALUES)) {
			r = read_initializer(reader, field.bytes);
			if (r)
				return r;
		}
	return r;
}

static int read_initializers(struct reader *reader, struct td_span graph)
{
	struct td_field field;
	int r;

	while ((r = next(reader, &graph, &field)) > 0) {
		if (is(&field, GRAPH_INITIALIZER))
			r = read_initializer(reader, field.bytes);
		else if (is(&field, GRAPH_SPARSE_INITIALIZER))
			r = read_sparse_initializer(reader, field.bytes);
		if (r < 0)
			return r;
	}
	return r;
}

static int count_graph(struct reader *reader, struct td_span graph, counts_t counts);

static int count_attribute(struct reader *reader, struct td_span attribute, counts_t counts)
{
	struct td_field field;
	int r;

	while ((r = next(reader, &attribute, &field)) > 0)
		if (is(&field, ATTRIBUTE_GRAPH) || is(&field, ATTRIBUTE_GRAPHS)) {
			r = count_graph(reader, field.bytes, counts);
			if (r)
				return r;
		}
	return r;
}

static void read_input(
	const struct reader *reader, struct td_span name, bool is_first, struct node *node)
{
	bool is_weight = reader->in_function || td_names_has(&reader->weights, td_name_hash(name));

	node->any_is_weight |= is_weight;
	if (is_first)
		node->first_is_weight = is_weight;
}

static int read_node(struct reader *reader, struct td_span message, struct node *ret)
{
	struct td_field field;
	bool is_first = true;
	int r;

	*ret = (struct node){.domain = td_name_hash((struct td_span){0}), .op = &unknown};
	while ((r = next(reader, &message, &field)) > 0) {
		if (is(&field, NODE_INPUT)) {
			read_input(reader, field.bytes, is_first, ret);
			is_first = false;
		} else if (is(&field, NODE_OPERATOR)) {
			ret->name = td_name_hash(field.bytes);
			ret->op = find_operator(field.bytes);
		} else if (is(&field, NODE_DOMAIN)) {
			ret->domain = td_name_hash(field.bytes);
		}
	}
	return r;
}

static int compare_functions(const void *a, const void *b)
{
	const struct function *left = a, *right = b;

	if (left->name != right->name)
		return left->name < right->name ? -1 : 1;
	return (left->domain > right->domain) - (left->domain < right->domain);
}

/* NULL: the node is an operator of its own. */
static struct function *find_function(const struct reader *reader, const struct node *node)
{
	struct function key = {.name = node->name, .domain = node->domain};

	if (!reader->function_count)
		return NULL;
	return bsearch(
		&key, reader->functions, reader->function_count, sizeof(key), compare_functions);
}

static int count_nodes(
	struct reader *reader, struct td_span message, uint32_t node_number, counts_t counts);

static int count_function(struct reader *reader, struct function *function)
{
	bool was_in_function = reader->in_function;
	int r;

	if (function->state == COUNTED)
		return 0;
	if (function->state == COUNTING)
		return bad(reader, function->body.at, "a function calls itself");
	function->state = COUNTING;
	reader->in_function = true;
	r = count_nodes(reader, function->body, FUNCTION_NODE, function->counts);
	reader->in_function = was_in_function;
	function->state = COUNTED;
	return r;
}

static bool makes_weight(const struct node *node)
{
	return node->op->when == WEIGHT || (node->op->when == PASSES && node->first_is_weight);
}

static bool is_layer(const struct node *node)
{
	return node->op->when == ALWAYS || (node->op->when == WEIGHTS && node->any_is_weight);
}

static int count_node(struct reader *reader, struct td_span message, counts_t counts)
{
	struct td_span rest = message;
	struct td_field field;
	struct function *function;
	struct node node;
	int r = read_node(reader, message, &node);

	if (r < 0)
		return r;
	function = find_function(reader, &node);
	if (function) {
		r = count_function(reader, function);
		if (r < 0)
			return r;
		add(counts, function->counts);
	} else if (is_layer(&node)) {
		add_one(counts, node.op->kind);
	}
	while ((r = next(reader, &rest, &field)) > 0) {
		if (is(&field, NODE_ATTRIBUTE))
			r = count_attribute(reader, field.bytes, counts);
		else if (is(&field, NODE_OUTPUT) && !function && makes_weight(&node))
			r = add_weight(reader, field.bytes);
		if (r < 0)
			return r;
	}
	return r;
}

/* message is a graph or a function; its nodes are its fields node_number. */
static int count_nodes(
	struct reader *reader, struct td_span message, uint32_t node_number, counts_t counts)
{
	struct td_field field;
	int r = 0;

	if (reader->depth == DEPTH_MAX)
		return bad(reader, message.at, "graphs lie more than 32 deep in each other");
	reader->depth++;
	while (r >= 0 && (r = next(reader, &message, &field)) > 0)
		if (is(&field, node_number))
			r = count_node(reader, field.bytes, counts);
	reader->depth--;
	return r;
}

static int count_graph(struct reader *reader, struct td_span graph, counts_t counts)
{
	int r = read_initializers(reader, graph);

	return r < 0 ? r : count_nodes(reader, graph, GRAPH_NODE, counts);
}

static struct function *new_function(struct reader *reader)
{
	if (reader->function_count == reader->function_room) {
		uint32_t room = reader->function_room ? reader->function_room * 2 : 16;
		struct function *larger = realloc(reader->functions, room * sizeof(*larger));

		if (!larger)
			return NULL;
		reader->functions = larger;
		reader->function_room = room;
	}
	return &reader->functions[reader->function_count++];
}

static int read_function(struct reader *reader, struct td_span body)
{
	struct td_span rest = body;
	struct function *function;
	struct td_field field;
	int r;

	if (reader->function_count == FUNCTIONS_MAX)
		return bad(reader, body.at, "there are more than 65536 functions");
	function = new_function(reader);
	if (!function)
		return -ENOMEM;
	*function = (struct function){.body = body, .domain = td_name_hash((struct td_span){0})};
	while ((r = next(reader, &rest, &field)) > 0) {
		if (is(&field, FUNCTION_NAME)) {
			function->name = td_name_hash(field.bytes);
			if (ends_with(field.bytes, "EncoderLayer"))
				add_one(function->counts, TD_LAYER_ENCODER);
			if (ends_with(field.bytes, "DecoderLayer"))
				add_one(function->counts, TD_LAYER_DECODER);
		} else if (is(&field, FUNCTION_DOMAIN)) {
			function->domain = td_name_hash(field.bytes);
		}
	}
	return r;
}

/* The functions come first, as the graph may lie before them in the file. */
static int read_model(struct reader *reader, struct td_span model, counts_t counts)
{
	struct td_span rest = model;
	struct td_field field;
	bool has_version = false, has_graph = false;
	int r = 0;

	while (r >= 0 && (r = next(reader, &rest, &field)) > 0) {
		has_version |= field.number == MODEL_IR_VERSION && field.wire == TD_WIRE_VARINT;
		has_graph |= is(&field, MODEL_GRAPH);
		if (is(&field, MODEL_FUNCTIONS))
			r = read_function(reader, field.bytes);
	}
	if (r >= 0 && !has_version)
		return bad(reader, model.at, "it has no ir_version");
	if (r >= 0 && !has_graph)
		return bad(reader, model.at, "it has no graph");
	if (reader->function_count)
		qsort(reader->functions, reader->function_count, sizeof(*reader->functions),
			compare_functions);
	while (r >= 0 && (r = next(reader, &model, &field)) > 0)
		if (is(&field, MODEL_GRAPH))
			r = count_graph(reader, field.bytes, counts);
	return r;
}

int td_onnx_layers(const void *model, size_t bytes, uint32_t counts[TD_LAYER_KINDS],
	struct td_onnx_error *ret_error)
{
	struct reader reader = {.start = model};
	counts_t sums = {0};
	int r = read_model(&reader, (struct td_span){reader.start, reader.start + bytes}, sums);

	*ret_error = reader.error;
	td_names_free(&reader.weights);
	free(reader.functions);
	if (r < 0)
		return r;
	for (unsigned i = 0; i < TD_LAYER_KINDS; i++)
		counts[i] = sums[i] > UINT32_MAX ? UINT32_MAX : (uint32_t)sums[i];
	return 0;
}

static int map_file(int fd, void **ret, size_t *ret_bytes)
{
	struct stat status;

	if (fstat(fd, &status))
		return -errno;
	if (!S_ISREG(status.st_mode))
		return -EINVAL;
	*ret = NULL;
	*ret_bytes = (size_t)status.st_size;
	if (!*ret_bytes)
		return 0;
	*ret = mmap(NULL, *ret_bytes, PROT_READ, MAP_PRIVATE, fd, 0);
	return *ret == MAP_FAILED ? -errno : 0;
}

int td_onnx_layers_of_file(
	const char *path, uint32_t counts[TD_LAYER_KINDS], struct td_onnx_error *ret_error)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), r;
	void *model;
	size_t bytes = 0;

	*ret_error = (struct td_onnx_error){0};
	if (fd < 0)
		return -errno;
	r = map_file(fd, &model, &bytes);
	close(fd);
	if (r)
		return r;
	r = td_onnx_layers(model, bytes, counts, ret_error);
	if (model)
		munmap(model, bytes);
	return r;
}
