/* The verb layers: shows the layers of a network, as the policy mudi compares them. */
#include <errno.h>
#include <string.h>

#include "cli/cli.h"
#include "onnx/onnx.h"

#define EXPECTED_FILE   "an ONNX model"
#define EXPECTED_OPTION "an ONNX model, or the counts that tandem layers prints"

/*
 * Counts the layers of an ONNX file. Returns 0, or TD_EXIT_USAGE after printing an error. `option`
 * is what the error begins with.
 */
static int read_file(
	const char *path, uint32_t counts[TD_LAYER_KINDS], const char *option, const char *expected)
{
	struct td_onnx_error error;
	int r = td_onnx_layers_of_file(path, counts, &error);

	if (r == -EBADMSG)
		return td_cli_fail("%s\"%s\" is not valid: at byte %llu %s: expected %s", option,
			path, (unsigned long long)error.offset, error.why, expected);
	if (r == -EINVAL)
		return td_cli_fail("%s\"%s\" is not a file: expected %s", option, path, expected);
	if (r)
		return td_cli_fail(
			"%s\"%s\": %s: expected %s", option, path, strerror(-r), expected);
	return 0;
}

int td_cli_layers(const char *value, char ret_text[TD_LAYERS_TEXT])
{
	uint32_t counts[TD_LAYER_KINDS];
	struct td_err err;

	/* A text of digits and commas was meant as counts, so it is not read as a file name. */
	if (td_layers_parse(value, counts, &err)) {
		if (!value[strspn(value, "0123456789, ")])
			return td_cli_fail("--layers: %s", err.msg);
		if (read_file(value, counts, "--layers: ", EXPECTED_OPTION))
			return TD_EXIT_USAGE;
	}
	td_layers_format(counts, ret_text);
	return 0;
}

static void print_json(const uint32_t counts[TD_LAYER_KINDS])
{
	struct td_json out = {0};

	td_json_begin(&out, stdout);
	for (unsigned i = 0; i < TD_LAYER_KINDS; i++) {
		td_json_row(&out);
		td_json_str(&out, "kind", td_layer_words[i]);
		td_json_u64(&out, "layers", counts[i]);
		td_json_end_row(&out);
	}
	td_json_end(&out);
}

static void print_table(const uint32_t counts[TD_LAYER_KINDS])
{
	static const char *const help[] = {
#define KIND(name, word, help) help,
#include "proto/layer_kinds.def"
#undef KIND
	};
	char text[TD_LAYERS_TEXT];

	printf("%-15s %6s  %s\n", "KIND", "LAYERS", "EACH IS");
	for (unsigned i = 0; i < TD_LAYER_KINDS; i++)
		printf("%-15s %6u  %s\n", td_layer_words[i], counts[i], help[i]);
	td_layers_format(counts, text);
	printf("\nFor a program that trains it: tandem run --layers %s\n", text);
}

int td_verb_layers(int argc, char **argv)
{
	uint32_t counts[TD_LAYER_KINDS];
	bool json;
	int at = td_cli_json_option(argc, argv, &json);

	if (at < 0)
		return TD_EXIT_USAGE;
	if (at + 1 != argc)
		return td_cli_fail("expected one ONNX file: see tandem layers --help");
	if (read_file(argv[at], counts, "", EXPECTED_FILE))
		return TD_EXIT_USAGE;
	if (json)
		print_json(counts);
	else
		print_table(counts);
	return 0;
}
