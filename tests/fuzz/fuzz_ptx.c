/* Any text is a module or an error that fits; any module runs within its memory and its limit. */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "ptx/ptx.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define BASE   0x10000000ull
#define MEMORY 65536u

static uint8_t memory[MEMORY] __attribute__((aligned(16)));

static bool translate(void *arg, uint64_t address, uint32_t bytes, enum sg_ptx_access access,
	struct sg_ptx_range *ret)
{
	(void)arg, (void)access;
	if (address < BASE || address - BASE >= MEMORY || MEMORY - (address - BASE) < bytes)
		return false;
	*ret = (struct sg_ptx_range){.first = BASE, .last = BASE + MEMORY - 1, .host = memory};
	return true;
}

/* Reads printed text to its end. */
static void print(void *arg, const char *text, size_t len)
{
	uint32_t *sum = arg;

	for (size_t n = 0; n < len; n++)
		*sum += (uint8_t)text[n];
}

static void run(const struct sg_ptx_module *m, const struct sg_ptx_function *f)
{
	uint64_t params[4096];
	uint32_t sum = 0;
	struct sg_ptx_launch launch = {.module = m,
		.function = f,
		.grid = {2, 1, 1},
		.block = {33, 1, 1},
		.dynamic_shared_bytes = 256,
		.params = params,
		.memory = {.translate = translate},
		.time = {.instr_ps = 1000, .clock_mhz = 1000, .slots = 2, .block_launch_ns = 10},
		.output = {.arg = &sum, .write = print},
		.cooperative = f->local_bytes & 4,
		.max_instructions = 20000};
	struct sg_ptx_result result;

	for (unsigned n = 0; n < 4096; n++)
		params[n] = BASE + n;
	if (f->param_bytes > sizeof(params) || sg_ptx_run(&launch, &result) < 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sg_ptx_module *m;
	struct td_err err = {0};

	if (sg_ptx_module_new((const char *)data, size, &err, &m)) {
		if (!err.msg[0] || strlen(err.msg) >= sizeof(err.msg))
			abort();
		return 0;
	}
	for (size_t n = 0; sg_ptx_module_variable(m, n); n++)
		sg_ptx_module_bind(m, n, BASE + 64 * n % MEMORY);
	for (size_t n = 0; sg_ptx_module_variable(m, n); n++) {
		uint64_t bytes = sg_ptx_module_variable(m, n)->size;
		void *initial = bytes < 1u << 20 ? malloc(bytes) : NULL;

		if (initial)
			sg_ptx_module_initial(m, n, initial);
		free(initial);
	}
	for (size_t n = 0; n < 8 && sg_ptx_module_function(m, n); n++)
		run(m, sg_ptx_module_function(m, n));
	sg_ptx_module_free(m);
	return 0;
}
