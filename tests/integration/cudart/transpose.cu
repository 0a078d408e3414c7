/* A transposition through a padded tile, in a grid of two dimensions. */
#include "check.h"

__global__ void transpose(double *to, const double *from, int w, int h)
{
	__shared__ double tile[16][17];
	int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;

	for (int j = 0; j < 16; j += 4)
		if (x < w && y + j < h)
			tile[threadIdx.y + j][threadIdx.x] = from[(y + j) * w + x];
	__syncthreads();
	x = blockIdx.y * 16 + threadIdx.x;
	y = blockIdx.x * 16 + threadIdx.y;
	for (int j = 0; j < 16; j += 4)
		if (x < h && y + j < w)
			to[(y + j) * h + x] = tile[threadIdx.x][threadIdx.y + j];
}

int main()
{
	const int w = 45, h = 35;
	std::vector<double> in(w * h), out(w * h);
	double *from, *to;

	for (int i = 0; i < w * h; i++)
		in[i] = 1.0 / (i + 1);
	CHECK(cudaMalloc(&from, w * h * sizeof(double)));
	CHECK(cudaMalloc(&to, w * h * sizeof(double)));
	CHECK(cudaMemcpy(from, in.data(), w * h * sizeof(double), cudaMemcpyHostToDevice));
	transpose<<<dim3((w + 15) / 16, (h + 15) / 16), dim3(16, 4)>>>(to, from, w, h);
	CHECK(cudaMemcpy(out.data(), to, w * h * sizeof(double), cudaMemcpyDeviceToHost));
	for (int y = 0; y < h; y++)
		for (int x = 0; x < w; x++)
			EXPECT(out[x * h + y] == in[y * w + x]);
	return passed();
}
