// flags: -O2
/* The first program of everybody: memory, a launch, copies of every direction. */
#include "check.h"

__global__ void add(const float *a, const float *b, float *c, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		c[i] = a[i] + b[i];
}

int main()
{
	const int n = 1000;
	const size_t bytes = n * sizeof(float);
	std::vector<float> a(n), b(n), c(n), back(n);
	float *da, *db, *dc, *dd;

	for (int i = 0; i < n; i++) {
		a[i] = 0.5f * i;
		b[i] = 1000.0f - i;
	}
	CHECK(cudaMalloc(&da, bytes));
	CHECK(cudaMalloc(&db, bytes));
	CHECK(cudaMalloc(&dc, bytes));
	CHECK(cudaMalloc(&dd, bytes));
	CHECK(cudaMemcpy(da, a.data(), bytes, cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy(db, b.data(), bytes, cudaMemcpyDefault));
	add<<<(n + 127) / 128, 128>>>(da, db, dc, n);
	CHECK(cudaGetLastError());
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaMemcpy(dd, dc, bytes, cudaMemcpyDeviceToDevice));
	CHECK(cudaMemcpy(c.data(), dd, bytes, cudaMemcpyDeviceToHost));
	for (int i = 0; i < n; i++)
		EXPECT(c[i] == a[i] + b[i]);
	CHECK(cudaMemcpy(back.data(), c.data(), bytes, cudaMemcpyHostToHost));
	EXPECT(back == c);
	CHECK(cudaMemcpy(NULL, NULL, 0, cudaMemcpyHostToDevice));
	for (float *p : {da, db, dc, dd})
		CHECK(cudaFree(p));
	CHECK(cudaFree(NULL));
	void *nothing = &back;
	CHECK(cudaMalloc(&nothing, 0));
	EXPECT(!nothing);
	return passed();
}
