/* Texture objects over an array and over plain memory. */
#include "check.h"

__global__ void sample(cudaTextureObject_t linear, cudaTextureObject_t flat, float *out, int w)
{
	int x = threadIdx.x, y = blockIdx.x;

	out[y * w + x] =
		tex2D<float>(linear, x + 1.0f, y + 0.5f) + tex1Dfetch<float>(flat, y * w + x);
}

int main()
{
	const int w = 8, h = 4;
	cudaChannelFormatDesc desc = cudaCreateChannelDesc<float>();
	float in[w * h], got[w * h], *plain, *out;
	cudaTextureObject_t linear, flat;
	cudaResourceDesc from = {}, read;
	cudaTextureDesc how = {};
	cudaArray_t array;

	for (int i = 0; i < w * h; i++)
		in[i] = i % w * 10.0f + i / w;
	CHECK(cudaMallocArray(&array, &desc, w, h));
	CHECK(cudaMemcpy2DToArray(array, 0, 0, in, w * 4, w * 4, h, cudaMemcpyHostToDevice));
	CHECK(cudaMalloc(&plain, sizeof(in)));
	CHECK(cudaMalloc(&out, sizeof(in)));
	CHECK(cudaMemcpy(plain, in, sizeof(in), cudaMemcpyHostToDevice));
	from.resType = cudaResourceTypeArray;
	from.res.array.array = array;
	how.addressMode[0] = how.addressMode[1] = cudaAddressModeClamp;
	how.filterMode = cudaFilterModeLinear;
	how.readMode = cudaReadModeElementType;
	CHECK(cudaCreateTextureObject(&linear, &from, &how, NULL));
	CHECK(cudaGetTextureObjectResourceDesc(&read, linear));
	EXPECT(read.resType == cudaResourceTypeArray && read.res.array.array == array);
	from = {};
	from.resType = cudaResourceTypeLinear;
	from.res.linear.devPtr = plain;
	from.res.linear.desc = desc;
	from.res.linear.sizeInBytes = sizeof(in);
	how.filterMode = cudaFilterModePoint;
	CHECK(cudaCreateTextureObject(&flat, &from, &how, NULL));
	sample<<<h, w>>>(linear, flat, out, w);
	CHECK(cudaMemcpy(got, out, sizeof(got), cudaMemcpyDeviceToHost));
	for (int y = 0; y < h; y++)
		for (int x = 0; x < w; x++)
			EXPECT(got[y * w + x] ==
				in[y * w + x] + (x + 1 < w ? (in[y * w + x] + in[y * w + x + 1]) / 2
							   : in[y * w + x]));
	CHECK(cudaDestroyTextureObject(linear));
	CHECK(cudaDestroyTextureObject(flat));
	CHECK(cudaFreeArray(array));
	return passed();
}
