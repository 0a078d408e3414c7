/* Limits, cache preferences, the profiler's switches, writes of others flushed. */
#include <cuda_profiler_api.h>

#include "check.h"

int main()
{
	cudaFuncCache cache;
	size_t stack, again;

	CHECK(cudaDeviceGetLimit(&stack, cudaLimitStackSize));
	EXPECT(stack > 0);
	CHECK(cudaDeviceSetLimit(cudaLimitStackSize, 4096));
	CHECK(cudaDeviceGetLimit(&again, cudaLimitStackSize));
	EXPECT(again >= 4096);
	CHECK(cudaDeviceSetCacheConfig(cudaFuncCachePreferL1));
	CHECK(cudaDeviceGetCacheConfig(&cache));
	CHECK(cudaProfilerStart());
	CHECK(cudaProfilerStop());
	CHECK(cudaCtxResetPersistingL2Cache());
	EXPECT(cudaDeviceGetLimit(&stack, (cudaLimit)99) != cudaSuccess);
	EXPECT(cudaGetLastError() != cudaSuccess);
	return passed();
}
