// flags: -arch=compute_90
// softgpu: --model h100 --memory 2g
/* The name of a kernel, the offsets of its parameters, and a handle of it. */
#include "check.h"

struct wide {
	char c;
	double d[3];
};

extern "C" __global__ void named(char a, wide b, short c, int *out)
{
	*out = a + (int)b.d[2] + c;
}

int main()
{
	const size_t offsets[] = {0, 8, 40, 48}, sizes[] = {1, 32, 2, 8};
	cudaKernel_t kernel;
	const char *name;
	size_t offset, bytes;
	int got = 0, *out;
	wide b = {0, {0, 0, 20}};
	char a = 1;
	short c = 300;
	void *args[] = {&a, &b, &c, &out};

	CHECK(cudaFuncGetName(&name, (const void *)named));
	EXPECT(!strcmp(name, "named"));
	for (size_t i = 0; i < 4; i++) {
		CHECK(cudaFuncGetParamInfo((const void *)named, i, &offset, &bytes));
		EXPECT(offset == offsets[i] && bytes == sizes[i]);
	}
	EXPECT(cudaFuncGetParamInfo((const void *)named, 4, &offset, &bytes) ==
		cudaErrorInvalidValue);
	CHECK(cudaFuncSetCacheConfig((const void *)named, cudaFuncCachePreferShared));
	CHECK(cudaOccupancyAvailableDynamicSMemPerBlock(&bytes, (const void *)named, 2, 128));
	EXPECT(bytes > 0);
	CHECK(cudaGetKernel(&kernel, (const void *)named));
	CHECK(cudaKernelSetAttributeForDevice(
		kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 100 << 10, 0));
	CHECK(cudaMalloc(&out, sizeof(int)));
	CHECK(cudaLaunchKernel((const void *)kernel, dim3(1), dim3(1), args, 90 << 10, 0));
	CHECK(cudaMemcpy(&got, out, sizeof(int), cudaMemcpyDeviceToHost));
	EXPECT(got == 321);
	return passed();
}
