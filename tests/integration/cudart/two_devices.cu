// softgpu: --gpus 2
/* Two devices: each with its own memory, variables and kernels; threads choose for themselves. */
#include <thread>

#include "check.h"

__device__ int base = 1;

__global__ void fill(int *p)
{
	p[threadIdx.x] = base + threadIdx.x;
}

static void use(int device, int *ret)
{
	cudaPointerAttributes at;
	int current, *p;

	CHECK(cudaSetDevice(device));
	CHECK(cudaGetDevice(&current));
	EXPECT(current == device);
	CHECK(cudaMalloc(&p, 64 * sizeof(int)));
	CHECK(cudaPointerGetAttributes(&at, p));
	EXPECT(at.device == device);
	fill<<<1, 64>>>(p);
	CHECK(cudaMemcpy(ret, p, 64 * sizeof(int), cudaMemcpyDeviceToHost));
	CHECK(cudaFree(p));
}

/* A stream of device 0 while device 1 is current: copies and waiting work, kernels do not. */
static void use_streams()
{
	cudaStream_t first, second;
	cudaEvent_t start, end;
	int *p, value = 7, back = 0;
	float ms;

	CHECK(cudaSetDevice(0));
	CHECK(cudaStreamCreate(&first));
	CHECK(cudaMalloc(&p, 64 * sizeof(int)));
	CHECK(cudaEventCreate(&start));
	CHECK(cudaSetDevice(1));
	CHECK(cudaStreamCreate(&second));
	CHECK(cudaEventCreate(&end));
	fill<<<1, 64, 0, first>>>(p);
	EXPECT(cudaGetLastError() == cudaErrorInvalidResourceHandle);
	CHECK(cudaMemcpyAsync(p, &value, sizeof(value), cudaMemcpyHostToDevice, first));
	EXPECT(cudaEventRecord(start, second) == cudaErrorInvalidResourceHandle);
	(void)cudaGetLastError();
	CHECK(cudaSetDevice(0));
	CHECK(cudaEventRecord(start, first));
	CHECK(cudaSetDevice(1));
	CHECK(cudaStreamWaitEvent(second, start, 0));
	CHECK(cudaMemcpyAsync(&back, p, sizeof(back), cudaMemcpyDeviceToHost, second));
	CHECK(cudaEventRecord(end, second));
	CHECK(cudaStreamSynchronize(second));
	CHECK(cudaEventSynchronize(start));
	EXPECT(back == 7);
	EXPECT(cudaEventElapsedTime(&ms, start, end) == cudaErrorInvalidResourceHandle);
	(void)cudaGetLastError();
	CHECK(cudaStreamSynchronize(first));
	CHECK(cudaStreamDestroy(first));
	CHECK(cudaStreamDestroy(second));
	CHECK(cudaFree(p));
}

int main()
{
	int count, current, got[64], value = 500;

	CHECK(cudaGetDeviceCount(&count));
	EXPECT(count == 2);
	CHECK(cudaSetDevice(1));
	CHECK(cudaMemcpyToSymbol(base, &value, sizeof(value)));
	std::thread([] {
		int device;

		CHECK(cudaGetDevice(&device));
		EXPECT(device == 0);
	}).join();
	use(1, got);
	EXPECT(got[0] == 500 && got[63] == 563);
	use(0, got);
	EXPECT(got[0] == 1 && got[63] == 64);
	use_streams();
	CHECK(cudaSetDevice(1));
	std::thread([] {
		int other[64];

		use(0, other);
		EXPECT(other[5] == 6);
	}).join();
	CHECK(cudaGetDevice(&current));
	EXPECT(current == 1);
	CHECK(cudaDeviceSynchronize());
	return passed();
}
