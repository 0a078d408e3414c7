// softgpu: --gpus 2
/* Boxes copied between devices; pools and attributes of a pair of devices. */
#include "check.h"

int main()
{
	const int w = 8, h = 4, d = 3;
	unsigned char in[w * h * d], out[w * h * d];
	cudaMemcpy3DPeerParms p = {};
	cudaPitchedPtr box[2];
	int value = -1;

	for (int i = 0; i < w * h * d; i++)
		in[i] = (unsigned char)(i ^ 0x5a);
	for (int i = 0; i < 2; i++) {
		CHECK(cudaSetDevice(i));
		CHECK(cudaMalloc3D(&box[i], make_cudaExtent(w, h, d)));
	}
	CHECK(cudaSetDevice(0));
	CHECK(cudaMemcpy2D(box[0].ptr, box[0].pitch, in, w, w, h * d, cudaMemcpyHostToDevice));
	p.srcPtr = box[0];
	p.dstPtr = box[1];
	p.dstDevice = 1;
	p.extent = make_cudaExtent(w, h, d);
	CHECK(cudaMemcpy3DPeer(&p));
	CHECK(cudaSetDevice(1));
	CHECK(cudaMemcpy2D(out, w, box[1].ptr, box[1].pitch, w, h * d, cudaMemcpyDeviceToHost));
	EXPECT(!memcmp(in, out, sizeof(in)));
	CHECK(cudaMemset3D(box[1], 0, p.extent));
	CHECK(cudaMemcpy3DPeerAsync(&p, 0));
	CHECK(cudaMemcpy2D(out, w, box[1].ptr, box[1].pitch, w, h * d, cudaMemcpyDeviceToHost));
	EXPECT(!memcmp(in, out, sizeof(in)));
	CHECK(cudaDeviceGetP2PAttribute(&value, cudaDevP2PAttrAccessSupported, 0, 1));
	EXPECT(value == 0 || value == 1);
	p.dstDevice = 5;
	EXPECT_ERROR(cudaMemcpy3DPeer(&p), cudaErrorInvalidDevice);
	return passed();
}
