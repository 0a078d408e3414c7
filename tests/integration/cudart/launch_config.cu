// also: --default-stream per-thread
/* Launches by a configuration with attributes, and parameters of many sizes. */
#include "check.h"

struct packed {
	char c;
	double d;
	short s[3];
};

__global__ void gather(char a, packed b, short c, float3 d, long long e, double *out)
{
	if (threadIdx.x || blockIdx.x)
		return;
	out[0] = a;
	out[1] = b.c + b.d + b.s[0] + b.s[1] + b.s[2];
	out[2] = c;
	out[3] = d.x + d.y + d.z;
	out[4] = (double)e;
}

int main()
{
	packed b = {1, 2.5, {3, 4, 5}};
	cudaLaunchAttribute attribute = {};
	cudaLaunchConfig_t config = {};
	double got[5], *out;
	cudaStream_t stream;

	CHECK(cudaMalloc(&out, sizeof(got)));
	CHECK(cudaStreamCreate(&stream));
	attribute.id = cudaLaunchAttributePriority;
	attribute.val.priority = 0;
	config.gridDim = dim3(2);
	config.blockDim = dim3(64);
	config.stream = stream;
	config.attrs = &attribute;
	config.numAttrs = 1;
	CHECK(cudaLaunchKernelEx(
		&config, gather, (char)-7, b, (short)300, make_float3(1, 2, 4), 1LL << 40, out));
	CHECK(cudaMemcpyAsync(got, out, sizeof(got), cudaMemcpyDeviceToHost, stream));
	CHECK(cudaStreamSynchronize(stream));
	EXPECT(got[0] == -7 && got[1] == 15.5 && got[2] == 300 && got[3] == 7 &&
		got[4] == (double)(1LL << 40));
	config.blockDim = dim3(2048);
	EXPECT_ERROR(cudaLaunchKernelEx(
			     &config, gather, (char)0, b, (short)0, make_float3(0, 0, 0), 0LL, out),
		cudaErrorInvalidConfiguration);
	EXPECT_ERROR(cudaLaunchKernelExC(NULL, (const void *)gather, NULL), cudaErrorInvalidValue);
	return passed();
}
