/*
 * The runtime and the driver API in one program: entry points, contexts and kernels of one used by
 * the other.
 */
#include <cuda.h>

#include "check.h"

__device__ int factor = 3;

__global__ void multiply(int *p)
{
	p[threadIdx.x] *= factor;
}

template <typename F> static F entry(const char *name)
{
	cudaDriverEntryPointQueryResult status;
	void *found = NULL;

	CHECK(cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &status));
	EXPECT(found && status == cudaDriverEntryPointSuccess);
	return (F)found;
}

static void same_context(CUcontext *ret)
{
	auto get_current = entry<CUresult (*)(CUcontext *)>("cuCtxGetCurrent");

	CHECK(cudaFree(0));
	EXPECT(get_current(ret) == CUDA_SUCCESS && *ret);
}

static void own_context(CUcontext primary)
{
	auto create = entry<CUresult (*)(CUcontext *, unsigned, CUdevice)>("cuCtxCreate");
	auto destroy = entry<CUresult (*)(CUcontext)>("cuCtxDestroy");
	auto set_current = entry<CUresult (*)(CUcontext)>("cuCtxSetCurrent");
	int got = 7, *p;
	CUcontext own;

	if (create(&own, 0, 0) != CUDA_SUCCESS)
		return;
	EXPECT(own != primary);
	CHECK(cudaMalloc(&p, sizeof(int)));
	CHECK(cudaMemcpy(p, &got, sizeof(int), cudaMemcpyHostToDevice));
	multiply<<<1, 1>>>(p); /* a variable of this context: still 3 */
	CHECK(cudaMemcpy(&got, p, sizeof(int), cudaMemcpyDeviceToHost));
	EXPECT(got == 21);
	CHECK(cudaFree(p));
	EXPECT(destroy(own) == CUDA_SUCCESS);
	EXPECT(set_current(primary) == CUDA_SUCCESS);
}

int main()
{
	auto launch = entry<CUresult (*)(CUfunction, unsigned, unsigned, unsigned, unsigned,
		unsigned, unsigned, unsigned, CUstream, void **, void **)>("cuLaunchKernel");
	cudaDriverEntryPointQueryResult status;
	int in[4] = {1, 2, 3, 4}, got[4], five = 5, *p;
	CUcontext primary;
	cudaFunction_t function;
	void *args[] = {&p}, *none;

	same_context(&primary);
	CHECK(cudaMalloc(&p, sizeof(in)));
	CHECK(cudaMemcpy(p, in, sizeof(in), cudaMemcpyHostToDevice));
	CHECK(cudaMemcpyToSymbol(factor, &five, sizeof(five)));
	CHECK(cudaGetFuncBySymbol(&function, (const void *)multiply));
	EXPECT(launch((CUfunction)function, 1, 1, 1, 4, 1, 1, 0, NULL, args, NULL) == CUDA_SUCCESS);
	CHECK(cudaLaunchKernel((const void *)function, dim3(1), dim3(4), args, 0, 0));
	CHECK(cudaMemcpy(got, p, sizeof(got), cudaMemcpyDeviceToHost));
	for (int i = 0; i < 4; i++)
		EXPECT(got[i] == 25 * in[i]);
	own_context(primary);
	CHECK(cudaMemcpy(got, p, sizeof(got), cudaMemcpyDeviceToHost));
	CHECK(cudaGetDriverEntryPointByVersion(
		"cuNoSuchThing", &none, 12000, cudaEnableDefault, &status));
	EXPECT(!none && status == cudaDriverEntryPointSymbolNotFound);
	return passed();
}
