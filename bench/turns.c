/*
 * Keeps the GPU busy for a while with memory that it holds there, and prints how much of its time
 * it got: {"useful_ns"}, the time of kernels that ended. Their length is known, because they wait
 * for the clock.
 *
 * usage: turns BYTES SECONDS
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/time.h"
#include "cuda/types.h"

#define KERNEL_NS (10 * TD_NS_PER_MS)

CUresult cuInit(unsigned flags);
CUresult cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device);
CUresult cuCtxSynchronize(void);
CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes);
CUresult cuModuleLoadData(CUmodule *module, const void *image);
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name);
CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
	unsigned by, unsigned bz, unsigned shared, CUstream stream, void **params, void **extra);

/* wait(ns): until so much time has passed. */
static const char ptx[] =
	".version 7.0\n.target sm_70\n.address_size 64\n"
	".visible .entry wait(.param .u64 ns)\n{\n"
	".reg .u64 %n;\n.reg .u64 %b;\n.reg .u64 %t;\n.reg .pred %p;\n"
	"ld.param.u64 %n, [ns];\nmov.u64 %b, %globaltimer;\n"
	"more:\nmov.u64 %t, %globaltimer;\nsub.u64 %t, %t, %b;\nsetp.lt.u64 %p, %t, %n;\n"
	"@%p bra more;\nret;\n}\n";

static void check(CUresult r, const char *what)
{
	if (!r)
		return;
	fprintf(stderr, "turns: %s: %d\n", what, r);
	exit(1);
}

int main(int argc, char **argv)
{
	uint64_t until_ns, useful_ns = 0, kernel_ns = KERNEL_NS;
	void *params[] = {&kernel_ns};
	CUdeviceptr memory;
	CUfunction wait;
	CUcontext context;
	CUmodule module;

	if (argc != 3 || atoi(argv[2]) < 1) {
		fputs("usage: turns BYTES SECONDS\n", stderr);
		return 2;
	}
	check(cuInit(0), "cuInit");
	check(cuCtxCreate_v2(&context, 0, 0), "cuCtxCreate");
	check(cuMemAlloc_v2(&memory, strtoull(argv[1], NULL, 10)), "cuMemAlloc");
	check(cuModuleLoadData(&module, ptx), "cuModuleLoadData");
	check(cuModuleGetFunction(&wait, module, "wait"), "cuModuleGetFunction");
	until_ns = td_time_now_ns() + strtoull(argv[2], NULL, 10) * TD_NS_PER_S;
	while (td_time_now_ns() < until_ns) {
		check(cuLaunchKernel(wait, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL), "launch");
		check(cuCtxSynchronize(), "kernel");
		useful_ns += kernel_ns;
	}
	printf("{\"useful_ns\": %llu}\n", (unsigned long long)useful_ns);
	return 0;
}
