/* Managed memory: touched by both sides, prefetched and advised. */
#include "check.h"

__global__ void square(double *p, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		p[i] *= p[i];
}

int main()
{
	const int n = 10000;
	const size_t bytes = n * sizeof(double);
	cudaMemLocation device = {cudaMemLocationTypeDevice, 0},
			host = {cudaMemLocationTypeHost, 0};
	cudaPointerAttributes at;
	cudaStream_t stream;
	double *p;

	CHECK(cudaMallocManaged(&p, bytes));
	CHECK(cudaStreamCreate(&stream));
	for (int i = 0; i < n; i++)
		p[i] = i / 4.0;
	square<<<(n + 255) / 256, 256>>>(p, n);
	CHECK(cudaDeviceSynchronize());
	for (int i = 0; i < n; i++)
		EXPECT(p[i] == i / 4.0 * (i / 4.0));
	for (int i = 0; i < n; i++)
		p[i] = 2;
	CHECK(cudaMemPrefetchAsync(p, bytes, device, 0, stream));
	square<<<(n + 255) / 256, 256, 0, stream>>>(p, n);
	CHECK(cudaMemPrefetchAsync(p, bytes, host, 0, stream));
	CHECK(cudaStreamSynchronize(stream));
	for (int i = 0; i < n; i++)
		EXPECT(p[i] == 4);
	CHECK(cudaMemset(p, 0, bytes));
	CHECK(cudaDeviceSynchronize());
	EXPECT(p[0] == 0 && p[n - 1] == 0);
	CHECK(cudaPointerGetAttributes(&at, p + 5));
	EXPECT(at.type == cudaMemoryTypeManaged && at.devicePointer == p + 5 &&
		at.hostPointer == p + 5);
	CHECK(cudaFree(p));
	CHECK(cudaStreamDestroy(stream));
	return passed();
}
