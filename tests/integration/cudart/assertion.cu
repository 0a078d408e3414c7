/* A kernel's assertion fails: the context is lost, and every later call says so. */
#include <cassert>

#include "check.h"

__global__ void doubtful(int x)
{
	assert(x != 3);
}

int main()
{
	void *p;

	doubtful<<<1, 1>>>(2);
	CHECK(cudaDeviceSynchronize());
	doubtful<<<1, 1>>>(3);
	EXPECT(cudaDeviceSynchronize() == cudaErrorAssert);
	EXPECT(cudaMalloc(&p, 4) == cudaErrorAssert);
	EXPECT(cudaGetLastError() == cudaErrorAssert);
	CHECK(cudaDeviceReset());
	CHECK(cudaMalloc(&p, 4));
	return passed();
}
