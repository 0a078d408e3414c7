/*
 * A program for meter.py: kernels of a known length on a known number of SMs. It launches them in
 * batches that it waits for, then a few of no length on as many SMs, so that the meter looks at the
 * last ones, says so, and waits for a line on its standard input.
 *
 *   meter_test LENGTH_NS BLOCKS COUNT    COUNT kernels of BLOCKS blocks that sleep for LENGTH_NS
 */
#include <stdio.h>
#include <stdlib.h>

#include "cuda/types.h"

CUresult cuInit(unsigned flags);
CUresult cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device);
CUresult cuCtxSynchronize(void);
CUresult cuModuleLoadData(CUmodule *module, const void *image);
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name);
CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
	unsigned by, unsigned bz, unsigned shared, CUstream stream, void **params, void **extra);

#define BATCH 20
#define TAIL  8

static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
			  ".visible .entry nap(.param .u32 length)\n{\n.reg .u32 %t;\n"
			  "ld.param.u32 %t, [length];\nnanosleep.u32 %t;\nret;\n}\n"
			  ".visible .entry nothing()\n{\nret;\n}\n";

static void must(CUresult r, const char *what)
{
	if (!r)
		return;
	fprintf(stderr, "meter_test: %s: error %d\n", what, (int)r);
	exit(1);
}

int main(int argc, char **argv)
{
	CUfunction nap, nothing;
	CUcontext context;
	CUmodule module;
	unsigned length_ns, blocks, count;
	void *params[] = {&length_ns};

	if (argc != 4) {
		fprintf(stderr, "usage: meter_test LENGTH_NS BLOCKS COUNT\n");
		return 2;
	}
	length_ns = (unsigned)atoi(argv[1]);
	blocks = (unsigned)atoi(argv[2]);
	count = (unsigned)atoi(argv[3]);
	must(cuInit(0), "init");
	must(cuCtxCreate_v2(&context, 0, 0), "a context");
	must(cuModuleLoadData(&module, ptx), "the module");
	must(cuModuleGetFunction(&nap, module, "nap"), "the kernel");
	must(cuModuleGetFunction(&nothing, module, "nothing"), "the empty kernel");
	for (unsigned i = 1; i <= count; i++) {
		must(cuLaunchKernel(nap, blocks, 1, 1, 32, 1, 1, 0, NULL, params, NULL),
			"a launch");
		if (i % BATCH == 0)
			must(cuCtxSynchronize(), "the end of a batch");
	}
	must(cuCtxSynchronize(), "the end");
	for (unsigned i = 0; i < TAIL; i++) {
		must(cuLaunchKernel(nothing, blocks, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL),
			"a launch");
		must(cuCtxSynchronize(), "the end");
	}
	puts("{\"done\": 1}");
	fflush(stdout);
	(void)getchar();
	return 0;
}
