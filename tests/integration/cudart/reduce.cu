/* Sums in three ways, from one template: shared memory, shuffles, atomics. */
#include "check.h"

template <typename T> __global__ void in_shared(const T *in, T *out, int n)
{
	__shared__ T part[256];
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	part[threadIdx.x] = i < n ? in[i] : T(0);
	__syncthreads();
	for (int step = blockDim.x / 2; step; step /= 2) {
		if (threadIdx.x < step)
			part[threadIdx.x] += part[threadIdx.x + step];
		__syncthreads();
	}
	if (!threadIdx.x)
		out[blockIdx.x] = part[0];
}

template <typename T> __global__ void by_shuffles(const T *in, T *out, int n)
{
	T sum = 0;

	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		sum += in[i];
	for (int step = 16; step; step /= 2)
		sum += __shfl_down_sync(0xffffffff, sum, step);
	if (threadIdx.x % 32 == 0)
		atomicAdd(out, sum);
}

template <typename T> static void run()
{
	const int n = 5000, blocks = (n + 255) / 256;
	std::vector<T> in(n), part(blocks);
	T *din, *dout, sum = 0, got = 0;

	for (int i = 0; i < n; i++)
		sum += in[i] = T(i % 13);
	CHECK(cudaMalloc(&din, n * sizeof(T)));
	CHECK(cudaMalloc(&dout, blocks * sizeof(T)));
	CHECK(cudaMemcpy(din, in.data(), n * sizeof(T), cudaMemcpyHostToDevice));
	in_shared<T><<<blocks, 256>>>(din, dout, n);
	CHECK(cudaMemcpy(part.data(), dout, blocks * sizeof(T), cudaMemcpyDeviceToHost));
	for (T p : part)
		got += p;
	EXPECT(got == sum);
	CHECK(cudaMemset(dout, 0, sizeof(T)));
	by_shuffles<T><<<4, 128>>>(din, dout, n);
	CHECK(cudaMemcpy(&got, dout, sizeof(T), cudaMemcpyDeviceToHost));
	EXPECT(got == sum);
	CHECK(cudaFree(din));
	CHECK(cudaFree(dout));
}

int main()
{
	run<int>();
	run<float>();
	run<double>();
	run<unsigned long long>();
	return passed();
}
