/*
 * Blocks in memory of other calls than allocations: of a graph, which is launched, freed, destroyed
 * and instantiated anew until the block exists, and of a library, whose variable it is. A block
 * that does not fit is refused at any of these calls, and then nothing is left of it.
 */
#include <stdio.h>

#include "block.h"
#include "calls.h"

/* A new executable graph while the one before may still run. */
static CUresult launch_anew(struct lane *lane, CUgraph graph, CUgraphExec *exec)
{
	CUresult r;

	MUST(cuGraphExecDestroy(*exec));
	MUST(cuGraphInstantiateWithFlags(exec, graph, 0));
	r = cuGraphLaunch(*exec, lane->stream);
	return r;
}

CUresult block_of_graph(struct lane *lane, size_t bytes, CUdeviceptr *ret)
{
	CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC,
		.alloc = {.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
				  .location = {CU_MEM_LOCATION_TYPE_DEVICE, lane->device}},
			.bytesize = bytes}};
	CUgraphExec exec;
	CUgraphNode node;
	CUgraph graph;
	CUresult r;

	MUST(cuGraphCreate(&graph, 0));
	MUST(cuGraphAddNode(&node, graph, NULL, 0, &params));
	MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
	r = cuGraphLaunch(exec, lane->stream);
	for (uint32_t times = lane_below(lane, 3); !r && times; times--) {
		MUST(cuMemFreeAsync(params.alloc.dptr, lane->stream));
		r = launch_anew(lane, graph, &exec);
	}
	MUST(cuGraphExecDestroy(exec));
	MUST(cuGraphDestroy(graph));
	*ret = params.alloc.dptr;
	return r;
}

CUresult block_of_library(struct lane *lane, size_t bytes, struct block *b)
{
	char text[256];
	void *kernel;
	size_t size;
	CUresult r;

	snprintf(text, sizeof(text),
		".version 7.0\n.target sm_70\n.address_size 64\n"
		".visible .global .align 16 .b8 words[%zu];\n.visible .entry f()\n{\nret;\n}\n",
		bytes);
	r = cuLibraryLoadData(&b->library, text, NULL, NULL, 0, NULL, NULL, 0);
	if (r)
		return r;
	r = cuLibraryGetKernel(&kernel, b->library, "f");
	if (!r && lane_below(lane, 2))
		r = cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, lane->stream, NULL, NULL);
	if (!r)
		r = cuLibraryGetGlobal(&b->address, &size, b->library, "words");
	if (r)
		MUST(cuLibraryUnload(b->library));
	return r;
}
