/* Question 13: a share of the multiprocessors without another process. */
#include "probe.h"

#include <string.h>

const char probe_name[] = "green";
const char probe_question[] = "Green contexts: can they be made, what do they cost, how small can "
			      "a share be, and are shares disjoint?";

/* CUdevResource of cuda.h: a tag, padding up to 96 bytes, the multiprocessors' figures. */
struct resource {
	int type;
	unsigned char padding[92];
	unsigned sm_count, least, alignment;
	unsigned char rest[36];
};
_Static_assert(sizeof(struct resource) == 144, "CUdevResource of cuda.h");
enum { RESOURCE_SM = 1, DEFAULT_STREAM = 1, SM_MAX = 1024 };

static unsigned used(CUstream stream, unsigned char *marks)
{
	unsigned long long ns = 2000000;
	unsigned seen[SM_MAX], most = SM_MAX, n = 0;
	CUdeviceptr at;
	void *params[] = {&at, &most, &ns};

	MUST(cuMemAlloc_v2, &at, sizeof(seen));
	MUST(cuMemsetD32_v2, at, 0, SM_MAX);
	probe_must(
		probe_launch(probe_kernel("which_sm"), 1024, 32, stream, params), "cuLaunchKernel");
	MUST(cuCtxSynchronize);
	MUST(cuMemcpyDtoH_v2, seen, at, sizeof(seen));
	for (unsigned i = 0; i < SM_MAX; i++) {
		marks[i] = seen[i] != 0;
		n += marks[i];
	}
	return n;
}

void probe_run(void)
{
	static struct probe_series make, launch, change;
	static unsigned char marks[2][SM_MAX];
	struct resource all, groups[2], rest;
	unsigned count = 2, both = 0, n[2] = {0};
	uint64_t t;

	probe_begin();
	memset(&all, 0, sizeof(all));
	MUST(cuDeviceGetDevResource, 0, (void *)&all, RESOURCE_SM);
	MUST(cuDevSmResourceSplitByCount, (void *)groups, &count, (void *)&all, (void *)&rest, 0,
		8);
	for (unsigned i = 0; i < count && i < 2; i++) {
		void *description, *green;
		CUcontext context;
		CUstream stream;

		MUST(cuDevResourceGenerateDesc, &description, (void *)&groups[i], 1);
		t = probe_now_ns();
		MUST(cuGreenCtxCreate, &green, description, 0, DEFAULT_STREAM);
		probe_add(&make, probe_us_since(t));
		MUST(cuGreenCtxStreamCreate, &stream, green, CU_STREAM_NON_BLOCKING, 0);
		MUST(cuCtxFromGreenCtx, &context, green);
		t = probe_now_ns();
		probe_must(probe_launch(probe_kernel("nothing"), 1, 1, stream, NULL),
			"cuLaunchKernel");
		probe_add(&launch, probe_us_since(t));
		n[i] = used(stream, marks[i]);
		for (int k = 0; k < 100; k++) {
			CUcontext other;

			t = probe_now_ns();
			MUST(cuCtxPushCurrent_v2, context);
			MUST(cuCtxPopCurrent_v2, &other);
			probe_add(&change, probe_us_since(t));
		}
	}
	for (unsigned i = 0; i < SM_MAX; i++)
		both += marks[0][i] && marks[1][i];
	probe_figure(&make, "us", "create a green context");
	probe_figure(&change, "us", "switch a thread to its context and back");
	probe_figure(&launch, "us", "first launch into its stream");
	probe_answer("%u multiprocessors; a share of 8 asked for gives %u, least %u, multiples of "
		     "%u; blocks of two shares ran on %u and %u of them, %u in common",
		all.sm_count, groups[0].sm_count, groups[0].least, groups[0].alignment, n[0], n[1],
		both);
}

int probe_role(const char *role)
{
	(void)role;
	return 2;
}
