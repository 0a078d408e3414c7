// also: --default-stream per-thread
/* Boxes of memory: a part of one copied into another, and set. */
#include "check.h"

static const int w = 12, h = 7, d = 5;

static size_t at(int x, int y, int z)
{
	return ((size_t)z * h + y) * w + x;
}

int main()
{
	std::vector<unsigned char> in(w * h * d), out(w * h * d, 0xee);
	cudaPitchedPtr box;
	cudaMemcpy3DParms p = {};
	cudaExtent part = make_cudaExtent(4, 3, 2);

	for (size_t i = 0; i < in.size(); i++)
		in[i] = (unsigned char)(i * 3);
	CHECK(cudaMalloc3D(&box, make_cudaExtent(w, h, d)));
	EXPECT(box.pitch >= w && box.ysize == h);
	p.srcPtr = make_cudaPitchedPtr(in.data(), w, w, h);
	p.dstPtr = box;
	p.extent = make_cudaExtent(w, h, d);
	p.kind = cudaMemcpyHostToDevice;
	CHECK(cudaMemcpy3D(&p));
	p = {};
	p.srcPtr = box;
	p.srcPos = make_cudaPos(5, 2, 1);
	p.dstPtr = make_cudaPitchedPtr(out.data(), w, w, h);
	p.dstPos = make_cudaPos(1, 4, 3);
	p.extent = part;
	p.kind = cudaMemcpyDeviceToHost;
	CHECK(cudaMemcpy3DAsync(&p, 0));
	CHECK(cudaStreamSynchronize(0));
	for (int z = 0; z < d; z++)
		for (int y = 0; y < h; y++)
			for (int x = 0; x < w; x++) {
				bool inside = x >= 1 && x < 5 && y >= 4 && y < 7 && z >= 3;

				EXPECT(out[at(x, y, z)] ==
					(inside ? in[at(x + 4, y - 2, z - 2)] : 0xee));
			}
	CHECK(cudaMemset3D(box, 0x11, part));
	p.srcPos = make_cudaPos(0, 0, 0);
	p.dstPos = make_cudaPos(0, 0, 0);
	p.extent = make_cudaExtent(w, h, d);
	CHECK(cudaMemcpy3D(&p));
	for (int z = 0; z < d; z++)
		for (int y = 0; y < h; y++)
			for (int x = 0; x < w; x++)
				EXPECT(out[at(x, y, z)] ==
					(x < 4 && y < 3 && z < 2 ? 0x11 : in[at(x, y, z)]));
	p.dstPtr.ptr = NULL;
	EXPECT_ERROR(cudaMemcpy3D(&p), cudaErrorInvalidValue);
	CHECK(cudaFree(box.ptr));
	return passed();
}
