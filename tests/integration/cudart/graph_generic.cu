/* Nodes through the one call for all types, a child graph, and symbols as ends of copies. */
#include "check.h"

__device__ int table[16];

__global__ void increment(int by)
{
	table[threadIdx.x] += by;
}

int main()
{
	int by = 3, in[16], out[16] = {};
	void *args[] = {&by};
	cudaGraphNodeParams params = {};
	cudaGraphNode_t in_node, kernel, child, out_node;
	cudaGraph_t graph, inner;
	cudaGraphExec_t exec;

	for (int i = 0; i < 16; i++)
		in[i] = 100 * i;
	CHECK(cudaGraphCreate(&inner, 0));
	params.type = cudaGraphNodeTypeKernel;
	params.kernel.func = (void *)increment;
	params.kernel.gridDim.x = params.kernel.gridDim.y = params.kernel.gridDim.z = 1;
	params.kernel.blockDim.x = 16;
	params.kernel.blockDim.y = params.kernel.blockDim.z = 1;
	params.kernel.kernelParams = args;
	CHECK(cudaGraphAddNode(&kernel, inner, NULL, NULL, 0, &params));
	CHECK(cudaGraphCreate(&graph, 0));
	CHECK(cudaGraphAddMemcpyNodeToSymbol(
		&in_node, graph, NULL, 0, table, in, sizeof(in), 0, cudaMemcpyHostToDevice));
	CHECK(cudaGraphAddNode(&kernel, graph, &in_node, NULL, 1, &params));
	CHECK(cudaGraphAddChildGraphNode(&child, graph, &kernel, 1, inner));
	CHECK(cudaGraphAddMemcpyNodeFromSymbol(
		&out_node, graph, &child, 1, out, table, sizeof(out), 0, cudaMemcpyDeviceToHost));
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	CHECK(cudaGraphLaunch(exec, 0));
	CHECK(cudaStreamSynchronize(0));
	for (int i = 0; i < 16; i++)
		EXPECT(out[i] == 100 * i + 6);
	by = 10;
	CHECK(cudaGraphExecNodeSetParams(exec, kernel, &params));
	CHECK(cudaGraphLaunch(exec, 0));
	CHECK(cudaStreamSynchronize(0));
	for (int i = 0; i < 16; i++)
		EXPECT(out[i] == 100 * i + 13);
	return passed();
}
