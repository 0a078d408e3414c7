// also: --default-stream per-thread
/* Bytes, rows and boxes set, in streams and out of them. */
#include "check.h"

int main()
{
	unsigned char got[4096], wanted[4096];
	cudaPitchedPtr box;
	cudaStream_t stream;
	unsigned char *p;

	CHECK(cudaStreamCreate(&stream));
	CHECK(cudaMalloc(&p, sizeof(got)));
	CHECK(cudaMemset(p, 1, sizeof(got)));
	CHECK(cudaMemsetAsync(p + 100, 0x1ff, 17, stream)); /* the low byte counts */
	CHECK(cudaMemset2DAsync(p + 1000, 50, 3, 50, 4, stream)); /* rows without gaps */
	box = make_cudaPitchedPtr(p + 2000, 10, 10, 5);
	CHECK(cudaMemset3DAsync(box, 4, make_cudaExtent(10, 5, 6), stream));
	CHECK(cudaStreamSynchronize(stream));
	memset(wanted, 1, sizeof(wanted));
	memset(wanted + 100, 0xff, 17);
	memset(wanted + 1000, 3, 200);
	memset(wanted + 2000, 4, 300);
	CHECK(cudaMemcpy(got, p, sizeof(got), cudaMemcpyDeviceToHost));
	EXPECT(!memcmp(got, wanted, sizeof(got)));
	CHECK(cudaMemset(p, 9, 0));
	EXPECT_ERROR(cudaMemset2D(p, 5, 0, 6, 2), cudaErrorInvalidPitchValue);
	EXPECT(cudaMemset(NULL, 0, 4) != cudaSuccess);
	return passed();
}
