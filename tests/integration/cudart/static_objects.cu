/* Objects with static storage use the runtime before main() and after it. */
#include "check.h"

__global__ void fill(int *p)
{
	p[threadIdx.x] = 3 * threadIdx.x;
}

struct buffer {
	int *p = NULL;

	buffer()
	{
		CHECK(cudaMalloc(&p, 32 * sizeof(int)));
		CHECK(cudaMemset(p, 0, 32 * sizeof(int)));
	}

	~buffer()
	{
		int got[32];

		/* Kernels may be gone by now; memory is not. */
		if (cudaMemcpy(got, p, sizeof(got), cudaMemcpyDeviceToHost) != cudaSuccess ||
			got[31] != 93 || cudaFree(p) != cudaSuccess)
			_Exit(1);
	}
};

static buffer ours;

int main()
{
	fill<<<1, 32>>>(ours.p);
	CHECK(cudaDeviceSynchronize());
	fill<<<1, 32>>>(ours.p); /* nobody waits for this one */
	CHECK(cudaGetLastError());
	return passed();
}
