/* Queries about a graph: parameters read back, neighbours, clones, disabled nodes, a drawing. */
#include <cstdio>

#include "check.h"

__global__ void fill(int *p, int value)
{
	p[threadIdx.x] = value;
}

static void parameters(
	cudaGraphNode_t kernel, cudaGraphNode_t copy, cudaGraphNode_t set, int *p, int *out)
{
	cudaKernelNodeParams k;
	cudaMemcpy3DParms c;
	cudaMemsetParams s;

	CHECK(cudaGraphKernelNodeGetParams(kernel, &k));
	EXPECT(k.func == (void *)fill && k.gridDim.x == 1 && k.blockDim.x == 32);
	EXPECT(*(int **)k.kernelParams[0] == p && *(int *)k.kernelParams[1] == 9);
	CHECK(cudaGraphMemcpyNodeGetParams(copy, &c));
	EXPECT(c.srcPtr.ptr == p && c.dstPtr.ptr == out && c.extent.width == 32 * sizeof(int));
	EXPECT(c.kind == cudaMemcpyDeviceToHost);
	CHECK(cudaGraphMemsetNodeGetParams(set, &s));
	EXPECT(s.dst == p && s.value == 7 && s.elementSize == 1);
	s.value = 8;
	CHECK(cudaGraphMemsetNodeSetParams(set, &s));
}

int main()
{
	int value = 9, out[32] = {}, *p;
	void *args[] = {&p, &value};
	cudaGraphNode_t kernel, copy, set, found;
	cudaKernelNodeParams k = {};
	cudaMemsetParams s = {};
	cudaGraph_t graph, clone;
	cudaGraphExec_t exec;
	size_t count = 1;

	CHECK(cudaMalloc(&p, sizeof(out)));
	CHECK(cudaGraphCreate(&graph, 0));
	s.dst = p;
	s.value = 7;
	s.elementSize = 1;
	s.width = sizeof(out);
	s.height = 1;
	CHECK(cudaGraphAddMemsetNode(&set, graph, NULL, 0, &s));
	k.func = (void *)fill;
	k.gridDim = dim3(1);
	k.blockDim = dim3(32);
	k.kernelParams = args;
	CHECK(cudaGraphAddKernelNode(&kernel, graph, &set, 1, &k));
	CHECK(cudaGraphAddMemcpyNode1D(
		&copy, graph, &kernel, 1, out, p, sizeof(out), cudaMemcpyDeviceToHost));
	parameters(kernel, copy, set, p, out);
	CHECK(cudaGraphNodeGetDependencies(kernel, &found, NULL, &count));
	EXPECT(count == 1 && found == set);
	CHECK(cudaGraphNodeGetDependentNodes(kernel, &found, NULL, &count));
	EXPECT(count == 1 && found == copy);
	CHECK(cudaGraphClone(&clone, graph));
	CHECK(cudaGraphNodeFindInClone(&found, kernel, clone));
	EXPECT(found && found != kernel);
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	CHECK(cudaGraphNodeSetEnabled(exec, kernel, 0));
	CHECK(cudaGraphLaunch(exec, 0));
	CHECK(cudaStreamSynchronize(0));
	EXPECT(out[0] == 0x08080808);
	CHECK(cudaGraphDebugDotPrint(graph, "/dev/null", 0));
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphInstantiate(&exec, clone, 0));
	CHECK(cudaGraphLaunch(exec, 0));
	CHECK(cudaStreamSynchronize(0));
	EXPECT(out[0] == 9 && out[31] == 9);
	CHECK(cudaGraphDestroyNode(copy));
	CHECK(cudaGraphGetNodes(graph, NULL, &count));
	EXPECT(count == 2);
	return passed();
}
