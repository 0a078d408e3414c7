// also: --default-stream per-thread
/* Memory in stream order, from the device's pool and from one of our own. */
#include "check.h"

__global__ void iota(int *p, int n, int from)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		p[i] = from + i;
}

static void use(cudaMemPool_t pool, cudaStream_t stream)
{
	const int n = 500;
	std::vector<int> got(n);
	int *p;

	if (pool)
		CHECK(cudaMallocFromPoolAsync((void **)&p, n * sizeof(int), pool, stream));
	else
		CHECK(cudaMallocAsync((void **)&p, n * sizeof(int), stream));
	iota<<<4, 128, 0, stream>>>(p, n, 40);
	CHECK(cudaMemcpyAsync(got.data(), p, n * sizeof(int), cudaMemcpyDeviceToHost, stream));
	CHECK(cudaFreeAsync(p, stream));
	CHECK(cudaStreamSynchronize(stream));
	for (int i = 0; i < n; i++)
		EXPECT(got[i] == 40 + i);
}

int main()
{
	unsigned long long threshold = 4 << 20, now = 0;
	cudaMemPoolProps props = {};
	cudaMemPool_t pool, own;
	cudaStream_t stream;

	CHECK(cudaStreamCreate(&stream));
	use(NULL, stream);
	CHECK(cudaDeviceGetDefaultMemPool(&pool, 0));
	CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
	use(NULL, stream);
	CHECK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &now));
	EXPECT(now > 0);
	CHECK(cudaMemPoolTrimTo(pool, 0));
	CHECK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &now));
	EXPECT(now == 0);
	props.allocType = cudaMemAllocationTypePinned;
	props.location.type = cudaMemLocationTypeDevice;
	CHECK(cudaMemPoolCreate(&own, &props));
	use(own, stream);
	CHECK(cudaDeviceSetMemPool(0, own));
	CHECK(cudaDeviceGetMemPool(&pool, 0));
	EXPECT(pool == own);
	use(NULL, stream);
	CHECK(cudaMemPoolDestroy(own));
	CHECK(cudaStreamDestroy(stream));
	return passed();
}
