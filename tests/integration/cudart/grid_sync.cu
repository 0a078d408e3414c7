/* All blocks of a grid meet, by the cooperative groups of the toolkit. */
#include <cooperative_groups.h>

#include "check.h"

__global__ void relax(double *a, double *b, int n, int rounds)
{
	cooperative_groups::grid_group grid = cooperative_groups::this_grid();
	int i = (int)grid.thread_rank();

	for (int r = 0; r < rounds; r++) {
		if (i > 0 && i < n - 1)
			b[i] = (a[i - 1] + a[i] + a[i + 1]) / 4;
		grid.sync();
		double *t = a;
		a = b;
		b = t;
	}
}

int main()
{
	int n = 256, rounds = 6;
	std::vector<double> in(n), next(n), got(n);
	double *a, *b;
	void *args[] = {&a, &b, &n, &rounds};

	for (int i = 0; i < n; i++)
		in[i] = next[i] = i % 17;
	CHECK(cudaMalloc(&a, n * sizeof(double)));
	CHECK(cudaMalloc(&b, n * sizeof(double)));
	CHECK(cudaMemcpy(a, in.data(), n * sizeof(double), cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy(b, in.data(), n * sizeof(double), cudaMemcpyHostToDevice));
	CHECK(cudaLaunchCooperativeKernel((const void *)relax, dim3(4), dim3(64), args, 0, 0));
	CHECK(cudaMemcpy(got.data(), a, n * sizeof(double), cudaMemcpyDeviceToHost));
	for (int r = 0; r < rounds; r++) {
		for (int i = 1; i < n - 1; i++)
			next[i] = (in[i - 1] + in[i] + in[i + 1]) / 4;
		std::swap(in, next);
	}
	EXPECT(got == in);
	return passed();
}
