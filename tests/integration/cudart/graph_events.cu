/* Event nodes: a graph that waits for work outside it, and says when it is through. */
#include "check.h"

__global__ void add(int *p, int by)
{
	*p += by;
}

int main()
{
	cudaEvent_t before, after, got;
	cudaGraphNode_t wait, kernel, record;
	cudaKernelNodeParams k = {};
	cudaStream_t a, b;
	cudaGraphExec_t exec;
	cudaGraph_t graph;
	int by = 10, value = 0, *p;
	void *args[] = {&p, &by};

	CHECK(cudaMalloc(&p, sizeof(int)));
	CHECK(cudaMemset(p, 0, sizeof(int)));
	CHECK(cudaDeviceSynchronize()); /* the streams do not wait for the set */
	CHECK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
	CHECK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
	CHECK(cudaEventCreateWithFlags(&before, cudaEventDisableTiming));
	CHECK(cudaEventCreateWithFlags(&after, cudaEventDisableTiming));
	CHECK(cudaGraphCreate(&graph, 0));
	CHECK(cudaGraphAddEventWaitNode(&wait, graph, NULL, 0, after));
	CHECK(cudaGraphEventWaitNodeGetEvent(wait, &got));
	EXPECT(got == after);
	CHECK(cudaGraphEventWaitNodeSetEvent(wait, before));
	k.func = (void *)add;
	k.gridDim = k.blockDim = dim3(1);
	k.kernelParams = args;
	CHECK(cudaGraphAddKernelNode(&kernel, graph, &wait, 1, &k));
	CHECK(cudaGraphAddEventRecordNode(&record, graph, &kernel, 1, after));
	CHECK(cudaGraphEventRecordNodeGetEvent(record, &got));
	EXPECT(got == after);
	CHECK(cudaGraphEventRecordNodeSetEvent(record, after));
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	CHECK(cudaGraphExecEventRecordNodeSetEvent(exec, record, after));
	CHECK(cudaGraphExecEventWaitNodeSetEvent(exec, wait, before));
	add<<<1, 1, 0, a>>>(p, 1);
	CHECK(cudaEventRecord(before, a));
	CHECK(cudaGraphLaunch(exec, b));
	CHECK(cudaEventSynchronize(after));
	CHECK(cudaStreamWaitEvent(a, after, 0));
	add<<<1, 1, 0, a>>>(p, 100);
	CHECK(cudaMemcpyAsync(&value, p, sizeof(int), cudaMemcpyDeviceToHost, a));
	CHECK(cudaStreamSynchronize(a));
	EXPECT(value == 111);
	return passed();
}
