// flags: -arch=compute_75 --default-stream per-thread
/* Built for the thread's own default stream: every call has another name, and none of them waits for another thread. */
#include <thread>

#include "check.h"

__device__ int offset;

__global__ void fill(int *p, int value, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		p[i] = value + i + offset;
}

static void work(int value)
{
	const int n = 256;
	std::vector<int> got(n);
	cudaEvent_t event;
	int *p, *q;

	CHECK(cudaMalloc(&p, n * sizeof(int)));
	CHECK(cudaMallocAsync(&q, n * sizeof(int), 0));
	fill<<<2, 128>>>(p, value, n);
	CHECK(cudaMemcpyAsync(q, p, n * sizeof(int), cudaMemcpyDeviceToDevice, 0));
	CHECK(cudaEventCreate(&event));
	CHECK(cudaEventRecord(event));
	CHECK(cudaStreamWaitEvent(0, event));
	CHECK(cudaMemcpy(got.data(), q, n * sizeof(int), cudaMemcpyDeviceToHost));
	CHECK(cudaFreeAsync(q, 0));
	for (int i = 0; i < n; i++)
		EXPECT(got[i] == value + i + 7);
	CHECK(cudaMemset(p, 0, n * sizeof(int)));
	CHECK(cudaMemcpy(got.data(), p, n * sizeof(int), cudaMemcpyDeviceToHost));
	EXPECT(got[0] == 0 && got[n - 1] == 0);
	CHECK(cudaStreamSynchronize(0));
	CHECK(cudaEventDestroy(event));
	CHECK(cudaFree(p));
}

int main()
{
	const int seven = 7;
	std::vector<std::thread> threads;

	CHECK(cudaMemcpyToSymbol(offset, &seven, sizeof(seven)));
	for (int i = 0; i < 3; i++)
		threads.emplace_back(work, i * 1000);
	for (std::thread &t : threads)
		t.join();
	return passed();
}
