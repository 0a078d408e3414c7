/*
 * A graph's edges are removed, a kernel node's parameters and attributes and a child are read back,
 * and nodes report whether they are enabled.
 */
#include "check.h"

__global__ void append(int *list, int what)
{
	list[++list[0]] = what;
}

static cudaGraphNode_t add(cudaGraph_t graph, int *list, int what, const cudaGraphNode_t *after)
{
	void *args[] = {&list, &what};
	cudaKernelNodeParams k = {};
	cudaGraphNode_t node;

	k.func = (void *)append;
	k.gridDim = k.blockDim = dim3(1);
	k.kernelParams = args;
	CHECK(cudaGraphAddKernelNode(&node, graph, after, after ? 1 : 0, &k));
	return node;
}

int main()
{
	int got[8], changed = 9, *list;
	void *args[] = {&list, &changed};
	cudaKernelNodeParams k = {};
	cudaKernelNodeAttrValue value = {};
	cudaGraphNode_t a, b, c, child;
	cudaGraph_t graph, inner, found;
	cudaGraphExec_t exec;
	unsigned enabled = 0;
	size_t count = 0;

	CHECK(cudaMalloc(&list, sizeof(got)));
	CHECK(cudaMemset(list, 0, sizeof(got)));
	CHECK(cudaGraphCreate(&graph, 0));
	a = add(graph, list, 1, NULL);
	b = add(graph, list, 2, &a);
	c = add(graph, list, 3, &b);
	CHECK(cudaGraphRemoveDependencies(graph, &a, &b, NULL, 1));
	CHECK(cudaGraphAddDependencies(graph, &c, &a, NULL, 1)); /* now b, c, a */
	CHECK(cudaGraphGetEdges(graph, NULL, NULL, NULL, &count));
	EXPECT(count == 2);
	k.func = (void *)append;
	k.gridDim = k.blockDim = dim3(1);
	k.kernelParams = args;
	CHECK(cudaGraphKernelNodeSetParams(c, &k));
	value.priority = 0;
	CHECK(cudaGraphKernelNodeSetAttribute(a, cudaLaunchAttributePriority, &value));
	CHECK(cudaGraphKernelNodeCopyAttributes(b, a));
	value.priority = 77;
	CHECK(cudaGraphKernelNodeGetAttribute(b, cudaLaunchAttributePriority, &value));
	EXPECT(value.priority == 0);
	CHECK(cudaGraphCreate(&inner, 0));
	add(inner, list, 4, NULL);
	CHECK(cudaGraphAddChildGraphNode(&child, graph, &a, 1, inner));
	CHECK(cudaGraphChildGraphNodeGetGraph(child, &found));
	CHECK(cudaGraphGetNodes(found, NULL, &count));
	EXPECT(count == 1);
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	CHECK(cudaGraphNodeGetEnabled(exec, b, &enabled));
	EXPECT(enabled == 1);
	CHECK(cudaGraphLaunch(exec, 0));
	CHECK(cudaMemcpy(got, list, sizeof(got), cudaMemcpyDeviceToHost));
	EXPECT(got[0] == 4 && got[1] == 2 && got[2] == 9 && got[3] == 1 && got[4] == 4);
	return passed();
}
