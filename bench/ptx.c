/*
 * How fast the software GPU interprets: million instructions of threads per second on one core, for what kernels do most. It bounds the
 * kernels that a softgpu run can carry without lag; it says nothing of a GPU.
 */
#include <string.h>

#include "base/err.h"
#include "base/time.h"
#include "bench/row.h"
#include "softgpu/ptx/ptx.h"

#define BASE    0x700000000000ull
#define BYTES   (64ull << 20)
#define SAMPLES 9

static uint8_t *memory;

static bool translate(void *arg, uint64_t address, uint32_t bytes, enum sg_ptx_access access,
	struct sg_ptx_range *ret)
{
	(void)arg, (void)access;
	if (address < BASE || address - BASE > BYTES - bytes)
		return false;
	*ret = (struct sg_ptx_range){.first = BASE, .last = BASE + BYTES - 1, .host = memory};
	return true;
}

static struct sg_ptx_module *load(const char *path)
{
	static char text[1 << 20];
	struct sg_ptx_module *module;
	struct td_err err = {0};
	FILE *file = fopen(path, "rb");
	size_t len;

	if (!file) {
		perror(path);
		exit(1);
	}
	len = fread(text, 1, sizeof(text), file);
	fclose(file);
	if (sg_ptx_module_new(text, len, &err, &module)) {
		fprintf(stderr, "%s: %s\n", path, err.msg);
		exit(1);
	}
	for (size_t n = 0; sg_ptx_module_variable(module, n); n++)
		sg_ptx_module_bind(module, n, BASE + BYTES - 65536 + 4096 * n);
	return module;
}

struct kernel {
	const char *figure, *name;
	uint32_t grid[3], block[3], shared_bytes;
	uint64_t params[4]; /* 32-bit ones as the first bytes of their word */
};

static void measure(const struct sg_ptx_module *module, const struct kernel *k)
{
	struct sg_ptx_launch launch = {
		.module = module,
		.function = sg_ptx_module_find_function(module, k->name),
		.dynamic_shared_bytes = k->shared_bytes,
		.params = k->params,
		.memory = {.translate = translate},
		.time = {.instr_ps = 10, .clock_mhz = 1000, .slots = 256},
	};
	double samples[SAMPLES];

	memcpy(launch.grid, k->grid, sizeof(launch.grid));
	memcpy(launch.block, k->block, sizeof(launch.block));
	for (int n = 0; n < SAMPLES; n++) {
		struct sg_ptx_result result;
		uint64_t start = td_time_now_ns();
		int r = launch.function ? sg_ptx_run(&launch, &result) : -1;

		if (r) {
			fprintf(stderr, "%s: %s\n", k->name,
				launch.function ? sg_ptx_outcome_name(r) : "no such kernel");
			exit(1);
		}
		samples[n] = (double)result.instructions * 1e3 / (double)(td_time_now_ns() - start);
	}
	bench_row(k->figure, "million instructions/s", samples, SAMPLES);
}

int main(int argc, char **argv)
{
	static const struct kernel kernels[] = {
		{"integers in a loop", "monte_carlo", {64, 1, 1}, {128, 1, 1}, 0, {BASE, 200}},
		{"streams of memory", "vector_add", {1024, 1, 1}, {256, 1, 1}, 0,
			{BASE, BASE + (4 << 20), BASE + (8 << 20), 1 << 18}},
		{"tiles in shared memory", "matmul", {8, 8, 1}, {16, 16, 1}, 0,
			{BASE, BASE + (4 << 20), BASE + (8 << 20), 128}},
		{"barriers", "reduce_shared", {256, 1, 1}, {256, 1, 1}, 1024,
			{BASE, BASE + (4 << 20), 65536}},
		{"shuffles", "reduce_warp", {256, 1, 1}, {256, 1, 1}, 0,
			{BASE, BASE + (4 << 20), 65536}},
		{"branches that diverge", "collatz", {256, 1, 1}, {64, 1, 1}, 0, {BASE}},
		{"atomics", "histogram", {64, 1, 1}, {96, 1, 1}, 0,
			{BASE, BASE + (4 << 20), 1 << 18}},
	};
	struct sg_ptx_module *module;

	if (argc != 2) {
		fprintf(stderr, "usage: ptx FILE.ptx\n");
		return 2;
	}
	memory = calloc(1, BYTES);
	if (!memory)
		return 1;
	module = load(argv[1]);
	for (size_t n = 0; n < sizeof(kernels) / sizeof(kernels[0]); n++)
		measure(module, &kernels[n]);
	sg_ptx_module_free(module);
	free(memory);
	return 0;
}
