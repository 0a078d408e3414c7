// flags: -arch=compute_75 -rdc=true
// with: relocatable_part.cu
/*
 * Built in two parts with -rdc: a kernel reads a variable of the other part, and the host writes
 * it.
 */
#include "check.h"

extern __device__ int shift;

__global__ void read(int *p)
{
	*p = shift;
}

int main()
{
	int got = 0, value = 1000, *p;

	CHECK(cudaMalloc(&p, sizeof(got)));
	read<<<1, 1>>>(p);
	CHECK(cudaPeekAtLastError());
	CHECK(cudaMemcpy(&got, p, sizeof(got), cudaMemcpyDeviceToHost));
	EXPECT(got == 10);
	CHECK(cudaMemcpyToSymbol(shift, &value, sizeof(value)));
	read<<<1, 1>>>(p);
	CHECK(cudaMemcpy(&got, p, sizeof(got), cudaMemcpyDeviceToHost));
	EXPECT(got == 1000);
	return passed();
}
