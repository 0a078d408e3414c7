// softgpu: --model h100 --memory 2g
/* Queries about kernels: attributes, dynamic shared memory, occupancy. */
#include "check.h"

__global__ void __launch_bounds__(512) reverse(int *p, int n)
{
	extern __shared__ int part[];
	int i = threadIdx.x;

	part[i] = p[blockIdx.x * n + i];
	__syncthreads();
	p[blockIdx.x * n + i] = part[n - 1 - i];
}

__global__ void fixed(float *p)
{
	__shared__ float own[256];

	own[threadIdx.x] = p[threadIdx.x];
	__syncthreads();
	p[threadIdx.x] = own[255 - threadIdx.x];
}

int main()
{
	const int large = 60 << 10;
	cudaFuncAttributes a;
	cudaDeviceProp prop;
	int blocks, more, grid, block, got[256], in[256], *p;

	CHECK(cudaGetDeviceProperties(&prop, 0));
	CHECK(cudaFuncGetAttributes(&a, reverse));
	EXPECT(a.maxThreadsPerBlock == 512 && a.sharedSizeBytes == 0 && a.numRegs > 0);
	EXPECT(a.maxDynamicSharedSizeBytes == 48 << 10);
	CHECK(cudaFuncGetAttributes(&a, fixed));
	EXPECT(a.sharedSizeBytes == 1024);
	CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, reverse, 256, 0));
	EXPECT(blocks >= 1 && blocks * 256 <= prop.maxThreadsPerMultiProcessor);
	CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
		&more, reverse, 64, 0, cudaOccupancyDefault));
	EXPECT(more >= blocks);
	CHECK(cudaOccupancyMaxPotentialBlockSize(&grid, &block, reverse, 0, 0));
	EXPECT(block > 0 && block <= 512 && grid > 0);
	CHECK(cudaMalloc(&p, sizeof(in)));
	for (int i = 0; i < 256; i++)
		in[i] = i * i;
	CHECK(cudaMemcpy(p, in, sizeof(in), cudaMemcpyHostToDevice));
	reverse<<<1, 256, large>>>(p, 256);
	EXPECT(cudaGetLastError() != cudaSuccess);
	CHECK(cudaFuncSetAttribute(reverse, cudaFuncAttributeMaxDynamicSharedMemorySize, large));
	CHECK(cudaFuncGetAttributes(&a, reverse));
	EXPECT(a.maxDynamicSharedSizeBytes == large);
	reverse<<<1, 256, large>>>(p, 256);
	CHECK(cudaGetLastError());
	CHECK(cudaMemcpy(got, p, sizeof(got), cudaMemcpyDeviceToHost));
	for (int i = 0; i < 256; i++)
		EXPECT(got[i] == in[255 - i]);
	EXPECT_ERROR(cudaFuncGetAttributes(&a, &prop), cudaErrorInvalidDeviceFunction);
	return passed();
}
