// softgpu: --gpus 2
/* Copies between devices, and access to each other's memory. */
#include "check.h"

__global__ void twice(int *to, const int *from, int n)
{
	int i = threadIdx.x;

	if (i < n)
		to[i] = 2 * from[i];
}

int main()
{
	const int n = 100;
	const size_t bytes = n * sizeof(int);
	int in[n], out[n], can = -1, *a, *b;

	for (int i = 0; i < n; i++)
		in[i] = 3 * i;
	CHECK(cudaSetDevice(0));
	CHECK(cudaMalloc(&a, bytes));
	CHECK(cudaMemcpy(a, in, bytes, cudaMemcpyHostToDevice));
	CHECK(cudaSetDevice(1));
	CHECK(cudaMalloc(&b, bytes));
	CHECK(cudaMemcpyPeer(b, 1, a, 0, bytes));
	CHECK(cudaMemcpy(out, b, bytes, cudaMemcpyDeviceToHost));
	EXPECT(!memcmp(in, out, bytes));
	CHECK(cudaMemset(b, 0, bytes));
	CHECK(cudaMemcpyPeerAsync(b, 1, a, 0, bytes, 0));
	CHECK(cudaMemcpy(out, b, bytes, cudaMemcpyDeviceToHost));
	EXPECT(!memcmp(in, out, bytes));
	CHECK(cudaDeviceCanAccessPeer(&can, 1, 0));
	if (can) {
		CHECK(cudaDeviceEnablePeerAccess(0, 0));
		EXPECT_ERROR(cudaDeviceEnablePeerAccess(0, 0), cudaErrorPeerAccessAlreadyEnabled);
		twice<<<1, 128>>>(b, a, n);
		CHECK(cudaMemcpy(out, b, bytes, cudaMemcpyDeviceToHost));
		for (int i = 0; i < n; i++)
			EXPECT(out[i] == 6 * i);
		CHECK(cudaDeviceDisablePeerAccess(0));
	}
	EXPECT_ERROR(cudaDeviceEnablePeerAccess(7, 0), cudaErrorInvalidDevice);
	return passed();
}
