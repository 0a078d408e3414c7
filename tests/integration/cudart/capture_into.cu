// also: --default-stream per-thread
/* A capture into an existing graph, queried while it goes on, and given another dependency. */
#include "check.h"

__global__ void append(int *list, int what)
{
	list[++list[0]] = what;
}

int main()
{
	cudaStreamCaptureStatus status;
	const cudaGraphNode_t *deps;
	const cudaGraphEdgeData *edges;
	cudaGraphNode_t empty, nodes[8];
	unsigned long long id = 0;
	cudaGraph_t graph, current;
	cudaGraphExec_t exec;
	cudaStream_t s;
	int got[8], *list;
	size_t count = 8;

	CHECK(cudaMalloc(&list, sizeof(got)));
	CHECK(cudaMemset(list, 0, sizeof(got)));
	CHECK(cudaStreamCreate(&s));
	CHECK(cudaGraphCreate(&graph, 0));
	CHECK(cudaGraphAddEmptyNode(&empty, graph, NULL, 0));
	CHECK(cudaStreamBeginCaptureToGraph(
		s, graph, &empty, NULL, 1, cudaStreamCaptureModeRelaxed));
	append<<<1, 1, 0, s>>>(list, 5);
	CHECK(cudaStreamGetCaptureInfo(s, &status, &id, &current, &deps, &edges, &count));
	EXPECT(status == cudaStreamCaptureStatusActive && id && current == graph && count == 1);
	CHECK(cudaStreamUpdateCaptureDependencies(
		s, &empty, NULL, 1, cudaStreamAddCaptureDependencies));
	CHECK(cudaStreamGetCaptureInfo(s, &status, NULL, NULL, &deps, &edges, &count));
	EXPECT(count == 2);
	append<<<1, 1, 0, s>>>(list, 6);
	CHECK(cudaStreamEndCapture(s, &current));
	EXPECT(current == graph);
	count = 8;
	CHECK(cudaGraphGetNodes(graph, nodes, &count));
	EXPECT(count == 3);
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	CHECK(cudaGraphLaunch(exec, s));
	CHECK(cudaStreamSynchronize(s));
	CHECK(cudaMemcpy(got, list, sizeof(got), cudaMemcpyDeviceToHost));
	EXPECT(got[0] == 2 && got[1] == 5 && got[2] == 6);
	CHECK(cudaStreamGetCaptureInfo(s, &status, NULL));
	EXPECT(status == cudaStreamCaptureStatusNone);
	return passed();
}
