/* Events: order, time, and what may not be asked of them. */
#include "check.h"

__global__ void spin(int *p, int rounds)
{
	int x = threadIdx.x;

	for (int i = 0; i < rounds; i++)
		x = x * 1664525 + 1013904223;
	p[blockIdx.x * blockDim.x + threadIdx.x] = x;
}

static int expected(int x, int rounds)
{
	for (int i = 0; i < rounds; i++)
		x = (int)((unsigned)x * 1664525u + 1013904223u);
	return x;
}

int main()
{
	const int rounds = 2000;
	cudaEvent_t begin, middle, end, untimed;
	float first, second, whole;
	int got[64], *p;

	CHECK(cudaEventCreate(&begin));
	CHECK(cudaEventCreateWithFlags(&middle, cudaEventBlockingSync));
	CHECK(cudaEventCreate(&end));
	CHECK(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming));
	CHECK(cudaMalloc(&p, sizeof(got)));
	CHECK(cudaEventRecord(begin));
	spin<<<2, 32>>>(p, rounds);
	CHECK(cudaEventRecord(middle));
	spin<<<2, 32>>>(p, rounds);
	CHECK(cudaEventRecordWithFlags(end, 0, cudaEventRecordDefault));
	CHECK(cudaEventRecord(untimed));
	CHECK(cudaEventSynchronize(end));
	CHECK(cudaEventQuery(middle));
	CHECK(cudaEventElapsedTime(&first, begin, middle));
	CHECK(cudaEventElapsedTime(&second, middle, end));
	CHECK(cudaEventElapsedTime(&whole, begin, end));
	EXPECT(first > 0 && second > 0);
	EXPECT(whole >= first + second - 0.01f && whole <= first + second + 0.01f);
	CHECK(cudaEventSynchronize(untimed));
	EXPECT(cudaEventElapsedTime(&whole, begin, untimed) != cudaSuccess);
	EXPECT(cudaGetLastError() != cudaSuccess);
	CHECK(cudaMemcpy(got, p, sizeof(got), cudaMemcpyDeviceToHost));
	for (int i = 0; i < 64; i++)
		EXPECT(got[i] == expected(i % 32, rounds));
	for (cudaEvent_t event : {begin, middle, end, untimed})
		CHECK(cudaEventDestroy(event));
	CHECK(cudaFree(p));
	return passed();
}
