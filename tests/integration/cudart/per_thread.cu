// flags: -arch=compute_75 --default-stream per-thread
/*
 * Built for the thread's own default stream: every call has another name, and none of them waits
 * for another thread.
 */
#include <future>
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

static void CUDART_CB wait_for(void *at)
{
	((std::promise<void> *)at)->get_future().wait();
}

/*
 * While this thread's stream is held up, another's goes on: with one stream for all it would hang.
 */
static void independent()
{
	std::promise<void> go;
	int *p;

	CHECK(cudaMalloc(&p, 32 * sizeof(int)));
	CHECK(cudaLaunchHostFunc(0, wait_for, &go));
	EXPECT(cudaStreamQuery(0) == cudaErrorNotReady);
	EXPECT(cudaGetLastError() == cudaErrorNotReady);
	std::thread([p] {
		int got[32];

		CHECK(cudaMemset(p, 0, sizeof(got)));
		fill<<<1, 32>>>(p, 3, 32);
		CHECK(cudaMemcpy(got, p, sizeof(got), cudaMemcpyDeviceToHost));
		EXPECT(got[31] == 3 + 31 + 7);
	}).join();
	EXPECT(cudaStreamQuery(0) == cudaErrorNotReady);
	(void)cudaGetLastError();
	go.set_value();
	CHECK(cudaStreamSynchronize(0));
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
	independent();
	return passed();
}
