/* A product of matrices in tiles, for sizes that no tile fits. */
#include "check.h"

static const int TILE = 8;

struct matrix {
	int rows, columns;
	float *data;
};

__global__ void multiply(matrix a, matrix b, matrix c)
{
	__shared__ float ta[TILE][TILE], tb[TILE][TILE];
	int y = blockIdx.y * TILE + threadIdx.y, x = blockIdx.x * TILE + threadIdx.x;
	float sum = 0;

	for (int at = 0; at < a.columns; at += TILE) {
		int ax = at + threadIdx.x, by = at + threadIdx.y;

		ta[threadIdx.y][threadIdx.x] =
			y < a.rows && ax < a.columns ? a.data[y * a.columns + ax] : 0;
		tb[threadIdx.y][threadIdx.x] =
			by < b.rows && x < b.columns ? b.data[by * b.columns + x] : 0;
		__syncthreads();
		for (int k = 0; k < TILE; k++)
			sum += ta[threadIdx.y][k] * tb[k][threadIdx.x];
		__syncthreads();
	}
	if (y < c.rows && x < c.columns)
		c.data[y * c.columns + x] = sum;
}

static matrix make(int rows, int columns, const float *data)
{
	matrix m = {rows, columns, NULL};

	CHECK(cudaMalloc(&m.data, rows * columns * sizeof(float)));
	if (data)
		CHECK(cudaMemcpy(
			m.data, data, rows * columns * sizeof(float), cudaMemcpyHostToDevice));
	return m;
}

int main()
{
	const int n = 19, m = 23, k = 30;
	std::vector<float> a(n * k), b(k * m), c(n * m);

	for (int i = 0; i < n * k; i++)
		a[i] = i % 7 - 3;
	for (int i = 0; i < k * m; i++)
		b[i] = i % 5 - 2;
	matrix da = make(n, k, a.data()), db = make(k, m, b.data()), dc = make(n, m, NULL);
	multiply<<<dim3((m + TILE - 1) / TILE, (n + TILE - 1) / TILE), dim3(TILE, TILE)>>>(
		da, db, dc);
	CHECK(cudaGetLastError());
	CHECK(cudaMemcpy(c.data(), dc.data, n * m * sizeof(float), cudaMemcpyDeviceToHost));
	for (int y = 0; y < n; y++)
		for (int x = 0; x < m; x++) {
			float sum = 0;

			for (int i = 0; i < k; i++)
				sum += a[y * k + i] * b[i * m + x];
			EXPECT(c[y * m + x] == sum);
		}
	return passed();
}
