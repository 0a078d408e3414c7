// also: --default-stream per-thread
/* An executable graph takes over another graph of the same shape; larger changes are refused. */
#include "check.h"

__global__ void fill(int *p, int value)
{
	p[threadIdx.x] = value;
}

static cudaGraph_t make(int *p, int value, bool twice)
{
	void *args[] = {&p, &value};
	cudaKernelNodeParams params = {};
	cudaGraphNode_t first, second;
	cudaGraph_t graph;

	params.func = (void *)fill;
	params.gridDim = dim3(1);
	params.blockDim = dim3(32);
	params.kernelParams = args;
	CHECK(cudaGraphCreate(&graph, 0));
	CHECK(cudaGraphAddKernelNode(&first, graph, NULL, 0, &params));
	if (twice)
		CHECK(cudaGraphAddKernelNode(&second, graph, &first, 1, &params));
	return graph;
}

static int run(cudaGraphExec_t exec, const int *p)
{
	int got[32];

	CHECK(cudaGraphLaunch(exec, 0));
	CHECK(cudaMemcpy(got, p, sizeof(got), cudaMemcpyDeviceToHost));
	for (int value : got)
		EXPECT(value == got[0]);
	return got[0];
}

int main()
{
	cudaGraphExecUpdateResultInfo info;
	cudaGraphInstantiateParams how = {};
	cudaGraph_t one, two, other;
	cudaGraphExec_t exec;
	int *p;

	CHECK(cudaMalloc(&p, 32 * sizeof(int)));
	one = make(p, 11, false);
	two = make(p, 22, false);
	other = make(p, 33, true);
	CHECK(cudaGraphInstantiateWithParams(&exec, one, &how));
	EXPECT(how.result_out == cudaGraphInstantiateSuccess);
	EXPECT(run(exec, p) == 11);
	CHECK(cudaGraphExecUpdate(exec, two, &info));
	EXPECT(info.result == cudaGraphExecUpdateSuccess);
	EXPECT(run(exec, p) == 22);
	EXPECT(cudaGraphExecUpdate(exec, other, &info) == cudaErrorGraphExecUpdateFailure);
	EXPECT(info.result == cudaGraphExecUpdateErrorTopologyChanged);
	EXPECT(cudaGetLastError() == cudaErrorGraphExecUpdateFailure);
	EXPECT(run(exec, p) == 22);
	CHECK(cudaGraphExecDestroy(exec));
	for (cudaGraph_t graph : {one, two, other})
		CHECK(cudaGraphDestroy(graph));
	CHECK(cudaFree(p));
	return passed();
}
