/*
 * A large input worked off in parts, on several streams, each with copies in and out around its
 * kernel.
 */
#include "check.h"

__global__ void polynomial(float *p, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		p[i] = p[i] * p[i] + 2 * p[i] + 1;
}

int main()
{
	const int parts = 12, each = 1024, streams = 3;
	cudaStream_t stream[streams];
	cudaEvent_t done[streams];
	float *host, *device[streams];

	CHECK(cudaMallocHost(&host, parts * each * sizeof(float)));
	for (int i = 0; i < parts * each; i++)
		host[i] = i % 1000;
	for (int s = 0; s < streams; s++) {
		CHECK(cudaStreamCreateWithFlags(&stream[s], cudaStreamNonBlocking));
		CHECK(cudaEventCreateWithFlags(&done[s], cudaEventDisableTiming));
		CHECK(cudaMalloc(&device[s], each * sizeof(float)));
	}
	for (int part = 0; part < parts; part++) {
		int s = part % streams;
		float *at = host + part * each;

		CHECK(cudaMemcpyAsync(
			device[s], at, each * sizeof(float), cudaMemcpyHostToDevice, stream[s]));
		polynomial<<<each / 128, 128, 0, stream[s]>>>(device[s], each);
		CHECK(cudaMemcpyAsync(
			at, device[s], each * sizeof(float), cudaMemcpyDeviceToHost, stream[s]));
		CHECK(cudaEventRecord(done[s], stream[s]));
	}
	for (cudaEvent_t event : done)
		CHECK(cudaEventSynchronize(event));
	for (int i = 0; i < parts * each; i++)
		EXPECT(host[i] == (i % 1000 + 1.0f) * (i % 1000 + 1.0f));
	return passed();
}
