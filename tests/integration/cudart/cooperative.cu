// also: --default-stream per-thread
/* A cooperative launch: all blocks at once, or a refusal. */
#include "check.h"

__global__ void mark(int *p)
{
	p[blockIdx.x * blockDim.x + threadIdx.x] = blockIdx.x + 1;
}

int main()
{
	int supported, sms, per_sm, got[64], *p;
	void *args[] = {&p};

	CHECK(cudaDeviceGetAttribute(&supported, cudaDevAttrCooperativeLaunch, 0));
	EXPECT(supported == 1);
	CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
	CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, mark, 32, 0));
	CHECK(cudaMalloc(&p, sizeof(got)));
	CHECK(cudaLaunchCooperativeKernel((const void *)mark, dim3(2), dim3(32), args, 0, 0));
	CHECK(cudaMemcpy(got, p, sizeof(got), cudaMemcpyDeviceToHost));
	for (int i = 0; i < 64; i++)
		EXPECT(got[i] == i / 32 + 1);
	EXPECT_ERROR(cudaLaunchCooperativeKernel(
			     (const void *)mark, dim3(sms * per_sm + 1), dim3(32), args, 0, 0),
		cudaErrorCooperativeLaunchTooLarge);
	return passed();
}
