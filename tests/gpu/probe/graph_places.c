/* Question 25: a launchable graph whose memory comes to lie on the host. */
#include "probe.h"

#include <string.h>

const char probe_name[] = "graph_places";
const char probe_question[] =
	"A launchable graph copies to mapped memory whose chunk is then exchanged for one of the "
	"host at the same address: does it run, and may it be updated?";

#define BYTES (2u << 20)
#define WORD  0x5a5a1234u

static void *captured(CUstream stream, CUdeviceptr to, CUdeviceptr from)
{
	void *graph = NULL;

	MUST(cuStreamBeginCapture_v2, stream, 2 /* RELAXED */);
	MUST(cuMemcpyDtoDAsync_v2, to, from, BYTES, stream);
	MUST(cuStreamEndCapture, stream, &graph);
	return graph;
}

static void place(CUdeviceptr at, int type, int id)
{
	const CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {type, id}};
	const CUmemAccessDesc access = {
		{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemGenericAllocationHandle handle;

	MUST(cuMemCreate, &handle, BYTES, &prop, 0);
	MUST(cuMemMap, at, BYTES, 0, handle, 0);
	MUST(cuMemSetAccess, at, BYTES, &access, 1);
	MUST(cuMemRelease, handle);
}

static const char *launched(void *exec, CUstream stream, CUdeviceptr to, CUdeviceptr from)
{
	uint32_t word = 0;
	CUresult r;

	MUST(cuMemsetD32_v2, to, 0, BYTES / 4);
	MUST(cuMemsetD32_v2, from, WORD, BYTES / 4);
	MUST(cuCtxSynchronize);
	r = cu.cuGraphLaunch(exec, stream);
	if (!r)
		r = cu.cuStreamSynchronize(stream);
	if (!r)
		r = cu.cuMemcpyDtoH_v2(&word, to, sizeof(word));
	if (r)
		return probe_error(r);
	return word == WORD ? "runs, and the copy is right" : "runs, and copies to somewhere else";
}

void probe_run(void)
{
	const char *first, *moved;
	uint8_t result[64] = {0};
	CUdeviceptr at, from;
	void *exec = NULL;
	CUstream stream;
	CUresult r;
	int node;

	probe_begin();
	node = probe_attribute(CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID);
	MUST(cuStreamCreate, &stream, 1);
	MUST(cuMemAddressReserve, &at, BYTES, 0, 0, 0);
	MUST(cuMemAlloc_v2, &from, BYTES);
	place(at, CU_MEM_LOCATION_TYPE_DEVICE, 0);
	MUST(cuGraphInstantiateWithFlags, &exec, captured(stream, at, from), 0);
	first = launched(exec, stream, at, from);
	MUST(cuMemUnmap, at, BYTES);
	place(at, CU_MEM_LOCATION_TYPE_HOST_NUMA, node > 0 ? node : 0);
	moved = launched(exec, stream, at, from);
	r = cu.cuGraphExecUpdate_v2(exec, captured(stream, at, from), result);
	probe_answer("on the device: %s; exchanged for the host's: %s; an update to the same copy "
		     "then: %s",
		first, moved, r ? probe_error(r) : "taken");
}

int probe_role(const char *role)
{
	(void)role;
	return 2;
}
