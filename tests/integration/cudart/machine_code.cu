// flags: -gencode arch=compute_90,code=sm_90
/*
 * Built without PTX: a GPU without machine code in the program has no kernel, and the program is
 * told.
 */
#include "check.h"

__device__ int variable;

__global__ void nothing()
{
}

int main()
{
	int value = 1;
	void *p;

	CHECK(cudaMalloc(&p, 4));
	nothing<<<1, 1>>>();
	EXPECT(cudaGetLastError() == cudaErrorNoKernelImageForDevice);
	EXPECT_ERROR(cudaMemcpyToSymbol(variable, &value, 4), cudaErrorNoKernelImageForDevice);
	CHECK(cudaMemset(p, 1, 4));
	return passed();
}
