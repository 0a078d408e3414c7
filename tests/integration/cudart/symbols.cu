// also: --default-stream per-thread
/* Variables of the device by their names in the program. */
#include "check.h"

__constant__ float coefficients[4] = {1, 2, 3, 4};
__device__ int counters[8];
__device__ double scale = 0.5;

__global__ void evaluate(const float *x, double *y, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i >= n)
		return;
	y[i] = scale * (coefficients[0] +
			       x[i] * (coefficients[1] +
					      x[i] * (coefficients[2] + x[i] * coefficients[3])));
	atomicAdd(&counters[i % 8], 1);
}

static void run(const float *c, double s)
{
	const int n = 64;
	std::vector<float> x(n);
	std::vector<double> y(n);
	float *dx;
	double *dy;

	for (int i = 0; i < n; i++)
		x[i] = i / 8.0f;
	CHECK(cudaMalloc(&dx, n * sizeof(*dx)));
	CHECK(cudaMalloc(&dy, n * sizeof(*dy)));
	CHECK(cudaMemcpy(dx, x.data(), n * sizeof(*dx), cudaMemcpyHostToDevice));
	evaluate<<<2, 32>>>(dx, dy, n);
	CHECK(cudaMemcpy(y.data(), dy, n * sizeof(*dy), cudaMemcpyDeviceToHost));
	for (int i = 0; i < n; i++)
		EXPECT(y[i] == s * (c[0] + x[i] * (c[1] + x[i] * (c[2] + x[i] * c[3]))));
	CHECK(cudaFree(dx));
	CHECK(cudaFree(dy));
}

int main()
{
	const float first[4] = {1, 2, 3, 4}, second[4] = {4, 3, 0.25f, 1};
	int counts[8] = {};
	double s = 2;
	void *address;
	size_t bytes;

	run(first, 0.5);
	CHECK(cudaMemcpyToSymbol(coefficients, second, 8));
	CHECK(cudaMemcpyToSymbol(coefficients, second + 2, 8, 8, cudaMemcpyHostToDevice));
	CHECK(cudaMemcpyToSymbolAsync(scale, &s, sizeof(s), 0, cudaMemcpyHostToDevice, 0));
	run(second, 2);
	CHECK(cudaMemcpyFromSymbol(counts, counters, sizeof(counts)));
	for (int count : counts)
		EXPECT(count == 16);
	CHECK(cudaMemcpyFromSymbolAsync(counts, counters, 4, 28, cudaMemcpyDeviceToHost, 0));
	CHECK(cudaStreamSynchronize(0));
	EXPECT(counts[0] == 16);
	CHECK(cudaGetSymbolSize(&bytes, counters));
	EXPECT(bytes == sizeof(counts));
	CHECK(cudaGetSymbolAddress(&address, counters));
	CHECK(cudaMemset(address, 0, bytes));
	CHECK(cudaMemcpyFromSymbol(counts, counters, sizeof(counts)));
	EXPECT(counts[0] == 0 && counts[7] == 0);
	EXPECT_ERROR(cudaMemcpyToSymbol(coefficients, second, 8, 12), cudaErrorInvalidValue);
	EXPECT_ERROR(cudaMemcpyToSymbol(scale, &s, 8, 0, cudaMemcpyDeviceToHost),
		cudaErrorInvalidMemcpyDirection);
	EXPECT_ERROR(cudaMemcpyFromSymbol(&s, first, 8), cudaErrorInvalidSymbol);
	return passed();
}
