// softgpu: --gpus 2
/* Managed variables: the host and all devices read and write the same ones. */
#include "check.h"

__managed__ int total = 5;
__managed__ float values[100];

__global__ void sum()
{
	for (int i = 0; i < 100; i++)
		total += (int)values[i];
}

int main()
{
	int copy = 0;

	EXPECT(total == 5);
	for (int i = 0; i < 100; i++)
		values[i] = i;
	sum<<<1, 1>>>();
	CHECK(cudaDeviceSynchronize());
	EXPECT(total == 5 + 4950);
	CHECK(cudaMemcpyFromSymbol(&copy, total, sizeof(copy)));
	EXPECT(copy == total);
	CHECK(cudaSetDevice(1));
	sum<<<1, 1>>>();
	CHECK(cudaDeviceSynchronize());
	EXPECT(total == 5 + 2 * 4950);
	CHECK(cudaMemcpyToSymbol(total, &copy, sizeof(copy)));
	EXPECT(total == copy);
	return passed();
}
