/* A device that is reset is as new: also after an error that destroyed its context. */
#include "check.h"

__device__ int state = 4;

__global__ void bump(int *p)
{
	*p = ++state;
}

__global__ void stray(int *p)
{
	*p = 1;
}

static int bumped()
{
	int got = -1, *p;

	CHECK(cudaMalloc(&p, sizeof(int)));
	bump<<<1, 1>>>(p);
	CHECK(cudaMemcpy(&got, p, sizeof(int), cudaMemcpyDeviceToHost));
	return got;
}

int main()
{
	size_t before, after, total;

	EXPECT(bumped() == 5);
	EXPECT(bumped() == 6);
	CHECK(cudaMemGetInfo(&before, &total));
	CHECK(cudaDeviceReset());
	EXPECT(bumped() == 5);
	CHECK(cudaMemGetInfo(&after, &total));
	EXPECT(after >= before);
	stray<<<1, 1>>>((int *)8);
	EXPECT(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
	EXPECT(cudaGetLastError() == cudaErrorIllegalAddress);
	CHECK(cudaDeviceReset());
	EXPECT(cudaGetLastError() == cudaSuccess);
	EXPECT(bumped() == 5);
	return passed();
}
