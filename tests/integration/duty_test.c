/*
 * Programs for limits.py that keep a GPU as busy as they may, with kernels of a millisecond, until
 * they are killed; run under `softgpu run -- tandem run --duty`.
 *
 *   duty_test dependent   each launch is a programmatic dependent one: an event between two of them
 *                         would keep them from overlapping
 *   duty_test threads     two threads, each with a stream of its own, whose kernels run side by
 *                         side
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/types.h"

CUresult cuInit(unsigned flags);
CUresult cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device);
CUresult cuCtxSetCurrent(CUcontext context);
CUresult cuModuleLoadData(CUmodule *module, const void *image);
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name);
CUresult cuStreamCreate(CUstream *stream, unsigned flags);
CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **params, void **extra);

static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
			  ".visible .entry nap()\n{\n.reg .u32 %t;\nmov.u32 %t, 1000000;\n"
			  "nanosleep.u32 %t;\nret;\n}\n";

static CUcontext context;
static CUfunction nap;

static void must(CUresult r, const char *what)
{
	if (!r)
		return;
	fprintf(stderr, "duty_test: %s: error %d\n", what, (int)r);
	exit(1);
}

static _Noreturn void work(bool dependent)
{
	CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
		.value.programmaticStreamSerializationAllowed = 1};
	CUlaunchConfig config = {1, 1, 1, 1, 1, 1, 0, NULL, &attribute, dependent};

	must(cuStreamCreate(&config.hStream, CU_STREAM_NON_BLOCKING), "a stream");
	for (;;)
		must(cuLaunchKernelEx(&config, nap, NULL, NULL), "a launch");
}

static void *work_in_thread(void *arg)
{
	must(cuCtxSetCurrent(context), "the context");
	work(arg != NULL);
}

int main(int argc, char **argv)
{
	bool dependent = argc == 2 && !strcmp(argv[1], "dependent");
	CUmodule module;
	pthread_t thread;

	if (!dependent && (argc != 2 || strcmp(argv[1], "threads"))) {
		fprintf(stderr, "usage: duty_test dependent | threads\n");
		return 2;
	}
	must(cuInit(0), "init");
	must(cuCtxCreate_v2(&context, 0, 0), "a context");
	must(cuModuleLoadData(&module, ptx), "the module");
	must(cuModuleGetFunction(&nap, module, "nap"), "the kernel");
	if (!dependent && pthread_create(&thread, NULL, work_in_thread, NULL))
		return 1;
	work(dependent);
}
