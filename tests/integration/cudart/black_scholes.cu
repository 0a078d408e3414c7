/* Prices of options: single-precision mathematics, within a tolerance. */
#include <cmath>

#include "check.h"

__host__ __device__ static float cumulative(float d)
{
	float k = 1.0f / (1.0f + 0.2316419f * fabsf(d));
	float sum =
		k *
		(0.31938153f +
			k * (-0.356563782f +
				    k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f))));
	float c = 0.39894228f * expf(-0.5f * d * d) * sum;

	return d > 0 ? 1.0f - c : c;
}

__host__ __device__ static float call(float s, float x, float t, float r, float v)
{
	float root = sqrtf(t), d1 = (logf(s / x) + (r + 0.5f * v * v) * t) / (v * root);

	return s * cumulative(d1) - x * expf(-r * t) * cumulative(d1 - v * root);
}

__global__ void price(float *out, const float *s, const float *x, const float *t, int n)
{
	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		out[i] = call(s[i], x[i], t[i], 0.02f, 0.3f);
}

int main()
{
	const int n = 500;
	std::vector<float> in[3], out(n);
	float *d[4];

	for (int k = 0; k < 3; k++) {
		in[k].resize(n);
		for (int i = 0; i < n; i++)
			in[k][i] = k == 2 ? 0.25f + i % 40 * 0.25f : 5.0f + (i * (k + 7)) % 90;
		CHECK(cudaMalloc(&d[k], n * sizeof(float)));
		CHECK(cudaMemcpy(d[k], in[k].data(), n * sizeof(float), cudaMemcpyHostToDevice));
	}
	CHECK(cudaMalloc(&d[3], n * sizeof(float)));
	price<<<2, 64>>>(d[3], d[0], d[1], d[2], n);
	CHECK(cudaMemcpy(out.data(), d[3], n * sizeof(float), cudaMemcpyDeviceToHost));
	for (int i = 0; i < n; i++)
		EXPECT(std::fabs(out[i] - call(in[0][i], in[1][i], in[2][i], 0.02f, 0.3f)) <
			1e-4f * (1 + out[i]));
	return passed();
}
