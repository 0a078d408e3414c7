// flags: -rdc=true
// also: -arch=compute_75
// with: relocatable_part.cu
/*
 * Built in two parts with -rdc: a kernel calls a function of the other part, each part has kernels
 * and variables.
 */
#include "check.h"

__device__ int scale = 1;

extern __device__ int other(int x);
int launched_there(int *p);

__global__ void call(int *p)
{
	p[threadIdx.x] = other(threadIdx.x) * scale;
}

int main()
{
	int got[32], value = 1000, *p;

	CHECK(cudaMalloc(&p, sizeof(got)));
	call<<<1, 32>>>(p);
	CHECK(cudaGetLastError());
	CHECK(cudaMemcpy(got, p, sizeof(got), cudaMemcpyDeviceToHost));
	for (int i = 0; i < 32; i++)
		EXPECT(got[i] == i * i + 10);
	CHECK(cudaMemcpyToSymbol(scale, &value, sizeof(value)));
	call<<<1, 32>>>(p);
	CHECK(cudaMemcpy(got, p, sizeof(got), cudaMemcpyDeviceToHost));
	EXPECT(got[3] == 19000);
	EXPECT(launched_there(p) == 77);
	return passed();
}
