// flags: -arch=compute_75 -rdc=true
// with: relocatable_part.cu
/* Built in two parts with -rdc: a kernel calls a function and reads a variable of the other. */
#include "check.h"

extern __device__ int shift;
extern __device__ int other(int x);
int launched_there(int *p);

__global__ void call(int *p)
{
	p[threadIdx.x] = other(threadIdx.x) + shift;
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
	CHECK(cudaMemcpyToSymbol(shift, &value, sizeof(value)));
	call<<<1, 32>>>(p);
	CHECK(cudaMemcpy(got, p, sizeof(got), cudaMemcpyDeviceToHost));
	EXPECT(got[3] == 1009);
	EXPECT(launched_there(p) == 77);
	return passed();
}
