// also: --default-stream per-thread
/* Rows with a pitch: allocated, set, copied in part. */
#include "check.h"

__global__ void row_sums(const char *rows, size_t pitch, int width, int height, int *sums)
{
	int y = threadIdx.x, sum = 0;

	if (y >= height)
		return;
	for (int x = 0; x < width; x++)
		sum += ((const int *)(rows + y * pitch))[x];
	sums[y] = sum;
}

int main()
{
	const int width = 37, height = 20;
	std::vector<int> in(width * height), out(width * height);
	int sums[height], *dsums;
	unsigned char corner[2][8];
	size_t pitch;
	char *p, *q;

	for (int i = 0; i < width * height; i++)
		in[i] = i * 7;
	CHECK(cudaMallocPitch(&p, &pitch, width * sizeof(int), height));
	EXPECT(pitch >= width * sizeof(int));
	CHECK(cudaMalloc(&dsums, sizeof(sums)));
	CHECK(cudaMemcpy2D(p, pitch, in.data(), width * sizeof(int), width * sizeof(int), height,
		cudaMemcpyHostToDevice));
	row_sums<<<1, 32>>>(p, pitch, width, height, dsums);
	CHECK(cudaMemcpy(sums, dsums, sizeof(sums), cudaMemcpyDeviceToHost));
	for (int y = 0; y < height; y++) {
		int sum = 0;

		for (int x = 0; x < width; x++)
			sum += in[y * width + x];
		EXPECT(sums[y] == sum);
	}
	CHECK(cudaMallocPitch(&q, &pitch, width * sizeof(int), height));
	CHECK(cudaMemcpy2DAsync(
		q, pitch, p, pitch, width * sizeof(int), height, cudaMemcpyDeviceToDevice, 0));
	CHECK(cudaMemcpy2D(out.data(), width * sizeof(int), q, pitch, width * sizeof(int), height,
		cudaMemcpyDefault));
	EXPECT(in == out);
	CHECK(cudaMemset2D(q, pitch, 0xab, 5, 2));
	CHECK(cudaMemcpy2D(corner, 8, q, pitch, 8, 2, cudaMemcpyDeviceToHost));
	EXPECT(corner[0][4] == 0xab && corner[1][4] == 0xab &&
		corner[0][5] == ((char *)in.data())[5]);
	EXPECT_ERROR(cudaMemcpy2D(q, 3, p, pitch, 4, 2, cudaMemcpyDeviceToDevice),
		cudaErrorInvalidPitchValue);
	CHECK(cudaFree(p));
	CHECK(cudaFree(q));
	return passed();
}
