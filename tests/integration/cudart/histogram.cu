/* A histogram by atomics in shared memory, and a scan of it. */
#include "check.h"

__global__ void histogram(const unsigned char *data, int n, unsigned *bins)
{
	__shared__ unsigned own[256];

	own[threadIdx.x] = 0;
	__syncthreads();
	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		atomicAdd(&own[data[i]], 1u);
	__syncthreads();
	atomicAdd(&bins[threadIdx.x], own[threadIdx.x]);
}

__global__ void scan(unsigned *bins)
{
	__shared__ unsigned part[2][256];
	int i = threadIdx.x, in = 0;

	part[0][i] = bins[i];
	__syncthreads();
	for (int step = 1; step < 256; step *= 2) {
		part[1 - in][i] = part[in][i] + (i >= step ? part[in][i - step] : 0);
		in = 1 - in;
		__syncthreads();
	}
	bins[i] = part[in][i];
}

int main()
{
	const int n = 20000;
	std::vector<unsigned char> data(n);
	unsigned counts[256] = {}, got[256], *bins, seed = 1;
	unsigned char *p;

	for (unsigned char &c : data) {
		seed = seed * 1103515245 + 12345;
		counts[c = (unsigned char)(seed >> 20)]++;
	}
	CHECK(cudaMalloc(&p, n));
	CHECK(cudaMalloc(&bins, sizeof(got)));
	CHECK(cudaMemset(bins, 0, sizeof(got)));
	CHECK(cudaMemcpy(p, data.data(), n, cudaMemcpyHostToDevice));
	histogram<<<3, 256>>>(p, n, bins);
	CHECK(cudaMemcpy(got, bins, sizeof(got), cudaMemcpyDeviceToHost));
	EXPECT(!memcmp(got, counts, sizeof(got)));
	scan<<<1, 256>>>(bins);
	CHECK(cudaMemcpy(got, bins, sizeof(got), cudaMemcpyDeviceToHost));
	for (int i = 0, sum = 0; i < 256; i++)
		EXPECT(got[i] == (unsigned)(sum += counts[i]));
	return passed();
}
