/*
 * Streams: made with flags and priorities, ordered by events, with host functions and callbacks in
 * their order.
 */
#include <atomic>

#include "check.h"

__global__ void multiply_add(int *p, int n, int factor, int summand)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		p[i] = p[i] * factor + summand;
}

static std::atomic<int> order;

static void CUDART_CB note(void *at)
{
	*(int *)at = ++order;
}

static void CUDART_CB called(cudaStream_t stream, cudaError_t status, void *at)
{
	if (stream && status == cudaSuccess)
		note(at);
}

static void queries(cudaStream_t a, cudaStream_t b)
{
	unsigned flags;
	int priority, least, greatest, device = -1;
	unsigned long long ids[2];

	CHECK(cudaStreamGetFlags(a, &flags));
	EXPECT(flags == cudaStreamNonBlocking);
	CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
	CHECK(cudaStreamGetPriority(b, &priority));
	EXPECT(priority == greatest);
	EXPECT(cudaStreamQuery(a) == cudaSuccess);
	if (cudaStreamGetId(a, ids) == cudaSuccess && cudaStreamGetId(b, ids + 1) == cudaSuccess)
		EXPECT(ids[0] != ids[1]);
	if (cudaStreamGetDevice(a, &device) == cudaSuccess)
		EXPECT(device == 0);
	(void)cudaGetLastError();
}

int main()
{
	const int n = 2000;
	std::vector<int> got(n);
	int least, greatest, first = 0, second = 0;
	cudaStream_t a, b, plain;
	cudaEvent_t event;
	int *p;

	CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
	CHECK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
	CHECK(cudaStreamCreateWithPriority(&b, cudaStreamNonBlocking, greatest));
	CHECK(cudaStreamCreate(&plain));
	CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
	queries(a, b);
	CHECK(cudaMalloc(&p, n * sizeof(int)));
	CHECK(cudaMemsetAsync(p, 0, n * sizeof(int), a));
	multiply_add<<<8, 256, 0, a>>>(p, n, 1, 5);
	CHECK(cudaLaunchHostFunc(a, note, &first));
	CHECK(cudaEventRecord(event, a));
	CHECK(cudaStreamWaitEvent(b, event, 0));
	multiply_add<<<8, 256, 0, b>>>(p, n, 3, 1);
	CHECK(cudaStreamAddCallback(b, called, &second, 0));
	CHECK(cudaMemcpyAsync(got.data(), p, n * sizeof(int), cudaMemcpyDeviceToHost, b));
	CHECK(cudaStreamSynchronize(b));
	for (int value : got)
		EXPECT(value == 16);
	EXPECT(first == 1 && second == 2);
	multiply_add<<<8, 256, 0, plain>>>(p, n, 2, 0);
	multiply_add<<<8, 256>>>(p, n, 1, 1); /* the legacy stream waits for the plain one */
	CHECK(cudaMemcpy(got.data(), p, n * sizeof(int), cudaMemcpyDeviceToHost));
	EXPECT(got[0] == 33 && got[n - 1] == 33);
	CHECK(cudaStreamDestroy(a));
	CHECK(cudaStreamDestroy(b));
	CHECK(cudaStreamDestroy(plain));
	CHECK(cudaEventDestroy(event));
	CHECK(cudaFree(p));
	return passed();
}
