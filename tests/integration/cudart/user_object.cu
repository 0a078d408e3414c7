/* An object whose life a graph holds. */
#include <atomic>

#include "check.h"

static std::atomic<int> destroyed;

static void CUDART_CB destroy(void *at)
{
	delete (int *)at;
	destroyed++;
}

int main()
{
	cudaUserObject_t object;
	cudaGraphNode_t node;
	cudaGraph_t graph;

	CHECK(cudaGraphCreate(&graph, 0));
	CHECK(cudaUserObjectCreate(
		&object, new int(5), destroy, 1, cudaUserObjectNoDestructorSync));
	CHECK(cudaUserObjectRetain(object, 1));
	CHECK(cudaGraphRetainUserObject(graph, object, 2, cudaGraphUserObjectMove));
	CHECK(cudaGraphAddEmptyNode(&node, graph, NULL, 0));
	EXPECT(destroyed == 0);
	CHECK(cudaGraphReleaseUserObject(graph, object, 1));
	EXPECT(destroyed == 0);
	CHECK(cudaGraphDestroy(graph));
	CHECK(cudaDeviceSynchronize());
	for (int i = 0; i < 1000000 && !destroyed; i++)
		CHECK(cudaDeviceSynchronize());
	EXPECT(destroyed == 1);
	return passed();
}
