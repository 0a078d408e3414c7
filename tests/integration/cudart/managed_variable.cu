/* Managed variables: the host reads and writes them by their names. */
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
	cudaPointerAttributes at;
	int copy = 0;

	CHECK(cudaPointerGetAttributes(&at, &total));
	if (at.type != cudaMemoryTypeManaged) {
		puts("the driver keeps managed variables as others");
		return 77;
	}
	EXPECT(total == 5);
	for (int i = 0; i < 100; i++)
		values[i] = i;
	sum<<<1, 1>>>();
	CHECK(cudaDeviceSynchronize());
	EXPECT(total == 5 + 4950);
	CHECK(cudaMemcpyFromSymbol(&copy, total, sizeof(copy)));
	EXPECT(copy == total);
	return passed();
}
