/*
 * The programs of mps_deaths.py, all clients of MPS.
 *
 *	serve     answers a request each few milliseconds, and prints a line for each; ends with an
 *	          error as soon as one fails
 *	nursery   for each line of stdin a child that keeps the GPU busy until somebody ends it, or
 *	          that ends itself by a fault of the host's ("host") or the GPU's ("device"), or by
 *	          _exit ("exit"). Prints "ready PID" and "ended STATUS".
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ALL_CALLS
#include "softgpu/cuda.h"

#define FAILED 3

static const char wild_ptx[] =
	PTX_HEAD ".visible .entry wild()\n{\n.reg .u64 %a;\n.reg .u32 %v;\nmov.u64 %a, 64;\n"
		 "mov.u32 %v, 1;\nst.global.u32 [%a], %v;\nret;\n}\n";

static void must(CUresult r)
{
	if (r)
		_exit(FAILED);
}

static CUfunction load(const char *image, const char *name)
{
	CUmodule module;
	CUfunction function;

	must(cuModuleLoadData(&module, image));
	must(cuModuleGetFunction(&function, module, name));
	return function;
}

static void run_nap(CUfunction nap, unsigned ms)
{
	void *params[] = {&ms};

	must(cuLaunchKernel(nap, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
}

static void open_gpu(void)
{
	must(cuInit(0));
	must(cuCtxCreate_v2(&context, 0, 0));
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void serve(void)
{
	CUfunction nap;

	int shares = 0;

	open_gpu();
	must(cuDeviceGetAttribute(&shares, 133, 0)); /* MPS_ENABLED */
	nap = load(kernels_ptx, "nap");
	for (;;) {
		run_nap(nap, 1);
		must(cuCtxSynchronize());
		printf("%d %.6f %d\n", (int)getpid(), seconds(), shares);
		fflush(stdout);
		usleep(5000);
	}
}

static void raise_fault(void)
{
	volatile int *volatile nowhere = NULL;

	*nowhere = 1;
}

static void end_by(const char *way)
{
	if (!strcmp(way, "host"))
		raise_fault();
	if (!strcmp(way, "exit"))
		_exit(0);
	if (!strcmp(way, "device")) {
		must(cuLaunchKernel(load(wild_ptx, "wild"), 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
		must(cuCtxSynchronize());
	}
}

static void live(const char *way)
{
	CUfunction nap;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGINT, SIG_DFL);
	open_gpu();
	nap = load(kernels_ptx, "nap");
	run_nap(nap, 5);
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	for (unsigned i = 0;; i++) {
		run_nap(nap, 5);
		run_nap(nap, 5);
		if (i == 1)
			end_by(way);
		must(cuCtxSynchronize());
	}
}

static void nurse(void)
{
	char line[64];

	signal(SIGINT, SIG_IGN);
	while (fgets(line, sizeof(line), stdin)) {
		int status = 0;
		pid_t pid;

		line[strcspn(line, "\n")] = 0;
		pid = fork();
		if (!pid)
			live(line);
		if (waitpid(pid, &status, 0) != pid)
			exit(1);
		printf("ended %d\n", WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status));
		fflush(stdout);
	}
	exit(0);
}

TEST(serves_or_nurses)
{
	if (!strcmp(getenv("WAY"), "serve"))
		serve();
	nurse();
}
