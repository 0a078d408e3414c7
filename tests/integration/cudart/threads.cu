/* Threads that share a device: one context, each its own stream, errors of its own. */
#include <thread>

#include "check.h"

__device__ unsigned total;

__global__ void work(unsigned *p, unsigned by)
{
	p[threadIdx.x] += by;
	if (!threadIdx.x)
		atomicAdd(&total, by);
}

static void run(unsigned by)
{
	unsigned got[96], *p;
	cudaStream_t stream;

	EXPECT(cudaPeekAtLastError() == cudaSuccess);
	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CHECK(cudaMalloc(&p, sizeof(got)));
	CHECK(cudaMemsetAsync(p, 0, sizeof(got), stream));
	for (int i = 0; i < 20; i++)
		work<<<1, 96, 0, stream>>>(p, by);
	CHECK(cudaMemcpyAsync(got, p, sizeof(got), cudaMemcpyDeviceToHost, stream));
	CHECK(cudaStreamSynchronize(stream));
	for (unsigned value : got)
		EXPECT(value == 20 * by);
	EXPECT(cudaSetDevice(50) == cudaErrorInvalidDevice);
	EXPECT(cudaPeekAtLastError() == cudaErrorInvalidDevice);
	CHECK(cudaStreamDestroy(stream));
	CHECK(cudaFree(p));
}

int main()
{
	std::vector<std::thread> threads;
	unsigned got = 0;

	for (unsigned by = 1; by <= 6; by++)
		threads.emplace_back(run, by);
	for (std::thread &thread : threads)
		thread.join();
	CHECK(cudaMemcpyFromSymbol(&got, total, sizeof(got)));
	EXPECT(got == 20 * 21);
	EXPECT(cudaGetLastError() == cudaSuccess);
	return passed();
}
