/*
 * softgpu fault: injects a fault into a GPU or a call, as a real one would show it.
 * softgpu/server/wire.h describes each fault.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/parse.h"
#include "cuda/symbols.h"
#include "softgpu/cli/cli.h"
#include "softgpu/driver/graph/graph_abi.h"
#include "softgpu/server/client.h"

static const char *dir;

static int send_fault(const struct sg_msg *fault)
{
	struct sg_msg msg = *fault;
	struct sg_client *client;
	uint32_t gpus;
	int r;

	msg.type = SG_FAULT;
	if (sg_client_new(dir, &client, &gpus) < 0)
		return sg_cli_fail("no server at %s: softgpu start", dir), 1;
	if (msg.gpu >= gpus) {
		char text[96];

		sg_client_free(client);
		snprintf(text, sizeof(text), "--gpu: \"%u\" is out of range: expected 0 to %u",
			msg.gpu, gpus - 1);
		return sg_cli_fail("%s", text);
	}
	r = sg_client_request(client, &msg, NULL, 0, NULL);
	sg_client_free(client);
	if (r < 0)
		return sg_cli_fail("%s", "the server did not answer"), 1;
	return msg.error ? sg_cli_fail("%s",
				   "the server has too many faults at once: softgpu fault clear")
			 : 0;
}

static int with_number(struct sg_msg *fault, const char *text)
{
	struct td_err err = {0};

	if (td_parse_u64(text, 1, 999, &fault->value, &err))
		return sg_cli_fail("xid: %s", err.msg);
	return send_fault(fault);
}

static int with_rate(struct sg_msg *fault, const char *text)
{
	struct td_err err = {0};

	if (sg_cli_parse_rate(text, &fault->value, &err))
		return sg_cli_fail("link: %s", err.msg);
	return send_fault(fault);
}

static int with_size(struct sg_msg *fault, const char *text)
{
	struct td_err err = {0};

	if (td_parse_size(text, 0, &fault->value, &err))
		return sg_cli_fail("host-memory: %s", err.msg);
	return send_fault(fault);
}

/* Sets the effect of an MPS client's death in the middle of its work. */
static int with_exit(struct sg_msg *fault, const char *text)
{
	fault->value = !strcmp(text, "clean");
	if (!fault->value && strcmp(text, "hang"))
		return sg_cli_fail("mps-early-exit: \"%s\": expected hang or clean", text);
	return send_fault(fault);
}

/*
 * Returns the number of an error: a name of cuda.h, or a number. Returns 0 if the text is neither.
 */
static int parse_result(const char *text)
{
#define X(name, number, what) {number, #name},
	static const struct {
		int number;
		const char *name;
	} results[] = {CUDA_RESULTS(X) GRAPH_RESULTS(X)};
#undef X
	struct td_err err;
	uint64_t number;

	for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++)
		if (!strcmp(results[i].name, text))
			return results[i].number;
	return td_parse_u64(text, 1, 999, &number, &err) ? 0 : (int)number;
}

/* Parses NAME[:N]=ERROR. The name of a look-up means every version and flavour of the function. */
static int with_call(struct sg_msg *fault, const char *text)
{
	char name[TD_SYMBOL_MAX + 32], *error, *count;
	struct td_err err = {0};
	bool found = false;

	if (snprintf(name, sizeof(name), "%s", text) >= (int)sizeof(name) ||
		!(error = strchr(name, '=')))
		return sg_cli_fail("\"%s\" is not a call's fault: expected NAME[:N]=ERROR", text);
	*error++ = 0;
	count = strchr(name, ':');
	if (count)
		*count++ = 0;
	if (count && td_parse_u64(count, 1, UINT32_MAX, &fault->value, &err))
		return sg_cli_fail("call: %s", err.msg);
	fault->error = (uint32_t)parse_result(error);
	if (!fault->error)
		return sg_cli_fail(
			"\"%s\" is not an error: expected a name of cuda.h or a number", error);
	for (uint32_t i = 0; i < TD_SYMBOL_N; i++) {
		const struct td_symbol *row = &td_symbols[i];
		int r;

		if (strcmp(row->symbol, name) && (strlen(name) != row->name_len ||
							 strncmp(row->symbol, name, row->name_len)))
			continue;
		found = true;
		fault->range = i;
		r = send_fault(fault);
		if (r)
			return r;
	}
	return found ? 0 : sg_cli_fail("\"%s\" is not a call of the driver", name);
}

static int fail_missing(const char *name, const char *needs)
{
	char text[128];

	snprintf(text, sizeof(text), "fault: \"%s\" needs a value: expected %s", name, needs);
	return sg_cli_fail("%s", text);
}

int sg_verb_fault(int argc, char **argv)
{
	static const struct {
		const char *name;
		enum sg_fault fault;
		int (*with)(struct sg_msg *fault, const char *text);
		const char *needs;
	} kinds[] = {{"clear", SG_FAULT_CLEAR, NULL, NULL},
		{"xid", SG_FAULT_XID, with_number, "a number from 1 to 999 such as 79"},
		{"ecc", SG_FAULT_ECC, NULL, NULL}, {"lost", SG_FAULT_LOST, NULL, NULL},
		{"hang", SG_FAULT_HANG, NULL, NULL},
		{"link", SG_FAULT_LINK, with_rate, "a rate such as 100m"},
		{"host-memory", SG_FAULT_HOST_MEMORY, with_size, "a size such as 1g"},
		{"mps-early-exit", SG_FAULT_MPS_EARLY_EXIT, with_exit, "hang or clean"},
		{"call", SG_FAULT_CALL, with_call, "NAME[:N]=ERROR"}};
	char buf[PATH_MAX];
	struct sg_msg fault = {0};
	struct td_err err = {0};
	uint64_t gpu = 0;
	int i = 1;

	dir = sg_dir(buf, sizeof(buf));
	for (; i < argc && !strncmp(argv[i], "--", 2); i += 2) {
		if (strcmp(argv[i], "--dir") && strcmp(argv[i], "--gpu"))
			return sg_cli_fail(
				"\"%s\" is not expected: see softgpu fault --help", argv[i]);
		if (sg_cli_check_value(argc, argv, i))
			return EXIT_OURS;
		if (!strcmp(argv[i], "--dir"))
			dir = argv[i + 1];
		else if (td_parse_u64(argv[i + 1], 0, SG_GPU_MAX - 1, &gpu, &err))
			return sg_cli_fail("--gpu: %s", err.msg);
	}
	fault.gpu = (uint32_t)gpu;
	for (size_t k = 0; i < argc && k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		if (strcmp(argv[i], kinds[k].name))
			continue;
		if (kinds[k].with && i + 1 == argc)
			return fail_missing(argv[i], kinds[k].needs);
		if (argc - i > (kinds[k].with ? 2 : 1))
			return sg_cli_fail("\"%s\" is not expected: see softgpu fault --help",
				argv[i + (kinds[k].with ? 2 : 1)]);
		fault.engine = kinds[k].fault;
		return kinds[k].with ? kinds[k].with(&fault, argv[i + 1]) : send_fault(&fault);
	}
	return sg_cli_fail(
		"\"%s\" is not a fault: expected xid, ecc, lost, hang, link, host-memory, "
		"mps-early-exit, call or clear",
		i < argc ? argv[i] : "");
}
