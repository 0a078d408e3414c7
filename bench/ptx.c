/*
 * How fast the software GPU interprets: million instructions of threads per second on one core, for
 * the most common operations of kernels. It bounds the kernels that a softgpu run can carry without
 * lag, and is no figure of a GPU.
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
	const char *figure, *file, *name;
	uint32_t grid[3], block[3], shared_bytes;
	uint64_t params[4]; /* a last one of 32 bits is the first bytes of its word */
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

#define X BASE
#define Y (BASE + (4 << 20))
#define Z (BASE + (8 << 20))

static const struct kernel kernels[] = {
	{"integers in a loop", "kernels_sm75", "monte_carlo", {64, 1, 1}, {128, 1, 1}, 0, {X, 200}},
	{"streams of memory", "kernels_sm75", "vector_add", {1024, 1, 1}, {256, 1, 1}, 0,
		{X, Y, Z, 1 << 18}},
	{"tiles in shared memory", "kernels_sm75", "matmul", {8, 8, 1}, {16, 16, 1}, 0,
		{X, Y, Z, 128}},
	{"stencil of doubles", "samples", "stencil", {4, 4, 1}, {16, 16, 1}, 0, {X, Y, 64}},
	{"pairs of f16", "half", "half2_dot", {64, 1, 1}, {256, 1, 1}, 0, {X, Y, Z, 4096}},
	{"barriers", "kernels_sm75", "reduce_shared", {256, 1, 1}, {256, 1, 1}, 1024,
		{X, Y, 65536}},
	{"shuffles", "kernels_sm75", "reduce_warp", {256, 1, 1}, {256, 1, 1}, 0, {X, Y, 65536}},
	{"a block's radix sort", "cub_block", "block_sort", {64, 1, 1}, {64, 1, 1}, 0, {X, Y}},
	{"branches that diverge", "kernels_sm75", "collatz", {256, 1, 1}, {64, 1, 1}, 0, {X}},
	{"atomics", "kernels_sm75", "histogram", {64, 1, 1}, {96, 1, 1}, 0, {X, Y, 1 << 18}},
};

int main(int argc, char **argv)
{
	uint32_t seed = 1;

	if (argc != 2) {
		fprintf(stderr, "usage: ptx FOLDER\n");
		return 2;
	}
	memory = malloc(BYTES);
	if (!memory)
		return 1;
	for (size_t n = 0; n < BYTES; n++)
		memory[n] = (uint8_t)((seed = seed * 1664525 + 1013904223) >> 24);
	for (size_t n = 0; n < sizeof(kernels) / sizeof(kernels[0]); n++) {
		char path[4096];
		struct sg_ptx_module *module;

		snprintf(path, sizeof(path), "%s/%s.ptx", argv[1], kernels[n].file);
		module = load(path);
		measure(module, &kernels[n]);
		sg_ptx_module_free(module);
	}
	free(memory);
	return 0;
}
