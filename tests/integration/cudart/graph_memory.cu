/* Memory that a graph allocates and frees itself. */
#include "check.h"

__global__ void fill(int *p, int value)
{
	p[threadIdx.x] = value + threadIdx.x;
}

int main()
{
	int value = 50, out[64] = {};
	cudaMemAllocNodeParams want = {}, said = {};
	cudaGraphNode_t memory, kernel, copy, gone;
	cudaKernelNodeParams k = {};
	void *args[2] = {NULL, &value}, *freed;
	unsigned long long used = 0, zero = 0;
	cudaGraphExec_t exec;
	cudaGraph_t graph;

	CHECK(cudaGraphCreate(&graph, 0));
	want.poolProps.allocType = cudaMemAllocationTypePinned;
	want.poolProps.location.type = cudaMemLocationTypeDevice;
	want.bytesize = sizeof(out);
	CHECK(cudaGraphAddMemAllocNode(&memory, graph, NULL, 0, &want));
	EXPECT(want.dptr);
	CHECK(cudaGraphMemAllocNodeGetParams(memory, &said));
	EXPECT(said.dptr == want.dptr && said.bytesize == sizeof(out));
	args[0] = &want.dptr;
	k.func = (void *)fill;
	k.gridDim = dim3(1);
	k.blockDim = dim3(64);
	k.kernelParams = args;
	CHECK(cudaGraphAddKernelNode(&kernel, graph, &memory, 1, &k));
	CHECK(cudaGraphAddMemcpyNode1D(
		&copy, graph, &kernel, 1, out, want.dptr, sizeof(out), cudaMemcpyDeviceToHost));
	CHECK(cudaGraphAddMemFreeNode(&gone, graph, &copy, 1, want.dptr));
	CHECK(cudaGraphMemFreeNodeGetParams(gone, &freed));
	EXPECT(freed == want.dptr);
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	for (int i = 0; i < 2; i++) {
		memset(out, 0, sizeof(out));
		CHECK(cudaGraphLaunch(exec, 0));
		CHECK(cudaStreamSynchronize(0));
		EXPECT(out[0] == 50 && out[63] == 113);
	}
	CHECK(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemHigh, &used));
	EXPECT(used >= sizeof(out));
	CHECK(cudaDeviceSetGraphMemAttribute(0, cudaGraphMemAttrUsedMemHigh, &zero));
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaDeviceGraphMemTrim(0));
	return passed();
}
