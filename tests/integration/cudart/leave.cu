/* A program ends while its kernel runs: nobody waits for that. */
#include "check.h"

__global__ void spin(volatile int *flag, int *out)
{
	while (!*flag)
		;
	*out = 1;
}

int main()
{
	int *flag, *out;

	CHECK(cudaMallocManaged(&flag, sizeof(int)));
	CHECK(cudaMalloc(&out, sizeof(int)));
	*flag = 0;
	spin<<<1, 1>>>(flag, out);
	CHECK(cudaGetLastError());
	EXPECT(cudaStreamQuery(0) == cudaErrorNotReady);
	return passed();
}
