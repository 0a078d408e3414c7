// also: --default-stream per-thread
/* Arrays: described, filled, copied among each other and back. */
#include "check.h"

int main()
{
	const int w = 16, h = 8;
	cudaChannelFormatDesc desc = cudaCreateChannelDesc<float2>(), got;
	std::vector<float2> in(w * h), out(w * h);
	cudaExtent extent;
	unsigned flags;
	cudaArray_t a, b;

	EXPECT(desc.x == 32 && desc.y == 32 && desc.z == 0 && desc.f == cudaChannelFormatKindFloat);
	for (int i = 0; i < w * h; i++)
		in[i] = make_float2(i, -i);
	cudaChannelFormatDesc odd = {8, 16, 0, 0, cudaChannelFormatKindUnsigned};
	EXPECT_ERROR(cudaMallocArray(&a, &odd, w, h), cudaErrorInvalidChannelDescriptor);
	CHECK(cudaMallocArray(&a, &desc, w, h));
	CHECK(cudaMallocArray(&b, &desc, w, h));
	CHECK(cudaArrayGetInfo(&got, &extent, &flags, a));
	EXPECT(!memcmp(&got, &desc, sizeof(got)) && extent.width == w && extent.height == h);
	CHECK(cudaMemcpy2DToArray(a, 0, 0, in.data(), w * sizeof(float2), w * sizeof(float2), h,
		cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy2DArrayToArray(b, 0, 0, a, 0, 0, w * sizeof(float2), h));
	CHECK(cudaMemcpy2DFromArray(out.data(), w * sizeof(float2), b, 0, 0, w * sizeof(float2), h,
		cudaMemcpyDeviceToHost));
	EXPECT(!memcmp(in.data(), out.data(), w * h * sizeof(float2)));
	CHECK(cudaMemcpy2DFromArray(out.data(), 8, a, 3 * sizeof(float2), 2, sizeof(float2), 1,
		cudaMemcpyDeviceToHost));
	EXPECT(out[0].x == 2 * w + 3 && out[0].y == -(2 * w + 3));
	CHECK(cudaFreeArray(a));
	CHECK(cudaFreeArray(b));
	return passed();
}
