/* Host memory that the device reaches: allocated, mapped, registered. */
#include "check.h"

__global__ void negate(int *to, const int *from, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		to[i] = -from[i];
}

int main()
{
	const int n = 1024;
	const size_t bytes = n * sizeof(int);
	int *pinned, *mapped, *on_device, *own, *p;
	cudaStream_t stream;
	unsigned flags;

	CHECK(cudaMallocHost(&pinned, bytes));
	CHECK(cudaHostAlloc(&mapped, bytes, cudaHostAllocMapped | cudaHostAllocPortable));
	CHECK(cudaHostGetFlags(&flags, mapped));
	EXPECT(flags & cudaHostAllocMapped);
	CHECK(cudaStreamCreate(&stream));
	for (int i = 0; i < n; i++)
		mapped[i] = i;
	CHECK(cudaHostGetDevicePointer(&on_device, mapped, 0));
	CHECK(cudaMalloc(&p, bytes));
	negate<<<4, 256, 0, stream>>>(p, on_device, n);
	CHECK(cudaMemcpyAsync(pinned, p, bytes, cudaMemcpyDeviceToHost, stream));
	CHECK(cudaStreamSynchronize(stream));
	for (int i = 0; i < n; i++)
		EXPECT(pinned[i] == -i);
	CHECK(cudaMemcpyAsync(mapped, pinned, bytes, cudaMemcpyHostToHost, stream));
	CHECK(cudaStreamSynchronize(stream));
	EXPECT(mapped[n - 1] == 1 - n);
	own = (int *)aligned_alloc(4096, bytes);
	CHECK(cudaHostRegister(own, bytes, cudaHostRegisterDefault));
	CHECK(cudaHostGetDevicePointer(&on_device, own, 0));
	negate<<<4, 256>>>(on_device, p, n);
	CHECK(cudaDeviceSynchronize());
	for (int i = 0; i < n; i++)
		EXPECT(own[i] == i);
	EXPECT(cudaHostRegister(own, bytes, 0) == cudaErrorHostMemoryAlreadyRegistered);
	CHECK(cudaHostUnregister(own));
	EXPECT(cudaHostUnregister(own) == cudaErrorHostMemoryNotRegistered);
	CHECK(cudaFreeHost(pinned));
	CHECK(cudaFreeHost(mapped));
	CHECK(cudaFreeHost(NULL));
	CHECK(cudaFree(p));
	free(own);
	return passed();
}
