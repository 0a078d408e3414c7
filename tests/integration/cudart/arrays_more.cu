// also: --default-stream per-thread
/* Arrays of three dimensions, levels of detail, and the older calls that copy a row. */
#include "check.h"

int main()
{
	const int w = 6, h = 5, d = 4;
	cudaChannelFormatDesc desc = cudaCreateChannelDesc<int>(), got;
	std::vector<int> in(w * h * d), out(w * h * d);
	cudaMemcpy3DParms p = {};
	cudaMipmappedArray_t levels;
	cudaExtent extent;
	cudaArray_t a, row, level;
	cudaStream_t stream;

	for (size_t i = 0; i < in.size(); i++)
		in[i] = (int)i * 11;
	CHECK(cudaStreamCreate(&stream));
	CHECK(cudaMalloc3DArray(&a, &desc, make_cudaExtent(w, h, d)));
	p.srcPtr = make_cudaPitchedPtr(in.data(), w * sizeof(int), w, h);
	p.dstArray = a;
	p.extent = make_cudaExtent(w, h, d);
	p.kind = cudaMemcpyHostToDevice;
	CHECK(cudaMemcpy3D(&p));
	p = {};
	p.srcArray = a;
	p.srcPos = make_cudaPos(2, 1, 1);
	p.dstPtr = make_cudaPitchedPtr(out.data(), 3 * sizeof(int), 3, 2);
	p.extent = make_cudaExtent(3, 2, 2); /* in elements, as an array is in it */
	p.kind = cudaMemcpyDeviceToHost;
	CHECK(cudaMemcpy3DAsync(&p, stream));
	CHECK(cudaStreamSynchronize(stream));
	for (int z = 0; z < 2; z++)
		for (int y = 0; y < 2; y++)
			for (int x = 0; x < 3; x++)
				EXPECT(out[(z * 2 + y) * 3 + x] ==
					in[((z + 1) * h + y + 1) * w + x + 2]);
	CHECK(cudaMallocArray(&row, &desc, 16));
	CHECK(cudaMemcpy2DToArrayAsync(
		row, 0, 0, in.data(), 64, 64, 1, cudaMemcpyHostToDevice, stream));
	CHECK(cudaMemcpy2DFromArrayAsync(
		out.data(), 64, row, 0, 0, 64, 1, cudaMemcpyDeviceToHost, stream));
	CHECK(cudaStreamSynchronize(stream));
	EXPECT(!memcmp(in.data(), out.data(), 64));
	CHECK(cudaGetChannelDesc(&got, row));
	EXPECT(got.x == 32 && got.y == 0 && got.f == cudaChannelFormatKindSigned);
	CHECK(cudaMallocMipmappedArray(&levels, &desc, make_cudaExtent(16, 8, 0), 3));
	CHECK(cudaGetMipmappedArrayLevel(&level, levels, 1));
	CHECK(cudaArrayGetInfo(&got, &extent, NULL, level));
	EXPECT(extent.width == 8 && extent.height == 4);
	CHECK(cudaFreeMipmappedArray(levels));
	CHECK(cudaFreeArray(a));
	CHECK(cudaFreeArray(row));
	return passed();
}
