/*
 * A program of mps.py: carries out one command of each line of stdin and answers with one line, the
 * CUresult and what there is to say. It begins with the result of cuInit.
 *
 *	context [SMS]     creates a context, with an SM affinity if one is named
 *	sms               the multiprocessor count, and that of the current context
 *	launch BLOCKS MS  starts a kernel of that length when alone; a block fills an SM of a t4
 *	run BLOCKS MS     the same, waits, and tells how long it took in microseconds
 *	fault             starts a kernel that writes to nowhere
 *	allocate MIB      allocates device memory
 *	wait              waits for all work
 *	share, open FILE  writes an IPC handle to FILE, opens the one in it
 *	exit              calls exit() at once
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALL_CALLS
#include "cuda.h"

#define SHARED_BYTES 49152 /* most of an SM of a t4 */

static const char image[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
			    ".visible .entry nap(.param .u32 n) {\n"
			    ".reg .u32 %n, %t;\n.reg .pred %p;\n"
			    "ld.param.u32 %n, [n];\nmov.u32 %t, 1000000;\n"
			    "again:\nnanosleep.u32 %t;\nsub.u32 %n, %n, 1;\n"
			    "setp.ne.u32 %p, %n, 0;\n@%p bra again;\nret;\n}\n"
			    ".visible .entry wild() {\n.reg .u64 %a;\n.reg .u32 %v;\n"
			    "mov.u64 %a, 64;\nmov.u32 %v, 1;\nst.global.u32 [%a], %v;\nret;\n}\n";

static CUfunction nap, wild;
static CUdeviceptr memory;

static int make_context(unsigned sms)
{
	uint32_t affinity[2] = {0, sms};
	CUmodule module;
	CUcontext made;
	int r = sms ? cuCtxCreate_v3(&made, affinity, 1, 0, 0) : cuCtxCreate_v2(&made, 0, 0);

	if (r)
		return r;
	OK(cuModuleLoadData(&module, image));
	OK(cuModuleGetFunction(&nap, module, "nap"));
	OK(cuModuleGetFunction(&wild, module, "wild"));
	return 0;
}

static int start(unsigned blocks, unsigned ms)
{
	void *params[] = {&ms};

	return cuLaunchKernel(nap, blocks, 1, 1, 1, 1, 1, SHARED_BYTES, NULL, params, NULL);
}

/* The time from the end of a kernel before it to its own end, as the GPU's model has it. */
static int run(unsigned blocks, unsigned ms, float *ret_ms)
{
	CUevent before, after;
	int r = start(1, 1);

	if (!r)
		r = cuEventCreate(&before, 0);
	if (!r)
		r = cuEventRecord(before, NULL);
	if (!r)
		r = start(blocks, ms);
	if (!r)
		r = cuEventCreate(&after, 0);
	if (!r)
		r = cuEventRecord(after, NULL);
	if (!r)
		r = cuCtxSynchronize();
	return r ? r : cuEventElapsedTime(ret_ms, before, after);
}

static int share(const char *path)
{
	CUipcMemHandle handle;
	FILE *file = fopen(path, "w");
	int r = cuMemAlloc_v2(&memory, 4096);

	if (!r)
		r = cuIpcGetMemHandle(&handle, memory);
	if (!r)
		CHECK_EQ(fwrite(&handle, sizeof(handle), 1, file), 1);
	fclose(file);
	return r;
}

static int open_shared(const char *path)
{
	CUipcMemHandle handle;
	CUdeviceptr at;
	FILE *file = fopen(path, "r");

	CHECK_EQ(fread(&handle, sizeof(handle), 1, file), 1);
	fclose(file);
	return cuIpcOpenMemHandle_v2(&at, handle, 1);
}

static int count_sms(char *more)
{
	struct {
		int type;
		unsigned sms;
	} affinity = {0};
	int sms = 0, enabled = 0;
	int r = cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0);

	if (!r)
		r = cuDeviceGetAttribute(&enabled, 133, 0); /* MPS_ENABLED */
	(void)cuCtxGetExecAffinity(&affinity, 0);
	sprintf(more, "%d %u %d", sms, affinity.sms, enabled);
	return r;
}

static int carry_out(const char *line, char *more)
{
	char verb[32] = "", path[256] = "";
	unsigned a = 0, b = 0;
	float ms = 0;
	int r;

	sscanf(line, "%31s %255s", verb, path);
	sscanf(line, "%*s %u %u", &a, &b);
	if (!strcmp(verb, "context"))
		return make_context(a);
	if (!strcmp(verb, "sms"))
		return count_sms(more);
	if (!strcmp(verb, "launch"))
		return start(a, b);
	if (!strcmp(verb, "run")) {
		r = run(a, b, &ms);
		sprintf(more, "%d", (int)(ms * 1000));
		return r;
	}
	if (!strcmp(verb, "fault"))
		return cuLaunchKernel(wild, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
	if (!strcmp(verb, "allocate"))
		return cuMemAlloc_v2(&memory, (size_t)a << 20);
	if (!strcmp(verb, "wait"))
		return cuCtxSynchronize();
	if (!strcmp(verb, "share"))
		return share(path);
	if (!strcmp(verb, "open"))
		return open_shared(path);
	if (!strcmp(verb, "count"))
		return cuDeviceGetCount((int *)more) ? 1 : (sprintf(more, "%d", *(int *)more), 0);
	if (!strcmp(verb, "exit"))
		exit(0);
	return -1;
}

TEST(commands)
{
	char line[256], more[64] __attribute__((aligned(8)));

	printf("%d\n", cuInit(0));
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		int r;

		memset(more, 0, sizeof(more));
		r = carry_out(line, more);
		printf("%d %s\n", r, more);
		fflush(stdout);
	}
}
