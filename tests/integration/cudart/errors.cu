/* The last error: kept, peeked at, taken; per thread; one that stays; names and texts. */
#include <thread>

#include "check.h"

__global__ void nothing()
{
}

__global__ void stray(int *p)
{
	*p = 1;
}

static void names()
{
	EXPECT(!strcmp(cudaGetErrorName(cudaSuccess), "cudaSuccess"));
	EXPECT(!strcmp(cudaGetErrorString(cudaSuccess), "no error"));
	EXPECT(!strcmp(cudaGetErrorName(cudaErrorMemoryAllocation), "cudaErrorMemoryAllocation"));
	EXPECT(!strcmp(cudaGetErrorName(cudaErrorGraphExecUpdateFailure),
		"cudaErrorGraphExecUpdateFailure"));
	EXPECT(!strcmp(cudaGetErrorName((cudaError_t)4711), "unrecognized error code"));
	EXPECT(!strcmp(cudaGetErrorString((cudaError_t)-1), "unrecognized error code"));
}

static void last()
{
	void *p;

	EXPECT(cudaMalloc(&p, (size_t)1 << 50) == cudaErrorMemoryAllocation);
	EXPECT(cudaPeekAtLastError() == cudaErrorMemoryAllocation);
	/* A success in between leaves it. */
	CHECK(cudaDeviceSynchronize());
	std::thread([] { EXPECT(cudaGetLastError() == cudaSuccess); }).join();
	EXPECT(cudaGetLastError() == cudaErrorMemoryAllocation);
	EXPECT(cudaGetLastError() == cudaSuccess);
}

static void refusals()
{
	int value;
	char c;

	nothing<<<1, 2000>>>();
	EXPECT(cudaGetLastError() == cudaErrorInvalidConfiguration);
	nothing<<<0, 1>>>();
	EXPECT(cudaGetLastError() == cudaErrorInvalidConfiguration);
	EXPECT_ERROR(cudaSetDevice(99), cudaErrorInvalidDevice);
	EXPECT_ERROR(
		cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, -1), cudaErrorInvalidDevice);
	EXPECT_ERROR(cudaMemcpy(&c, &c, 1, (cudaMemcpyKind)7), cudaErrorInvalidMemcpyDirection);
	EXPECT_ERROR(cudaMalloc((void **)NULL, 1), cudaErrorInvalidValue);
	EXPECT_ERROR(cudaGetSymbolAddress((void **)&value, &c), cudaErrorInvalidSymbol);
	EXPECT_ERROR(
		cudaLaunchKernel(&c, dim3(1), dim3(1), NULL, 0, 0), cudaErrorInvalidDeviceFunction);
}

int main()
{
	names();
	last();
	refusals();
	stray<<<1, 1>>>((int *)16);
	EXPECT(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
	/* The error has destroyed the context, so it stays. */
	EXPECT(cudaGetLastError() == cudaErrorIllegalAddress);
	EXPECT(cudaGetLastError() == cudaErrorIllegalAddress);
	void *p;
	EXPECT(cudaMalloc(&p, 1) == cudaErrorIllegalAddress);
	return passed();
}
